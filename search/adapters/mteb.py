"""The public path of what `likewise.adapters.mteb` holds."""

from indexer.doors import installed

with installed("adapters"):
    from likewise.adapters.mteb import LikewiseSearch as LikewiseSearch
