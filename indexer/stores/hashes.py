"""Hashes that tell whether a document has changed, and whether a stored row is damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from indexer.passages.cut import later_rules
from indexer.records import OPTIONAL, Document
from indexer.settings import Meaning
from indexer.stores.port import Passage

_FIRST_OPTIONAL = 3
"""How many of `OPTIONAL` the first hashes had. A later member counts where it is set, so that older hashes stay."""

RECORDS = frozenset({"json", "jsonl", "csv", "tsv"})
"""Formats of files that hold many documents of one kind."""

MAILS = ("eml", "mbox", "maildir")
"""Formats of messages."""

_encode = json.JSONEncoder(sort_keys=True, default=dict).encode  # other mappings than dict


def content_hash(
    document: Document, meaning: Meaning, vectors: bytes = b"", rules: Sequence[str] | None = None
) -> bytes:
    """16-byte hash of everything that is embedded. If it changes, the document must be embedded again.

    Args:
        meaning: everything else that the vectors depend on.
        vectors: bytes of the document's own vectors, if it has any.
        rules: names of the later rules by which the passages were cut; None for the rules of this version.
    """
    sections = [(section.start, section.heading, section.page) for section in document.sections]
    hashed: list[Any] = [document.title, document.text, sections, meaning.recipe, meaning.passages]
    if rules is None:
        rules = () if vectors else later_rules(document)
    if rules:
        hashed.append(rules)
    digest = hashlib.blake2b(_encode(hashed).encode(), digest_size=16)
    digest.update(vectors)
    return digest.digest()


def is_of_content(stored: bytes, document: Document, meaning: Meaning) -> bool:
    """Return whether a document has the stored hash, by the rules of this version or of an earlier version."""
    rules = later_rules(document)
    return any(content_hash(document, meaning, rules=rules[:count]) == stored for count in range(len(rules), -1, -1))


def row_hash(document: Document | Passage) -> bytes:
    """16-byte hash of the stored members that are not embedded. If only it changes, the row is rewritten."""
    # A record has the time of its file, which does not say whether this record has changed.
    is_record = document.format in RECORDS and document.uri != document.path
    hashed = [None if is_record and name == "modified" else getattr(document, name) for name in OPTIONAL]
    while len(hashed) > _FIRST_OPTIONAL and hashed[-1] is None:
        hashed.pop()
    return hashlib.blake2b(_encode([document.metadata, *hashed]).encode(), digest_size=16).digest()
