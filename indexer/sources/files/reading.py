"""Reading of a SOURCE: each file becomes entries, unless it has not changed since the ledger recorded it."""

# ruff: noqa: PTH122, PTH123
from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from threading import Thread
from typing import BinaryIO, Protocol

from indexer import doors
from indexer.errors import to_install
from indexer.ledger import NO_REASON, Code, Reason
from indexer.records import KnownFile, Stamp
from indexer.sources import formats
from indexer.sources.content import Content, Skip, Unreadable
from indexer.sources.encoding import decode, decode_text, undecodable
from indexer.sources.entry import Entry, ReadOptions, content_or_entry
from indexer.sources.files.extractor import EXTRACTOR, WORKERS
from indexer.sources.files.titles import title_of
from indexer.sources.folders.source import STDIN, Source
from indexer.sources.folders.walk import WalkedFile
from indexer.sources.formats import Format, format_of, reader_of
from indexer.sources.limits import MAX_EXPANSION, MAX_FILE_SECONDS, MAX_MB_SECONDS, PATIENCE_SECONDS
from indexer.sources.records import jsonl, table
from indexer.sources.records.record import Container

_MAY_BE_READ_NOW = (Code.TOO_LARGE, Code.TABLE_TOO_LARGE, Code.NO_READER)
"""Reasons to skip a file that another limit or another part of likewise removes."""
_LACKING = {
    *(Code.PROGRAM_FAILED, Code.PROGRAM_TOO_SLOW, Code.PROGRAM_TOO_MUCH_OUTPUT, Code.PROGRAM_NOT_UTF_8),
    Code.INSIDE_TOO_SLOW,
}
"""Notes on parts of a file that a program failed to read, or that took too long."""


class Mailboxes(Protocol):
    """Reads the messages of an mbox, or of a Maildir, as one entry each. The part `readers` gives it."""

    def open(self, walked: WalkedFile) -> BinaryIO:
        """Open the file of a message in a Maildir, also if its name has changed. Raises OSError if that fails."""

    def entries(self, file: BinaryIO, walked: WalkedFile, stamp: Stamp) -> Iterator[Entry]:
        """Yield the entries of the messages in an open file. Messages that the ledger has are not parsed."""


def read(
    source: Source,
    options: ReadOptions,
    known: Callable[[str], KnownFile | None],
    before_wait: Callable[[], None] = lambda: None,
) -> Iterator[Entry]:
    """Yield the entries of a SOURCE, with two files or a record in memory at a time.

    The order is fixed, but a file that takes long comes when it has been read. A file is not opened if its stamp and
    its reader have not changed, and nothing of it failed that may be read now: its recorded entries are yielded.

    Args:
        known: returns the record of the ledger for the path of a file.
        before_wait: is called before nothing can be read until a file has ended that takes long.
    """
    if source.root == STDIN:
        for entry in jsonl.read_jsonl(sys.stdin.buffer, Container(STDIN, "jsonl", None, None, options)):
            yield replace(entry, reader=reader_of("jsonl"))
        return
    part = doors.find("parts", "readers")
    mailboxes: Mailboxes | None = part and part.Mailboxes(known, options)
    slow_files = _SlowFiles(before_wait)
    for file in source.files(claim=True):
        path = file.path
        if file.status is None:
            yield Entry(path, path, file.state, file.reason, ignored=file.ignored)
            continue
        recorded = known(path)
        if recorded is not None and recorded.stamp.is_unchanged(file.status) and _is_final(path, recorded, options):
            for uri, state, reason in recorded.entries:
                kept = state if state in ("skipped", "failed") else "unchanged"
                yield Entry(uri, path, kept, reason, opened=False, stamp=recorded.stamp)
            continue
        yield from entries_of(file, options, mailboxes, path != source.root, read_whole=slow_files.read)
    yield from slow_files.done()


def _is_final(path: str, recorded: KnownFile, options: ReadOptions) -> bool:
    """Return whether reading the unchanged file again would have the same outcome.

    This is true without --rehash if the reader has not changed, and nothing was over the size limit, lacked a reader,
    or failed, unless it took too long. A program of the user that has failed to read some pages counts too, and an
    attachment that took too long.
    """
    lacking = any(note.code in _LACKING for notes in recorded.notes.values() for note in notes)
    if lacking or options.rehash or not formats.is_read_alike(path, recorded, options.extractors):
        return False
    for _, state, reason in recorded.entries:
        if (state == "failed" and reason.code is not Code.TOO_SLOW) or (
            state == "skipped" and reason.code in _MAY_BE_READ_NOW
        ):
            return False
    return bool(recorded.entries)


