"""Records in CSV and TSV, in two streamed passes: the first finds the header and the types of the columns, the second
the rows.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import BinaryIO

from indexer.ledger import NO_REASON, Code, Reason
from indexer.sources.content import Assembly, Refused
from indexer.sources.encoding import guess, marked_encoding
from indexer.sources.entry import Entry
from indexer.sources.limits import MAX_COLUMNS
from indexer.sources.records.record import ID_FIELDS, TEXT_FIELDS, TITLE_FIELDS, Container, text_names

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)  # at most 18 digits: SQLite's integers have 64 bits
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d", re.ASCII)
_DOTTED_DATE = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})(?: (\d\d:\d\d(?::\d\d)?))?", re.ASCII)
_GERMAN_NUMBER = re.compile(
    r"-?(?:[1-9]\d{0,2}(?:\.\d{3})+,\d+|(?:0|[1-9]\d{3,})(?:,\d+)?|[1-9]\d{0,2}(?:,(?!\d{3}$)\d+)?)", re.ASCII
)
"""1.234,00 and 12,5 and 0,125, but not 1,234, which is either."""
_DECIMAL_COMMA = re.compile(r"-\d|0,|[\d.]+\.\d+,", re.ASCII)
"""The beginning of a number in German form that cannot be a list of two numbers, as 1,2 can."""
_COMMA_IN_CELL = re.compile(r"(?<=\d),(?=\d)|,(?=[ \t])", re.ASCII)
_THOUSANDS = re.compile(r"-?(?:0|[1-9]\d{0,2}(?:\.\d{3})*)", re.ASCII)
_SEPARATOR = re.compile(r'\ufeff?"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
"""The first line of a table that names its delimiter, as spreadsheet programs read it."""
_BOOLEANS = {"true": True, "false": False}
_VALUE = re.compile(r"\s*(?:-?\d|true|false)", re.ASCII | re.IGNORECASE)
"""The beginning of every cell that is not text. Most texts do not have it."""

Cell = str | int | float | bool
Converter = Callable[[str], Cell | None]

MAX_ROWS = 5_000
"""Maximum rows of a table that has no column of text and is read row by row. A larger table is one document, because
few of its rows are ever asked for."""

MAX_TITLE_ROWS = 3
"""Maximum rows above a header."""

MIN_OF_A_TYPE = 0.95
"""Minimum share of the cells of a column that have its type. The other cells stay text."""

_SHOWN_CHARACTERS = 40

MAX_UNEVEN = 0.2
"""Maximum share of rows with a single cell or with more cells than the header, in a list of records without a column of
text."""


class _Damaged(Refused):
    """A row cannot be read: it is over the limit, most often because a quote is never closed; or the file ended inside
    a quote, so every row from `line` on is in one cell."""

    def __init__(self, line: int, reason: Reason) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class _Layout:
    """The result of the first pass over a table.

    Attributes:
        skipped: rows above the header.
        title: the text of those rows.
        header: unique names of the columns; empty if there are no rows at all.
        converters: function that converts each column's cells, and returns None for a cell that stays text; None for
            id, title and text.
        rows: number of rows below the header.
        records: whether the rows are records, because the first of them names the columns.
    """

    skipped: int
    title: str
    header: list[str]
    converters: list[Converter | None]
    rows: int
    records: bool


def read_table(stream: BinaryIO, container: Container, delimiter: str | None) -> Iterator[Entry]:
    """Yield one entry per row, with one row in memory at a time.

    A column is integer, number or boolean if `MIN_OF_A_TYPE` of its cells are; the others stay text, and a note names
    the first of them. Every other column is text. Dates are texts in ISO form, and in a column of dates with dots, such
    as 31.12.2024, each date becomes ISO form. With dots the day is always first.
    A column of numbers in German form, such as 1.234,00, is of numbers where commas do not divide the cells. Beside
    such a column, one of 1.234 and the like is text, because its dots may be those of thousands. Beside a column of
    numbers with decimal points, one of 1,2 and the like is text, because such cells may be lists.
    A column with "007" or "+1" is text, because a number would not give them back. An empty cell is a missing member.
    Blanks around a cell do not count, except in a text.
    Without a column of text a row is read as lines of "column: value". A table that is not a list of records, or has
    more rows than `MAX_ROWS`, becomes one document with tabs between the cells.

    Args:
        delimiter: delimiter between cells; None detects it from the first rows.
    """
    csv.field_size_limit(max(csv.field_size_limit(), container.options.max_bytes))
    head = stream.read(2**16)
    encoding = _encoding(stream, head)
    if encoding is None:
        yield container.whole(False, Code.ENCODING_UNKNOWN())
        return
    sample = head.decode(encoding, errors="replace")
    named = _SEPARATOR.fullmatch(next(iter(sample.splitlines()), ""))
    delimiter = str(named[1]) if named else delimiter or _delimiter(sample)
    has_quotes = delimiter != "\t" or _has_quoted_cells(stream, encoding, container)
    read_rows = partial(_rows, stream, encoding, container, delimiter, has_quotes)
    try:
        layout = _layout(read_rows(), container, delimiter)
    except _Damaged as error:
        yield container.failed(error.line, error.reason)
        return
    if len(layout.header) > MAX_COLUMNS:
        yield container.whole(False, Code.TOO_MANY_COLUMNS(f"{MAX_COLUMNS:,}"))
        return
    texts = set(text_names(container.options)).intersection(layout.header)
    notes = set[Reason]()
    rows = read_rows(notes=notes)
    problem = _problem(layout, container)
    if problem and layout.rows:
        yield container.whole(
            container.is_discovered and not {*TEXT_FIELDS, *texts}.intersection(layout.header), problem
        )
        return
    if not problem and not texts and (not layout.records or layout.rows > MAX_ROWS):
        yield _one_document(rows, layout, container).noted(*notes)
        return
    yield from _records(rows, layout, container, notes, problem)


def _records(
    rows: Iterator[tuple[int, list[str]]], layout: _Layout, container: Container, notes: set[Reason], problem: Reason
) -> Iterator[Entry]:
    """Yield the entry of each row below the header, or one entry for the file with its problem.

    Args:
        notes: gets notes while the rows are read.
        problem: why the file has no row; `NO_REASON` if it has rows.
    """
    texts = set(text_names(container.options)).intersection(layout.header)
    last, is_noted = 0, False
    try:
        for last, row in islice(rows, layout.skipped + 1, None):
            entry, other = _row_entry(last, row, layout, container, texts)
            if other and not is_noted and entry is not None and entry.state == "read":
                notes.add(replace(other, line=last))
                is_noted = True
            if entry is not None:
                yield entry.noted(*notes)
                notes.clear()
        if problem:  # and no row that cannot be read
            yield container.whole(True, problem)
    except _Damaged as error:
        yield container.failed(error.line, error.reason)


def _row_entry(
    line: int, row: list[str], layout: _Layout, container: Container, texts: set[str]
) -> tuple[Entry | None, Reason]:
    """Return the entry of a row, and a note on its first cell that has not the type of its column. The entry is None
    for a row of empty cells in a table without a text.

    Args:
        texts: the columns that may hold the text, whose cells are not changed.
    """
    header = layout.header
    if not texts:
        if not any(cell.strip() for cell in row):
            return None, NO_REASON
        if len(row) == 1:  # a comment or a note, not a value of the first column
            return container.entry(line, {}, layout.title, row[0]), NO_REASON
    if len(row) > MAX_COLUMNS:
        return container.failed(line, Code.TOO_MANY_COLUMNS(f"{MAX_COLUMNS:,}")), NO_REASON
    if len(row) > len(header) or (texts and len(row) < len(header)):  # spreadsheets leave out empty cells at the end
        return container.failed(line, Code.WRONG_CELLS(len(row), len(header))), NO_REASON
    row = [cell if name in texts else cell.strip() for name, cell in zip(header, row, strict=False)]
    cells, other = dict[str, Cell](), NO_REASON
    for name, convert, cell in zip(header, layout.converters, row, strict=False):
        if cell or convert is None:
            value = convert(cell) if convert else cell
            cells[name] = cell if value is None else value
            if value is None and convert in _KIND_NAMES and not other:
                other = Code.CELL_OF_ANOTHER_TYPE(cell[:_SHOWN_CHARACTERS], name, _KIND_NAMES[convert])
    if texts:
        return container.entry(line, cells, layout.title), other
    return container.row(line, cells, dict(zip(header, row, strict=False)), layout.title), other


def _one_document(rows: Iterator[tuple[int, list[str]]], layout: _Layout, container: Container) -> Entry:
    """Return the entry of a table that is one document, as a sheet of XLSX is."""
    options, size = container.options, container.stamp.size if container.stamp else 0
    if size > options.max_bytes:
        reason = Code.TABLE_TOO_LARGE(f"{size / 2**20:,.1f}", f"{options.max_file_mb:g}")
        return container.whole(True, reason)
    assembly = Assembly()
    try:
        for line, row in rows:
            if len(row) > MAX_COLUMNS:
                return container.failed(line, Code.TOO_MANY_COLUMNS(f"{MAX_COLUMNS:,}"), container.file)
            assembly.add("\t".join(" ".join(cell.split()) for cell in row).rstrip(), newlines=1)
    except _Damaged as error:
        return container.failed(error.line, error.reason, container.file)
    note = Code.ROWS_AS_ONE(f"{layout.rows:,}") if layout.records else NO_REASON
    return container.document(replace(assembly.content(layout.title, {"rows": layout.rows}), note=note))


def _rows(
    stream: BinaryIO,
    encoding: str,
    container: Container,
    delimiter: str,
    has_quotes: bool,
    *,
    strict: bool = False,
    notes: set[Reason] | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the line that each begins in. A first line such as "sep=;" is no row.

    A row is cut after one cell more than the limit, so that long rows need little memory.

    Args:
        notes: gets a note before a row is yielded that had the character NUL. NUL is left out.
    """
    stream.seek(0)
    decoder = io.TextIOWrapper(stream, encoding, newline="")
    limit, row_length, first_line = container.options.max_bytes, 0, 1

    def without_nul(line: str) -> str:
        if notes is not None:
            notes.add(Code.NUL_LEFT_OUT())
        return line.replace("\0", "")

    def lines() -> Iterator[str]:
        nonlocal row_length
        while line := decoder.readline(limit + 1 - row_length):
            row_length += len(line)
            if row_length > limit:
                raise _Damaged(first_line, Code.RECORD_TOO_LARGE(f"{container.options.max_file_mb:g}"))
            yield line if "\0" not in line else without_nul(line)
        if row_length:  # the row is not complete
            raise _Damaged(first_line, Code.QUOTE_NEVER_CLOSED())

    # A quote after `; ` opens a cell too.
    skips, quoting = delimiter != "\t", csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE
    reader = csv.reader(lines(), delimiter=delimiter, quoting=quoting, strict=strict, skipinitialspace=skips)  # type: ignore[arg-type]
    try:
        while True:
            row_length, first_line = 0, reader.line_num + 1
            row = next(reader, None)
            if row is None:
                return
            if row and not (first_line == 1 and _SEPARATOR.fullmatch(delimiter.join(row))):
                yield first_line, row[: MAX_COLUMNS + 1]
    finally:
        decoder.detach()


