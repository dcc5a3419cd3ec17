"""Retrieve and re-rank: a second, slower scorer puts the best hits of the first search into a new order.

`rerank` takes the name of a cross-encoder, such as "cross-encoder/ms-marco-MiniLM-L6-v2", or any function of a question
and texts. This one counts words, so that the example needs no second model.

Prints:

    5 shared words, was rank 2: Paris is the capital of France and lies on the Seine.
    4 shared words, was rank 3: The capital of Germany is Berlin.
"""

from collections.abc import Sequence

from likewise import Document, Index, Searcher

TEXTS = [
    "Paris is the capital of France and lies on the Seine.",
    "The capital of Germany is Berlin.",
    "France has a capital with a famous tower.",
    "Bread goes stale as its starch crystallises.",
]


def shared_words(question: str, texts: Sequence[str]) -> list[float]:
    words = set(question.lower().split())
    return [float(len(words & set(text.lower().rstrip(".").split()))) for text in texts]


index = Index.temporary()
index.add(Document(str(number), text) for number, text in enumerate(TEXTS))
with Searcher(index.address) as searcher:
    question = "what is the capital of France"
    for hit in searcher.search(question, k=2, rerank=shared_words, rerank_depth=4):
        assert hit.why is not None
        print(f"{hit.score:.0f} shared words, was rank {hit.why['first']['rank']}: {hit.text}")
index.close()