class _SlowFiles:
    """Reads whole files, and sets a file aside that takes longer than PATIENCE_SECONDS: those after it do not wait."""

    def __init__(self, before_wait: Callable[[], None]) -> None:
        """Call `before_wait` before nothing can be read until a file has ended."""
        self._before_wait = before_wait
        self._under_way = list[Future[Entry]]()

    def read(self, read: Callable[[], Entry]) -> Iterator[Entry]:
        """Yield the entry of a file if it is read soon, and those of files that were set aside and are read now."""
        entry = Future[Entry]()
        Thread(target=_complete, args=(entry, read), daemon=True).start()
        self._under_way.append(entry)
        wait([entry], PATIENCE_SECONDS)
        yield from self.done(most=WORKERS - 1)

    def done(self, most: int = 0) -> Iterator[Entry]:
        """Yield the entries that are read. Wait until at most `most` files are under way."""
        while True:
            done = [entry for entry in self._under_way if entry.done()]
            self._under_way = [entry for entry in self._under_way if entry not in done]
            yield from (entry.result() for entry in done)
            if len(self._under_way) <= most:
                return
            self._before_wait()
            wait(self._under_way, return_when=FIRST_COMPLETED)


def _complete(future: Future[Entry], read: Callable[[], Entry]) -> None:
    try:
        future.set_result(read())
    except BaseException as error:  # noqa: BLE001 - the reading thread raises it again
        future.set_exception(error)


def entries_of(
    walked: WalkedFile,
    options: ReadOptions,
    mailboxes: Mailboxes | None,
    is_discovered: bool,
    part_of: Callable[[BinaryIO, Format], tuple[BinaryIO, Format]] = lambda *whole: whole,
    read_whole: Callable[[Callable[[], Entry]], Iterator[Entry]] = lambda read: iter((read(),)),
) -> Iterator[Entry]:
    """Open one file and yield its entries.

    Args:
        part_of: returns what is read of the open file, and as which format; by itself all of it.
        read_whole: yields the entry of a file that a reader reads as a whole, now or later, and entries of files before
            it.
    """
    read_ns = time.time_ns()
    path, status = walked.path, walked.status
    assert status is not None
    stamp = Stamp(status.st_size, status.st_mtime_ns, status.st_ino, read_ns)
    try:
        file_path = walked.message_file or path
        with mailboxes.open(walked) if mailboxes and walked.maildir else open(file_path, "rb") as file:
            status = os.fstat(file.fileno())
            stamp = Stamp(status.st_size, status.st_mtime_ns, status.st_ino, read_ns)
            head = formats.read_head(file)
            format_ = formats.MAILDIR if walked.maildir else format_of(path, head)
            extension = os.path.splitext(path)[1].lower()
            if format_ is formats.TEXT and (program := formats.program_for(options.extractors, extension)):
                format_ = Format(program.kind, "extracted")
            reader = reader_of(format_.name)
            part, format_ = part_of(file, format_)
            short_name = format_.name.removeprefix(".")
            container = Container(path, short_name, _modified(stamp), stamp, options, is_discovered)
            entries: Iterable[Entry]
            if reason := _reason_to_skip(path, format_, head, stamp.size, options):
                entries = [container.whole(True, reason)]
            elif format_ in (formats.MBOX, formats.MAILDIR) and mailboxes is None:
                entries = [container.whole(True, Code.NO_READER(format_.name, to_install()))]
            elif format_ in (formats.MBOX, formats.MAILDIR) and mailboxes is not None:
                entries = mailboxes.entries(part, walked, stamp)
            elif format_.kind == "records":
                entries = _in_time(_records(part, format_, container), path, stamp)
            else:
                # Read here: the file is closed when the entry comes later.
                data = b"" if format_.kind == "extracted" else part.read(options.max_bytes + 1)
                read_entry = partial(_whole_file, data, format_, container)
                is_slow = format_.kind == "extracted" or format_.reader
                entries = read_whole(read_entry) if is_slow else [read_entry()]
            for entry in entries:
                left = max(stamp.size - file.tell(), 0) if format_.kind == "records" else 0
                yield replace(entry, reader=entry.reader or reader, left=left)
    except OSError as error:
        yield Entry(path, path, "failed", Code.CANNOT_BE_READ(error.strerror or error), stamp=stamp)


