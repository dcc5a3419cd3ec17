"""Reading the texts of a command line: its arguments, or the lines of a file or of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import BadInput, SourceError
from indexer.sources.records.jsonl import Invalid, parse


@dataclass(frozen=True, slots=True)
class InputText:
    """A text with its source.

    Attributes:
        id: the record's id, or the text's number, counted from 0.
        place: the origin of the text, for messages.
    """

    id: str | int
    text: str
    place: str


def read_texts(arguments: Sequence[str], path: Path | None, jsonl: bool) -> Iterator[InputText]:
    """Yield texts while they are read, one line at a time.

    Args:
        arguments: the texts themselves; a single `-` means standard input.
        path: a file to read instead; its lines are JSON objects if it ends in .jsonl or .ndjson.
        jsonl: lines are JSON objects with `text` and perhaps `id`; blank lines are skipped.

    Raises:
        BadInput: a text is empty or not UTF-8, or a line is not an object with a text.
        SourceError: the file cannot be read.
    """
    if path is not None:
        jsonl = jsonl or path.suffix.lower() in (".jsonl", ".ndjson")
        try:
            with path.open("rb") as file:
                yield from _lines(file, str(path), jsonl)
        except OSError as error:
            raise SourceError(f"{path} cannot be read ({error.strerror}): check its name and permissions") from error
    elif list(arguments) == ["-"]:
        yield from _lines(sys.stdin.buffer, "standard input", jsonl)
    else:
        for number, text in enumerate(arguments):
            yield _check(InputText(number, text, f"text {number + 1}"))


def _lines(lines: Iterable[bytes], source: str, jsonl: bool) -> Iterator[InputText]:
    records = 0
    for number, line in enumerate(lines, start=1):
        place = f"line {number} of {source}"
        body = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if jsonl:
            if body.strip():
                yield _check(_record(body, records, place))
                records += 1
            continue
        try:
            yield _check(InputText(number - 1, body.decode("utf-8").rstrip("\r\n"), place))
        except UnicodeDecodeError as error:
            raise BadInput(f"{place} is not UTF-8 (byte {error.start + 1}): convert it first") from error


def _record(line: bytes, number: int, place: str) -> InputText:
    try:
        record = parse(line.strip())
    except Invalid as error:
        raise BadInput(f"{place}: {error}") from error
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        raise BadInput(f'{place} is not a JSON object with a text, such as {{"text": "..."}}')
    id_ = record.get("id")
    return InputText(id_ if isinstance(id_, str | int) else number, text, place)


def _check(text: InputText) -> InputText:
    if not is_unicode(text.text):
        raise BadInput(f"{text.place} is not UTF-8: convert it first")
    if not text.text.strip():
        raise BadInput(f"{text.place} is empty: there is nothing to embed; leave it out")
    return text


def is_unicode(text: str) -> bool:
    """Return False for an argument that the shell passed on although its bytes are not UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
