"""The original of a document: only a file that the index has recorded, as it was then, and only the document's part."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pdf_files
import pytest
from PIL import Image

from indexer.errors import BadInput
from indexer.ledger import Code
from indexer.sources.content import Unreadable
from likewise.readers.mbox import read_message
from likewise.readers.original import NoOriginal
from search import Searcher

MAIL = "From ada@example.org Wed May  1 10:00:00 2024\nMessage-ID: <{0}>\nFrom: Ada <ada@x.org>\n\nAbout the {0}.\n\n"
LONG_AGO = time.time() - 3600


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a PDF, source, a mailbox and records."""
    folder = tmp_path / "files"
    folder.mkdir()
    lines = ("The moon orbits the earth.", "A comet has a tail. Bread is baked.")
    pdf_files.write(folder / "paper.pdf", *(f"BT /F1 12 Tf 50 700 Td ({line}) Tj ET" for line in lines))
    (folder / "code.py").write_text("import this\n\n\ndef bake():\n    return 'bread'\n")
    (folder / "box").write_text(MAIL.format("moon") + MAIL.format("sun"))
    (folder / "table.csv").write_text("id,text\n1,A record of the moon\n")
    for file in folder.iterdir():
        os.utime(file, (LONG_AGO, LONG_AGO))
    return folder


@pytest.fixture
def searcher(folder: Path, tmp_path: Path, likewise: Callable[..., Any]) -> Searcher:
    likewise("index", tmp_path / "x.index", folder)
    return Searcher(tmp_path / "x.index")


