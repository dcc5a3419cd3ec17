"""Search a folder of notes: each file is a document, and its path is its uri.

`likewise index notes.index NOTES` does the same for many formats, and embeds only what has changed.

Prints:

    5 added, 0 unchanged
    0.43  tides.txt  Reading the tides
    0.36  weather.txt  How clouds foretell the weather
"""

from pathlib import Path

from likewise import Document, Index, Searcher

NOTES = Path("data/collection/notes")

with Index.open("notes.index", create=True) as index:
    changes = index.add(Document(path.name, path.read_text(encoding="utf-8")) for path in sorted(NOTES.glob("*.txt")))
    print(len(changes.added), "added,", len(changes.unchanged), "unchanged")

with Searcher("notes.index") as searcher:
    for hit in searcher.search("why does the sea rise and fall", k=2):
        print(f"{hit.score:.2f}  {hit.uri}  {hit.text.splitlines()[0]}")
