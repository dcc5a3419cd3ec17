r"""The patterns of `like`: % matches any characters or none, and _ matches one character. Upper and lower case are
equal.

Case is ignored by Unicode casefold: pattern and text are folded, and then compared. So "strasse" is like "Straße", and
_ stands for one code point of the folded text; a folded ß has two. A backslash before %, _ or another backslash
takes that character literally (`100\%`); before anything else, and at the end, it stands for itself.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

_TOKEN = re.compile(r"\\([%_\\])|(%)|(_)|(.)", re.DOTALL)

_TRIES = 64
"""Maximum places of a part's first literal that are tried one by one. Most texts match or fail at the first places."""

_BLOCK = 1 << 16
"""Code points that are compared at once. One character of a part takes 20 µs for each block."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a pattern between two %: literals at fixed distances, with an underscore for each other code point.

    Attributes:
        literals: each with its distance from the beginning of the part.
        length: code points that the part matches.
    """

    literals: tuple[tuple[int, str], ...]
    length: int

    def matches_at(self, text: str, start: int) -> bool:
        """Return whether the part matches the code points from `start` on, which the text must have."""
        return all(text.startswith(literal, start + distance) for distance, literal in self.literals)

    def find(self, text: str, start: int, end: int) -> int | None:
        """Return where the part first matches inside of text[start:end]; None if it does not match."""
        last = end - self.length
        if not self.literals:
            return start if start <= last else None
        distance, literal = self.literals[0]
        for _ in range(_TRIES):
            position = text.find(literal, start + distance, last + distance + len(literal)) if start <= last else -1
            if position < 0:
                return None
            start = position - distance
            if self.matches_at(text, start):
                return start
            start += 1
        return self._find_by_blocks(text, start, last)

    def _find_by_blocks(self, text: str, start: int, last: int) -> int | None:
        """Compare one character of the part with many code points at once: trying place by place may take minutes."""
        # The lock of the interpreter is free while numpy compares.
        codes = np.frombuffer(text[: last + self.length].encode("utf-32-le", "surrogatepass"), np.uint32)
        characters = [
            (distance + offset, ord(character))
            for distance, literal in self.literals
            for offset, character in enumerate(literal)
        ]
        for low in range(start, last + 1, _BLOCK):
            high = min(low + _BLOCK, last + 1)
            matches = np.ones(high - low, np.bool_)
            for distance, code in characters:
                matches &= codes[low + distance : high + distance] == code
                if not matches.any():
                    break
            else:
                return low + int(matches.argmax())
        return None


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern, cut at each % into parts that match a fixed number of code points: one more than there are %."""

    parts: tuple[Part, ...]

    def matches(self, text: str) -> bool:
        """Return whether the whole text is like the pattern.

        Each part is looked for from the left, and none is looked for again: % takes whatever is between two parts.
        """
        text = text.casefold()
        first, last = self.parts[0], self.parts[-1]
        if len(self.parts) == 1:
            return len(text) == first.length and first.matches_at(text, 0)
        start, end = first.length, len(text) - last.length
        if start > end or not first.matches_at(text, 0) or not last.matches_at(text, end):
            return False
        for part in self.parts[1:-1]:
            position = part.find(text, start, end)
            if position is None:
                return False
            start = position + part.length
        return True


@lru_cache(64)
def read_pattern(pattern: str) -> LikePattern:
    """Return a pattern as it was written."""
    parts: list[Part] = []
    literals: list[tuple[int, str]] = []
    literal, length = "", 0
    # The token at the end closes the last part as a % closes the others.
    for escaped, any_run, one, character in (*_TOKEN.findall(pattern), ("", "%", "", "")):
        if not (any_run or one):
            literal += (escaped or character).casefold()
            continue
        if literal:
            literals.append((length, literal))
            literal, length = "", length + len(literal)
        if one:
            length += 1
        else:
            parts.append(Part(tuple(literals), length))
            literals, length = [], 0
    return LikePattern(tuple(parts))


def is_like(text: str, pattern: str) -> bool:
    """Return whether a text is like a pattern."""
    return read_pattern(pattern).matches(text)


def in_sql(pattern: str) -> str:
    """Return a pattern with its case folded, as the LIKE of standard SQL reads it with a backslash for escapes."""
    parts = []
    for literal, any_run, one, character in _TOKEN.findall(pattern):
        folded = (literal or character).casefold()
        parts.append(any_run or one or ("\\" + folded if folded in ("%", "_", "\\") else folded))
    return "".join(parts)


@cache
def folding() -> tuple[dict[str, str], dict[str, str]]:
    """Return every character that casefold changes: first those with a fold of one character, then the others.

    The folded characters are never changed again, so an engine may replace the characters in any order.
    """
    characters = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    folded = {character: text for character in characters if (text := character.casefold()) != character}
    single = {character: text for character, text in folded.items() if len(text) == 1}
    return single, {character: text for character, text in folded.items() if len(text) > 1}
