"""Formats whose text is kept: encodings, headings and front matter; text and offsets must match the file."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.passages.cut import front_matter
from indexer.records import Document
from indexer.sources import Entry
from indexer.sources.encoding import decode
from indexer.sources.files import markdown

Collect = Callable[..., list[Entry]]
DATA = Path(os.environ.get("LIKEWISE_EVAL_DATA", "/nonexistent")) / "data"

GERMAN = "Die Straße führt über die Brücke zum größten Café der Stadt, wo man gemütlich Kaffee trinkt.\n" * 4
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。\n" * 8


def one(collect: Collect, path: Path, content: str | bytes) -> Document:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    return entry.document


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"])
def test_detected_encodings(tmp_path: Path, collect: Collect, encoding: str) -> None:
    assert one(collect, tmp_path / "a.txt", GERMAN.encode(encoding)).text == GERMAN


@pytest.mark.parametrize("encoding", ["shift_jis", "euc_jp"])
def test_detected_japanese(tmp_path: Path, collect: Collect, encoding: str) -> None:
    assert one(collect, tmp_path / "a.txt", JAPANESE.encode(encoding)).text == JAPANESE


@pytest.mark.parametrize(
    ("cookie", "encoding"),
    [
        ("# -*- coding: windows-1252 -*-\n", "cp1252"),
        ("#!/bin/sh\n# coding=koi8-r\n", "koi8-r"),
        ("/* vim: set fileencoding=cp437 : */\n", "cp437"),
        ('<?xml version="1.0" encoding="ISO-8859-5"?>\n', "iso-8859-5"),
    ],
)
def test_declared_encodings(tmp_path: Path, collect: Collect, cookie: str, encoding: str) -> None:
    text = cookie + bytes(range(0xC0, 0xF0)).decode(encoding) + "\n"
    assert one(collect, tmp_path / "a.src", text.encode(encoding)).text == text


def test_a_wrong_cookie_is_not_believed() -> None:
    assert decode("# coding: ascii\né".encode()) == "# coding: ascii\né"
    assert decode("# coding: no-such-codec\né".encode()) == "# coding: no-such-codec\né"
    assert decode(b"# coding: rot13\nuryyb") == "# coding: rot13\nuryyb"


def test_undecodable_text_fails(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\xfe\x00\xd8a\x00")  # UTF-16 by its mark, with half a character
    (entry,) = collect(path)
    assert (entry.state, entry.reason.text()) == ("failed", "is UTF-16 with bytes that do not fit: save it as UTF-8")


def test_nul_bytes_are_binary(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.txt"
    for content in (b"text \0 more", b"x" * 10_000 + b"\0"):
        path.write_bytes(content)
        (entry,) = collect(path)
        assert entry.state == "skipped"
        assert entry.reason.text().startswith("a binary file")


@pytest.mark.parametrize(
    "name", ["a.txt", "a.md", pytest.param("a.rst", marks=pytest.mark.needs("readers")), "a.py", "a"]
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(st.sampled_from("ab#=- \n\r\t*`>:é\x0b\u2028.—"), min_size=1).filter(str.strip))
def test_text_is_the_decoded_file_and_sections_lie_in_it(
    tmp_path: Path, collect: Collect, name: str, text: str
) -> None:
    document = one(collect, tmp_path / name, text)
    assert document.text == text
    starts = [section.start for section in document.sections]
    assert starts == sorted(set(starts))
    assert [start for start in starts if not (0 <= start < len(text))] == []
    assert not starts or starts[0] == 0


MARKDOWN = """---
title: "A guide"
year: 2024
date: 2024-05-06
tags: [a, b]
deep: {x: 1}
empty:
---
Lead.

# Setup *now*

Text

Install
-------

```
# no heading
```

> # quoted

### Third `code`

