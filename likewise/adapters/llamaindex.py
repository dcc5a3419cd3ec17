"""likewise in LlamaIndex. Extra `llamaindex`."""

from search.adapters.llamaindex import LikewiseVectorStore as LikewiseVectorStore
