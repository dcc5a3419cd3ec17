"""What tells a document that has changed from one that is the same, and a damaged row from a sound one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol

from indexer.records import Document
from indexer.settings import Meaning

_RECORDS = frozenset({"json", "jsonl", "csv", "tsv"})

_encode = json.JSONEncoder(sort_keys=True, default=dict).encode  # other mappings than dict


def content_hash(document: Document, meaning: Meaning, vectors: bytes = b"") -> bytes:
    """16-byte hash of everything that is embedded. If it changes, the document must be embedded again.

    Args:
        meaning: what vectors depend on besides the document.
        vectors: those that the document brought.
    """
    sections = [(section.start, section.heading, section.page) for section in document.sections]
    digest = hashlib.blake2b(
        _encode([document.title, document.text, sections, meaning.recipe, meaning.passages]).encode(), digest_size=16
    )
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
    """16-byte hash of the rest. If it alone changes, the row is rewritten and its vectors stay."""
    # A record's time is its file's, and says nothing of whether this record has changed.
    record = document.format in _RECORDS and document.uri != document.path
    modified = None if record else document.modified
    row = _encode([document.metadata, document.path, document.format, modified])
    return hashlib.blake2b(row.encode(), digest_size=16).digest()
