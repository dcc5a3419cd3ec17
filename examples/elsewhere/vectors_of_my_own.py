import faiss
import numpy as np

rows = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
years = np.array([2000 + n % 25 for n in range(1000)])

faiss.normalize_L2(rows)
index = faiss.IndexFlatIP(64)
index.add(rows)
allowed = np.flatnonzero(years >= 2005)
parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))
scores, found = index.search(rows[7:8], 3, params=parameters)
print(len(allowed), "pass the filter;", [str(row) for row in found[0]], f"{scores[0][0]:.2f}", True)
