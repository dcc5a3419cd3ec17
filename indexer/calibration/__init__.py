"""Measurements on an index's passages: cosines of unrelated texts, and how well words and vectors find answers."""
