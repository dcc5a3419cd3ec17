"""Reads DOCX with python-docx: paragraphs, tables and notes in the order of the body, headings as sections.

Text is taken from the XML itself: `Paragraph.text` leaves out insertions that are not accepted yet, and
`Document.iter_inner_content` leaves out content controls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import docx
from docx.oxml.ns import qn
from lxml import etree

from indexer.sources import archive
from indexer.sources.content import Assembly, Content, Headings, Unreadable

_HEADING = re.compile(r"head(?:ing)?\s*([1-9a-e])$", re.IGNORECASE)  # Word's own, and publishers' "HeadA"
_TITLE = re.compile(r"(?:(?:book|chapter|appendix)\s*)?title$", re.IGNORECASE)
_OMITTED = {
    qn("w:del"),
    qn("w:moveFrom"),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
_WRITTEN = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_P, _TBL, _TR, _TC, _T = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc", "t"))


def read(path: str) -> Content:
    """The title is the document's property, else its first paragraph styled as a title or heading."""
    archive.check(path)
    try:
        document = docx.Document(path)
    except ValueError as error:  # a part that is no document
        raise Unreadable(f"damaged: no DOCX ({error})") from error
    levels = {style.style_id: level for style in document.styles if (level := _level(style)) is not None}
    headings, assembly, first = Headings(), Assembly(), ""
    for element in _blocks(document.element.body):
        if element.tag == _TBL:
            assembly.add("\n".join(_row(row) for row in element.iter(_TR)))
            continue
        text = _text(element)
        level = levels.get(element.style or "") if text.strip() else None
        if level is not None:
            first = first or " ".join(text.split())
            assembly.section(headings.enter(level, text))
        assembly.add(text)
    for part in document.part.package.iter_parts():
        if str(part.partname) in {"/word/footnotes.xml", "/word/endnotes.xml"}:
            notes = etree.fromstring(part.blob, etree.XMLParser(resolve_entities=False, no_network=True))
            texts = [_text(paragraph) for paragraph in notes.iter(_P)]
            if any(text.strip() for text in texts):
                assembly.section(str(part.partname)[6:-4].capitalize())
            for text in texts:
                assembly.add(text)
    properties = document.core_properties
    metadata = {"author": properties.author} if properties.author else {}
    return assembly.content((properties.title or "").strip() or first, metadata)


def _level(style: Any) -> int | None:
    """The heading level of a style or one that it is based on; 0 for a title; None for other text."""
    seen: set[str] = set()
    while style is not None and style.style_id not in seen:
        seen.add(style.style_id)
        name = style.name or ""
        if found := _HEADING.match(name):
            return int(found[1]) if found[1].isdigit() else "abcde".index(found[1].lower()) + 1
        if _TITLE.match(name):
            return 0
        style = getattr(style, "base_style", None)
    return None


def _blocks(parent: Any) -> Iterator[Any]:
    """Paragraphs and tables, also those inside content controls and insertions."""
    for child in parent.iterchildren():
        if child.tag in {_P, _TBL}:
            yield child
        elif isinstance(child.tag, str) and child.tag not in _OMITTED:
            yield from _blocks(child)


def _row(row: Any) -> str:
    cells = (" ".join(_text(paragraph) for paragraph in cell.iter(_P)) for cell in row.iterchildren(_TC))
    return "\t".join(" ".join(cell.split()) for cell in cells)


def _text(element: Any) -> str:
    """Text of an element as it would read with every change accepted."""
    parts: list[str] = []
    stack = [element]
    while stack:
        node = stack.pop()
        if node.tag == _T:
            parts.append(node.text or "")
        elif node.tag in _WRITTEN:
            parts.append(_WRITTEN[node.tag])
        elif node.tag not in _OMITTED:
            if node.tag == _P and parts:
                parts.append("\n")  # a text box within a paragraph
            stack.extend(reversed(node))
    return "".join(parts)