def _has_quoted_cells(stream: BinaryIO, encoding: str, container: Container) -> bool:
    """Return whether quotes enclose the cells of a tab-separated file; in many files they are a part of the text.

    Quotes enclose cells if all quotes are in the right places, or if more rows would be wrong without them.
    """

    def count_wrong_rows(has_quotes: bool, strict: bool) -> float:
        """Return how many rows have another number of cells than the header; infinite if there are no rows."""
        rows = _rows(stream, encoding, container, "\t", has_quotes, strict=strict)
        try:
            _, header = next(rows, (0, []))
            return sum(len(row) != len(header) for _, row in rows)
        except (_Damaged, csv.Error):
            return math.inf

    plain = count_wrong_rows(False, False)
    if count_wrong_rows(True, True) <= plain:
        return True
    return count_wrong_rows(True, False) < plain


def _encoding(stream: BinaryIO, head: bytes) -> str | None:
    """Return the encoding in which the whole file can be decoded: declared, UTF-8, or guessed from non-ASCII lines."""
    declared = marked_encoding(head)
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
    """Return the delimiter that splits the first rows into the most cells, with the same number in each row.

    Semicolons win over commas that are all within numbers or before blanks. If there is no delimiter, up to
    `MAX_TITLE_ROWS` rows are taken for a title.
    """
    lines = sample.splitlines(keepends=True)
    if len(lines) > 1:
        lines.pop()  # it may be incomplete
    for skipped in range(min(MAX_TITLE_ROWS, len(lines) - 2) + 1 if len(lines) > 2 else 1):
        best, most, has_commas_in_cells = ",", 1, False
        for delimiter in (";", ",", "\t", "|"):
            rows = csv.reader(lines[skipped:], delimiter=delimiter, skipinitialspace=delimiter != "\t")
            first = [row for row in islice(rows, 20) if row]
            counts = [len(row) for row in first]
            even = sum(count == counts[0] for count in counts) >= 0.8 * len(counts) if counts else False
            if even and counts[0] > most and not (delimiter == "," and has_commas_in_cells):
                has_commas_in_cells = not any("," in _COMMA_IN_CELL.sub("", cell) for row in first for cell in row)
                best, most = delimiter, counts[0]
        if most > 1:
            return best
    return ","


