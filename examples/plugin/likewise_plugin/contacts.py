"""Reads contacts of a .ldif file: names, addresses and notes, without their attribute names."""

from __future__ import annotations

from pathlib import Path

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.sources.encoding import decode, undecodable

_SHOWN = ("cn", "o", "title", "mail", "l", "description")


def read(path: str) -> Content:
    """Return the contacts of a file, each as a section with its name as heading.

    Raises:
        Skip: no contact has an attribute that people read.
        Unreadable: the encoding of the file is unknown.
    """
    data = Path(path).read_bytes()
    if (text := decode(data)) is None:
        raise Unreadable(undecodable(data))
    assembly = Assembly()
    for line in text.replace("\r\n", "\n").replace("\n ", "").splitlines():
        attribute, _, value = line.partition(": ")
        if attribute.lower() == "cn":
            assembly.section(value)
        if attribute.lower() in _SHOWN:
            assembly.add(value, newlines=1)
    content = assembly.content()
    if not content.text:
        raise Skip(Code.NO_TEXT())
    return content
