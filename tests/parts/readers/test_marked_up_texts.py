"""Texts in reStructuredText and Org: titles, sections, and the header of PEPs."""

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

DATA = Path(os.environ.get("LIKEWISE_EVAL_DATA", "/nonexistent")) / "data"
PEPS = DATA / "peps"


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


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("#+TITLE: The /year/ of the storm\n", "The /year/ of the storm"),
        (":PROPERTIES:\n:ID: 7\n:END:\n\n# a note\n#+filetags: :sea:\r\n#+title:  The\r\n#+title: storm", "The storm"),
        ("#+TITLE:\n#+AUTHOR: Ada\n", "notes"),
        ("It began.\n#+TITLE: of a quotation\n", "notes"),
    ],
)
def test_the_title_of_org(tmp_path: Path, collect: Collect, head: str, expected: str) -> None:
    path = tmp_path / "notes.org"
    path.write_bytes(f"{head}\n* Rain\n#+title: no\n".encode())
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.document.title, entry.document.format) == (expected, "org")
    assert entry.document.text == path.read_bytes().decode()


def test_restructuredtext(tmp_path: Path, collect: Collect) -> None:
    text = (
        "=====\nTitle\n=====\n\nLead.\n\nOne\n===\n\ntext\n\nSub\n---\n\n::\n\n  No heading\n  ----------\n\n"
        "Two words\n=========\n\n=====  =====\nA      B\n=====  =====\n\npara\nline\n----\n"
    )
    document = one(collect, tmp_path / "a.rst", text)
    assert (document.title, document.format, document.text) == ("Title", "rst", text)
    assert [(section.heading, text[section.start :].partition("\n")[0]) for section in document.sections] == [
        ("Title", "====="),
        ("Title > One", "One"),
        ("Title > One > Sub", "Sub"),
        ("Title > Two words", "Two words"),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="LIKEWISE_EVAL_DATA is not set")
def test_every_pep_and_every_chapter_is_read(collect: Collect) -> None:
    peps = collect(DATA / "peps")
    assert len(peps) == 751
    assert {entry.state for entry in peps} == {"read"}
    for entry in peps:
        document = entry.document
        assert document is not None
        assert document.text.encode() == Path(entry.uri).read_bytes()
        plain = document.text.replace("``\\ ", "").replace("``", "").replace("\\*", "*")  # titles have no markup
        assert document.title in plain or document.title == Path(entry.uri).stem
    book = [entry.document for entry in collect(DATA / "rust-book") if entry.document]
    assert sum(document.format == "docx" for document in book) == 28
    assert sum(document.format == "markdown" for document in book) == 145
    assert all(document.sections for document in book if document.format == "docx")
