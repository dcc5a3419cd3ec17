"""PEPs: their header is metadata."""

from __future__ import annotations

import os
import re
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pytest
from engine.sources.test_texts import Collect, one

from indexer import Document, Index
from likewise.readers.formats import rst
from search import Searcher

PEPS = Path(os.environ.get("LIKEWISE_EVAL_DATA", "/nonexistent")) / "data" / "peps"


@pytest.mark.skipif(not PEPS.is_dir(), reason="LIKEWISE_EVAL_DATA is not set")
def test_the_peps_of_a_year_are_found(tmp_path: Path) -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(PEPS.rglob("pep-[0-9]*.rst"))}
    days: dict[str, date] = {}
    for name, text in texts.items():
        created = re.search(r"^Created: *(\d+-[A-Z][a-z]{2}-\d{4})$", text, re.MULTILINE)
        assert created is not None
        days[name] = datetime.strptime(created[1], "%d-%b-%Y").date()
    documents = [Document(name, text, metadata=rst.read(text).metadata) for name, text in texts.items()]
    with Index.create(tmp_path / "peps.index", dimensions=2) as index, Searcher(tmp_path / "peps.index") as searcher:
        index.add(documents, vectors=np.ones((len(documents), 2), np.float32))
        for where, right in (
            ("created >= 2020-01-01", {name for name, day in days.items() if day >= date(2020, 1, 1)}),
            ("created = 2000-07", {name for name, day in days.items() if (day.year, day.month) == (2000, 7)}),
            ('created < "Sept 1, 2000"', {name for name, day in days.items() if day < date(2000, 9, 1)}),
        ):
            assert {document.uri for document in index.documents(where)} == right
        assert searcher.count("created >= 2020-01-01") == 225


def test_a_pep_header(tmp_path: Path, collect: Collect) -> None:
    text = "PEP: 8\nTitle: Style Guide\nAuthor: A,\n        B\nPost-History:\n\n\nIntroduction\n============\n"
    document = one(collect, tmp_path / "pep.rst", text)
    assert document.title == "Style Guide"
    assert document.metadata == {"pep": 8, "author": "A, B", "size": len(text)}
    assert [section.heading for section in document.sections] == ["", "Introduction"]
    assert rst.read("Note: no header\n\nT\n=\n").title == "T"
