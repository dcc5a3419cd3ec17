"""Checks of zip files (DOCX, PPTX, XLSX, EPUB) before they are opened: their declared content must be within bounds."""

# ruff: noqa: PTH123
from __future__ import annotations

import zipfile

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
            raise Unreadable("encrypted, or of an older format: save it without a password in the current one")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise Unreadable(f"a zip bomb: {len(members):,} members, over the bound of {MAX_MEMBERS:,}")
            total = sum(member.file_size for member in members)
            if total > MAX_BYTES:
                raise Unreadable(f"a zip bomb: unpacks to {total:,} bytes, over the bound of {MAX_BYTES:,}")
            for member in members:
                if member.file_size > _LARGE_BYTES and member.file_size > MAX_RATIO * member.compress_size:
                    raise Unreadable(f"a zip bomb: {member.filename} unpacks to {member.file_size:,} bytes")
                if member.flag_bits & 1:
                    raise Unreadable("encrypted: save it without a password")
                if xml_only and member.filename.endswith((".xml", ".rels")):
                    with archive.open(member) as opened:
                        if b"<!ENTITY" in opened.read(64 * 1024).replace(b"\0", b""):
                            raise Unreadable(f"{member.filename} declares XML entities, which are not expanded")
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise Unreadable(f"damaged: not a readable zip file ({error})") from error
