"""Reading of a SOURCE: each file becomes entries, unless it has not changed since the ledger recorded it."""

# ruff: noqa: PTH122, PTH123
from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from indexer.ledger import NO_REASON, Code, Reason
from indexer.records import Document, KnownFile, Stamp
from indexer.sources import jsonl, table
from indexer.sources.content import Content, Skip, Unreadable
from indexer.sources.encoding import decode, is_binary, undecodable
from indexer.sources.entry import Entry, ReadOptions
from indexer.sources.extractor import EXTRACTOR
from indexer.sources.formats import FORMATS, JSON, JSONL, TSV, Format, call_reader, format_of, reason_not_to_read
from indexer.sources.record import Container
from indexer.sources.source import STDIN, Source
from indexer.sources.titles import title_of

_HEAD_BYTES = 8192
_OVER_LIMIT = (Code.TOO_LARGE, Code.TABLE_TOO_LARGE)
_MAX_EXPANSION = 8  # extracted text may be this many times --max-file-mb, because a zip file holds more than its size


def read(source: Source, options: ReadOptions, known: Callable[[str], KnownFile | None]) -> Iterator[Entry]:
    """Yield the entries of a SOURCE in a fixed order, with one file or record in memory at a time.

    A file whose stamp has not changed, and of which nothing failed, is not opened: its recorded entries are yielded.
    `source.whole` is set at the end.

    Args:
        known: returns the record of the ledger for the path of a file.
    """
    source.whole, whole = False, True
    if source.root == STDIN:
        yield from jsonl.read_jsonl(sys.stdin.buffer, Container(STDIN, "jsonl", None, None, options))
        return
    for file in source.files(claim=True):
        path, status = file.path, file.status
        if not path.isascii() and (name := path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")) != path:
            whole = False
            yield Entry(name, name, "failed", Code.NAME_NOT_UTF_8())
            continue
        if status is None:
            whole = whole and file.state != "failed"
            yield Entry(path, path, file.state, file.reason, ignored=file.ignored)
            continue
        recorded = None if options.rehash else known(path)
        if recorded is not None and recorded.stamp.holds(status) and _is_final(recorded):
            stamp = recorded.stamp
            for uri, state, reason in recorded.entries:
                yield Entry(
                    uri, path, "skipped" if state == "skipped" else "unchanged", reason, opened=False, stamp=stamp
                )
            continue
        for entry in _entries(path, status, options, met=path != source.root):
            if entry.state == "failed" and (entry.uri != path or _holds_records(path) or path == source.root):
                whole = False
            yield entry
    source.whole = whole


def _is_final(recorded: KnownFile) -> bool:
    """Return whether reading the file again would have the same outcome: nothing failed or was over the size limit."""
    for _, state, reason in recorded.entries:
        if state == "failed" or (state == "skipped" and reason.code in _OVER_LIMIT):
            return False
    return bool(recorded.entries)


def _holds_records(path: str) -> bool:
    by_extension = FORMATS.get(os.path.splitext(path)[1].lower())
    return by_extension is not None and by_extension.kind == "records"


def _entries(path: str, status: os.stat_result, options: ReadOptions, met: bool) -> Iterator[Entry]:
    """Open one file and yield its entries."""
    read_ns = time.time_ns()
    stamp = Stamp(status.st_size, status.st_mtime_ns, status.st_ino, read_ns)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            stamp = Stamp(status.st_size, status.st_mtime_ns, status.st_ino, read_ns)
            head = file.read(_HEAD_BYTES)
            file.seek(0)
            format_ = format_of(path, head)
            if reason := _reason_to_skip(path, format_, head, status.st_size, options):
                yield Entry(path, path, "skipped", reason, stamp=stamp)
            elif format_.kind == "records":
                yield from _records(file, path, format_, stamp, options, met)
            else:
                yield _document(file, path, format_, stamp, options)
    except OSError as error:
        yield Entry(path, path, "failed", Code.CANNOT_BE_READ(error.strerror or error), stamp=stamp)


def _reason_to_skip(path: str, format_: Format, head: bytes, size: int, options: ReadOptions) -> Reason:
    """Return why a file is skipped without being read; `NO_REASON` if it is to be read."""
    if not head:
        return Code.EMPTY()
    if format_.kind != "extracted" and is_binary(head):
        return reason_not_to_read(path)
    if size > options.max_bytes and (format_.kind != "records" or format_ is JSON):
        return Code.TOO_LARGE(f"{size / 2**20:,.1f}", f"{options.max_file_mb:g}")
    return NO_REASON


def _records(
    file: BinaryIO, path: str, format_: Format, stamp: Stamp, options: ReadOptions, met: bool
) -> Iterator[Entry]:
    options = options.of_file(path)
    container = Container(path, format_.name, _modified(stamp), stamp, options, met)
    if format_ is JSONL:
        yield from jsonl.read_jsonl(file, container)
    elif format_ is not JSON:
        yield from table.read_table(file, container, "\t" if format_ is TSV else None)
    else:
        data = file.read()
        text = decode(data) or ""
        records = jsonl.json_records(text, options)
        if records is None:  # other JSON is a text like any other
            yield _document(io.BytesIO(data), path, Format("json", "text"), stamp, options)
        elif not records.have_text and len(records.records) > table.MAX_ROWS:
            note = Code.RECORDS_AS_ONE(f"{len(records.records):,}")
            yield container.document(Content(text, metadata={"size": stamp.size}), note)
        else:
            yield from jsonl.read_json(records, container)


def _document(file: BinaryIO, path: str, format_: Format, stamp: Stamp, options: ReadOptions) -> Entry:
    """Return the entry of a file that is one document."""
    try:
        if format_.kind == "extracted":
            content = EXTRACTOR.extract(path, format_.module, _MAX_EXPANSION * options.max_bytes)
        else:
            content = _decode(file.read(options.max_bytes + 1), format_)
        if not content.text.strip():
            raise Skip(Code.NO_TEXT())
    except Skip as skip:
        return Entry(path, path, "skipped", skip.reason, stamp=stamp)
    except Unreadable as error:
        return Entry(path, path, "failed", error.reason, stamp=stamp)
    document = Document(
        uri=path,
        text=content.text,
        title=title_of(content, format_, path),
        metadata={**content.metadata, "size": stamp.size},
        path=path,
        format=format_.name,
        modified=_modified(stamp),
        sections=content.sections,
    )
    return Entry(path, path, "read", content.note, document=document, stamp=stamp)


def _decode(data: bytes, format_: Format) -> Content:
    """Return the decoded text unchanged, with the title, sections and metadata that its reader finds.

    Raises:
        Skip, Unreadable: see content.py.
    """
    text = decode(data, cookies=not format_.module)  # in Markdown "# Encoding: of names" is a heading
    if text is None:
        raise Unreadable(undecodable(data))
    if "\0" in text:
        raise Skip(Code.BINARY_WITH_NUL())
    return call_reader(format_.module, text) if format_.module else Content(text)


def _modified(stamp: Stamp) -> str:
    return datetime.fromtimestamp(stamp.mtime_ns // 10**9, UTC).isoformat()
