"""Clustering: group the documents of an index by the vectors that it stores.

Prints:

    ['A man is eating pasta.', 'A man is eating bread.']
    ['A monkey is playing drums.', 'Someone in a gorilla costume is playing a set of drums.']
    ['A cheetah is running behind its prey.', 'A cheetah chases its prey across a field.']
"""

import numpy as np
from sklearn.cluster import AgglomerativeClustering

from likewise import Document, Index, Searcher

TEXTS = [
    "A man is eating pasta.",
    "A man is eating bread.",
    "A monkey is playing drums.",
    "Someone in a gorilla costume is playing a set of drums.",
    "A cheetah is running behind its prey.",
    "A cheetah chases its prey across a field.",
]

index = Index.temporary()
index.add(Document(str(number), text) for number, text in enumerate(TEXTS))
with Searcher(index.address) as searcher:
    rows = np.stack([searcher.vectors(uri).mean(axis=0) for uri in searcher.uris()])
labels = AgglomerativeClustering(n_clusters=3).fit_predict(rows)
for cluster in dict.fromkeys(labels.tolist()):
    print([text for text, label in zip(TEXTS, labels, strict=True) if label == cluster])
index.close()
