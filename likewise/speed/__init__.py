"""Faster blocks on torch, OpenVINO for documents, and the compilation of the encoder of questions."""
