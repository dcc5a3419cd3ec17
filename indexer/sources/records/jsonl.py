"""Records in JSON: one per line (.jsonl, .ndjson, stdin), or the objects of a whole .json file."""

from __future__ import annotations

import codecs
import io
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from indexer.ledger import Code, Reason
from indexer.sources.content import Refused
from indexer.sources.encoding import marked_encoding
from indexer.sources.entry import Entry, ReadOptions
from indexer.sources.records.record import TEXT_FIELDS, TITLE_FIELDS, Container, is_text, named, text_names, type_name
from indexer.sources.records.repeated_members import noting

_LONG_CHARACTERS = 200
"""Maximum characters of a member beside a list of records; with a longer one the file is a text of its own."""


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
            yield container.failed(number, Code.RECORD_TOO_LARGE(f"{container.options.max_file_mb:g}"))
            has_records = True
            continue
        if number == 1:
            # The line feed of UTF-16 is two bytes, and the line has one of them.
            encoding = marked_encoding(line[: len(line) // 2 * 2])
            if encoding not in {None, "utf-8-sig"}:
                yield container.whole(False, Code.WRONG_ENCODING(encoding))
                return
            line = line.removeprefix(codecs.BOM_UTF8)
        line, nul = _without_nul(line)
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
            yield container.entry(number, record).noted(*nul, *_note_on(repeated))
        else:
            yield container.failed(number, Code.NOT_AN_OBJECT(type_name(record)))
    if not has_records:
        yield container.whole(True, Code.NO_RECORDS())
    if named and has_objects and not has_named:  # a few records without a text are nothing unusual; this is
        yield container.whole(False, Code.NO_RECORD_WITH_MEMBER(named))


def _has_no_documents(stream: BinaryIO, options: ReadOptions) -> bool:
    """Return whether every line is an object without text and title, also in the usual members if others were asked
    for.

    It stops at the first other line. A damaged line may have been a document.
    """
    texts = {*TEXT_FIELDS, *TITLE_FIELDS, *text_names(options), options.title_field or ""}
    objects = 0
    try:
        while line := stream.readline(options.max_bytes + 1):
            line = line if objects else line.removeprefix(codecs.BOM_UTF8)
            if line.strip():
                record = parse(_without_nul(line)[0].rstrip()) if len(line) <= options.max_bytes else None
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
        have_text: whether any of them has a text of its own.
        notes: what is not as the file has it.
    """

    records: list[dict[str, Any]]
    lines: list[int]
    have_text: bool
    notes: tuple[Reason, ...]


def json_records(text: str, options: ReadOptions) -> JsonRecords | None:
    """Return the records of a .json file; None if it is no object with a text, and has no list of records.

    A list with texts may be in an object, as in {"data": [...]}, if there is no other such list in the object.

    Raises:
        Invalid: it is a list whose first record is sound and whose rest is not JSON, as of a file that is cut off.
    """
    try:
        content, nul = _without_nul(text.encode())
        text = content.decode() if nul else text
        value = parse(content, _decoder(object_pairs_hook=noting(repeated := dict[str, None]())))
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
    if isinstance(value, dict) and not have_text and (inner := _inner_records(value, text, options)):
        return replace(inner, notes=(*nul, *_note_on(repeated), *inner.notes))
    if not have_text and (options.text_field or not isinstance(value, list) or not _is_table(records)):
        return None
    lines = _lines(text) if isinstance(value, list) else [1]
    return JsonRecords(records, lines, have_text, (*nul, *_note_on(repeated)))


def is_lines(text: str, options: ReadOptions) -> bool:
    """Return whether a .json file has several objects, each in one line, and any of them can be a document."""
    lines = [line.strip() for line in islice(filter(str.strip, io.StringIO(text)), 2)]
    if len(lines) < 2 or not all(line.startswith("{") and line.endswith("}") for line in lines):
        return False
    try:
        list(map(parse, map(str.encode, lines)))
    except Invalid:
        return False
    return not _has_no_documents(io.BytesIO(text.encode()), options)


def _inner_records(value: dict[str, Any], text: str, options: ReadOptions) -> JsonRecords | None:
    """Return the records of the only list of objects with texts in an object that has no long text beside it."""
    lists: list[tuple[str, list[dict[str, Any]]]] = []
    beside: list[str] = []
    stack = [(name, name, member) for name, member in reversed(value.items())]
    while stack:
        name, path, member = stack.pop()
        if isinstance(member, dict):
            stack.extend((inner, f"{path}.{inner}", below) for inner, below in reversed(member.items()))
        elif isinstance(member, list) and member and all(isinstance(each, dict) for each in member):
            if any(_has_text(each, text_names(options)) for each in member):
                lists.append((name, member))
            else:
                beside.append(path)
        elif isinstance(member, str) and len(member) > _LONG_CHARACTERS:
            return None
        elif (isinstance(member, str) and member.strip()) or (isinstance(member, list) and member):
            beside.append(path)
    if len(lists) != 1:
        return None
    name, records = lists[0]
    notes = (Code.MEMBERS_BESIDE(named(beside)),) if beside else ()
    return JsonRecords(records, _lines_of_member(name, records, text), True, notes)


def _lines_of_member(name: str, records: list[dict[str, Any]], text: str) -> list[int]:
    """Return the line in which each record of a member begins; 1 for all if its name is written with escapes."""
    for opening in islice(re.finditer(rf"{re.escape(json.dumps(name, ensure_ascii=False))}\s*:\s*(?=\[)", text), 20):
        if _DECODER.raw_decode(text, opening.end())[0] == records:
            before = text.count("\n", 0, opening.end())
            return [before + line for line in _lines(text[opening.end() :])]
    return [1] * len(records)


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
    before, notes = Counter[int](), records.notes
    for line, record in zip(records.lines, records.records, strict=True):
        before[line] += 1
        nth = before[line]
        read = container.entry if records.have_text else partial(container.row, named=record)
        yield read(line, record, nth=nth).noted(*notes)
        notes = ()  # the first record has the notes, because the parser does not say which record it is


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


def _note_on(repeated: Collection[str]) -> tuple[Reason, ...]:
    """Return the note that names the first members that an object has more than once, if there are any."""
    return (Code.REPEATED_MEMBER(named(repeated)),) if repeated else ()


_NUL = re.compile(rb"((?<!\\)(?:\\\\)*)\\u0000|\0")


def _without_nul(data: bytes) -> tuple[bytes, tuple[Reason, ...]]:
    """Return a JSON text without the character NUL, also where it is written as an escape, and a note if it had one."""
    if b"\0" not in data and rb"\u0000" not in data:
        return data, ()
    clean = _NUL.sub(rb"\1", data)
    return clean, (Code.NUL_LEFT_OUT(),) if clean != data else ()


_decoder = partial(json.JSONDecoder, parse_constant=_finite, parse_float=_finite)
_DECODER = _decoder()
