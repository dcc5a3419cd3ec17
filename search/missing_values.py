"""Notes on a filter: values that no document has, with similar values, and values that are not dates."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import PurePath

from indexer.errors import count_of
from indexer.filters.dates import Date, read_date
from indexer.filters.tree import (
    COLUMNS,
    And,
    Compare,
    Condition,
    Exists,
    In,
    Not,
    Or,
    TextMatch,
    Under,
    Value,
    Where,
    conditions,
    one_line,
    show,
    type_of,
)
from indexer.sources.formats import FORMATS
from indexer.stores.fields.field_types import as_date
from indexer.stores.port import FieldValues
from indexer.stores.reading.snapshot import Snapshot

COMPARED_VALUES = 1000
"""Maximum number of a field's most frequent values that are compared with a value that does not occur."""

_MAX_LOOKUPS = 20
"""Maximum values of a filter that are looked up. Each look-up may count all documents that the filter leaves."""

_MAX_NOTES = 3
_NAMED_VALUES = 3
_SHOWN_CHARACTERS = 60
_DOTTED = re.compile(r"\d{1,4}([./])\d{1,2}\1\d{1,4}")
_NUMBER = re.compile(r"\s*[+-]?\d+(?:[.,]\d+)*\s*")
_FIRST_DATE = Date("0001-01-01", -62_135_596_800_000_000, -62_135_510_400_000_000)


def notes_on_values(
    snapshot: Snapshot, where: Where, found: bool, values: Callable[[str], FieldValues]
) -> tuple[str, ...]:
    """Return a sentence for each of the first values after =, !=, in and not in that no document of the index has.

    Args:
        found: True if the filter leaves a document. A value that every document must have is then not looked up.
        values: function that returns the most frequent values of a field. It is called only for fields with such a
            value.

    Raises:
        FilterError: the filter does not fit the fields of the index.
    """
    notes: list[str] = []
    for number, alternatives in enumerate(_looked_up(where, found)):
        if number >= _MAX_LOOKUPS or len(notes) >= _MAX_NOTES:
            break
        if any(snapshot.count(condition) for condition in alternatives):
            continue
        match alternatives[0]:
            case Compare("author", _, str(text)) | TextMatch("author", _, text) if sent := _sent(snapshot, text):
                notes.append(f"no document has author = {_shown(text)}; {sent}")
            case Compare(field, _, value):
                near = _near_format(value, values(field)) if field == "format" else _near(value, values(field))
                notes.append(f"no document has {one_line(field, 80)} = {_shown(value)}{'; ' if near else ''}{near}")
            case Under(folder):
                # Only its name: a relative folder is resolved on the server, whose folders clients must not see.
                name = PurePath(folder).name or folder
                near = _near_folders(folder, values("path"))
                notes.append(f"no document is under {_shown(name)}{'; ' if near else ''}{near}")
            case TextMatch() as condition if other_case := _other_case(snapshot, condition, values):
                notes.append(other_case)
    fields = snapshot.fields or {}
    dated = {
        field: None for field, value in _compared(where) if as_date(value, fields.get(field, ())) or _is_date(value)
    }
    numeric = {field: None for field, value in _compared(where) if type_of(value) == "number"}
    notes += [_not_numbers(snapshot, field, values) for field in numeric if "text" in fields.get(field, ())]
    notes += [_undated(snapshot, field, values) for field in dated if "date" in fields.get(field, ())]
    notes += [
        f"{one_line(field, 80)} {op} {show(text)} compares texts letter by letter: write a date as 2024-12-31"
        for field, op, text in _dotted(where)
        if "date" in fields.get(field, ())
    ]
    return tuple(note for note in notes if note)


def may_have_notes(where: Where, found: bool) -> bool:
    """Return whether any value of a filter has to be looked up."""
    if next(_looked_up(where, found), None) is not None:
        return True
    compared = (_is_date(value) or type_of(value) == "number" or as_date(value, ()) for _, value in _compared(where))
    return any(compared) or bool(_dotted(where))


def _dotted(where: Where) -> list[tuple[str, str, str]]:
    """Return the comparisons by order with a text that a person means as a date, such as "31.12.2024"."""
    return [
        (condition.field, condition.op, condition.value)
        for condition in conditions(where)
        if isinstance(condition, Compare) and condition.op not in ("=", "!=")
        if isinstance(condition.value, str) and _DOTTED.fullmatch(condition.value)
    ]


def _is_date(value: Value) -> bool:
    return isinstance(value, Date)


def _compared(where: Where) -> Iterator[tuple[str, Value]]:
    """Yield the values that metadata fields are compared with."""
    for condition in conditions(where):
        match condition:
            case Compare(field, _, value) if field not in COLUMNS:
                yield field, value
            case In(field, values) if field not in COLUMNS:
                for value in values[:_MAX_LOOKUPS]:
                    yield field, value


def _not_numbers(snapshot: Snapshot, field: str, values: Callable[[str], FieldValues]) -> str:
    """Return how many documents a comparison with a number cannot match, because their values are texts, some of them
    digits."""
    texts = [value for value, _ in values(field).frequent if isinstance(value, str) and _NUMBER.fullmatch(value)]
    if not texts:
        return ""
    documents = snapshot.count(And((Exists(field), Not(Compare(field, ">=", -sys.float_info.max)))))
    return (
        f"the values of {one_line(field, 80)} in {count_of(documents, 'document')} are texts and not numbers, such as "
        f"{_shown(texts[0])}: the condition cannot match them"
    )


