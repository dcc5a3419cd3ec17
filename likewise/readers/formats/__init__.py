"""Readers: the text of a file, one file per format."""
