"""Documents on their way into an index: refused where they cannot be stored, hashed, and embedded or not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from indexer.errors import BadInput
from indexer.exchange import Embedded
from indexer.records import Document
from indexer.stores import fields
from indexer.stores.store import EmbeddedDocument

_RECORDS = frozenset({"json", "jsonl", "csv", "tsv"})

_encode = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class Prepared:
    """Documents compared with the index and embedded, ready to be committed.

    Attributes:
        work: new and changed documents; without spans where the metadata alone changed.
        unchanged: uris that are the same as stored.
        empty: uris whose text holds no token the model reads.
    """

    work: tuple[EmbeddedDocument, ...]
    unchanged: tuple[str, ...]
    empty: tuple[str, ...]

    def states(self) -> dict[str, Literal["indexed", "updated", "unchanged", "skipped"]]:
        """What the ledger says of each uri once this is committed."""
        return {
            **{item.document.uri: "updated" if item.spans is None else "indexed" for item in self.work},
            **dict.fromkeys(self.unchanged, "unchanged"),
            **dict.fromkeys(self.empty, "skipped"),
        }


def validate(document: Document, *, empty: bool = False) -> None:
    """Raise BadInput for a document that cannot be stored without loss; `empty` lets one have no text."""
    if not isinstance(document.uri, str) or not document.uri:
        raise BadInput(f"a document needs a uri that is a non-empty string, not {document.uri!r}")
    optional = {"path": document.path, "format": document.format, "modified": document.modified}
    strings = {"uri": document.uri, "title": document.title, "text": document.text}
    for name, value in (strings | {name: value for name, value in optional.items() if value is not None}).items():
        if not isinstance(value, str):
            raise BadInput(f"{document.uri}: its {name} is no string but {type(value).__name__}")
        if "\0" in value:
            raise BadInput(f"{document.uri}: its {name} holds a NUL character at {value.index(chr(0))}")
        if (broken := broken_at(value)) is not None:
            raise BadInput(f"{document.uri}: its {name} is no valid Unicode at character {broken}")
    if not empty and not document.text.strip():
        raise BadInput(f"{document.uri}: has no text")
    if not isinstance(document.metadata, Mapping):
        raise BadInput(f"{document.uri}: its metadata is no mapping but {type(document.metadata).__name__}")
    fields.scalars(document.uri, document.metadata)


def broken_at(text: str) -> int | None:
    """Where a text holds half a character (a lone surrogate), which no catalog and no model can take."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def hashes(document: Document, own: Embedded | None, meaning: tuple[str, str]) -> tuple[bytes, bytes]:
    """Content decides embedding, row decides rewriting the document's row (16 bytes each).

    Args:
        meaning: what its vectors depend on besides: the recipe's identity, the passage settings.
    """
    sections = [(section.start, section.heading, section.page) for section in document.sections]
    content = hashlib.blake2b(_encode([document.title, document.text, sections, *meaning]).encode(), digest_size=16)
    if own is not None and not own.recipe:
        content.update(own.vectors.astype("<f2").tobytes())
    # A record's time is its file's, and says nothing of whether this record has changed.
    record = document.format in _RECORDS and document.uri != document.path
    modified = None if record else document.modified
    row = _encode([document.metadata, document.path, document.format, modified])
    return content.digest(), hashlib.blake2b(row.encode(), digest_size=16).digest()
