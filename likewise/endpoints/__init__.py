"""Encoders behind an endpoint: its address and its requests."""
