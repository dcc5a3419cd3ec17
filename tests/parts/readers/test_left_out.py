"""What passages leave out: long stretches without a space, and front matter."""

from __future__ import annotations

import base64
import json
import os
import random
import sysconfig
import textwrap
from pathlib import Path

import pytest
from word_encoder import WordEncoder

from indexer import Document
from indexer.ledger import Code
from indexer.passages.cut import PassageSettings, cut, embedded_texts, front_matter, left_out_ranges
from indexer.passages.unbroken import unbroken_ranges
from indexer.sources import ReadOptions, open_sources, read
from indexer.sources.entry import entry_of
from indexer.sources.files import markdown
from indexer.stores.addresses.open import holds_store

RANDOM = random.Random(24)
BYTES = RANDOM.randbytes(3000)
BASE64 = base64.b64encode(BYTES).decode()
LINES = base64.encodebytes(BYTES).decode()
PROSE = "The harbour is calm in the morning, and the boats wait for the tide.\n"


UNBROKEN = {
    "one line": BASE64,
    "lines of 76": LINES,
    "carriage returns": LINES.replace("\n", "\r\n"),
    "lines of 64": textwrap.fill(BASE64, 64),
    "for addresses": base64.urlsafe_b64encode(BYTES).decode(),
    "escaped line ends": json.dumps(LINES.strip())[1:-1],
    "hexadecimal": BYTES.hex(),
    "a long address": f"https://example.org/a?state={BASE64[:2000]}",
    "escaped Chinese": json.dumps("数据库系统" * 100),
    "a picture": f'src="data:image/png;base64,{BASE64}"',
}

LANGUAGE = {
    "english": PROSE * 40,
    "german": "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnung " * 40,
    "thai": "กรุงเทพมหานครเป็นเมืองหลวงและนครที่มีประชากรมากที่สุดของประเทศไทย" * 40,
    "chinese": "数据库系统的基本原理与应用程序设计方法研究" * 200,
    "chinese with latin words": "使用SQLite数据库和FAISS索引进行语义检索的方法" * 200,
    "japanese": "東京都は日本の首都であり世界でも有数の人口を持つ都市圏である" * 100,
    "numbers": "\n".join(" ".join(f"{RANDOM.randrange(10**4):04}" for _ in range(10)) for _ in range(80)),
    "words in lines": "\n".join(f"testReturns404WhenUser{n}HasNoAccess" for n in range(100)),
    "addresses": "\n".join(f"https://example.org/a/{RANDOM.randbytes(24).hex()}?page={n}" for n in range(60)),
    "protein": textwrap.fill("".join(RANDOM.choice("ACDEFGHIKLMNPQRSTVWY") for _ in range(3000)), 60),
    "hashes": "\n".join(RANDOM.randbytes(30).hex() for _ in range(60)),
    "minified": 'function a(b,c){return b.d(c)||e["f"](g,0x1f)}' * 100,
    "a long address": f"https://example.org/a?state={BASE64[:1900]}",
    "a certificate": textwrap.fill(BASE64[:1900], 64),
}


@pytest.mark.parametrize("name", UNBROKEN)
def test_a_stretch_without_a_space_is_found_whole(name: str) -> None:
    data = UNBROKEN[name]
    text = f"{PROSE}\n{data}\n{PROSE}"
    assert [text[start:end] for start, end in unbroken_ranges(text)] == [data.strip()]


@pytest.mark.parametrize("name", LANGUAGE)
def test_everything_else_stays(name: str) -> None:
    assert unbroken_ranges(LANGUAGE[name]) == []
    assert unbroken_ranges(f"{LANGUAGE[name]}\n{BASE64}\n")[0][0] > len(LANGUAGE[name])


def test_only_the_stretch_is_left_out() -> None:
    text = f"# Boats\n\n{PROSE * 4}\nThe map: data:image/png;base64,{BASE64}\n\n{PROSE * 4}"
    document = Document("a", text, "Boats", format="text")
    (spans,) = cut([document], WordEncoder(), PassageSettings(32, 0))
    assert [span.end <= text.index(BASE64) or span.start >= text.index(BASE64) + len(BASE64) for span in spans]
    embedded = "".join(embedded_texts(document, spans))
    assert embedded.count("The harbour is calm") == 8
    assert "The map:" in embedded
    assert BASE64[:20] not in embedded
    plain = Document("a", text.replace(BASE64, ""), "Boats", format="text")
    assert (
        cut([document], WordEncoder(), PassageSettings(32, 0))[0][0]
        == cut([plain], WordEncoder(), PassageSettings(32, 0))[0][0]
    )


