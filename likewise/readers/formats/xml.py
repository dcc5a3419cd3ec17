"""XML: the text between the tags, one line per element. SVG: titles, descriptions and texts.

Entities are not expanded, and nothing is loaded: a file whose text needs one that HTML lacks fails. XML without text
between its tags (settings, layouts), or with faults, is indexed as its source, because words in attributes are all that
can be found there. Documents of Word and Excel 2003 are paragraphs and sheets.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.entities import html5
from typing import Any

from lxml import etree

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.sources.encoding import Decoded, decode, decode_labelled, undecodable
from indexer.stores.words.analysis import close_up
from likewise.readers.formats import html
from likewise.readers.formats.html_arrangement import count

_LABEL = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([-\w.:]+)")
_ROWS = {"row", "tr"}
_CELLS = {"cell", "entry", "td", "th"}
_TITLES = {"title", "article-title", "book-title", "documenttitle"}
_PICTURES = ("{http://www.gribuser.ru/xml/fictionbook/2.0}binary", "{*}binData", "{*}binaryData", "{*}binary-data")
_SVG_TEXTS = {"title", "desc", "text"}
_PAGES = {"content", "description", "encoded", "summary"}  # of feeds, which hold HTML in them as text
SAFE: dict[str, bool] = {
    **{"resolve_entities": False, "no_network": True, "load_dtd": False},
    **{"remove_comments": True, "remove_pis": True, "huge_tree": True},
}
"""Options of parsers for XML that anybody may have written."""


def read(path: str) -> Content:
    """Read a file. Its title is its first element of that name."""
    with open(path, "rb") as file:
        data = file.read()
    labelled = _labelled(data)
    try:
        content = _read(parse(data), data)
    except etree.XMLSyntaxError as error:
        content = replace(_source(data), note=Code.XML_AS_SOURCE(error.msg))
    return replace(content, unread=(*labelled.notes, *content.unread)) if labelled else content


def _read(root: Any, data: bytes) -> Content:
    etree.strip_elements(root, *_PICTURES, with_tail=False)
    if _name(root) == "svg":
        return _drawing(root)
    if _name(root) in {"worddocument", "package"} and (content := _word(root)).text:
        return content
    if _name(root) == "workbook" and (content := _workbook(root)).text:
        return content
    assembly, title, written = Assembly(), "", html.Written()
    for element, line in _lines(root):
        if not title and _name(element) in _TITLES:
            title = " ".join(line.split())
        if _name(element) in _PAGES and "</" in line:
            written += html.write_page(line, assembly)
        else:
            assembly.add(line, newlines=1)
            written += html.Written(words=count(line))
    content = html.with_notes(assembly.content(title), written)
    return content if content.text else _source(data)


def parse(data: bytes, recover: bool = False) -> Any:
    """Return the root element of XML that anybody may have written, without comments.

    Args:
        recover: whether XML with a fault is read as far as possible. The root is None if nothing is.

    Raises:
        lxml.etree.XMLSyntaxError: it is not well-formed.
    """
    labelled = _labelled(data)
    parser = etree.XMLParser(encoding="utf-8" if labelled else None, recover=recover, **SAFE)
    return etree.fromstring(labelled.text.encode() if labelled else data, parser)


def _labelled(data: bytes) -> Decoded | None:
    """Return decoded XML that declares its encoding; None for UTF-8 and UTF-16, which libxml2 finds itself."""
    match = _LABEL.match(data)
    is_utf_8 = match is None or (match[1].lower() == b"utf-8" and data.isascii())
    return None if match is None or is_utf_8 else decode_labelled(data, match[1].decode())


def _word(root: Any) -> Content:
    """Return the paragraphs of a Word document in one XML file: of Word 2003, or all parts of a DOCX together."""
    assembly = Assembly()
    for paragraph in (element for element in root.iter() if _name(element) == "p"):
        runs = (node for node in paragraph.iter() if _name(node) in {"t", "tab", "br"})
        own = (
            node for node in runs if next(above for above in node.iterancestors() if _name(above) == "p") is paragraph
        )
        assembly.add("".join(node.text or {"tab": "\t", "br": "\n"}.get(_name(node), "") for node in own))
    title = next((element.text or "" for element in root.iter() if _name(element) == "title"), "")
    return assembly.content(title.strip())


def _workbook(root: Any) -> Content:
    """Return the sheets of a workbook of Excel 2003, without the settings of its window and styles."""
    assembly = Assembly()
    for page, sheet in enumerate((child for child in root if _name(child) == "worksheet"), 1):
        name = next((value for key, value in sheet.attrib.items() if key.rpartition("}")[2] == "Name"), "")
        assembly.section(name, page)
        assembly.add(name)
        for table in (child for child in sheet if _name(child) == "table"):
            for _, line in _lines(table):
                assembly.add(line, newlines=1)
    return assembly.content()


def _drawing(root: Any) -> Content:
    assembly, title = Assembly(), ""
    for element in root.iter():
        if _name(element) in _SVG_TEXTS and not any(_name(above) in _SVG_TEXTS for above in element.iterancestors()):
            line = _flat(element)
            title = title or (line if _name(element) == "title" else "")
            assembly.add(line, newlines=1)
    content = assembly.content(title)
    if not content.text:
        raise Skip(Code.DRAWING())
    return content


def _source(data: bytes) -> Content:
    text = decode(data)
    if text is None:
        raise Unreadable(undecodable(data))
    return Content(text)


def _lines(root: Any) -> Iterator[tuple[Any, str]]:
    """Yield each element that has text of its own and its text, with all below it; and rows of tables."""
    stack = [root]
    while stack:
        element = stack.pop()
        children = [child for child in element if isinstance(child.tag, str)]
        if not children or _has_text(element):
            yield element, _flat(element)
        elif _name(element) in _ROWS and all(_name(child) in _CELLS for child in children):
            yield element, "\t".join(map(_flat, children)).rstrip()
        else:
            stack.extend(reversed(children))


def _has_text(element: Any) -> bool:
    """Return whether an element has text beside its children."""
    strings = [element.text, *(child.tail for child in element)]
    return any(text and not text.isspace() for text in strings) or any(child.tag is etree.Entity for child in element)


def _flat(element: Any) -> str:
    """Return the text of an element, blanks between elements, without line breaks."""
    parts: list[str] = []
    stack: list[tuple[Any, bool]] = [(element, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            parts.append(f" {node.tail or ''}" if node is not element else "")
        elif node.tag is etree.Entity:
            if f"{node.name};" not in html5:
                raise Unreadable(Code.XML_ENTITIES("it"))
            parts.append(html5[f"{node.name};"] + (node.tail or ""))
        else:
            parts.append(f" {node.text or ''}")
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node))
    return close_up(" ".join("".join(parts).split()))


def _name(element: Any) -> str:
    """Return an element's name without its namespace, in lower case; empty if it is not an element."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""