def _problem(layout: _Layout, container: Container) -> Reason:
    """Return the reason why nothing in this table can be a document; `NO_REASON` if something can."""
    options, header = container.options, layout.header
    if not layout.rows:
        return Code.NO_ROWS()
    for code, name in ((Code.NO_ID_COLUMN, options.id_field), (Code.NO_TEXT_COLUMN, options.text_field)):
        if name and name not in header:
            return code(name, ", ".join(header))
    return NO_REASON


def _layout(lines: Iterator[tuple[int, list[str]]], container: Container, delimiter: str) -> _Layout:
    """Return the layout of a table, for which all of its rows are read."""
    below = _until_damage(lines)
    first = list(islice(below, 20))
    if not first:
        return _Layout(0, "", [], [], 0, False)
    texts = set(text_names(container.options))
    skipped = _title_rows(first, texts)
    title = " ".join(" ".join(cell.split()) for row in first[:skipped] for cell in row if cell.strip()).lstrip("# ")
    names = [" ".join(name.split()) for name in first[skipped]]
    if len(names) > MAX_COLUMNS:
        return _Layout(skipped, title, names, [], 0, False)
    header = _unique(names)
    widths = Counter[int]()
    converters = _column_types(header, chain(first[skipped + 1 :], below), container, delimiter, widths)
    rows, uneven = widths.total(), sum(widths[width] for width in widths if width == 1 or width > len(header))
    records = len(header) > 1 and uneven <= MAX_UNEVEN * rows and _names_columns(names, converters)
    return _Layout(skipped, title, header, converters, rows, records)


