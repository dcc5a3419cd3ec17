"""OpenDocument, zipped or flat: text with headings as sections, sheets like XLSX, slides like PPTX.

Formulas, charts and documents that are objects inside it are read at their places. A part that is missing or damaged
costs that part and a note.

The XML is read directly. The library odfpy was last released in 2020 and has no function that returns text in order.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from posixpath import dirname, normpath
from typing import Any
from urllib.parse import unquote

from lxml import etree

from indexer.errors import count_of
from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Content, Headings, Unreadable
from likewise.readers import archive, inside
from likewise.readers.formats import xml
from likewise.readers.formats.odf_styles import NAMES as _NAMES
from likewise.readers.formats.odf_styles import get as _get
from likewise.readers.formats.odf_styles import hidden, strip_hidden, title_styles, write_numbers
from likewise.readers.formats.odf_styles import tag as _tag
from likewise.readers.formats.sheets import add_sheet, formulas_without_value, hidden_parts
from likewise.readers.limits import MAX_REPEATED_CHARACTERS, MAX_REPEATS

Notes = dict[str, list[Any]]
"""Elements of notes and comments, by the heading that they have in a text."""


_H, _P, _NOTE, _COMMENT = map(_tag, ("text:h", "text:p", "text:note", "office:annotation"))
_TABLE, _ROW, _LIST, _ITEM = map(_tag, ("table:table", "table:table-row", "text:list", "text:list-item"))
_CELLS = {_tag("table:table-cell"), _tag("table:covered-table-cell")}
_OMITTED = {
    *map(
        _tag,
        ("text:tracked-changes", "text:note-citation", "text:ruby-text", "svg:title", "svg:desc", "office:binary-data"),
    ),
    *map(_tag, ("dc:creator", "dc:date", "meta:date-string")),  # of a comment
}
_FIELDS = {
    *map(_tag, ("text:sheet-name", "text:page-number", "text:page-count", "text:date", "text:time", "text:title"))
}
"""Fields of headers and footers, which are other words on each page."""
_MARGINS = [_tag(f"style:{name}{kind}") for name in ("header", "footer") for kind in ("", "-left", "-first")]
_WRITTEN = {_tag("text:tab"): "\t", _tag("text:line-break"): "\n"}
_OBJECTS = [_tag("draw:object"), _tag("draw:object-ole")]
_SPACES = re.compile(r"[ \t\r\n]+")
_EMPTY_LINES = re.compile(r" *\n\s*")
_VALUES = ("office:value", "office:date-value", "office:time-value", "office:boolean-value", "office:string-value")


def read(path: str) -> Content:
    """Read a file. Its title is the document's property, or else its first title or heading."""
    content, styles, meta, notes = _parts(path)
    body = None if content is None else content.find("office:body", _NAMES)
    if body is None or not len(body):
        _refuse_damaged(notes)
        raise Unreadable(Code.NO_OPENDOCUMENT_BODY())
    assembly, first, formulas, masters = Assembly(), "", 0, set[str]()
    if words := strip_hidden(body, content, styles):
        notes.append(Code.HIDDEN_PARTS(count_of(words, "word"), "left out"))
    metadata: dict[str, str | int] = {}
    if author := _property(meta, "meta:initial-creator") or _property(meta, "dc:creator"):
        metadata["author"] = author
    if (sheets := body.find("office:spreadsheet", _NAMES)) is not None:
        tables = sheets.findall("table:table", _NAMES)
        for number, sheet in enumerate(tables, 1):
            comments: Notes = {}
            shapes = (_text(block) for each in sheet.findall("table:shapes", _NAMES) for block, _ in _blocks(each))
            add_sheet(assembly, _get(sheet, "table:name"), number, chain(_rows(sheet, comments), shapes))
            _write_notes(comments, assembly)
        metadata["sheets"] = len(tables)
        notes += hidden_parts("sheet", hidden(tables, content), _hidden_cells(sheets))
        formulas = sum(_get(cell, "table:formula") != "" and not _has_value(cell) for cell in sheets.iter(*_CELLS))
    elif pages := body[0].findall("draw:page", _NAMES):
        for number, slide in enumerate(pages, 1):
            heading = _slide_title(slide)
            first = first or heading
            assembly.section(heading, number)
            _write_slide(slide, assembly)
        metadata["slides"] = len(pages)
        notes += hidden_parts("slide", hidden(pages, content))
        masters = {_get(page, "draw:master-page-name") for page in pages} - {""}
        assembly.section()
        for name in ("presentation:header-decl", "presentation:footer-decl"):
            for text in dict.fromkeys(_line(each) for each in body[0].iterfind(name, _NAMES)):
                assembly.add(text)
    else:
        write_numbers(body[0], content, styles)
        first = _write(body[0], assembly, title_styles(content, styles))
    if styles is not None:
        _write_margins(styles, masters, assembly)
    read_whole = assembly.content(_property(meta, "dc:title") or first, metadata)
    if not read_whole.text:
        _refuse_damaged(notes)
    return replace(read_whole, unread=(*notes, *formulas_without_value(formulas)))


