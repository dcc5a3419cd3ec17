"""DOCX with python-docx: paragraphs and tables in the order of the body, with headings as sections; then the notes, and
each distinct page header and footer once.

Text is taken from the XML itself, because `Paragraph.text` leaves out insertions that are not accepted yet, and
`Document.iter_inner_content` leaves out content controls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docx.opc.part import PartFactory
from docx.oxml.ns import qn
from docx.package import Package
from docx.parts.document import DocumentPart

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Headings, Unreadable
from likewise.readers import archive
from likewise.readers.formats import xml
from likewise.readers.formats.office_package import OfficePackage, add_comments_and_charts

_HEADING = re.compile(r"head(?:ing)?\s*([1-9a-e])$", re.IGNORECASE)  # Word's headings, and publishers' "HeadA"
_TITLE = re.compile(r"(?:(?:book|chapter|appendix)\s*)?title$", re.IGNORECASE)
_OMITTED = {
    qn("w:del"),
    qn("w:moveFrom"),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
_WRITTEN = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_P, _TBL, _TR, _TC, _T = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc", "t"))
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
for _kind in (  # .docm, .dotx and .dotm have the same content
    "application/vnd.ms-word.document.macroEnabled.main+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
):
    PartFactory.part_type_for[_kind] = DocumentPart


def read(path: str) -> Content:
    """Read a file. Its title is the document's property, or else its first title or heading."""
    archive.check(path)
    main = Package.open(path).main_document_part  # docx.Document accepts only .docx
    if not isinstance(main, DocumentPart):
        raise Unreadable(Code.NOT_DOCX(main.content_type))
    document = main.document
    levels = {style.style_id: level for style in document.styles if (level := _level(style)) is not None}
    headings, assembly, first_heading = Headings(), Assembly(), ""
    for element in _blocks(document.element.body):
        if element.tag == _TBL:
            assembly.add("\n".join(_rows(element)))
            continue
        text = _text(element)
        level = levels.get(getattr(element, "style", None) or "") if text.strip() else None
        if level is not None:
            first_heading = first_heading or " ".join(text.split())
            assembly.section(headings.enter(level, text))
        assembly.add(text)
    for part in document.part.package.iter_parts():
        if str(part.partname) in {"/word/footnotes.xml", "/word/endnotes.xml"}:
            _add_part(part.blob, str(part.partname)[6:-4].capitalize(), assembly)
    for reference, heading in ((qn("w:headerReference"), "Header"), (qn("w:footerReference"), "Footer")):
        # A header that changes from page to page has one part for all pages. The same one may stand in many sections.
        names = dict.fromkeys(element.get(qn("r:id")) for element in document.element.body.iter(reference))
        blobs = dict.fromkeys(document.part.rels[name].target_part.blob for name in names if name in document.part.rels)
        written: set[str] = set()
        for blob in blobs:
            _add_part(blob, heading, assembly, written)
    with OfficePackage(path) as package:
        add_comments_and_charts(package, assembly)
    properties = document.core_properties
    metadata = {"author": properties.author} if properties.author else {}
    return assembly.content((properties.title or "").strip() or first_heading, metadata)


def _add_part(blob: bytes, heading: str, into: Assembly, written: set[str] | None = None) -> None:
    """Add the text of another part of the package as a section, unless `written` has the text; add the text to
    `written`."""
    root = xml.parse(blob)
    texts = ["\n".join(_rows(block)) if block.tag == _TBL else _text(block) for block in _blocks(root)]
    whole = "\n".join(texts).strip()
    if not whole or (written is not None and whole in written):
        return
    if written is not None:
        written.add(whole)
    into.section(heading)
    for text in texts:
        into.add(text)


def _level(style: Any) -> int | None:
    """Return the heading level of a style, or of a style that it is based on; 0 for a title, None for other text."""
    seen: set[str] = set()
    while style is not None and style.style_id not in seen:
        seen.add(style.style_id)
        name = style.name or ""
        if match := _HEADING.match(name):
            return int(match[1]) if match[1].isdigit() else "abcde".index(match[1].lower()) + 1
        if _TITLE.match(name):
            return 0
        style = getattr(style, "base_style", None)
    return None


def _blocks(parent: Any) -> Iterator[Any]:
    """Yield paragraphs, tables and separate equations, also those inside content controls and insertions."""
    return _within(parent, {_P, _TBL, f"{_MATH}oMathPara"})


def _within(parent: Any, tags: set[str]) -> Iterator[Any]:
    """Yield the outermost elements with these tags, also those inside content controls."""
    for child in parent.iterchildren():
        if child.tag in tags:
            yield child
        elif isinstance(child.tag, str) and child.tag not in _OMITTED:
            yield from _within(child, tags)


def _rows(table: Any) -> Iterator[str]:
    """Yield a table's rows with tabs between their cells. A table inside a cell is a part of the cell's text."""
    for row in _within(table, {_TR}):
        yield "\t".join(" ".join(_cell(cell).split()) for cell in _within(row, {_TC}))


def _cell(cell: Any) -> str:
    return " ".join(" ".join(_rows(block)) if block.tag == _TBL else _text(block) for block in _blocks(cell))


def _text(element: Any) -> str:
    """Return the text of an element with every change accepted."""
    parts: list[str] = []
    stack = [element]
    while stack:
        node = stack.pop()
        if node.tag in {_T, f"{_MATH}t"}:
            parts.append(node.text or "")
        elif node.tag in _WRITTEN:
            parts.append(_WRITTEN[node.tag])
        elif node.tag not in _OMITTED:
            if node.tag == _P and parts:
                parts.append("\n")  # a text box within a paragraph
            stack.extend(reversed(node))
    return "".join(parts)
