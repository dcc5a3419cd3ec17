"""likewise in Haystack. Extra `haystack`."""

from search.adapters.haystack import LikewiseBM25Retriever as LikewiseBM25Retriever
from search.adapters.haystack import LikewiseDocumentStore as LikewiseDocumentStore
from search.adapters.haystack import LikewiseEmbeddingRetriever as LikewiseEmbeddingRetriever
