"""Snippets: the few lines of a passage that a person sees, with the words of the question marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from indexer.passages.sentences import SENTENCE
from indexer.stores.words.analysis import UNSPACED, close_up

WIDTH = 320
"""Width of a snippet in characters, about four lines of a terminal."""

_ADORNMENT = re.compile(r"(?m)^(?:([=\-~`'\"^#*+<>_.:])\1{2,}\s*$|#{1,6} )")
"""Underlines and marks of headings, which have no meaning when the text is on one line."""

_WORD = re.compile(r"\w+")


class Snippet(NamedTuple):
    """Part of a passage.

    Attributes:
        text: the part on one line, with an ellipsis where something was left out.
        marks: (start, end) of each word of the question in `text`.
    """

    text: str
    marks: tuple[tuple[int, int], ...]


def snippet(
    passage: str,
    query_words: Iterable[str],
    width: int = WIDTH,
    *,
    stem: Callable[[str], Hashable] = str.casefold,
    sentence: str = "",
) -> Snippet:
    """Return the window of `width` characters with the most different words of the question.

    The window begins with the sentence that has the most of these words, if there is room for it.

    Args:
        query_words: the words to look for, spelled as in the passage.
        stem: words with the same stem count once, as a plural and its singular do.
        sentence: a sentence of the passage that the window must show, whatever words it has.
    """
    flat = _on_one_line(_ADORNMENT.sub("", passage))
    words = [(match.start(), match.end()) for match in _WORD.finditer(flat)]
    matches = [(match.start(), match.end(), match[0]) for match in _any_of(query_words).finditer(flat)]
    begin = _beginning(flat, matches, width, stem, _on_one_line(sentence)) if len(flat) > width else 0
    begin = next((start for start, _ in words if start >= begin), 0) if begin else 0
    end = len(flat)
    if end - begin > width:
        end = max((stop for _, stop in words if stop <= begin + width), default=begin + width)
    lead = "… " if begin else ""
    marks = tuple(
        (start - begin + len(lead), stop - begin + len(lead))
        for start, stop, _ in matches
        if begin <= start and stop <= end
    )
    return Snippet(f"{lead}{flat[begin:end]}{' …' if end < len(flat) else ''}", marks)


def _on_one_line(text: str) -> str:
    """Return a text on one line. In Chinese and Japanese, the end of a line is no space."""
    return " ".join(close_up(text, lines=True).split())


def _beginning(
    flat: str, matches: Sequence[tuple[int, int, str]], width: int, stem: Callable[[str], Hashable], sentence: str
) -> int:
    """Return where the window begins.

    Args:
        matches: start, end and text of each word of the question.
    """
    if sentence and (place := flat.find(sentence)) >= 0:
        return place if place + len(sentence) > width else 0
    stems = [(start, end, stem(word)) for start, end, word in matches]
    bounds = [0, *(match.end() for match in SENTENCE.finditer(flat)), len(flat)]
    # A single word of the question does not make a sentence the answer: then the passage is shown from its beginning.
    own = {first: count if (count := _count(stems, first, last)) > 1 else 0 for first, last in pairwise(bounds)}
    starts = [*own, *(max(0, start - width // 4) for start, _, _ in stems)]
    return max(starts, key=lambda first: (_count(stems, first, first + width), own.get(first, -1)), default=0)


def _count(stems: Sequence[tuple[int, int, Hashable]], first: int, last: int) -> int:
    """Return how many different stems are in a part of the text."""
    return len({stem for start, end, stem in stems if first <= start and end <= last})


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of the words as a whole word; in scripts without spaces, anywhere.

    There a word may go on in the next line.
    """
    longest_first = sorted({*map(_on_one_line, words)} - {""}, key=len, reverse=True)
    free = [word for word in longest_first if not word.isascii() and re.match(f"[{UNSPACED}]", word)]
    whole = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in longest_first if word not in free]
    return re.compile("|".join([*whole, *map(re.escape, free)]) or r"(?!)")
