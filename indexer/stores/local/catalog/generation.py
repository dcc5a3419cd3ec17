"""The file `generation`: the number of the last acknowledged commit, kept outside of the catalog and its log.

SQLite ends a write-ahead log silently at the first damaged frame, so that the later commits vanish. This file records
how many commits there were. It is written after a commit is durable and before the caller gets an answer. If a writer
is killed, the file may be one commit behind the catalog. It is ahead of the catalog only if commits were lost.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from indexer.errors import Message
from indexer.stores.local.segments.files import sync

NAME = "generation"

_MAX_BYTES = 256
"""Maximum bytes of a record. A record has 55 bytes and fits in one sector of a disk, which is written whole or not at
all."""

_TRIES = 3
"""Maximum attempts to read a record whose checksum is wrong: a writer may be writing the record at this moment."""


class Generation(NamedTuple):
    """A commit of a catalog.

    Attributes:
        history: history of the catalog; numbers of different histories cannot be compared.
        number: how many commits there were, including the last.
    """

    history: str
    number: int


class GenerationFile:
    """The file of a writer. The file stays open, because the folder may be renamed during writing."""

    def __init__(self, folder: Path) -> None:
        """Open the file, or make it. Raises OSError."""
        path = folder / NAME
        is_new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if is_new:
            sync(folder)

    def write(self, generation: Generation) -> None:
        """Replace the record by this commit; it is durable when this returns. Raises OSError."""
        # In place and of the same length: the disk has only one sector to write, and the file system nothing.
        os.pwrite(self._file, _record(generation), 0)
        _sync_data(self._file)

    def close(self) -> None:
        os.close(self._file)


_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter


def read_generation(folder: Path) -> Generation | None:
    """Return the last acknowledged commit; None if no writer has recorded one, or the file cannot be read."""
    try:
        content = _content(folder)
    except OSError:  # `problem_of_file` reports it
        return None
    return _parse(content)


def problem_of_file(folder: Path) -> str:
    """Return why the file of a folder cannot be used; empty if it is sound."""
    try:
        content = _content(folder)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "is damaged" if _parse(content) is None else ""


def loss(folder: Path, lost: int) -> str:
    """Return the sentence for readers of an index that has lost commits."""
    commits = "the last commit is" if lost == 1 else f"the last {lost} commits are"
    return Message(
        f"{folder}: {commits} missing, because catalog.db-wal was damaged, removed or not copied: index the sources "
        "again, then confirm it by a repair",
        f": likewise check {quote(str(folder))} --repair",
    )


def _content(folder: Path) -> bytes:
    content, path = b"", f"{folder}/{NAME}"  # joining paths as objects takes longer than reading the file
    for _ in range(_TRIES):
        file = os.open(path, os.O_RDONLY)
        try:
            content = os.read(file, _MAX_BYTES)
        finally:
            os.close(file)
        if _parse(content) is not None:
            break
    return content


@functools.lru_cache(maxsize=128)
def _parse(content: bytes) -> Generation | None:
    """Return the commit of a record; None if the record is damaged. Text after the record's line is ignored."""
    try:
        history, number, _ = content.partition(b"\n")[0].decode().rsplit(" ", 2)
        generation = Generation(history, int(number))
    except ValueError:
        return None
    record = _record(generation)
    return generation if content[: len(record)] == record else None


def _record(generation: Generation) -> bytes:
    text = f"{generation.history} {generation.number:020d}"
    return f"{text} {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}\n".encode()
