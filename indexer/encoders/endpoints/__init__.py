"""Encoders behind an endpoint: its address, its requests and its retries."""
