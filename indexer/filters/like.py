r"""The patterns of `like`: % is any run of characters, also none, and _ is one. Upper and lower case are alike.

Case is ignored by Unicode casefold: pattern and text are folded, and then compared. So "strasse" is like "Straße", and
_ stands for one code point of the folded text, of which ß has two. A backslash before %, _ or another backslash
takes that character literally (`100\%`); before anything else, and at the end, it stands for itself.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache, lru_cache

_TOKEN = re.compile(r"\\([%_\\])|(%)|(_)|(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern, cut at each % into expressions that match a fixed number of code points.

    Attributes:
        parts: one expression more than there are %.
        lengths: code points that each part matches.
    """

    parts: tuple[re.Pattern[str], ...]
    lengths: tuple[int, ...]

    def matches(self, text: str) -> bool:
        """Return whether the whole text is like the pattern.

        Each part is looked for from the left, and none is looked for again: % takes whatever is between two parts.
        """
        text = text.casefold()
        first, last = self.parts[0], self.parts[-1]
        if len(self.parts) == 1:
            return first.fullmatch(text) is not None
        start, end = self.lengths[0], len(text) - self.lengths[-1]
        if start > end or first.match(text) is None or last.match(text, end) is None:
            return False
        for part in self.parts[1:-1]:
            found = part.search(text, start, end)
            if found is None:
                return False
            start = found.end()
        return True


@lru_cache(64)
def read_pattern(pattern: str) -> LikePattern:
    """Return a pattern as it was written."""
    parts, lengths = [""], [0]
    for literal, any_run, one, character in _TOKEN.findall(pattern):
        if any_run:
            parts.append("")
            lengths.append(0)
        else:
            folded = (literal or character).casefold()
            parts[-1] += "." if one else re.escape(folded)
            lengths[-1] += 1 if one else len(folded)
    return LikePattern(tuple(re.compile(part, re.DOTALL) for part in parts), tuple(lengths))


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
    """Return every character that casefold changes: those that become one character, and those that become several.

    What they become is changed by neither, so that an engine may replace the characters in any order.
    """
    characters = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    folded = {character: text for character in characters if (text := character.casefold()) != character}
    single = {character: text for character, text in folded.items() if len(text) == 1}
    return single, {character: text for character, text in folded.items() if len(text) > 1}