# Use
"""


def test_markdown(tmp_path: Path, collect: Collect) -> None:
    document = one(collect, tmp_path / "guide.md", MARKDOWN)
    assert (document.title, document.format, document.text) == ("A guide", "markdown", MARKDOWN)
    assert document.metadata == {
        "year": 2024,
        "date": "2024-05-06",
        "tags": ["a", "b"],
        "deep": {"x": 1},
        "size": len(MARKDOWN),
    }
    cuts = [(section.heading, MARKDOWN[section.start :].partition("\n")[0]) for section in document.sections]
    assert cuts == [
        ("", "---"),
        ("Setup now", "# Setup *now*"),
        ("Setup now > Install", "Install"),
        ("Setup now > Install > Third code", "### Third `code`"),
        ("Use", "# Use"),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_markdown_newlines(newline: str) -> None:
    text = MARKDOWN.replace("\n", newline)
    content = markdown.read(text)
    assert content.text == text
    assert text[content.sections[2].start :].startswith("Install" + newline)


def test_markdown_titles(tmp_path: Path, collect: Collect) -> None:
    assert one(collect, tmp_path / "a.md", "## Second\n\n# First & *foremost*\n").title == "First & foremost"
    assert one(collect, tmp_path / "b.md", "---\nyear: 2020\n---\n\n## Second\n\ntext\n\n## Third\n").title == "Second"
    assert one(collect, tmp_path / "stem.md", "no heading\n\n## Second\n").title == "stem"
    for broken in ("---\n{: bad\n---\n# T\n", "---\n- list\n---\n# T\n", "---\nnot: closed\n\n# T\n"):
        assert one(collect, tmp_path / "a.md", broken).title == "T"


def test_yaml_aliases_do_not_expand() -> None:
    bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    content = markdown.read(bomb + "---\ntext\n")
    assert content.metadata == {}
    assert "(it has more than 10,000 values or 50 levels)" in content.unread[0].text()


def test_formats_by_extension_and_content(tmp_path: Path, collect: Collect) -> None:
    for name, expected in {
        "a.py": "python",
        "b.RS": "rust",
        "Makefile": "text",
        "c.xyz": "text",
        "d.yaml": "yaml",
    }.items():
        assert one(collect, tmp_path / name, "x = 1\n").format == expected


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Café\r\n\tx\n",
        "Съешь ещё этих\n",
        "今天天气很好，\u3000我们去公园。\n",
        "🙂 and 𝕏\n" * 3000,
        "\u200fשלום עולם\n",
    ],
)
def test_utf_16_without_a_byte_order_mark(tmp_path: Path, collect: Collect, encoding: str, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    assert entry.document.text == text


@pytest.mark.parametrize(
    "content",
    [
        b"\0\1\0\2\0\3" * 9,
        bytes(range(256)) * 4,
        struct.pack("<200h", *range(-100, 100)),
        b"a\0\0\0b\0\0\0",
        b"abc\0" * 50,
        b"\0and" * 50 + b"\0",
    ],
)
def test_other_files_with_nul_bytes_are_binary(tmp_path: Path, collect: Collect, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    (entry,) = collect(path)
    assert (entry.state, entry.reason.text()) == ("skipped", "a binary file, of no format that likewise reads")


def test_damaged_utf_16_and_records_in_it_say_so(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("a long line\n".encode("utf-16-le") * 1000 + b"\0\xd8")
    assert collect(path)[0].reason.text() == "is UTF-16 with bytes that do not fit: save it as UTF-8"
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"text": "x"}\n'.encode("utf-16-le"))
    assert collect(path)[0].reason.text() == "is written in utf-16-le: save it as UTF-8"
    path = tmp_path / "a.csv"
    path.write_bytes("id,text\n1,x\n".encode("utf-16-le"))
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.uri, entry.document.text) == ("1", "x")


def test_front_matter_in_toml(tmp_path: Path, collect: Collect) -> None:
    front = '+++\ntitle = "Bees"\ndate = 2024-05-01\ntags = ["a", "b"]\n[extra]\nweight = 3\n+++\n'
    text = f"{front}\n# Hives\n\nThey swarm.\n"
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "b.md").write_text("+++\ntitle = Bees\n+++\nThey swarm.\n")
    (tmp_path / "c.md").write_text("+++\nNot front matter.\n+++\nThey swarm.\n")
    first, broken, plain = collect(tmp_path)
    assert first.document is not None
    assert (first.document.title, first.document.text) == ("Bees", text)
    assert {name: first.document.metadata[name] for name in ("date", "tags", "extra")} == {
        "date": "2024-05-01",
        "tags": ["a", "b"],
        "extra": {"weight": 3},
    }
    assert front_matter(text, "markdown") == len(front)
    dots = '+++\ntitle = "Bees"\nnote = """\none\n...\ntwo"""\n+++\n'
    (tmp_path / "d.md").write_text(f"{dots}They swarm.\n")
    (dotted,) = collect(tmp_path / "d.md")
    assert dotted.document is not None
    assert (dotted.document.title, dotted.document.metadata["note"]) == ("Bees", "one\n...\ntwo")
    assert front_matter(dotted.document.text, "markdown") == len(dots)
    assert broken.notes[0].text().startswith("line 1: its front matter is not read, because it is not valid TOML (")
    assert plain.notes == ()
