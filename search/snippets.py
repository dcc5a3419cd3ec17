"""Snippets: the few lines of a passage that a person sees, with the words of the question marked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from indexer.stores.analysis import UNSPACED

WIDTH = 320
"""Width of a snippet in characters, about four lines of a terminal."""

_ADORNMENT = re.compile(r"(?m)^(?:([=\-~`'\"^#*+<>_.:])\1{2,}\s*$|#{1,6} )")
"""Underlines and marks of headings, which have no meaning when the text is on one line."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Part of a passage.

    Attributes:
        text: the part on one line, with an ellipsis where something was left out.
        marks: (start, end) of each word of the question in `text`.
    """

    text: str
    marks: tuple[tuple[int, int], ...]


def snippet(passage: str, query_words: Iterable[str], width: int = WIDTH) -> Snippet:
    """Return the window of `width` characters with the most different words of the question.

    Args:
        query_words: the words to look for, spelled as in the passage.
    """
    flat = " ".join(_ADORNMENT.sub("", passage).split())
    words = [(match.start(), match.end()) for match in _WORD.finditer(flat)]
    matches = [(match.start(), match.end(), match[0].casefold()) for match in _any_of(query_words).finditer(flat)]
    begin = 0
    if len(flat) > width and matches:
        starts = [0, *(max(0, start - width // 4) for start, _, _ in matches)]
        begin = max(
            starts,
            key=lambda first: len({word for start, end, word in matches if first <= start and end <= first + width}),
        )
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


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of the words as a whole word; in scripts without spaces, anywhere."""
    longest_first = sorted(set(words), key=len, reverse=True)
    free = [re.escape(word) for word in longest_first if re.match(f"[{UNSPACED}]", word)]
    whole = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in longest_first if not re.match(f"[{UNSPACED}]", word)]
    return re.compile("|".join([*whole, *free]) or r"(?!)")
