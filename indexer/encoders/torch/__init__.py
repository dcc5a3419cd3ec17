"""Encoders that compute with torch: BERT written out, any other model through its library, and cross-encoders."""