def _undated(snapshot: Snapshot, field: str, values: Callable[[str], FieldValues]) -> str:
    """Return how many documents a comparison with a date cannot match, because none of their values of the field is a
    date."""
    documents = snapshot.count(And((Exists(field), Not(Compare(field, ">=", _FIRST_DATE)))))
    if not documents:
        return ""
    texts = (value for value, _ in values(field).frequent if isinstance(value, str) and read_date(value) is None)
    example = next((f", such as {_shown(text)}" for text in texts), "")
    return (
        f"the values of {one_line(field, 80)} in {count_of(documents, 'document')} are not single dates{example}: "
        "the condition cannot match them"
    )


def _sent(snapshot: Snapshot, name: str) -> str:
    """Return how many messages a person has sent; empty if there are none. Their author is in the field `from`."""
    condition = TextMatch("from", "contains", name)
    documents = snapshot.count(condition) if name and "text" in (snapshot.fields or {}).get("from", ()) else 0
    return f"from contains {_shown(name)} finds {count_of(documents, 'document')}" if documents else ""


def _other_case(snapshot: Snapshot, condition: TextMatch, values: Callable[[str], FieldValues]) -> str:
    """Return the value that differs from a text only in its case; empty if there is no such value."""
    field, op, text = condition.field, condition.op, condition.text
    escaped = re.sub(r"([%_\\])", r"\\\1", text)
    pattern = f"{'' if op == 'startswith' else '%'}{escaped}{'' if op == 'endswith' else '%'}"
    documents = snapshot.count(TextMatch(field, "like", pattern))
    if not documents:
        return ""
    name, folded = one_line(field, 80), text.casefold()
    spellings = (
        value[start : start + len(text)]
        for value, _ in values(field).frequent
        if isinstance(value, str)
        for start in range(len(value) - len(text) + 1)
        if value[start : start + len(text)].casefold() == folded
    )
    example = next((f"there is {_shown(spelling)}, and " for spelling in spellings), "")
    return (
        f"no document has {name} {op} {_shown(text)}; {example}{name} like {_shown(pattern)}, which ignores case, "
        f"finds {count_of(documents, 'document')}"
    )


def _looked_up(where: Where, found: bool) -> Iterator[tuple[Condition, ...]]:  # noqa: PLR0912 - one per kind
    """Yield the conditions whose values are looked up: each alone, but the uris and paths of one comparison together.

    A path that was typed in the shell is together with the absolute path that it may mean.
    """
    match where:
        case And(parts):
            for part in parts:
                yield from _looked_up(part, found)
        case Or(parts):
            for part in parts:
                yield from _looked_up(part, False)
        case Not(part):
            yield from _looked_up(part, False)
        case Compare(field, "=" | "!=" as op, value):
            if op == "!=" or not found:
                yield (Compare(field, "=", value),)
        case In("uri" | "path" as field, values, negated):
            if values and (negated or not found):
                yield tuple(Compare(field, "=", value) for value in values[:_MAX_LOOKUPS])
        case In(field, values, negated):
            if negated or not found or len(values) > 1:
                for value in values:
                    yield (Compare(field, "=", value),)
        case TextMatch(field, "contains" | "startswith" | "endswith" as op, text, negated):
            if text and (negated or not found):
                yield (TextMatch(field, op, text),)
        case Under():
            if not found:
                yield (where,)


def _near_folders(folder: str, values: FieldValues) -> str:
    """Return the folders of documents that are spelled like a folder, or else the folder that all documents are below.

    That folder is left out if not all paths are known, or if they are on several drives.
    """
    paths = [
        PurePath(value) for value, _ in values.frequent if isinstance(value, str) and PurePath(value).is_absolute()
    ]
    if not paths:
        return "no document has a path"
    folders = sorted({str(above) for path in paths for above in path.parents})
    near = difflib.get_close_matches(folder, folders, n=_NAMED_VALUES, cutoff=0.8)
    if not near and len(paths) < COMPARED_VALUES and len({path.anchor for path in paths}) == 1:
        near = [os.path.commonpath([path.parent for path in paths])]
    return "near: " + ", ".join(map(_shown, near)) if near else ""


def _near_format(value: Value, values: FieldValues) -> str:
    """Return the formats of the index; the format of files with this extension comes first."""
    named = FORMATS.get(f".{value.lower().removeprefix('.')}") if isinstance(value, str) else None
    return _near(value if named is None else named.name, values)


def _near(value: Value, values: FieldValues) -> str:
    """Return a sentence with the values of the field, similar values first; empty if there is nothing to say."""
    if isinstance(value, Date) or (type(value) is int and not values.numbers and values.days):
        return f"its days are from {values.days[0]} to {values.days[1]}" if values.days else ""
    if isinstance(value, str):
        counts = {text: count for text, count in values.frequent if isinstance(text, str)}
        folded: dict[str, str] = {}  # the most frequent of the values that differ only in case
        for text in counts:
            folded.setdefault(text.casefold(), text)
        near = difflib.get_close_matches(value.casefold()[:200], folded, n=_NAMED_VALUES, cutoff=0.5)
        return _named("near: ", [(folded[each], counts[folded[each]]) for each in near]) if near else _frequent(values)
    if type(value) is not bool and values.numbers:
        return f"its numbers are from {show(values.numbers[0])} to {show(values.numbers[1])}"
    return _frequent(values)


def _frequent(values: FieldValues) -> str:
    return _named("it has: ", list(values.frequent[:_NAMED_VALUES])) if values.frequent else ""


def _named(what: str, counts: list[tuple[str, int]] | list[tuple[str | int | float | bool, int]]) -> str:
    return what + ", ".join(f"{_shown(value)} ({count:,})" for value, count in counts)


def _shown(value: Value) -> str:
    return one_line(show(value), _SHOWN_CHARACTERS)
