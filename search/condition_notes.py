"""Notes on the conditions of a question: which were read, and which of them leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indexer.errors import Message, count_of
from indexer.filters.tree import Where, one_line
from indexer.stores.port import Condition, Conditions, Unit
from indexer.stores.reading.snapshot import Snapshot

_SHOWN_CHARACTERS = 80
_MAX_WORDS = 8
"""Maximum words of a condition that are compared with the words of the index. Each takes up to 0.2 s."""


def notes_on_conditions(
    snapshot: Snapshot, conditions: Conditions, where: Where | None, unit: Unit, *, found: bool
) -> Iterator[str]:
    """Yield a note that names the conditions and, if nothing was found, what leaves nothing.

    Args:
        where: the filter of the question.
        found: something meets the conditions, the filter and the question.
    """
    yield Message(
        f"read as conditions: {', '.join(map(_shown, conditions))}", "; --literal asks for the text as it stands"
    )
    if found or not snapshot.holding((), where, unit) or snapshot.holding(conditions, where, unit):
        return
    alone = [one for one in conditions if not snapshot.holding((one,), where, unit)]
    for condition in alone:
        if condition.excluded:
            yield f"every {unit} holds what {_shown(condition)} excludes"
        else:
            yield f"no {unit} holds {_shown(condition)}{_hint(snapshot, condition.words)}"
    if not alone:
        yield f"no {unit} meets these conditions together{_without(snapshot, conditions, where, unit)}"


def _hint(snapshot: Snapshot, words: Sequence[str]) -> str:
    """Return similar words of the index for the words that it does not have."""
    near = [
        f"{other} in place of {one_line(word, _SHOWN_CHARACTERS)}"
        for word in dict.fromkeys(words[:_MAX_WORDS])
        for other in snapshot.similar_words(word)[:1]
    ]
    return f"; it has {', '.join(near)}" if near else ""


def _without(snapshot: Snapshot, conditions: Conditions, where: Where | None, unit: Unit) -> str:
    """Return how many units each single condition keeps from being found."""
    counts = {
        _shown(one): count
        for one in conditions
        if (count := snapshot.holding(tuple(other for other in conditions if other != one), where, unit))
    }
    parts = [
        f"without {shown} there {'is' if count == 1 else 'are'} {count_of(count, unit)}"
        for shown, count in counts.items()
    ]
    return f"; {', '.join(parts)}" if parts else ""


def _shown(condition: Condition) -> str:
    return one_line(condition.text, _SHOWN_CHARACTERS)
