"""Hashes that tell whether a document has changed, and whether a stored row is damaged."""

from __future__ import annotations

import hashlib
import json

from indexer.records import OPTIONAL, RECORD_FORMATS, Document
from indexer.settings import Meaning
from indexer.stores.port import Passage

MAILS = ("eml", "mbox", "maildir")
"""Formats of messages."""

_encode = json.JSONEncoder(sort_keys=True, default=dict).encode  # other mappings than dict


def content_hash(document: Document, meaning: Meaning, vectors: bytes = b"") -> bytes:
    """16-byte hash of everything that is embedded. If it changes, the document must be embedded again.

    Args:
        meaning: everything else that the vectors depend on.
        vectors: bytes of the document's own vectors, if it has any.
    """
    sections = [(section.start, section.heading, section.page) for section in document.sections]
    hashed = [document.title, document.text, sections, meaning.recipe, meaning.passages]
    digest = hashlib.blake2b(_encode(hashed).encode(), digest_size=16)
    digest.update(vectors)
    return digest.digest()


def row_hash(document: Document | Passage) -> bytes:
    """16-byte hash of the stored members that are not embedded. If only it changes, the row is rewritten."""
    # A record has the time of its file, which does not say whether this record has changed.
    is_record = document.format in RECORD_FORMATS and document.uri != document.path
    hashed = [None if is_record and name == "modified" else getattr(document, name) for name in OPTIONAL]
    return hashlib.blake2b(_encode([document.metadata, *hashed]).encode(), digest_size=16).digest()
