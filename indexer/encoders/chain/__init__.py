"""Encoders around encoders: several over one model, and one of two models."""