def _until_damage(rows: Iterator[tuple[int, list[str]]]) -> Iterator[list[str]]:
    """Yield the rows without their lines, up to a row that cannot be read: the second pass meets and reports it.

    Raises:
        _Damaged: it is the first row.
    """
    yield from (row for _, row in islice(rows, 1))
    with suppress(_Damaged):
        yield from (row for _, row in rows)


def _title_rows(first: Sequence[list[str]], texts: set[str]) -> int:
    """Return how many rows are above the header: rows with one filled cell, in a table that has more columns."""
    usual = Counter(len(row) for row in first).most_common(1)[0][0]
    if usual < 2:
        return 0
    for number, row in enumerate(first[: MAX_TITLE_ROWS + 1]):
        filled = sum(bool(cell.strip()) for cell in row)
        # An empty first cell is that of a column of row numbers.
        if filled > 1 or texts.intersection(row) or (filled and not row[0].strip()):
            return number
    return 0


def _unique(names: Sequence[str]) -> list[str]:
    """Return column names that are all different and not empty, such as "column_3" for the third column without a name
    and "name_2" for the second column "name"."""
    unique: dict[str, None] = {}
    taken, numbers = set(names), Counter[str]()
    for position, name in enumerate(names, 1):
        base = candidate = name or f"column_{position}"
        while candidate in unique or (candidate != name and candidate in taken):
            numbers[base] += 1
            candidate = f"{base}_{numbers[base] + 1}"
        unique[candidate] = None
    return list(unique)


def _names_columns(names: Sequence[str], converters: Sequence[Converter | None]) -> bool:
    """Return whether the first row names the columns, and is not one of the records.

    It is a record if it has numbers or dates, and no words, where the rows below have them (years may be names).
    """
    above = [
        name for name, convert in zip(names, converters, strict=True) if name and convert not in {None, str, _iso_date}
    ]
    values = [name for name in above if _is_value(name) and not _YEAR.fullmatch(name)]
    return not values or not all(map(_is_value, above))


