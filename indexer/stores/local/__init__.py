"""The store in a folder on this machine: SQLite decides what exists, FAISS finds what is near, tantivy finds words."""
