"""Canvases of Obsidian as Markdown: the texts of cards, files and links on cards, and labels (https://jsoncanvas.org)."""

# ruff: noqa: PTH123
from __future__ import annotations

import json

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.sources.files import markdown

_SHOWN = ("label", "text", "file", "url")


def read(path: str) -> Content:
    """Read a file, its cards from top to bottom. Sections begin at headings, as in Markdown."""
    with open(path, encoding="utf-8-sig") as file:
        canvas = json.load(file)
    assembly = Assembly()
    try:
        cards = sorted(canvas.get("nodes", ()), key=lambda card: (card.get("y", 0), card.get("x", 0)))
        for each in (*cards, *canvas.get("edges", ())):
            for name in _SHOWN:
                assembly.add(str(each.get(name, "")))
    except (TypeError, AttributeError) as error:
        raise Unreadable(Code.READER_FAILED("canvas", "its nodes or edges are not as the format asks")) from error
    content = markdown.read(assembly.content().text)
    if not content.text:
        raise Skip(Code.NO_TEXT())
    return content
