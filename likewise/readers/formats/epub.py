"""EPUB: the chapters of the spine in order, read as HTML, with their headings as sections."""

from __future__ import annotations

import posixpath
import unicodedata
import zipfile
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from defusedxml import ElementTree

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Unreadable
from likewise.readers import archive
from likewise.readers.formats import html

_NAMES = {
    "container": "urn:oasis:names:tc:opendocument:xmlns:container",
    "opf": "http://www.idpf.org/2007/opf",
    "dc": "http://purl.org/dc/elements/1.1/",
    "enc": "http://www.w3.org/2001/04/xmlenc#",
}


def read(path: str) -> Content:
    """Read a file, with the book's title, author and language. A chapter without a heading has its page's title."""
    archive.check(path, xml_only=False)
    with zipfile.ZipFile(path) as book:
        try:
            package_path = _xml(book, "META-INF/container.xml").find(".//container:rootfile", _NAMES).get("full-path")
            package = _xml(book, package_path)
        except (KeyError, AttributeError) as error:
            raise Unreadable(Code.NO_EPUB_PACKAGE()) from error
        folder = posixpath.dirname(package_path)
        pages = {
            item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
            for item in package.iterfind("opf:manifest/opf:item", _NAMES)
        }
        chapters = [pages.get(item.get("idref"), "") for item in package.iterfind("opf:spine/opf:itemref", _NAMES)]
        if {_plain(name) for name in _encrypted(book)}.intersection(map(_plain, chapters)):
            raise Unreadable(Code.DRM())
        assembly, written = Assembly(), html.Written()
        members = {_plain(name): name for name in book.namelist()} | {name: name for name in book.namelist()}
        for chapter in filter(None, chapters):  # an itemref may name a missing item, which is not a missing chapter
            member = members.get(chapter) or members.get(_plain(chapter))
            if member is None:
                raise Unreadable(Code.NO_CHAPTER(chapter))
            decoded = html.decode_page(book.read(member))
            tree = html.parse(decoded.text)
            if tree is not None:
                assembly.section(" ".join((tree.findtext(".//title") or "").split()))
                written += replace(html.write_body(tree, assembly), notes=decoded.notes)
    metadata = {
        name: value for name, tag in (("author", "creator"), ("lang", "language")) if (value := _dc(package, tag))
    }
    return html.with_notes(assembly.content(_dc(package, "title"), metadata), written)


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
