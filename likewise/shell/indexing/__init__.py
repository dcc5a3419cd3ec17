"""Runs of `index`, `update`, `watch` and `migrate`, and their options about vectors."""
