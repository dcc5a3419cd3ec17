"""Records in JSON: one per line (.jsonl, .ndjson, stdin), or the objects of a whole .json file."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from indexer.errors import count_of
from indexer.ledger import Code
from indexer.sources.content import Refused
from indexer.sources.encoding import marked_encoding
from indexer.sources.entry import Entry, ReadOptions
from indexer.sources.records.record import TEXT_FIELDS, Container, is_text, text_names, type_name
from indexer.sources.records.repeated_members import noting

_NAMED = 3


def read_jsonl(stream: BinaryIO, container: Container) -> Iterator[Entry]:
    """Yield one entry per line that is not blank. One line is in memory at a time, up to the limit of a record."""
    limit = container.options.max_bytes
    number = 0
    has_records = has_objects = has_named = False
    named = container.options.text_field
    decoder = _decoder(object_pairs_hook=noting(repeated := dict[str, None]()))
    if container.is_discovered and _has_no_documents(stream, container.options):
        yield container.whole(True, Code.NO_RECORD_WITH_TEXT())
        return
    while line := stream.readline(limit + 1):
        number += 1
        if len(line) > limit and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(2**20)
            yield container.too_large(number)
            has_records = True
            continue
        if number == 1:
            # The line feed of UTF-16 is two bytes, and the line has one of them.
            encoding = marked_encoding(line[: len(line) // 2 * 2])
            if encoding not in {None, "utf-8-sig"}:
                yield container.whole(False, Code.WRONG_ENCODING(encoding))
                return
            line = line.removeprefix(codecs.BOM_UTF8)
        if line.isspace() or not line:
            continue
        has_records = True
        repeated.clear()
        try:
            record = parse(line.rstrip(), decoder)
        except Invalid as error:
            yield container.failed(number, error.reason)
            continue
        if isinstance(record, dict):
            has_objects, has_named = True, has_named or named in record or _is_exported(record)
            yield _noted(container.entry(number, record), repeated)
        else:
            yield container.failed(number, Code.NOT_AN_OBJECT(type_name(record)))
    if not has_records:
        yield container.whole(True, Code.NO_RECORDS())
    if named and has_objects and not has_named:  # a few records without a text are nothing unusual; this is
        yield container.whole(False, Code.NO_RECORD_WITH_MEMBER(named))


def _has_no_documents(stream: BinaryIO, options: ReadOptions) -> bool:
    """Return whether every line is an object without a text, also in the usual members if others were asked for.

    It stops at the first other line. A damaged line may have been a document.
    """
    texts = {*TEXT_FIELDS, *text_names(options)}
    objects = 0
    try:
        while line := stream.readline(options.max_bytes + 1):
            line = line if objects else line.removeprefix(codecs.BOM_UTF8)
            if line.strip():
                record = parse(line.rstrip()) if len(line) <= options.max_bytes else None
                if not isinstance(record, dict) or _has_text(record, texts):
                    return False
                objects += 1
    except Invalid:
        return False
    finally:
        stream.seek(0)
    return objects > 0


def _has_text(record: dict[str, Any], names: Iterable[str]) -> bool:
    """Return whether an object can be a document: its text is a string or number, or likewise exported it."""
    return _is_exported(record) or any(is_text(record.get(name)) for name in names)


def _is_exported(record: dict[str, Any]) -> bool:
    return {"likewise", "id"} <= record.keys()


@dataclass(frozen=True, slots=True)
class JsonRecords:
    """The records of a .json file.

    Attributes:
        records: an object, or the objects of a list.
        lines: the line that each record begins in.
        repeated: the names of members that an object has more than once.
        have_text: whether any of them has a text of its own.
    """

    records: list[dict[str, Any]]
    lines: list[int]
    have_text: bool
    repeated: Collection[str]


def json_records(text: str, options: ReadOptions) -> JsonRecords | None:
    """Return the records of a .json file; None if it is no object with a text, and no list of records.

    Raises:
        Invalid: it is a list whose first record is sound and whose rest is not JSON, as of a file that is cut off.
    """
    try:
        value = parse(text.encode(), _decoder(object_pairs_hook=noting(repeated := dict[str, None]())))
    except UnicodeEncodeError:
        return None
    except Invalid:
        if _begins_with_a_record(text, options):
            raise
        return None
    records = value if isinstance(value, list) else [value]
    if not records or not all(isinstance(record, dict) for record in records):
        return None
    have_text = any(_has_text(record, text_names(options)) for record in records)
    if not have_text and (options.text_field or not isinstance(value, list) or not _is_table(records)):
        return None
    return JsonRecords(records, _lines(text) if isinstance(value, list) else [1], have_text, repeated)


def _begins_with_a_record(text: str, options: ReadOptions) -> bool:
    if (start := _LIST.match(text)) is None:
        return False
    try:
        first, _ = _DECODER.raw_decode(text, start.end())
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and _has_text(first, text_names(options))


def _is_table(records: list[dict[str, Any]]) -> bool:
    """Return whether objects are like the rows of a table: they share a member, and most of their values are plain."""
    shared = set(records[0]).intersection(*records)
    plain = [not isinstance(value, dict | list) for record in records for value in record.values()]
    return bool(shared) and 2 * sum(plain) > len(plain)


def _lines(text: str) -> list[int]:
    """Return the line in which each value of a JSON list begins. The text is known to be one."""
    lines, line, counted = [], 1, 0
    place = _BETWEEN.match(text, text.index("[") + 1).end()  # type: ignore[union-attr]
    while text[place] != "]":
        line += text.count("\n", counted, place)
        counted = place
        lines.append(line)
        place = _BETWEEN.match(text, _DECODER.raw_decode(text, place)[1]).end()  # type: ignore[union-attr]
    return lines


_BETWEEN = re.compile(r"[\s,]*")
_LIST = re.compile(r"\ufeff?\s*\[\s*(?=\{)")


def read_json(records: JsonRecords, container: Container) -> Iterator[Entry]:
    """Yield one entry per record of a .json file; without texts its members are the text, as of a row of a table.

    A record without an id is "FILE:LINE", by the line that it begins in. Where several begin in one line, as in a list
    that is written without line ends, it is "FILE:LINE:2" for the second and so on.
    """
    before, repeated = Counter[int](), records.repeated
    for line, record in zip(records.lines, records.records, strict=True):
        before[line] += 1
        nth = before[line]
        read = container.entry if records.have_text else partial(container.row, named=record)
        yield _noted(read(line, record, nth=nth), repeated)
        repeated = ()  # the first record has the note, because the parser does not say which record it is


class Invalid(Refused):
    """The text is not JSON; the reason says where and why."""


def parse(line: bytes, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of one JSON text in UTF-8.

    Raises:
        Invalid: it is not UTF-8 or not JSON, or has NaN, infinite numbers or half a surrogate pair.
    """
    try:
        value = (decoder or _DECODER).decode(line.decode("utf-8"))
        if b"\\u" in line:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(Code.NOT_UTF_8(error.start + 1)) from error
    except UnicodeEncodeError as error:
        raise Invalid(Code.HALF_A_CHARACTER()) from error
    except json.JSONDecodeError as error:
        raise Invalid(Code.NOT_JSON_AT_COLUMN(error.msg, error.colno)) from error
    except (ValueError, RecursionError) as error:
        raise Invalid(Code.NOT_JSON(str(error).partition(";")[0])) from error
    return value


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a finite number")
    return value


def _noted(entry: Entry, repeated: Collection[str]) -> Entry:
    """Return the entry of a record with a note that names the first members that it has more than once."""
    if not repeated:
        return entry
    named = ", ".join(f'"{name}"' for name in islice(repeated, _NAMED))
    more = f" and {count_of(len(repeated) - _NAMED, 'other')}" if len(repeated) > _NAMED else ""
    return replace(entry, notes=(*entry.notes, Code.REPEATED_MEMBER(named + more)))


_decoder = partial(json.JSONDecoder, parse_constant=_finite, parse_float=_finite)
_DECODER = _decoder()
