"""One record of a file (a JSON object, or a row) as an entry: which members are its id, title and text.

The records of a file are found by jsonl.py and table.py.
"""

# ruff: noqa: PTH119, PTH122
from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from indexer.columns import unsearched_columns
from indexer.errors import count_of
from indexer.exchange import from_record
from indexer.ledger import Code, Reason
from indexer.records import Document, Stamp
from indexer.sources.content import Content, Skip, Unreadable
from indexer.sources.entry import Entry, ReadOptions, entry_of

ID_FIELDS = ("_id", "id", "uri", "doc_id")
TITLE_FIELDS = ("title",)
TEXT_FIELDS = ("text", "body", "content", "abstract")

_NAMED = 3
_JSON_TYPES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


def type_name(value: object) -> str:
    """Return the name of a value's type in JSON, with its article."""
    return _JSON_TYPES.get(type(value), "a number")


def named(members: Collection[str]) -> str:
    """Return the first names of members in quotes, with the number of the others."""
    names = ", ".join(f'"{name}"' for name in islice(members, _NAMED))
    return names + (f" and {count_of(len(members) - _NAMED, 'other')}" if len(members) > _NAMED else "")


def text_names(options: ReadOptions) -> tuple[str, ...]:
    """Return the members that may hold a record's text."""
    return (options.text_field,) if options.text_field else TEXT_FIELDS


def is_text(value: object) -> bool:
    """Return whether a value can be a record's text: a string, or a number, which is a text of digits."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def member_lines(record: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield "name: value" for each member that is not empty. Members of inner objects have their dotted path as
    name."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from member_lines(value, f"{prefix}{name}.")
        elif text := _written(value).strip():
            yield f"{prefix}{name}: {text}"


def _written(value: object) -> str:
    """Return a value as people write it: the values of a list with commas, nothing for null, other values as in
    JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_written, value)))
    if isinstance(value, Mapping):
        return "; ".join(member_lines(value))
    return json.dumps(value)


