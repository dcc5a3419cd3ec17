"""Encoders compiled to OpenVINO graphs, with which questions need no torch."""