def _in_time(entries: Iterator[Entry], path: str, stamp: Stamp) -> Iterator[Entry]:
    """Yield the entries of a file that this process reads, until reading them takes too much of its time."""
    left = most = max(MAX_FILE_SECONDS, MAX_MB_SECONDS * stamp.size / 2**20)
    while left >= 0:
        began = time.thread_time()
        if (entry := next(entries, None)) is None:
            return
        left -= time.thread_time() - began
        yield entry
    yield Entry(path, path, "failed", Code.TOO_SLOW(f"{most:.0f}"), stamp=stamp)


def _whole_file(data: bytes, format_: Format, container: Container) -> Entry:
    """Return the entry of a file that is one document.

    A program of the user reads it if its reader finds no text, and completes its text if some of its pages have none.

    Args:
        data: the bytes of a text. A reader that extracts text opens the file itself.
    """
    path, options = container.file, container.options
    is_extracted = format_.kind == "extracted"
    program = formats.program_for(options.extractors, format_.name) if is_extracted else None
    extract = partial(EXTRACTOR.extract, path, format_.reader, MAX_EXPANSION * options.max_bytes)
    attempt = partial(content_or_entry, uri=path, file=path, stamp=container.stamp)
    content: Content | Entry | None = None
    if program is None or format_.reader:
        content = attempt(extract if is_extracted else partial(_decode, data, path, format_))
    reader = reader_of(format_.name)
    if program is not None and (content is None or (isinstance(content, Entry) and content.state == "skipped")):
        content, reader = attempt(partial(program.read, path)), program.reader
    elif program is not None and isinstance(content, Content) and content.unread_pages:
        completed = attempt(partial(program.complete, path, content))
        if isinstance(completed, Entry):  # what the reader has found is kept
            completed = replace(content, unread=(*content.unread, completed.reason))
        content, reader = completed, program.reader
    assert content is not None
    if isinstance(content, Content):
        content = container.document(replace(content, title=title_of(content, format_, path)))
    return replace(content, reader=reader)


def _reason_to_skip(path: str, format_: Format, head: bytes, size: int, options: ReadOptions) -> Reason:
    """Return why a file is skipped without being read; `NO_REASON` if it is to be read."""
    if not head:
        return Code.EMPTY()
    is_read_here = format_.kind != "extracted" and format_ is not formats.MBOX
    # A table with few NUL bytes is a table: they are left out, with a note.
    is_damaged = format_.kind == "records" and head.count(0) <= max(8, len(head) // 20)
    if is_read_here and (reason := formats.reason_not_to_read(path, head.replace(b"\0", b"") if is_damaged else head)):
        return reason
    if size > options.max_bytes and (format_.kind != "records" or format_ is formats.JSON):
        return Code.TOO_LARGE(f"{size / 2**20:,.1f}", f"{options.max_file_mb:g}")
    return NO_REASON


def _records(file: BinaryIO, format_: Format, container: Container) -> Iterator[Entry]:
    options = container.options
    if format_ is formats.JSONL:
        yield from jsonl.read_jsonl(file, container)
    elif format_ is not formats.JSON:
        yield from table.read_table(file, container, "\t" if format_ is formats.TSV else None)
    else:
        data = file.read()
        text = decode(data) or ""
        if jsonl.is_lines(text, options):
            yield from jsonl.read_jsonl(io.BytesIO(text.encode()), container)
            return
        try:
            records = jsonl.json_records(text, options)
        except jsonl.Invalid as error:
            # Not a text like any other: its records may be documents already, which a failure keeps.
            place = getattr(error.__cause__, "lineno", 1)
            yield container.failed(place, error.reason)
            return
        if records is None:  # other JSON is a text like any other
            yield _whole_file(data, Format("json", "text"), container)
        elif not records.have_text and len(records.records) > table.MAX_ROWS:
            yield container.document(Content(text, note=Code.RECORDS_AS_ONE(f"{len(records.records):,}")))
        else:
            yield from jsonl.read_json(records, container)


def _decode(data: bytes, path: str, format_: Format) -> Content:
    """Return the decoded text unchanged, with the title, sections and metadata that its reader finds.

    Raises:
        Skip, Unreadable: see content.py.
    """
    # In Markdown "# Encoding: of names" is a heading.
    decoded = decode_text(data, cookies=format_ not in (formats.MARKDOWN, formats.RST))
    if decoded is None:
        raise Unreadable(undecodable(data))
    text = decoded.text
    if "\0" in text:
        raise Skip(Code.BINARY_WITH_NUL())
    content = EXTRACTOR.extract(path, format_.reader, len(text), text) if format_.reader else Content(text)
    return replace(content, unread=(*decoded.notes, *content.unread))


def _modified(stamp: Stamp) -> str:
    return datetime.fromtimestamp(stamp.mtime_ns // 10**9, UTC).isoformat()
