"""The texts that a command line names: its arguments, the lines of a file, or of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import BadInput, SourceError
from indexer.sources.jsonl import Invalid, parse


@dataclass(frozen=True, slots=True)
class Text:
    """A text and where it stands, for messages; `id` is the record's own, or the text's number from 0."""

    id: str | int
    text: str
    place: str


def read_texts(arguments: Sequence[str], path: Path | None, jsonl: bool) -> Iterator[Text]:
    """Texts as they are read: a line is held at a time.

    Args:
        arguments: the texts themselves; `-` alone for standard input.
        path: a file to read instead; its lines are JSON objects if it ends in .jsonl or .ndjson.
        jsonl: lines are JSON objects, of which `text` and `id` are read; blank ones are passed over.

    Raises:
        BadInput: an empty text, or a line that is not what it should be.
        SourceError: a file that cannot be read.
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
        yield from (_checked(Text(at, text, f"text {at + 1}")) for at, text in enumerate(arguments))


def _lines(lines: Iterable[bytes], source: str, jsonl: bool) -> Iterator[Text]:
    found = 0
    for number, line in enumerate(lines, start=1):
        place = f"line {number} of {source}"
        body = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if jsonl:
            if body.strip():
                yield _checked(_record(body, found, place))
                found += 1
            continue
        try:
            yield _checked(Text(number - 1, body.decode("utf-8").rstrip("\r\n"), place))
        except UnicodeDecodeError as error:
            raise BadInput(f"{place} is not UTF-8 (byte {error.start + 1}): convert it first") from error


def _record(line: bytes, number: int, place: str) -> Text:
    try:
        record = parse(line.strip())
    except Invalid as error:
        raise BadInput(f"{place}: {error}") from error
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        raise BadInput(f'{place} is no JSON object with a text, such as {{"text": "..."}}')
    own = record.get("id")
    return Text(own if isinstance(own, str | int) else number, text, place)


def _checked(text: Text) -> Text:
    if not is_unicode(text.text):
        raise BadInput(f"{text.place} is not UTF-8: convert it first")
    if not text.text.strip():
        raise BadInput(f"{text.place} is empty: there is nothing to embed; leave it out")
    return text


def is_unicode(text: str) -> bool:
    """False for an argument whose bytes the shell passed on although they were not UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
