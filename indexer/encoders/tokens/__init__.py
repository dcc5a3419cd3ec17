"""Texts become batches of tokens."""
