"""An index in PostgreSQL: the address replaces the folder, everything else is the same.

Prints:

    bread 1
"""

import sys

from likewise import Document, Index, Searcher

ADDRESS = sys.argv[1]  # such as postgresql://user@host/db?index=notes

with Index.open(ADDRESS, create=True) as index:
    index.add([Document("bread", "Bread goes stale.", metadata={"year": 2024}), Document("tea", "Tea cools in a cup.")])
with Searcher(ADDRESS) as searcher:
    hits = searcher.search("old loaf", k=1, where={"year": {">=": 2020}}, mode="hybrid")
    print(hits[0].uri, hits.matched)