def test_a_text_of_nothing_else_has_no_passage() -> None:
    for text in (BASE64, LINES, f'"{BASE64}"\n'):
        assert cut([Document("a", text)], WordEncoder(), PassageSettings(32, 0)) == [[]], text[:40]
    certificate = f"-----BEGIN CERTIFICATE-----\n{LINES}-----END CERTIFICATE-----\n"
    (spans,) = cut([Document("a", certificate)], WordEncoder(), PassageSettings(32, 0))
    assert [certificate[span.start : span.end] for span in spans] == [
        "-----BEGIN CERTIFICATE-----",
        "-----END CERTIFICATE-----",
    ]


def test_a_file_of_nothing_else_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text(f'  "{BASE64}"\n')
    (tmp_path / "mail.txt").write_text(f"{PROSE}\n{LINES}")
    options = ReadOptions()
    (source,) = open_sources([str(tmp_path)], options, holds_store)
    skipped, read_file = read(source, options, {}.get)
    assert (skipped.state, skipped.reason) == ("skipped", Code.UNBROKEN())
    assert read_file.document is not None
    assert read_file.document.text == f"{PROSE}\n{LINES}"
    share = 100 * len(LINES.strip()) / len(read_file.document.text)
    assert read_file.notes == (Code.UNBROKEN_LEFT_OUT(round(share)),)


def test_records_and_messages_have_the_note_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "a", "text": f"{PROSE}\n{LINES}"}))
    (tmp_path / "b.mbox").write_text(
        f"From a@x.org Mon Jan  1 10:00:00 2024\nFrom: a@x.org\nMessage-ID: <b@x.org>\n\n{PROSE}\n\n{LINES}\n"
    )
    options = ReadOptions()
    (source,) = open_sources([str(tmp_path)], options, holds_store)
    entries = list(read(source, options, {}.get))
    assert [entry.uri.rpartition("/")[2] for entry in entries] == ["a", "b.mbox#b@x.org"]
    for entry in entries:
        assert entry.document is not None
        share = 100 * len(LINES.strip()) / len(entry.document.text)
        assert entry.notes == (Code.UNBROKEN_LEFT_OUT(round(share)),)


def test_a_text_with_a_passage_is_never_wholly_left_out() -> None:
    entry = entry_of(Document("a", f"{PROSE}\n\n{LINES * 100}"), "a", None)
    assert entry.notes == (Code.UNBROKEN_LEFT_OUT("99"),)


def test_passages_begin_after_front_matter() -> None:
    front, body = "---\ntitle: Boats\ntags: [sea]\n---\n", f"# Boats\n\n{PROSE}"
    document = Document("a", front + body, "Boats", format="markdown")
    (spans,) = cut([document], WordEncoder(), PassageSettings(64, 0))
    assert [(span.start, span.end) for span in spans] == [(len(front), len(front + body.rstrip()))]
    for text in (front, f"{front}\n\n***\n", "---\nNot front matter.\n---\n"):
        (spans,) = cut([Document("a", text, "Boats", format="markdown")], WordEncoder(), PassageSettings(64, 0))
        assert spans[0].start == 0, text
    assert left_out_ranges(front + body, "text") == []


@pytest.mark.parametrize(
    "front",
    [
        '---\n"title": Boats\n---\n',
        "---\n# written by hand\ntitle: Boats\n...\n",
        "---\n{title: Boats}\n---\n",
        '+++\n# written by hand\n"title" = "Boats"\n+++\n',
        "---\ntitle: [Boats\n---\n",
    ],
)
def test_reader_and_passages_agree_where_front_matter_ends(front: str) -> None:
    content = markdown.read(f"{front}# Boats\n\n{PROSE}")
    assert content.title == "Boats"
    assert content.sections[-1].start == front_matter(content.text, "markdown") == len(front)


@pytest.mark.slow
def test_nothing_is_left_out_of_collections_and_code() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    data = os.environ.get("LIKEWISE_EVAL_DATA")
    files = [path for path in library.rglob("*.py") if "site-packages" not in path.parts]
    if data:
        files += [path for path in Path(data, "data").rglob("*") if path.is_file()]
    found = {path.name for path in files if left_out_ranges(path.read_bytes().decode(errors="replace"), None)}
    assert found == set()
