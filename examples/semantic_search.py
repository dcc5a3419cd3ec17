"""Semantic search: the sentences of a corpus that are nearest in meaning to each question.

Prints:

    A man is eating pasta.
      0.70  A man is eating food.
      0.53  A man is eating a piece of bread.
    Someone in a gorilla costume is playing a set of drums.
      0.64  A monkey is playing drums.
      0.26  A woman is playing violin.
"""

from likewise import Document, Index, Searcher

CORPUS = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A man is riding a horse.",
    "A woman is playing violin.",
    "Two men pushed carts through the woods.",
    "A monkey is playing drums.",
    "A cheetah is running behind its prey.",
]
QUESTIONS = ["A man is eating pasta.", "Someone in a gorilla costume is playing a set of drums."]

index = Index.temporary()
index.add(Document(str(number), sentence) for number, sentence in enumerate(CORPUS))
with Searcher(index.address) as searcher:
    for hits in searcher.search_many(QUESTIONS, k=2):
        print(hits.query)
        for hit in hits:
            print(f"  {hit.score:.2f}  {hit.text}")
index.close()
