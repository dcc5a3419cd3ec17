"""Made tests/golden/version-1.index, once, with the first version; run for a new format, under a new name.

python tests/golden/make.py tests/golden/version-N.index
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from opened import store_of

from indexer import Document, Index

DIMENSIONS, COUNT = 8, 300
ROWS = np.random.default_rng(2024).normal(size=(COUNT + 2, DIMENSIONS)).astype(np.float32)


FORMS = ("%Y-%m-%d", "%d-%b-%Y", "%B %d, %Y", "%Y/%m/%d", "%a, %d %b %Y 10:30:00 +0200", "%d.%m.%Y")
"""How the days of the documents are written, in turn; the last form is not read as a date."""


def day(number: int) -> str:
    """One of the days from 1 January 2020 on. Version 1 had no dates."""
    return (date(2020, 1, 1) + timedelta(days=number)).strftime(FORMS[number % len(FORMS)])


def main(folder: Path) -> None:
    with Index.create(folder, dimensions=DIMENSIONS) as index:
        documents = [
            Document(f"d{i}", f"text {i}", f"title {i}", {"n": i, "even": i % 2 == 0, "day": day(i)})
            for i in range(COUNT)
        ]
        index.add(documents, vectors=ROWS[:COUNT])
        index.compact("approximate")
        index.add([Document("sealed", "in an exact segment")], vectors=ROWS[COUNT : COUNT + 1])
        with store_of(index).writer() as writer:
            writer.settle()
        index.remove(["d7"])
        index.add([Document("tail", "in no segment")], vectors=ROWS[COUNT + 1 :])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
