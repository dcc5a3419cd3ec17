"""Records in CSV and TSV, in two streamed passes: the first finds the types of the columns, the second the rows."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO

from indexer.sources.encoding import bom_encoding, guess, wide_encoding
from indexer.sources.entry import Entry
from indexer.sources.record import ID_FIELDS, TEXT_FIELDS, TITLE_FIELDS, Container, text_names

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)  # at most 18 digits: SQLite's integers have 64 bits
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}

Cell = str | int | float | bool

_NEVER_CLOSED = 'a quote that begins here is never closed, and takes in all that follows: close it, or write it as ""'


class _TooLong(Exception):
    """A row is over the limit, most often because a quote is never closed."""


class _Unclosed(Exception):
    """The file ended inside a quote: every row from `line` on is in one cell."""

    def __init__(self, line: int) -> None:
        self.line = line


def read_table(stream: BinaryIO, container: Container, delimiter: str | None) -> Iterator[Entry]:
    """Yield one entry per row, with one row in memory at a time.

    A column is integer, number or boolean if all its cells are; otherwise it is text, as dates in ISO form are.
    "007" and "+1" are text, because a number would not give them back. An empty cell is a missing member.

    Args:
        delimiter: between cells; None finds it out from the first rows.
    """
    limit = container.options.max_bytes
    if csv.field_size_limit() < limit:
        csv.field_size_limit(limit)
    head = stream.read(2**16)
    encoding = _encoding(stream, head)
    if encoding is None:
        yield container.whole(False, "its encoding cannot be found out: save it as UTF-8")
        return
    delimiter = delimiter or _delimiter(head.decode(encoding, errors="replace"))
    quoting = csv.QUOTE_MINIMAL if delimiter != "\t" or _has_quoted_cells(stream, encoding, limit) else csv.QUOTE_NONE
    try:
        table = _rows(stream, encoding, limit, delimiter=delimiter, quoting=quoting)
        _, header = next(table, (0, []))
        header = [name.strip() for name in header]
        if problem := _header_problem(header, container):
            texts = {*TEXT_FIELDS, *text_names(container.options)}
            yield container.whole(container.met and not texts.intersection(header), problem)
            return
        converters = _column_types(header, table, container)
    except _TooLong:
        yield container.too_large(1)
        return
    except _Unclosed as error:
        yield container.failed(error.line, _NEVER_CLOSED)
        return
    last = 0
    rows = _rows(stream, encoding, limit, delimiter=delimiter, quoting=quoting)
    next(rows)
    try:
        for last, row in rows:
            if len(row) != len(header):
                yield container.failed(last, f"has {len(row)} cells where the header has {len(header)}")
                continue
            cells = {
                name: convert(cell) if convert else cell
                for name, convert, cell in zip(header, converters, row, strict=True)
                if cell or convert is None
            }
            yield container.entry(last, cells)
    except _TooLong:
        yield container.too_large(last + 1)
    except _Unclosed as error:
        yield container.failed(error.line, _NEVER_CLOSED)
    else:
        if not last:
            yield container.whole(True, "holds no rows below its header")


def _rows(
    stream: BinaryIO, encoding: str, limit: int, *, delimiter: str, quoting: int, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the line that each begins in."""
    stream.seek(0)
    decoder = io.TextIOWrapper(stream, encoding, newline="")
    row_length, first_line = 0, 1

    def lines() -> Iterator[str]:
        nonlocal row_length
        while line := decoder.readline(limit + 1 - row_length):
            row_length += len(line)
            if row_length > limit:
                raise _TooLong
            yield line
        if row_length:  # the row is not complete
            raise _Unclosed(first_line)

    reader = csv.reader(lines(), delimiter=delimiter, quoting=quoting, strict=strict)  # type: ignore[arg-type]
    try:
        while True:
            row_length, first_line = 0, reader.line_num + 1
            row = next(reader, None)
            if row is None:
                return
            if row:
                yield first_line, row
    finally:
        decoder.detach()


def _has_quoted_cells(stream: BinaryIO, encoding: str, limit: int) -> bool:
    """Return whether quotes enclose the cells of a tab-separated file; in many files they are a part of the text.

    They do if all of them are in the right places, or if more rows would be wrong without them.
    """

    def count_wrong_rows(quoting: int, strict: bool) -> float:
        """Return how many rows have another number of cells than the header; infinite if there are no rows."""
        rows = _rows(stream, encoding, limit, delimiter="\t", quoting=quoting, strict=strict)
        try:
            _, header = next(rows, (0, []))
            return sum(len(row) != len(header) for _, row in rows)
        except (_TooLong, _Unclosed, csv.Error):
            return math.inf

    plain = count_wrong_rows(csv.QUOTE_NONE, False)
    if count_wrong_rows(csv.QUOTE_MINIMAL, True) <= plain:
        return True
    return count_wrong_rows(csv.QUOTE_MINIMAL, False) < plain