def _hidden_cells(sheets: Any) -> int:
    rows = (row for row in sheets.iter(_ROW) if _get(row, "table:visibility") in {"collapse", "filter"})
    return sum(bool(_line(cell)) for row in rows for cell in row)


def _has_value(cell: Any) -> bool:
    return bool(_get(cell, "office:value-type") or _line(cell))


def _parts(path: str) -> tuple[Any, Any, Any, list[Reason]]:
    """Return the elements of a file that hold its content, its styles and its properties, and notes on what is damaged
    or not read. An element is None if it is missing."""
    notes: list[Reason] = []
    with open(path, "rb") as file:
        opening = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
        if opening.startswith(b"<"):  # flat: all in one
            root = _xml(opening + file.read(), "content.xml", notes)
            return root, root, root, notes
    archive.check(path)
    with zipfile.ZipFile(path) as members:
        names = set(members.namelist())
        if "META-INF/manifest.xml" in names and b"encryption-data" in members.read("META-INF/manifest.xml"):
            raise Unreadable(Code.ENCRYPTED())
        if "content.xml" not in names:
            raise Unreadable(Code.NO_OPENDOCUMENT_CONTENT())
        unread: set[str] = set()
        missing: set[str] = set()

        def part(name: str) -> Any:
            """Return the root of a part, with the words of the objects in it. It is read once."""
            if name not in names:
                return None
            names.remove(name)
            try:
                root = _xml(members.read(name), name, notes)
            except archive.DAMAGED as error:
                notes.append(Code.PART_DAMAGED(name, error))
                return None
            for reference in () if root is None else list(root.iter(*_OBJECTS)):
                href = unquote(_get(reference, "xlink:href"))
                target = normpath(f"{dirname(name)}/{href}").lstrip("/")
                if f"{target}/content.xml" in names:
                    _write_object(part(f"{target}/content.xml"), reference)
                elif href and "://" not in href:
                    (unread if target in names else missing).add(target)
            return root

        content, styles, meta = map(part, ("content.xml", "styles.xml", "meta.xml"))
        notes += inside.files(sorted(unread))
        if missing:
            notes.append(Code.PARTS_MISSING(", ".join(sorted(missing))))
        return content, styles, meta, notes


def _xml(data: bytes, name: str, notes: list[Reason]) -> Any:
    """Return the root of a part, which is read as far as possible; None if nothing is."""
    try:
        return xml.parse(data)
    except etree.XMLSyntaxError as error:
        notes.append(Code.PART_DAMAGED(name, error.msg))
        return xml.parse(data, recover=True)


def _refuse_damaged(notes: list[Reason]) -> None:
    """Refuse a file without a text because of its first damaged part."""
    for note in notes:
        if note.code is Code.PART_DAMAGED:
            raise Unreadable(Code.WRONG_XML(note.arguments[-1]))


def _write_object(root: Any, into: Any) -> None:
    """Add the words of an object to the element that refers to it. Numbers of charts are left out."""
    if root is None:
        return
    is_chart = root.find("office:body/office:chart", _NAMES) is not None
    if (formula := root.findtext(".//math:annotation", None, _NAMES)) or root.tag == _tag("math:math"):
        lines = [formula or " ".join(root.itertext())]
    elif is_chart:
        words = (each for each in root.iter(_P) if _get(each.getparent(), "office:value-type") != "float")
        lines = list(dict.fromkeys(map(_line, words)))
    else:
        blocks = (_rows(each) if each.tag == _TABLE else [_line(each)] for each, _ in _blocks(root))
        lines = list(chain.from_iterable(blocks))
    is_inline = any(True for _ in into.iterancestors(_P)) and not is_chart
    for line in lines:
        etree.SubElement(into, _tag("text:span") if is_inline else _P).text = f" {' '.join(line.split())} "


def _property(meta: Any, name: str) -> str:
    text = None if meta is None else meta.findtext(f".//office:meta/{name}", None, _NAMES)
    return " ".join((text or "").split())


def _write(body: Any, into: Assembly, title_styles: set[str]) -> str:
    """Write the blocks of a text, with a section at each heading, then its notes; return the first heading."""
    headings, first, notes = Headings(), "", Notes()
    for element, newlines in _blocks(body):
        if element.tag == _TABLE:
            into.add("\n".join(_rows(element, notes)))
            continue
        text = _text(element, notes)
        level = int(_get(element, "text:outline-level") or 1) if element.tag == _H else None
        level = 0 if _get(element, "text:style-name") in title_styles else level
        if level is not None and text.strip():
            first = first or " ".join(text.removeprefix(element.findtext("text:number", "", _NAMES)).split())
            into.section(headings.enter(level, text))
        into.add(text, newlines)
    for heading in ("Footnotes", "Endnotes", "Comments"):
        if heading in notes:
            into.section(heading)
            _write_notes({heading: notes[heading]}, into)
    return first