def tints(png: bytes) -> list[str]:
    """The marks from left to right, in the line that is 100 of 800 points below the upper edge."""
    picture = Image.open(BytesIO(png)).convert("RGB")
    line = [picture.getpixel((x, 101 * picture.height // 800)) for x in range(picture.width)]
    names = {(255, 244, 180): "passage", (255, 203, 55): "sentence"}
    return list(dict.fromkeys(names[colour] for colour in line if isinstance(colour, tuple) and colour in names))


def test_a_page_is_drawn_with_its_passage_and_its_sentence_marked(searcher: Searcher, folder: Path) -> None:
    uri = str(folder / "paper.pdf")
    original = searcher.original(uri)
    assert (original.media_type, original.name) == ("application/pdf", "paper.pdf")
    text = original.document.text
    passage, sentence = text.index("A comet"), text.index("Bread")
    plain = original.page(2)
    assert (plain.pages, plain.is_marked, tints(plain.png)) == (2, False, [])
    marked = original.page(2, [(passage, len(text)), (sentence, len(text))])
    assert (marked.is_marked, tints(marked.png)) == (True, ["passage", "sentence"])
    with pytest.raises(NoOriginal, match="there is no page 3: it has 2 pages"):
        original.page(3)
    with pytest.raises(NoOriginal, match="only PDF files"):
        searcher.original(str(folder / "code.py")).page(1)


def test_where_the_page_has_another_text_nothing_is_marked(searcher: Searcher, folder: Path, tmp_path: Path) -> None:
    original = searcher.original(str(folder / "paper.pdf"))
    object.__setattr__(original.document, "text", original.document.text.replace("comet", "comas"))
    picture = original.page(2, [(len(original.document.text) - 10, len(original.document.text))])
    assert (picture.is_marked, tints(picture.png)) == (False, [])


def test_of_a_mailbox_only_the_message_is_the_original(searcher: Searcher, folder: Path) -> None:
    original = searcher.original(f"{folder / 'box'}#sun")
    assert original.read().split(b"\n\n", 1)[1].strip() == b"About the sun."
    assert b"moon" not in original.read()
    assert (original.media_type, original.name) == ("message/rfc822", "box.eml")


def test_a_file_that_changes_between_two_pieces_has_no_others(
    searcher: Searcher, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.readers.original.PIECE_BYTES", 20)
    code = searcher.original(str(folder / "code.py"))
    content = (folder / "code.py").read_bytes()
    assert list(code.pieces()) == [content[:20], content[20:40], content[40:]][: -(-len(content) // 20)]
    pieces = code.pieces()
    assert next(pieces) == content[:20]
    (folder / "code.py").write_bytes(content + b"#")
    with pytest.raises(NoOriginal, match="has changed since it was indexed"):
        next(pieces)
    (mail, *_) = (uri for uri in searcher.uris() if "#" in uri)
    assert list(searcher.original(mail).pieces()) == [searcher.original(mail).read()]


def test_a_message_is_read_at_its_place(searcher: Searcher, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[tuple[int, int]]()

    def observed(stream: Any, begin: int, end: int, limit: int) -> Any:
        read.append((begin, end))
        return read_message(stream, begin, end, limit)

    monkeypatch.setattr("likewise.readers.original.read_message", observed)
    size = len(MAIL.format("moon"))
    for _ in range(2):
        assert b"About the sun." in searcher.original(f"{folder / 'box'}#sun").read()
    assert read == [(size, size + len(MAIL.format("sun")))] * 2
    monkeypatch.setattr("likewise.readers.original.message_places", lambda _: iter(()))  # it is not searched again
    assert b"About the moon." in searcher.original(f"{folder / 'box'}#moon").read()


def test_a_message_whose_id_another_one_has_is_found(
    folder: Path, tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    text = MAIL.format("moon").replace("About the moon.", "Another text.")
    (folder / "box").write_text(MAIL.format("moon") + text + MAIL.replace("Message-ID: <{0}>\n", "").format("none"))
    likewise("index", tmp_path / "x.index", folder)
    searcher = Searcher(tmp_path / "x.index")
    uris = [document.uri for document in searcher.documents() if document.format == "mbox"]
    read = {searcher.original(uri).read().split(b"\n\n", 1)[1].strip() for _ in range(2) for uri in uris}
    assert read == {b"About the moon.", b"Another text.", b"About the none."}


def test_a_page_that_could_not_be_drawn_is_remembered(
    searcher: Searcher, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, drawn = searcher.original(str(folder / "paper.pdf")), list[int]()

    def fails(data: bytes, page: int, *_: Any) -> Any:
        drawn.append(page)
        raise Unreadable(Code.TOO_SLOW("10"))

    monkeypatch.setattr("likewise.readers.original._draw_page", fails)
    for page in (1, 1, 2, 1):
        with pytest.raises(BadInput, match=f"page {page} cannot be drawn: reading it takes longer than 10 seconds"):
            original.page(page)
    assert drawn == [1, 2]
    monkeypatch.undo()
    monkeypatch.setattr("likewise.readers.original.UNDRAWN_SECONDS", -1.0)
    assert original.page(1).pages == 2


def test_records_and_documents_of_programs_have_none(searcher: Searcher, folder: Path) -> None:
    with pytest.raises(NoOriginal, match="is a record"):
        searcher.original("1")
    assert searcher.original(str(folder / "code.py")).read().startswith(b"import this")
    assert searcher.original(str(folder / "code.py")).media_type == "text/plain"


def test_a_file_that_is_not_as_it_was_is_never_opened(searcher: Searcher, folder: Path, tmp_path: Path) -> None:
    code = folder / "code.py"
    secret = tmp_path / "secret"
    secret.write_bytes(code.read_bytes())
    original = searcher.original(str(code))
    os.utime(code, (LONG_AGO + 5, LONG_AGO + 5))
    with pytest.raises(NoOriginal, match="has changed since it was indexed"):
        original.read()
    for replace_by in (code.hardlink_to, code.symlink_to):
        code.unlink()
        replace_by(secret)
        os.utime(secret, (LONG_AGO, LONG_AGO))
        with pytest.raises(NoOriginal):
            original.read()
    code.unlink()
    os.mkfifo(code)
    with pytest.raises(NoOriginal):
        original.read()
    # A link to the very file that was indexed: it is not followed either.
    moved = (folder / "paper.pdf").rename(tmp_path / "moved.pdf")
    (folder / "paper.pdf").symlink_to(moved)
    with pytest.raises(NoOriginal):
        searcher.original(str(folder / "paper.pdf")).read()


def test_show_writes_a_page_with_the_passage_of_a_question(
    searcher: Searcher, folder: Path, tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    picture = tmp_path / "page.png"
    draw = ("show", searcher.address, folder / "paper.pdf", "--png", picture)
    said = likewise(*draw, "--page", 1, "--mark", "moon")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert tints(picture.read_bytes()) == ["sentence"]  # it is the passage
    assert likewise(*draw, "--page", 9).code == 2
    assert "belong together" in likewise(*draw).err
    assert "without --json" in likewise(*draw, "--page", 1, "--json").err
