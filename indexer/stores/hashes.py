"""Hashes that tell whether a document has changed, and whether a stored row is damaged."""

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
        meaning: everything else that the vectors depend on.
        vectors: bytes of the vectors that the document brought with it.
    """
    sections = [(section.start, section.heading, section.page) for section in document.sections]
    digest = hashlib.blake2b(
        _encode([document.title, document.text, sections, meaning.recipe, meaning.passages]).encode(), digest_size=16
    )
    digest.update(vectors)
    return digest.digest()


class _Row(Protocol):
    """The stored members of a document, which a passage has too."""

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
    """16-byte hash of the stored members that are not embedded. If only it changes, the row is rewritten."""
    # A record has the time of its file, which does not say whether this record has changed.
    is_record = document.format in _RECORDS and document.uri != document.path
    modified = None if is_record else document.modified
    row = _encode([document.metadata, document.path, document.format, modified])
    return hashlib.blake2b(row.encode(), digest_size=16).digest()
