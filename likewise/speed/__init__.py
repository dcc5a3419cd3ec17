"""Faster blocks on torch, OpenVINO for documents and the rule that chooses it, and the compilation of the encoder of questions."""
