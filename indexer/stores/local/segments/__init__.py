"""Segments: immutable files of vectors beside the catalog, built, opened and searched with FAISS."""
