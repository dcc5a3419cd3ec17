"""Vectors from another program: filters, updates and crash safety around vectors that likewise did not make.

Prints:

    800 pass the filter; ['7', '882', '535'] 1.00 True
"""

import numpy as np

from likewise import Document, Index, Searcher

rows = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)

index = Index.temporary(dimensions=64)
index.add([Document(str(n), f"item {n}", metadata={"year": 2000 + n % 25}) for n in range(1000)], vectors=rows)
with Searcher(index.address) as searcher:
    hits = searcher.search_vector(rows[7], k=3, where="year >= 2005")
    print(hits.matched, "pass the filter;", [hit.uri for hit in hits], f"{hits[0].score:.2f}", hits.exact)
index.close()
