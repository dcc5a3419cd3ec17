"""The conditions in a question: `"a phrase"`, `+word`, `-word` and `-"a phrase"`.

A dash is more often a part of a question ("what does tar -xzf do") than a sign. Therefore it excludes only after the
last plain word. `-word` does not exclude there either if a document holds it with its dash (`-40`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from indexer.errors import BadInput, Message
from indexer.filters.tree import one_line
from indexer.lazy_pattern import lazy_pattern
from indexer.stores.port import Condition, Conditions
from indexer.stores.words.analysis import UNSPACED
from indexer.stores.words.exact import exact_words

_MARK = '"\u201c\u201d\u201e\u201f\u00ab\u00bb'
"""Quotation marks, as a keyboard types them and as a word processor makes them of it."""

MAX_CONDITIONS = 64
"""Maximum conditions of a question."""

_SHOWN_CHARACTERS = 80

_SIGNS = frozenset(f"+-{_MARK}")

_CONDITION = lazy_pattern(
    # A sign counts at the start or after white space. A mark after a letter or digit does not open a phrase: 5" pipe.
    rf"(?<!\S)(?P<sign>[-+])(?:[{_MARK}](?P<signed>[^{_MARK}]*)[{_MARK}]|(?P<word>[^\s{_MARK}]+))"
    rf"|(?<![^\W{UNSPACED}])[{_MARK}](?P<phrase>[^{_MARK}]*)[{_MARK}]"
)


def read_conditions(question: str, dashed: Collection[str] = ()) -> tuple[str, tuple[Condition, ...]]:
    """Return what is left to ask of a question, and its conditions, each once.

    A sign that stands before no word, a dash before the last plain word, and a quotation mark without a second one, are
    text. If no word is left to ask, the text is empty.

    Args:
        dashed: words with a dash that are text.

    Raises:
        BadInput: there are more than MAX_CONDITIONS.
    """
    conditions: dict[Condition, None] = {}

    def take(match: re.Match[str]) -> str:
        condition = _condition(match)
        if condition is None or (condition.excluded and (match.start() < end or condition.text in dashed)):
            return match[0]
        conditions[condition] = None
        return " "

    if _SIGNS.isdisjoint(question):
        return question, ()
    end = _end_of_plain_words(question)
    rest = _CONDITION.sub(take, question)
    if not conditions:
        return question, ()
    if len(conditions) > MAX_CONDITIONS:
        raise BadInput(
            Message(
                f"the question has {len(conditions):,} conditions, and {MAX_CONDITIONS} is the limit: give fewer, or "
                "ask for the text as it stands",
                " (--literal)",
            )
        )
    return " ".join(rest.split()) if exact_words(rest) else "", tuple(conditions)


def notes_on_reading(asked: str, conditions: Conditions) -> list[str]:
    """Return the notes that name what was read as conditions, and the words with a dash in the text that is asked."""
    notes, found = list[str](), map(_condition, _matches(asked))
    if conditions:
        notes.append(Message(f"read as conditions: {_shown(conditions)}", "; --literal asks for the text as it stands"))
    if dashed := [condition for condition in found if condition is not None and condition.excluded]:
        example = one_line(dashed[0].text[1:].strip('"'), _SHOWN_CHARACTERS)
        advice = f'to leave out documents with a word, end the question with -"{example}"'
        notes.append(f"read as words: {_shown(dashed)}; {advice}")
    return notes


def _shown(conditions: Iterable[Condition]) -> str:
    return ", ".join(dict.fromkeys(one_line(condition.text, _SHOWN_CHARACTERS) for condition in conditions))


def _condition(match: re.Match[str]) -> Condition | None:
    """Return the condition that was typed; None if there is no word, or the sign is not directly before it."""
    text = next(part for part in match.group("signed", "word", "phrase") if part is not None)
    words = tuple(exact_words(text))
    if not words or (match["word"] and not exact_words(text[0])):
        return None
    quoted = match["word"] or f'"{" ".join(text.split())}"'
    sign = "-" if match["sign"] == "-" else "+" if match["word"] else ""
    return Condition(sign + quoted, words, sign == "-")


def _matches(question: str) -> list[re.Match[str]]:
    """Return what looks like a condition. Most questions have no sign, and need no pattern of 5 ms."""
    return [] if _SIGNS.isdisjoint(question) else [*_CONDITION.finditer(question)]


def _end_of_plain_words(question: str) -> int:
    """Return a place after the last plain word and before the conditions that follow it; 0 if there is no word."""
    end = len(question)
    for match in reversed(_matches(question)):
        if _condition(match) is not None:
            if exact_words(question[match.end() : end]):
                return match.end()
            end = match.start()
    return 0
