"""What tells a document that has changed from one that is the same, and a damaged row from a sound one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol

from indexer.records import Document

_RECORDS = frozenset({"json", "jsonl", "csv", "tsv"})

_encode = json.JSONEncoder(sort_keys=True, default=dict).encode  # other mappings than dict


def content_hash(document: Document, meaning: tuple[str, str], vectors: bytes = b"") -> bytes:
    """Of what is embedded (16 bytes): another one means other vectors.

    Args:
        meaning: what vectors depend on besides: the recipe's identity, the passage settings.
        vectors: those that the document brought.
    """
    sections = [(section.start, section.heading, section.page) for section in document.sections]
    digest = hashlib.blake2b(_encode([document.title, document.text, sections, *meaning]).encode(), digest_size=16)
    digest.update(vectors)
    return digest.digest()


class _Row(Protocol):
    """A document, or a passage with what is its document's."""

    @property
    def uri(self) -> str: ...
    @property
    def path(self) -> str | None: ...
    @property
    def format(self) -> str | None: ...
    @property
    def modified(self) -> str | None: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


def row_hash(document: _Row) -> bytes:
    """Of the rest (16 bytes): another one alone means the same vectors beside another row."""
    # A record's time is its file's, and says nothing of whether this record has changed.
    record = document.format in _RECORDS and document.uri != document.path
    modified = None if record else document.modified
    row = _encode([document.metadata, document.path, document.format, modified])
    return hashlib.blake2b(row.encode(), digest_size=16).digest()
