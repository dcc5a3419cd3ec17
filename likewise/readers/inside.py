"""Files inside other files: attachments of messages and imported parts of documents, and the notes about them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from indexer.errors import count_of
from indexer.ledger import Code, Reason
from indexer.sources.content import Content, Unreadable
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.formats import Format

_MAX_DEPTH = 3
"""Maximum files round a file that is read. Each of them has a worker process."""


def extract(data: bytes, format_: Format, max_characters: int, seconds: float | None = None) -> Content:
    """Read a file inside the file of this process, in a worker process of this one.

    Args:
        max_characters: longest text to accept.
        seconds: maximum time; None for the usual limit.

    Raises:
        Unreadable: the file is damaged, encrypted, over a bound, or inside too many others.
        Skip: it holds nothing to index.
    """
    if EXTRACTOR.depth > _MAX_DEPTH:
        raise Unreadable(Code.TOO_DEEP(_MAX_DEPTH))
    with tempfile.TemporaryDirectory(prefix="likewise-inside-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, f"file.{format_.name}")
        path.write_bytes(data)
        return EXTRACTOR.extract(str(path), format_.reader, max_characters, seconds=seconds)


def note(name: str, reason: Reason) -> Reason:
    """Return the note for a file inside another one that was not read, or not whole."""
    if reason.code is Code.TOO_SLOW:
        return Code.INSIDE_TOO_SLOW(name, *reason.arguments)
    return Code.INSIDE_NOT_WHOLE(name, reason.text().partition(":")[0])


def files(names: Sequence[str]) -> tuple[Reason, ...]:
    """Return the note for files inside another one of which nothing was read; none without a name."""
    return (Code.FILES_INSIDE(count_of(len(names), "file"), ", ".join(names)),) if names else ()
