"""EPUB: the chapters of the spine in order, and then other pages, read as HTML, with their headings as sections.

A chapter that is missing, damaged or encrypted costs that chapter and a note, unless it is the only one.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
import zipfile
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from defusedxml import ElementTree

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Unreadable
from likewise.readers import archive, inside
from likewise.readers.formats import html

_NAMES = {
    "container": "urn:oasis:names:tc:opendocument:xmlns:container",
    "opf": "http://www.idpf.org/2007/opf",
    "dc": "http://purl.org/dc/elements/1.1/",
    "enc": "http://www.w3.org/2001/04/xmlenc#",
}

_PAGE = re.compile("ml|oeb|^$")
"""Media types of pages: XHTML, SVG, DTBook and others."""


def read(path: str) -> Content:
    """Read a file, with the book's title, author and language. A chapter without a heading has its page's title."""
    archive.check(path, xml_only=False)
    with zipfile.ZipFile(path) as book:
        members = {_plain(name): name for name in book.namelist()} | {name: name for name in book.namelist()}
        try:
            address = _xml(book, "META-INF/container.xml").find(".//container:rootfile", _NAMES).get("full-path", "")
            package_path = members.get(address) or members[_plain(unquote(address))]
            package = _xml(book, package_path)
        except (KeyError, AttributeError) as error:
            raise Unreadable(Code.NO_EPUB_PACKAGE()) from error
        folder = posixpath.dirname(package_path)
        unreadable = {_plain(name) for name in _encrypted(book)}
        assembly, written = Assembly(), html.Written()
        missing, encrypted, others, damaged = list[str](), list[str](), list[str](), dict[str, str]()
        pages = _pages(package)
        for href, media_type in pages.items():
            page = posixpath.normpath(posixpath.join(folder, unquote(href)))
            member = members.get(page) or members.get(_plain(page))
            if not _PAGE.search(media_type):
                others.append(page)
            elif member is None:
                missing.append(page)
            elif _plain(page) in unreadable:
                encrypted.append(page)
            else:
                try:
                    written += _write(book.read(member), assembly)
                except (Unreadable, *archive.DAMAGED) as error:
                    damaged[page] = str(error).removeprefix("damaged: ")
    if encrypted and 2 * len(encrypted) >= len(pages):
        raise Unreadable(Code.DRM())
    if not assembly.length and (missing or damaged):
        raise Unreadable(Code.NO_CHAPTER(missing[0]) if missing else Code.NOT_ZIP(next(iter(damaged.values()))))
    metadata = {
        name: value for name, tag in (("author", "creator"), ("lang", "language")) if (value := _dc(package, tag))
    }
    content = html.with_notes(assembly.content(_dc(package, "title"), metadata), written)
    notes = [Code.PART_DAMAGED(page, error) for page, error in damaged.items()]
    notes += [Code.PARTS_MISSING(", ".join(missing))] if missing else []
    return replace(content, unread=(*content.unread, *notes, *inside.files([*encrypted, *others])))


def _write(data: bytes, into: Assembly) -> html.Written:
    decoded = html.decode_page(data)
    if (tree := html.parse(decoded.text)) is None:
        return html.Written()
    into.section(" ".join((tree.findtext(".//title") or "").split()))
    return replace(html.write_body(tree, into), notes=decoded.notes)


def _pages(package: Any) -> dict[str, str]:
    """Return the addresses and media types of the items of the spine, and then of pages that only links lead to, such
    as notes. The table of contents is left out."""
    items = {item.get("id"): item for item in package.iterfind("opf:manifest/opf:item", _NAMES)}
    order = (items.get(reference.get("idref")) for reference in package.iterfind("opf:spine/opf:itemref", _NAMES))
    linked = (
        item
        for item in items.values()
        if "html" in item.get("media-type", "") and "nav" not in item.get("properties", "").split()
    )
    return {item.get("href", ""): item.get("media-type", "") for item in (*order, *linked) if item is not None}


def _xml(book: zipfile.ZipFile, member: str) -> Any:
    return ElementTree.fromstring(book.read(member))


def _plain(name: str) -> str:
    """Return a member's name in one case and one Unicode form, in which a book's list and its zip file may differ."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _dc(package: Any, tag: str) -> str:
    return " ".join((package.findtext(f"opf:metadata/dc:{tag}", "", _NAMES) or "").split())


def _encrypted(book: zipfile.ZipFile) -> set[str]:
    """Return the members that cannot be read. Fonts are often among them, which does no harm."""
    if "META-INF/encryption.xml" not in book.namelist():
        return set()
    references = _xml(book, "META-INF/encryption.xml").iterfind(".//enc:CipherReference", _NAMES)
    return {unquote(reference.get("URI", "")) for reference in references}
