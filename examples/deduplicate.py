"""Deduplicate: keep the first of texts that say the same, while they arrive one by one.

Prints:

    new       The meeting was moved to Friday.
    new       Our shop closes at six on Saturdays.
    same as 0 The meeting has been rescheduled to Friday.
    same as 1 On Saturdays the shop is open until six.
    new       Lunch is free today.
"""

from likewise import Document, Index, Searcher

STREAM = [
    "The meeting was moved to Friday.",
    "Our shop closes at six on Saturdays.",
    "The meeting has been rescheduled to Friday.",
    "On Saturdays the shop is open until six.",
    "Lunch is free today.",
]

index = Index.temporary()
searcher = Searcher(index.address)
for number, text in enumerate(STREAM):
    near = searcher.search(text, k=1, min_score=0.75)  # sees what was added before
    print(f"same as {near[0].uri}" if near else "new      ", text)
    if not near:
        index.add(Document(str(number), text))
searcher.close()
index.close()
