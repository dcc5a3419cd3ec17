"""Paraphrase mining: the most similar pairs of sentences in a collection.

For a million sentences, `likewise pairs FILE` compares them all, exactly and in blocks.

Prints:

    0.89  The new movie is awesome / The new movie is so great
    0.68  The cat sits outside / The cat plays in the garden
"""

from likewise import Document, Index, Searcher

SENTENCES = [
    "The cat sits outside",
    "A man is playing guitar",
    "I love pasta",
    "The new movie is awesome",
    "The cat plays in the garden",
    "A woman watches TV",
    "The new movie is so great",
    "Do you like pizza?",
]

index = Index.temporary()
index.add(Document(str(number), sentence) for number, sentence in enumerate(SENTENCES))
with Searcher(index.address) as searcher:
    pairs = {
        (round(hit.score, 2), *sorted((int(document.uri), int(hit.uri))))
        for document in index
        for hit in searcher.similar(document.uri, k=3)
    }
for score, one, other in sorted(pairs, reverse=True)[:2]:
    print(f"{score:.2f}  {SENTENCES[int(one)]} / {SENTENCES[int(other)]}")
index.close()
