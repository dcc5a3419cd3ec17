"""The public path of what `likewise.adapters.llamaindex` holds."""

from indexer.doors import installed

with installed("adapters"):
    from likewise.adapters.llamaindex import LikewiseVectorStore as LikewiseVectorStore
