"""Encoders compiled to an OpenVINO graph, which a question runs without torch."""
