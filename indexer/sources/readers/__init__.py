"""One reader per file format: a file's text and its sections. formats.py names the reader of each file."""
