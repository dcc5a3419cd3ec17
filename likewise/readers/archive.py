"""Checks of zip files (DOCX, PPTX, XLSX, EPUB) before they are opened: the declared content must be within bounds."""

# ruff: noqa: PTH123
from __future__ import annotations

import zipfile
import zlib

from indexer.ledger import Code
from indexer.sources.content import Unreadable
from indexer.sources.formats import OLE, kind_of_ole, read_head
from likewise.readers.limits import MAX_ARCHIVE_MEMBERS, MAX_PACKING_RATIO, MAX_UNPACKED_BYTES

_LARGE_BYTES = 10 * 2**20
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""What `zipfile` raises for a member that cannot be unpacked."""


def check(path: str, xml_only: bool = True) -> None:
    """Refuse zip bombs, and XML members (not XHTML) that declare entities.

    Raises:
        Unreadable: it is over a bound, declares entities, is encrypted, or is not a zip file.
    """
    with open(path, "rb") as file:
        head = read_head(file)
    if head.startswith(OLE):  # Office wraps encrypted files in it
        raise Unreadable((kind_of_ole(head) or Code.ENCRYPTED_OFFICE)())
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_ARCHIVE_MEMBERS:
                raise Unreadable(Code.TOO_MANY_MEMBERS(f"{len(members):,}", f"{MAX_ARCHIVE_MEMBERS:,}"))
            total = sum(member.file_size for member in members)
            if total > MAX_UNPACKED_BYTES:
                raise Unreadable(Code.TOO_MANY_BYTES(f"{total:,}", f"{MAX_UNPACKED_BYTES:,}"))
            for member in members:
                if member.file_size > _LARGE_BYTES and member.file_size > MAX_PACKING_RATIO * member.compress_size:
                    raise Unreadable(Code.ZIP_BOMB(member.filename, f"{member.file_size:,}"))
                if member.flag_bits & 1:
                    raise Unreadable(Code.ENCRYPTED())
                is_xml = xml_only and member.filename.lower().endswith((".xml", ".rels"))
                if is_xml and b"<!ENTITY" in _head(archive, member).replace(b"\0", b""):
                    raise Unreadable(Code.XML_ENTITIES(member.filename))
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise Unreadable(Code.NOT_ZIP(error)) from error


def _head(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the beginning of a member; empty if it is damaged, as its reader then notes."""
    try:
        with archive.open(member) as opened:
            return opened.read(64 * 1024)
    except DAMAGED:
        return b""
