"""Reads contacts of a .vcf file: names, addresses and notes, without their field names."""

from __future__ import annotations

from pathlib import Path

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.sources.encoding import decode, undecodable

_SHOWN = ("FN", "ORG", "TITLE", "EMAIL", "ADR", "NOTE")


def read(path: str) -> Content:
    """Return the contacts of a file, each as a section with its name as heading.

    Raises:
        Skip: no contact has a field that people read.
        Unreadable: the encoding of the file is unknown.
    """
    data = Path(path).read_bytes()
    if (text := decode(data)) is None:
        raise Unreadable(undecodable(data))
    assembly = Assembly()
    for line in text.replace("\r\n", "\n").replace("\n ", "").splitlines():
        field, _, value = line.partition(":")
        name = field.partition(";")[0].upper()
        shown = " ".join(value.replace("\\n", " ").replace("\\,", ",").replace(";", " ").split())
        if name == "FN":
            assembly.section(shown)
        if name in _SHOWN and shown:
            assembly.add(shown, newlines=1)
    content = assembly.content()
    if not content.text:
        raise Skip(Code.NO_TEXT())
    return content