def _column_types(
    header: Sequence[str], rows: Iterable[list[str]], container: Container, delimiter: str, widths: Counter[int]
) -> list[Converter | None]:
    """Return the function that converts each column's cells; None for id, title and text, which stay as they are.

    Args:
        widths: gets the number of rows by their number of cells.
    """
    options = container.options
    kept: set[str] = set()
    for named, usual in (
        (options.id_field, ID_FIELDS),
        (options.title_field, TITLE_FIELDS),
        (options.text_field, TEXT_FIELDS),
    ):
        kept.update(islice((name for name in ((named,) if named else usual) if name in header), 1))
    has_text = not set(text_names(options)).isdisjoint(header)
    german = [] if delimiter == "," else [_german_number, _thousands]
    kinds: list[Converter] = [_integer, _number, *german, _boolean, _dotted_date, _iso_date]
    typed = [column for column, name in enumerate(header) if name not in kept]
    counts: dict[int, Counter[tuple[Converter, ...]]] = {column: Counter() for column in typed}
    decimal, codes = set[int](), set[int]()
    for row in rows:
        widths[len(row)] += 1
        if len(row) != len(header) and (has_text or not 1 < len(row) < len(header)):
            continue
        for column, cell in enumerate(map(str.strip, row)):
            if cell and column in counts:
                counts[column][_fitting(cell, kinds)] += 1
                if german and _DECIMAL_COMMA.match(cell):
                    decimal.add(column)
                if cell.lstrip("+-").isdigit() and not _INTEGER.fullmatch(cell):
                    codes.add(column)
    candidates = {column: _common(kinds, counts[column]) for column in counts if column not in codes}
    firsts = {column: converters[0] for column, converters in candidates.items() if converters}
    has_german = _german_number in firsts.values()
    has_points = any(first is _number and _thousands not in candidates[column] for column, first in firsts.items())
    types: list[Converter | None] = []
    for column, name in enumerate(header):
        convert: Converter = firsts.get(column, str)
        if has_german and convert is _number and _thousands in candidates[column]:
            convert = _thousands
        if has_points and convert is _german_number and column not in decimal:
            convert = str
        types.append(None if name in kept else convert)
    return types


def _fitting(cell: str, kinds: Sequence[Converter]) -> tuple[Converter, ...]:
    """Return the converters that convert a cell."""
    return tuple([convert for convert in kinds if convert(cell) is not None]) if _VALUE.match(cell) else ()


def _common(kinds: Sequence[Converter], counts: Counter[tuple[Converter, ...]]) -> list[Converter]:
    """Return the converters that convert the most cells of a column; none if these are too few of its cells.

    Args:
        counts: how many cells are converted by the same converters.
    """
    fits = {kind: sum(count for converters, count in counts.items() if kind in converters) for kind in kinds}
    most = max(fits.values())
    return [kind for kind in kinds if fits[kind] == most] if 0 < most >= MIN_OF_A_TYPE * counts.total() else []


def _integer(cell: str) -> int | None:
    cell = cell.strip()
    return int(cell) if _INTEGER.fullmatch(cell) else None


def _is_value(name: str) -> bool:
    return any(convert(name) is not None for convert in (_number, _german_number, _dotted_date))


def _dotted_date(cell: str) -> str | None:
    match = _DOTTED_DATE.fullmatch(cell.strip())
    if match is None:
        return None
    day, month, year, time = match.groups()
    text = f"{year}-{month:0>2}-{day:0>2}{f'T{time}' if time else ''}"
    try:
        datetime.fromisoformat(text)
    except ValueError:  # the calendar has no 31.02.2024
        return None
    return text


def _iso_date(cell: str) -> str | None:
    """Return a date in ISO form as it stands."""
    try:
        return cell if cell[4:5] == "-" and datetime.fromisoformat(cell) else None
    except ValueError:
        return None


def _number(cell: str) -> float | None:
    cell = cell.strip()
    if not _NUMBER.fullmatch(cell) or (cell.lstrip("-").isdigit() and not _INTEGER.fullmatch(cell)):
        return None  # a float would not keep the digits of a long integer
    return value if math.isfinite(value := float(cell)) else None


def _german_number(cell: str) -> float | None:
    cell = cell.strip()
    return _number(cell.replace(".", "").replace(",", ".")) if _GERMAN_NUMBER.fullmatch(cell) else None


def _thousands(cell: str) -> str | None:
    """Return a cell that may be a whole number with dots between thousands, as it stands."""
    return cell if _THOUSANDS.fullmatch(cell.strip()) else None


def _boolean(cell: str) -> bool | None:
    return _BOOLEANS.get(cell.strip().lower())


_KIND_NAMES: Mapping[Converter | None, str] = {
    **dict.fromkeys((_integer, _number, _german_number), "a number"),
    _boolean: "true or false",
    **dict.fromkeys((_dotted_date, _iso_date), "a date"),
}
