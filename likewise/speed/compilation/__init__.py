"""A torch encoder compiled for OpenVINO."""
