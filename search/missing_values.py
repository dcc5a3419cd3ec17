"""Notes on a filter that compares a field with a value which no document has, with the values that are near to it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

from indexer.filters.dates import Date
from indexer.filters.tree import And, Compare, In, Not, Or, Value, Where, one_line, show
from indexer.stores.port import FieldValues, Snapshot

COMPARED_VALUES = 1000
"""How many of a field's most frequent values are compared with one that does not occur."""

_MAX_LOOKUPS = 20
"""Values of a filter that are looked up: each look-up may count as many documents as the filter leaves."""

_MAX_NOTES = 3
_NAMED_VALUES = 3
_SHOWN_CHARACTERS = 60


def notes_on_values(
    snapshot: Snapshot, where: Where, found: bool, values: Callable[[str], FieldValues]
) -> tuple[str, ...]:
    """Return a sentence for each of the first values after =, !=, in and not in that no document of the index has.

    Args:
        found: whether the filter leaves a document. If so, a value that every document must have is not looked up.
        values: returns the most frequent values of a field; asked only for fields with such a value.

    Raises:
        FilterError: the filter does not fit the fields of the index.
    """
    notes: list[str] = []
    for number, (field, alternatives) in enumerate(_compared(where, found)):
        if number >= _MAX_LOOKUPS or len(notes) >= _MAX_NOTES:
            break
        if not any(snapshot.count(Compare(field, "=", value)) for value in alternatives):
            value = alternatives[0]
            near = _near(value, values(field))
            notes.append(f"no document has {one_line(field, 80)} = {_shown(value)}{'; ' if near else ''}{near}")
    return tuple(notes)


def may_have_notes(where: Where, found: bool) -> bool:
    """Return whether any value of a filter has to be looked up."""
    return next(_compared(where, found), None) is not None


def _compared(where: Where, found: bool) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Yield the values that fields are compared with, each alone, or of uris and paths those of one comparison.

    A path that the shell was given stands beside the absolute one that it may mean.
    """
    match where:
        case And(parts):
            for part in parts:
                yield from _compared(part, found)
        case Or(parts):
            for part in parts:
                yield from _compared(part, False)
        case Not(part):
            yield from _compared(part, False)
        case Compare(field, "=" | "!=" as op, value):
            if op == "!=" or not found:
                yield field, (value,)
        case In("uri" | "path" as field, values, negated):
            if values and (negated or not found):
                yield field, values[:_MAX_LOOKUPS]
        case In(field, values, negated):
            if negated or not found or len(values) > 1:
                for value in values:
                    yield field, (value,)


def _near(value: Value, values: FieldValues) -> str:
    """Return which values there are, those near to a text first; empty where there is nothing to say."""
    if isinstance(value, Date):
        return f"its days are from {values.days[0]} to {values.days[1]}" if values.days else ""
    if isinstance(value, str):
        counts = {text: count for text, count in values.frequent if isinstance(text, str)}
        folded: dict[str, str] = {}  # the most frequent of those that differ in case alone
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
