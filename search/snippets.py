"""The few lines of a passage that a person is shown, with the question's words marked."""

from __future__ import annotations

import re
from dataclasses import dataclass

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


def snippet(passage: str, query: str, width: int = WIDTH) -> Snippet:
    """The window of `width` characters that holds most different words of the question."""
    wanted = {stem(word) for word in _WORD.findall(query) if len(word) > 2}
    flat = " ".join(_ADORNMENT.sub("", passage).split())
    words = [(match.start(), match.end(), stem(match[0])) for match in _WORD.finditer(flat)]
    matches = [word for word in words if word[2] in wanted]
    begin = 0
    if len(flat) > width and matches:
        starts = [0, *(max(0, start - width // 4) for start, _, _ in matches)]
        begin = max(
            starts,
            key=lambda at: len({word for start, end, word in matches if at <= start and end <= at + width}),
        )
        begin = next((start for start, _, _ in words if start >= begin), 0) if begin else 0
    end = len(flat)
    if end - begin > width:
        end = max((stop for _, stop, _ in words if stop <= begin + width), default=begin + width)
    lead = "… " if begin else ""
    marks = tuple(
        (start - begin + len(lead), stop - begin + len(lead))
        for start, stop, _ in matches
        if begin <= start and stop <= end
    )
    return Snippet(f"{lead}{flat[begin:end]}{' …' if end < len(flat) else ''}", marks)


def stem(word: str) -> str:
    """A word folded so that case and the commonest English endings make no difference: enough to mark by."""
    folded = word.casefold()
    for ending in ("ing", "es", "ed", "s"):
        if folded.endswith(ending) and len(folded) - len(ending) >= 3:
            return folded[: -len(ending)]
    return folded.removesuffix("e") if len(folded) > 3 else folded
