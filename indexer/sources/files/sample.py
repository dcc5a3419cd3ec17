"""Texts of a few files, evenly spread over the walk, which show the languages of the sources before a run."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from random import Random
from typing import BinaryIO

from indexer import doors
from indexer.ledger import Code
from indexer.sources.entry import ReadOptions
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.files.reading import entries_of
from indexer.sources.folders.source import STDIN, Source
from indexer.sources.folders.walk import WalkedFile
from indexer.sources.formats import JSON, JSONL, MBOX, Format

SAMPLE_FILES = 200
"""Maximum files in the sample."""

FILE_RECORDS = 6
"""Maximum records of a file in the sample. If there are few files, it is SAMPLE_FILES of all together."""

_TEXT_BYTES, _TABLE_BYTES, _LINE_BYTES = 4 * 2**10, 2**16, 2**20
"""Maximum bytes that are read of a text, of a table, and of a line of JSON."""

_WHOLE_BYTES, _FILE_BYTES = 8 * 2**20, 640 * 2**10
"""Bytes that are read of files such as PDF, which have no parts. Each counts for at least _FILE_BYTES, because opening
it takes time too. The sample ends there, so that all formats keep their shares. Larger files come last."""


def sample_texts(groups: Iterable[tuple[ReadOptions, Sequence[Source]]]) -> list[str]:
    """Return texts of the sources, evenly spread over their files. Equal sources have equal samples.

    The list is empty if the only source is standard input, or if a record brings its own vector.
    """
    # No program of the user reads the sample.
    sources = ((source, replace(options, extractors=())) for options, opened in groups for source in opened)
    files = _spread((file, options) for source, options in sources if source.root != STDIN for file in source.files())
    count = max(FILE_RECORDS, SAMPLE_FILES // max(len(files), 1))
    readers, texts, whole = doors.find("parts", "readers"), list[str](), list[int]()
    Random(0).shuffle(files)
    files.sort(key=lambda each: each[0].status is not None and each[0].status.st_size > _WHOLE_BYTES)
    for file, options in files:
        mailboxes = readers and readers.Mailboxes(lambda _: None, options)
        for entry in islice(entries_of(file, options, mailboxes, True, partial(_part, count, whole)), count):
            if entry.vector is not None or entry.embedded is not None:
                return []
            if entry.document is not None:
                texts.append(entry.document.text)
            elif entry.reason.code is Code.TOO_SLOW:
                EXTRACTOR.late.add(entry.uri)
        if sum(whole) >= _WHOLE_BYTES:
            break
    return texts


def _spread(walked: Iterable[tuple[WalkedFile, ReadOptions]]) -> list[tuple[WalkedFile, ReadOptions]]:
    """Return up to SAMPLE_FILES evenly spread files. All files of a large folder together would need much memory."""
    kept, step = list[tuple[WalkedFile, ReadOptions]](), 1
    for number, each in enumerate(each for each in walked if each[0].status and each[0].status.st_size):
        kept += [each] * (number % step == 0)
        if len(kept) > 2 * SAMPLE_FILES:
            kept, step = kept[::2], 2 * step
    return kept[:: -(-len(kept) // SAMPLE_FILES) or 1]


def _part(count: int, whole: list[int], file: BinaryIO, format_: Format) -> tuple[BinaryIO, Format]:
    """Return evenly spread lines of JSON, the middle of a text, the beginning of a table, or else the whole file. The
    format of a text gets no reader, because title and sections do not matter.

    Args:
        count: how many lines.
        whole: gets the bytes of a file without parts.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if format_.kind == "extracted" or format_ in (JSON, MBOX):
        whole.append(max(size, _FILE_BYTES))
        return file, format_
    if format_ is JSONL:
        if size > _TABLE_BYTES:
            lines = [file.readline(_LINE_BYTES)]
            for number in range(1, count):
                file.seek(size * number // count)
                lines.append([file.readline(_LINE_BYTES) for _ in range(2)][1])  # The first is the end of a line.
            file = io.BytesIO(b"".join(lines))
        return file, format_
    most = _TEXT_BYTES if format_.kind == "text" else _TABLE_BYTES
    start = max(size - most, 0) // 2 if format_.kind == "text" else 0
    file.seek(start)
    part = file.read(most)
    if size > most:
        part = part[part.find(b"\n") + 1 if start else 0 : part.rfind(b"\n") + 1] or part
    return io.BytesIO(part), replace(format_, reader="") if format_.kind == "text" else format_
