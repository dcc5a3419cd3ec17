"""Measured tables. Each module prints one, as Markdown, when run: `python -m benchmarks.NAME`."""