def _encoding(stream: BinaryIO, head: bytes) -> str | None:
    """Return the encoding in which the whole file can be decoded: declared, UTF-8, or guessed from non-ASCII lines."""
    declared = bom_encoding(head) or wide_encoding(head)
    if _decodes(stream, declared or "utf-8"):
        return declared or "utf-8"
    stream.seek(0)
    non_ascii = (line for line in iter(lambda: stream.readline(2**16), b"") if not line.isascii())
    guessed = None if declared else guess(b"".join(islice(non_ascii, 1000)))
    return guessed if guessed and _decodes(stream, guessed) else None


def _decodes(stream: BinaryIO, encoding: str) -> bool:
    stream.seek(0)
    decoder = io.TextIOWrapper(stream, encoding, newline="")
    try:
        while decoder.read(2**16):
            pass
    except (LookupError, UnicodeError):
        return False
    finally:
        decoder.detach()
    return True


def _delimiter(sample: str) -> str:
    """Return the delimiter that splits the first rows into the most cells, with the same number in each row."""
    lines = sample.splitlines(keepends=True)
    if len(lines) > 1:
        lines.pop()  # it may be incomplete
    best, most = ",", 1
    for delimiter in (",", ";", "\t", "|"):
        counts = [len(row) for row in islice(csv.reader(lines, delimiter=delimiter), 20) if row]
        even = sum(count == counts[0] for count in counts) >= 0.8 * len(counts) if counts else False
        if even and counts[0] > most:
            best, most = delimiter, counts[0]
    return best


def _header_problem(header: Sequence[str], container: Container) -> str:
    """Return the reason why no row below this header can be a document; empty if rows can."""
    options = container.options
    columns = ", ".join(header)
    if "" in header or not header:
        column = header.index("") + 1 if header else 1
        return f"its header has an empty name in column {column}: name every column"
    if twice := sorted({name for name in header if header.count(name) > 1}):
        return f'its header has "{twice[0]}" more than once: rename one (columns: {columns})'
    for flag, name in (("--id-field", options.id_field), ("--text-field", options.text_field)):
        if name and name not in header:
            return f'has no column "{name}", which {flag} names (columns: {columns})'
    if not set(text_names(options)).intersection(header):
        return f"has no column of text: name one with --text-field (columns: {columns})"
    return ""


def _column_types(
    header: Sequence[str], rows: Iterator[tuple[int, list[str]]], container: Container
) -> list[Callable[[str], Cell] | None]:
    """Return the function that converts each column's cells; None for id, title and text, which stay as they are."""
    options = container.options
    kept: set[str] = set()
    for named, usual in (
        (options.id_field, ID_FIELDS),
        (options.title_field, TITLE_FIELDS),
        (options.text_field, TEXT_FIELDS),
    ):
        kept.update(islice((name for name in ((named,) if named else usual) if name in header), 1))
    candidates = {column: [_integer, _number, _boolean] for column, name in enumerate(header) if name not in kept}
    filled: set[int] = set()
    try:
        for _, row in rows:
            if len(row) != len(header):
                continue
            for column in list(candidates):
                if cell := row[column]:
                    filled.add(column)
                    candidates[column] = [convert for convert in candidates[column] if convert(cell) is not None]
                    if not candidates[column]:
                        del candidates[column]
    except (_TooLong, _Unclosed):
        pass  # the second pass meets the same row, and reports it
    types: list[Callable[[str], Cell] | None] = []
    for column, name in enumerate(header):
        fitting = candidates.get(column) if column in filled else None
        types.append(None if name in kept else _or_text(fitting[0]) if fitting else str)
    return types


def _or_text(convert: Callable[[str], Cell | None]) -> Callable[[str], Cell]:
    def convert_or_keep(cell: str) -> Cell:
        value = convert(cell)
        return cell if value is None else value  # the file has changed between the two passes

    return convert_or_keep


def _integer(cell: str) -> int | None:
    cell = cell.strip()
    return int(cell) if _INTEGER.fullmatch(cell) else None


def _number(cell: str) -> float | None:
    cell = cell.strip()
    if not _NUMBER.fullmatch(cell) or (cell.lstrip("-").isdigit() and not _INTEGER.fullmatch(cell)):
        return None  # a float would not keep the digits of a long integer
    return value if math.isfinite(value := float(cell)) else None


def _boolean(cell: str) -> bool | None:
    return _BOOLEANS.get(cell.strip().lower())
