"""The few lines of a passage that a person is shown, with the question's words marked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from indexer.stores.analysis import UNSPACED

WIDTH = 320
"""Characters of a snippet, about four lines of a terminal."""

_ADORNMENT = re.compile(r"(?m)^(?:([=\-~`'\"^#*+<>_.:])\1{2,}\s*$|#{1,6} )")
"""Lines under headings and marks before them, which say nothing on one line."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Part of a passage.

    Attributes:
        text: on one line, with an ellipsis where something was left out.
        marks: (start, end) of the question's words in `text`.
    """

    text: str
    marks: tuple[tuple[int, int], ...]


def snippet(passage: str, wanted: Iterable[str], width: int = WIDTH) -> Snippet:
    """The window of `width` characters that holds most different ones of the words wanted, as the passage has them."""
    flat = " ".join(_ADORNMENT.sub("", passage).split())
    words = [(match.start(), match.end()) for match in _WORD.finditer(flat)]
    matches = [(match.start(), match.end(), match[0].casefold()) for match in _any_of(wanted).finditer(flat)]
    begin = 0
    if len(flat) > width and matches:
        starts = [0, *(max(0, start - width // 4) for start, _, _ in matches)]
        begin = max(
            starts,
            key=lambda at: len({word for start, end, word in matches if at <= start and end <= at + width}),
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
    """Any of the words, whole; in scripts without spaces anywhere."""
    longest_first = sorted(set(words), key=len, reverse=True)
    free = [re.escape(word) for word in longest_first if re.match(f"[{UNSPACED}]", word)]
    whole = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in longest_first if not re.match(f"[{UNSPACED}]", word)]
    return re.compile("|".join([*whole, *free]) or r"(?!)")
