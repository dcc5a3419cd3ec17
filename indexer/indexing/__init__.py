"""Whole runs and what they need: sources in, documents embedded and committed."""
