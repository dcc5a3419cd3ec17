"""Encoders around encoders: their parts, several over one model, and one that waits for its model."""
