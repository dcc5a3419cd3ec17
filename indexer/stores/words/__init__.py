"""The words of texts: how a text is divided into words, their tantivy index, and their BM25 ranking."""
