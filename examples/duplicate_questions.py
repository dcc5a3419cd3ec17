"""Duplicate questions: before a question is posted, show those that were asked before, unless none is near enough.

Prints:

    What should I do to learn the Python language? -> How do I learn Python?
    How tall is Mount Everest? -> new
"""

from likewise import Document, Index, Searcher

ASKED = [
    "How do I learn Python?",
    "What is the best way to cook rice?",
    "How can I lose weight quickly?",
    "Where can I buy cheap flights?",
]
NEW = ["What should I do to learn the Python language?", "How tall is Mount Everest?"]

index = Index.temporary()
index.add(Document(str(number), question) for number, question in enumerate(ASKED))
with Searcher(index.address) as searcher:
    for hits in searcher.search_many(NEW, k=1, min_score=0.6):
        print(hits.query, "->", hits[0].text if hits else "new")
index.close()