def _write_notes(notes: Notes, into: Assembly) -> None:
    for note in (note for several in notes.values() for note in several):
        for element, newlines in _blocks(note):
            into.add("\n".join(_rows(element)) if element.tag == _TABLE else _text(element), newlines)


def _write_margins(styles: Any, masters: set[str], into: Assembly) -> None:
    """Write the headers and footers of pages, each once, and the shapes of the masters that slides show."""
    texts: dict[str, None] = {}
    pages = list(styles.iterfind(".//style:master-page", _NAMES))
    margins = [each for page in pages for each in page.iterchildren(*_MARGINS)]
    shapes = [each for page in pages if _get(page, "style:name") in masters for each in page.iterchildren("{*}*")]
    margins += [each for each in shapes if each.prefix == "draw" and not _get(each, "presentation:class")]
    for margin in margins:
        if _get(margin, "style:display") != "false":
            etree.strip_elements(margin, *_FIELDS, with_tail=False)
            for element, _ in _blocks(margin):
                texts["\n".join(_rows(element)) if element.tag == _TABLE else _text(element).strip()] = None
    into.section()
    for text in texts:
        into.add(text if re.search(r"\w", text) else "")


def _write_slide(slide: Any, into: Assembly) -> None:
    notes = Notes()
    for element, newlines in _blocks(slide):
        into.add("\n".join(_rows(element, notes)) if element.tag == _TABLE else _text(element, notes), newlines)
    _write_notes(notes, into)


def _slide_title(slide: Any) -> str:
    frames = slide.iterfind("draw:frame", _NAMES)
    titles = (_line(frame) for frame in frames if _get(frame, "presentation:class") == "title")
    return next(filter(None, titles), "")


def _blocks(parent: Any) -> Iterator[tuple[Any, int]]:
    """Yield the outermost headings, paragraphs and tables, and the newlines before each."""
    for child in parent.iterchildren(etree.Element):
        if child.tag in {_H, _P, _TABLE}:
            yield child, 2
        elif child.tag == _LIST:
            yield from ((block, 1 if number else 2) for number, (block, _) in enumerate(_blocks(child)))
        elif child.tag not in _OMITTED:
            yield from _blocks(child)


def _rows(table: Any, notes: Notes | None = None) -> Iterator[str]:
    """Yield the rows of a table, with tabs between cells, without empty rows and trailing empty cells."""
    for row in _within(table, _ROW):
        cells: list[str] = []
        for cell in row:
            if cell.tag in _CELLS:
                text = _line(cell, notes) or next((value for name in _VALUES if (value := _get(cell, name))), "")
                cells += [text] * _repeats(cell, "table:number-columns-repeated", text)
        if line := "\t".join(cells).rstrip():
            for _ in range(_repeats(row, "table:number-rows-repeated", line)):
                yield line


def _repeats(element: Any, name: str, text: str) -> int:
    """Return how often the text of a cell or row is written."""
    times = _get(element, name)
    most = min(MAX_REPEATS, max(1, MAX_REPEATED_CHARACTERS // max(1, len(text))))
    return min(int(times), most) if times.isdecimal() and len(times) < 10 else 1


def _within(parent: Any, tag: str) -> Iterator[Any]:
    """Yield the outermost elements with a tag, also those in groups of rows."""
    for child in parent.iterchildren(etree.Element):
        if child.tag == tag:
            yield child
        elif child.tag not in _OMITTED:
            yield from _within(child, tag)


def _line(element: Any, notes: Notes | None = None) -> str:
    return " ".join(_text(element, notes).split())


def _text(element: Any, notes: Notes | None = None) -> str:
    """Return the text of an element.

    Args:
        notes: takes notes and comments, by the heading they are to have; None leaves them in the text.
    """
    parts: list[str] = []
    stack: list[tuple[Any, bool]] = [(element, False)]
    while stack:
        node, leaving = stack.pop()
        tag = node.tag
        is_skipped = tag in _OMITTED or not isinstance(tag, str)
        if not leaving and notes is not None and tag in {_NOTE, _COMMENT}:
            kind = "Endnotes" if _get(node, "text:note-class") == "endnote" else "Footnotes"
            notes.setdefault(kind if tag == _NOTE else "Comments", []).append(node)
            is_skipped = True
        if leaving or is_skipped:
            if leaving and tag in {_H, _P, _ITEM} and node is not element:
                parts.append("\n")
            parts.append(_SPACES.sub(" ", node.tail or "") if node is not element else "")
            continue
        if tag == _tag("text:s"):
            parts.append(" " * min(int(_get(node, "text:c") or 1), MAX_REPEATS))
        if tag in {_H, _P, _ITEM} and parts:
            parts.append("\n")  # a text box within a paragraph, or a cell
        parts.append(_WRITTEN.get(tag, ""))
        parts.append(_SPACES.sub(" ", node.text or ""))
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(node))
    return _EMPTY_LINES.sub("\n", "".join(parts))
