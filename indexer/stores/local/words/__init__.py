"""The word index: documents and passages as terms in a tantivy index, derived from the catalog, ranked by BM25."""
