"""Readers of other packages, found by their entry points, and files whose reader is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drawn_parts import copy_without

from indexer import doors
from indexer.errors import BadInput
from indexer.ledger import NO_REASON, Code
from indexer.records import Document, KnownFile, Section, Span
from indexer.sources import Entry, ExtractorProgram, formats
from indexer.sources.content import Skip
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.files.worker import call_reader
from indexer.stores.lines import with_lines

Collect = Callable[..., list[Entry]]

ROOT = Path(__file__).parents[3]

READER = """
from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Skip

def read(path: str) -> Content:
    lines = open(path, encoding="utf-8").read().splitlines()
    if lines[0] == "nothing":
        return "a text"
    fields = dict(line.split(":", 1) for line in lines)
    if "FN" not in fields:
        raise Skip(Code.NO_TEXT())
    assembly = Assembly()
    assembly.section(fields["FN"])
    assembly.add(fields["FN"])
    assembly.add(fields["ORG"])
    return assembly.content(fields["FN"], {"organization": fields["ORG"]})
"""

CARD = "BEGIN:VCARD\nFN:Ada Lovelace\nORG:Analytical Engines\nEND:VCARD\n"


def forget() -> None:
    """Let the next file look for readers again, and in another worker process."""
    EXTRACTOR.close()
    doors._entry_points.cache_clear()
    formats._added_formats.cache_clear()


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that reads cards is installed."""
    folder = tmp_path / "packages"
    facts = folder / "likewise_cards-1.dist-info"
    facts.mkdir(parents=True)
    (folder / "likewise_cards.py").write_text(READER)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: likewise-cards\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[likewise.readers]\ncard = likewise_cards:read\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    forget()
    yield
    monkeypatch.undo()
    forget()


def one(collect: Collect, path: Path, text: str, known: dict[str, KnownFile] | None = None) -> Entry:
    path.write_text(text)
    (entry,) = collect(path, known=known)
    return entry


def test_a_package_reads_files_with_an_extension_of_its_own(cards: None, tmp_path: Path, collect: Collect) -> None:
    entry = one(collect, tmp_path / "ada.CARD", CARD)
    assert entry.reader == "card/1"
    document = entry.document
    assert document is not None
    assert (document.text, document.title, document.format) == (
        "Ada Lovelace\n\nAnalytical Engines",
        "Ada Lovelace",
        "card",
    )
    assert document.metadata == {"organization": "Analytical Engines", "size": len(CARD)}
    assert document.sections == (Section(0, "Ada Lovelace"),)
    assert [line for _, line in with_lines(document, [Span(0, 12), Span(14, 32)])] == [None, None]


def test_a_reader_of_a_package_refuses_files_with_a_reason(cards: None, tmp_path: Path, collect: Collect) -> None:
    entry = one(collect, tmp_path / "a.card", "BEGIN:VCARD\nEND:VCARD\n")
    assert (entry.state, entry.reason) == ("skipped", Code.NO_TEXT())
    entry = one(collect, tmp_path / "a.card", "no card\n")
    assert entry.state == "failed"
    assert entry.reason.text().startswith("damaged, or no card file (ValueError: ")
    entry = one(collect, tmp_path / "a.card", "nothing\n")
    assert entry.reason.text() == "damaged, or no card file (its reader returns str, not Content)"


def test_a_file_that_was_read_as_plain_text_is_read_again_by_a_new_package(
    cards: None, tmp_path: Path, collect: Collect
) -> None:
    path = tmp_path / "ada.card"
    path.write_text(CARD)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    stamp = collect(path)[0].stamp
    assert stamp is not None
    for reader, state in (("text/1", "read"), ("card/1", "unchanged")):
        known = {str(path): KnownFile(stamp, ((str(path), "indexed", NO_REASON),), frozenset({reader}))}
        assert [entry.state for entry in collect(path, known=known)] == [state]


def test_a_program_of_the_user_cannot_have_an_extension_that_a_package_reads(cards: None) -> None:
    with pytest.raises(BadInput, match=r"^extractor of \".card\": likewise reads these files itself: leave it out$"):
        ExtractorProgram(".card", (sys.executable, "{file}"))


def test_the_text_of_a_format_that_nobody_reads_has_lines() -> None:
    document = Document("a", "one\ntwo", path="/a.card", format="card")
    assert [line for _, line in with_lines(document, [Span(0, 3), Span(4, 7)])] == [1, 2]


def test_a_file_whose_reader_is_missing_is_skipped_and_tried_again(
    tmp_path: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the worker process, where a part that is not there cannot be patched away."""
    monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "readers": {"pdf": "likewise.gone.pdf:read"}})
    with pytest.raises(Skip, match=r"^no reader of pdf is installed: pip install likewise$"):
        call_reader("pdf", "a.pdf")
    path = tmp_path / "a.md"
    path.write_text("# One\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    stamp = collect(path)[0].stamp
    assert stamp is not None
    skipped = ((str(path), "skipped", Code.NO_READER("markdown", "pip install likewise")),)
    known = {str(path): KnownFile(stamp, skipped, frozenset({"markdown/1"}))}
    assert [entry.state for entry in collect(path, known=known)] == ["read"]


WITHOUT = """
import sys
from indexer.errors import LikewiseError
from indexer.sources import ReadOptions, open_sources, read
from indexer.stores.addresses.open import holds_store

options = ReadOptions()
for entry in read(open_sources(sys.argv[1:], options, holds_store)[0], options, {}.get):
    print(entry.uri.rpartition("/")[2], entry.state, entry.reason.text(), sep="|")
try:
    from indexer.sources import ExtractorProgram
except LikewiseError as error:
    print(error)
"""


@pytest.mark.timeout(120)
def test_without_the_part_its_files_are_skipped_with_what_to_install(tmp_path: Path) -> None:
    """On a copy of the source without the modules of the part."""
    packages = tmp_path / "packages"
    copy_without(packages, ["readers"])
    folder = tmp_path / "files"
    for name, text in {
        "a.txt": "plain text",
        "b.md": "# A heading\n\ntext",
        "c.jsonl": '{"id": "record", "text": "a record"}\n',
        "d.html": "<p>page</p>",
        "e.rst": "Title\n=====\n",
        "list@example.org": "From a@b.org Sat Jan  6 10:00:00 2024\nSubject: Hello\n\ntext\n",
        "mail/cur/1.a.host:2,S": "Subject: Hello\n\ntext\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in ("new", "tmp"):
        (folder / "mail" / name).mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(folder)],
        env={**os.environ, "PYTHONPATH": str(packages)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    needs = "pip install likewise"
    assert ran.stdout.splitlines() == [
        "a.txt|read|",
        "b.md|read|",
        "record|read|",
        f"d.html|skipped|no reader of html is installed: {needs}",
        f"e.rst|skipped|no reader of rst is installed: {needs}",
        f"list@example.org|skipped|no reader of mbox is installed: {needs}",
        f"1.a.host|skipped|no reader of maildir is installed: {needs}",
        f"a program that extracts text needs a part of likewise that is not installed (readers): {needs}",
    ]