@dataclass(frozen=True, slots=True)
class Container:
    """The file that records come from, with the members that all its documents share.

    Attributes:
        file: absolute path, "-" for stdin.
        format, modified: members of its documents.
        stamp: stamp of the file.
        options: which members to use, and the largest size of one record.
        is_discovered: the file was found in a folder and not named by the user. Such a file without documents has not
            failed.
    """

    file: str
    format: str
    modified: str | None
    stamp: Stamp | None
    options: ReadOptions
    is_discovered: bool = False

    def failed(self, place: int, reason: Reason, uri: str | None = None) -> Entry:
        return Entry(uri or f"{self.file}:{place}", self.file, "failed", replace(reason, line=place), stamp=self.stamp)

    def whole(self, skipped: bool, reason: Reason) -> Entry:
        """Return an entry for the file itself, which has no records."""
        return Entry(self.file, self.file, "skipped" if skipped else "failed", reason, stamp=self.stamp)

    def document(self, content: Content) -> Entry:
        """Return the entry of the file itself, as one document."""
        assert self.stamp is not None
        title = content.title or os.path.splitext(os.path.basename(self.file))[0]
        document = self._document(self.file, content.text, title, {**content.metadata, "size": self.stamp.size})
        document = replace(document, sections=content.sections)
        return entry_of(document, self.file, self.stamp, content.note, content.unread)

    def _document(self, uri: str, text: str, title: str, metadata: Mapping[str, Any]) -> Document:
        path = None if self.file == "-" else self.file
        return Document(uri, text, title, metadata, path, self.format, self.modified)

    def row(
        self, place: int, record: Mapping[str, Any], named: Mapping[str, object], title: str = "", nth: int = 1
    ) -> Entry:
        """Return the entry of a record without a text of its own. The members become the text, one member per line.

        Args:
            named: the members as they are written in the file; that of the title is left out.
            title, nth: as for `entry`.
        """
        titles = (self.options.title_field,) if self.options.title_field else self._free(TITLE_FIELDS)
        rest = {name: value for name, value in named.items() if name not in titles}
        return self.entry(place, record, title, "\n".join(member_lines(rest)), nth)

    def entry(
        self, place: int, record: Mapping[str, Any], title: str = "", text: str | None = None, nth: int = 1
    ) -> Entry:
        """Return the entry of a record: a document, or the reason why it is not one.

        Args:
            title: title for a record without a title.
            text: text for a record without a text; None takes the text from its members. A title alone is the text.
            nth: number of the record among the records that begin in the same line.
        """
        rest = dict(record)
        uri = f"{self.file}:{place}" if nth == 1 else f"{self.file}:{place}:{nth}"
        if "likewise" in rest and "id" in rest:
            return self._exported(place, rest)
        try:
            uri = self._uri(rest) or uri
            own_title = _take(rest, self.options.title_field, self._free(TITLE_FIELDS))[1]
            own_title = ", ".join(map(str, own_title)) if isinstance(own_title, list) else own_title
            text = self._text(rest, own_title) if text is None else text
            vector = None if isinstance(rest.get("vector"), str) else _vector(rest.pop("vector", None))
        except Skip as error:
            return Entry(uri, self.file, "skipped", replace(error.reason, line=place), stamp=self.stamp)
        except Unreadable as error:
            return self.failed(place, error.reason, uri)
        if not text.strip() and not (text := str(own_title) if is_text(own_title) else "").strip():
            return Entry(uri, self.file, "skipped", replace(Code.EMPTY_TEXT(), line=place), stamp=self.stamp)
        inner = rest.get("metadata")
        if isinstance(inner, dict):
            del rest["metadata"]
            rest = {**inner, **rest}
        title = title if own_title is None or own_title == "" else str(own_title)
        document = self._document(uri, text, title, rest)
        names = unsearched_columns(self.format, rest, text)
        notes = (Code.COLUMNS_NOT_SEARCHED(named(names)),) if names else ()
        if vector is None:
            return entry_of(document, self.file, self.stamp, unread=notes)
        return Entry(uri, self.file, "read", document=document, vector=vector, stamp=self.stamp, notes=notes)

    def _exported(self, place: int, record: Mapping[str, Any]) -> Entry:
        try:
            document, embedded = from_record(record)
        except ValueError as error:
            return self.failed(place, Code.OTHER(error), str(record["id"]))
        entry = Entry(document.uri, self.file, "read", document=document, embedded=embedded, stamp=self.stamp)
        return replace(entry, is_exported=True)

    def _uri(self, rest: dict[str, Any]) -> str:
        """Return the record's id as text, empty if it has none."""
        name, value = _take(rest, self.options.id_field, self._free(ID_FIELDS))
        if self.options.id_field and name is None:
            raise Unreadable(Code.NO_ID_MEMBER(self.options.id_field))
        if value is None or isinstance(value, str):
            return value if value and value.strip() else ""
        if isinstance(value, bool | list | dict):
            raise Unreadable(Code.WRONG_ID(name, type_name(value)))
        return str(value)

    def _free(self, usual: tuple[str, ...]) -> tuple[str, ...]:
        """Return the usual names that the user has not given to another member."""
        options = self.options
        return tuple(n for n in usual if n not in (options.id_field, options.title_field, options.text_field))

    def _text(self, rest: dict[str, Any], title: object) -> str:
        field = self.options.text_field
        name, value = _take(rest, field, TEXT_FIELDS)
        if name is None and field:
            raise Skip(Code.NO_TEXT_MEMBER(field))
        if value is None and is_text(title):
            return str(title)
        if name is None:
            raise Skip(Code.RECORD_WITHOUT_TEXT())
        if value is None:
            raise Skip(Code.NULL_TEXT(name))
        if is_text(value):
            return value if isinstance(value, str) else json.dumps(value)
        raise Unreadable(Code.WRONG_TEXT(name, type_name(value)))


def _take(rest: dict[str, Any], named: str | None, usual: tuple[str, ...]) -> tuple[str | None, Any]:
    """Remove the named member, or the first usual member, and return its name and value; two None if there is none.

    A null counts only if the member was named or is the only one: many programs write null for a missing member.
    """
    present = [name for name in ((named,) if named else usual) if name in rest]
    if not present:
        return None, None
    name = next((name for name in present if rest[name] is not None), present[0])
    value = rest.pop(name)
    for other in present[: present.index(name)] if value is not None else ():
        del rest[other]  # these are null
    return name, value


def _vector(value: object) -> list[float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise Unreadable(Code.WRONG_VECTOR(type_name(value)))
    if others := [each for each in value if type(each) not in {int, float}]:
        raise Unreadable(Code.WRONG_VECTOR_MEMBER(type_name(others[0])))
    try:
        vector = [float(each) for each in value]
    except OverflowError:
        vector = [math.inf]
    if not all(map(math.isfinite, vector)):
        raise Unreadable(Code.INFINITE_VECTOR())
    return vector
