"""One reader per file format: bytes in, text and its sections out. formats.py says which reader reads which file."""
