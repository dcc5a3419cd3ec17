"""Hits, and what is shown with them: reasons, marks, the nearest sentence, and a second order by a reranker."""
