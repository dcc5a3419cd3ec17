"""Encoders around encoders: several over one model, one of two models, and one that waits for its model."""
