"""The conditions in a question: `"a phrase"`, `+word`, `-word` and `-"a phrase"`."""

from __future__ import annotations

import re

from indexer.errors import BadInput, Message
from indexer.filters.tree import one_line
from indexer.stores.port import Condition, Conditions
from indexer.stores.words.analysis import UNSPACED
from indexer.stores.words.exact import exact_words

_MARK = '"\u201c\u201d\u201e\u201f\u00ab\u00bb'
"""Quotation marks, as a keyboard types them and as a word processor makes them of it."""

MAX_CONDITIONS = 64
"""Maximum conditions of a question."""

_SHOWN_CHARACTERS = 80

_CONDITION = re.compile(
    # A sign counts at the start or after white space. A mark after a letter or digit does not open a phrase: 5" pipe.
    rf"(?<!\S)(?P<sign>[-+])(?:[{_MARK}](?P<signed>[^{_MARK}]*)[{_MARK}]|(?P<word>[^\s{_MARK}]+))"
    rf"|(?<![^\W{UNSPACED}])[{_MARK}](?P<phrase>[^{_MARK}]*)[{_MARK}]"
)


def read_conditions(question: str) -> tuple[str, tuple[Condition, ...]]:
    """Return what is left to ask of a question, and its conditions, each once.

    A sign that stands before no word, and a quotation mark without a second one, are text. If no word is left to ask,
    the text is empty.

    Raises:
        BadInput: there are more than MAX_CONDITIONS.
    """
    conditions: dict[Condition, None] = {}

    def take(match: re.Match[str]) -> str:
        text = next(part for part in match.group("signed", "word", "phrase") if part is not None)
        words = tuple(exact_words(text))
        if not words or (match["word"] and not exact_words(text[0])):
            return match[0]
        quoted = f'"{" ".join(text.split())}"' if match["word"] is None else text
        excluded = match["sign"] == "-"
        sign = "-" if excluded else "+" if match["word"] else ""
        conditions[Condition(sign + quoted, words, excluded)] = None
        return " "

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


def note_on_conditions(conditions: Conditions) -> str:
    """Return the note that names what was read as conditions."""
    shown = ", ".join(one_line(condition.text, _SHOWN_CHARACTERS) for condition in conditions)
    return Message(f"read as conditions: {shown}", "; --literal asks for the text as it stands")
