"""One reader per file format: a file's text and its sections. indexer/doors.py names them."""
