"""What readers ask of a snapshot, the same for every engine: rows, pages, nearest passages, candidates of both legs."""
