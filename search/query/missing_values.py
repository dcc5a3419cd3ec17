"""Notes on a filter: values that no document has, with similar values, and texts that are meant as dates."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator

from indexer.errors import count_of
from indexer.filters.dates import Date, read_date
from indexer.filters.operators import TEXT_OPERATORS
from indexer.filters.tree import (
    COLUMNS,
    And,
    Compare,
    Condition,
    In,
    Not,
    Or,
    TextMatch,
    Value,
    Where,
    conditions,
    one_line,
    show,
)
from indexer.stores.port import FieldValues
from indexer.stores.reading.snapshot import Snapshot

COMPARED_VALUES = 1000
"""Maximum number of a field's most frequent values that are compared with a value that does not occur."""

_MAX_LOOKUPS = 20
"""Maximum values of a filter that are looked up. Each look-up may count all documents that the filter leaves."""

_MAX_NOTES = 3
_NAMED_VALUES = 3
_SHOWN_CHARACTERS = 60


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
            case Compare(field, _, value):
                near = _near(value, values(field))
                notes.append(f"no document has {one_line(field, 80)} = {_shown(value)}{'; ' if near else ''}{near}")
            case TextMatch() as condition if other_case := _other_case(snapshot, condition, values):
                notes.append(other_case)
    fields = snapshot.fields or {}
    notes += [
        f"{one_line(field, 80)} {op} {show(text)} compares texts letter by letter: write a date as 2024-12-31 or -7d"
        for field, op, text in _ordered_texts(where)
        if "date" in fields.get(field, ())
    ]
    return tuple(notes)


def notes_on_names(where: Where, fields: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each field of documents in a filter that is the name of a field of their metadata too.

    Args:
        fields: the fields of the metadata.
    """
    names = dict.fromkeys(getattr(condition, "field", "") for condition in conditions(where))
    return tuple(
        f"{name} is a field of every document: the field of your metadata is metadata.{name}"
        for name in names
        if name in COLUMNS and f"metadata.{name}" in fields
    )


def may_have_notes(where: Where, found: bool) -> bool:
    """Return whether any value of a filter has to be looked up, or is meant as a date."""
    return next(_looked_up(where, found), None) is not None or bool(_ordered_texts(where))


def _ordered_texts(where: Where) -> list[tuple[str, str, str]]:
    """Return the comparisons by order with a text that is not a date, such as "31.12.2024" or "last week"."""
    return [
        (condition.field, condition.op, condition.value)
        for condition in conditions(where)
        if isinstance(condition, Compare) and condition.op not in ("=", "!=")
        if isinstance(condition.value, str) and condition.value and read_date(condition.value) is None
    ]


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
        case TextMatch(field, op, text, negated) if not TEXT_OPERATORS[op].takes_pattern:
            if text and (negated or not found):
                yield (TextMatch(field, op, text),)


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
