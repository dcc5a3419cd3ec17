"""Checks of zip files (DOCX, PPTX, XLSX, EPUB) before they are opened: their declared content must be within bounds."""

# ruff: noqa: PTH123
from __future__ import annotations

import zipfile

from indexer.ledger import Code
from indexer.sources.content import Unreadable

MAX_MEMBERS = 20_000
MAX_BYTES = 2**30
"""Declared size of all members together, unpacked. `zipfile` reads no member beyond its declared size."""
MAX_RATIO = 200
"""Unpacked to packed size of a large member. XML of real documents is packed to a fiftieth at most."""

_LARGE_BYTES = 10 * 2**20


def check(path: str, xml_only: bool = True) -> None:
    """Refuse zip bombs and, where its members are XML (not XHTML), those that declare entities.

    Raises:
        Unreadable: it is over a bound, declares entities, is encrypted, or is not a zip file.
    """
    with open(path, "rb") as file:
        if file.read(8) == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":  # OLE, in which Office wraps encrypted files
            raise Unreadable(Code.ENCRYPTED_OFFICE())
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise Unreadable(Code.TOO_MANY_MEMBERS(f"{len(members):,}", f"{MAX_MEMBERS:,}"))
            total = sum(member.file_size for member in members)
            if total > MAX_BYTES:
                raise Unreadable(Code.TOO_MANY_BYTES(f"{total:,}", f"{MAX_BYTES:,}"))
            for member in members:
                if member.file_size > _LARGE_BYTES and member.file_size > MAX_RATIO * member.compress_size:
                    raise Unreadable(Code.ZIP_BOMB(member.filename, f"{member.file_size:,}"))
                if member.flag_bits & 1:
                    raise Unreadable(Code.ENCRYPTED())
                if xml_only and member.filename.endswith((".xml", ".rels")):
                    with archive.open(member) as opened:
                        if b"<!ENTITY" in opened.read(64 * 1024).replace(b"\0", b""):
                            raise Unreadable(Code.XML_ENTITIES(member.filename))
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise Unreadable(Code.NOT_ZIP(error)) from error
