r"""The patterns of `like`: % matches any characters or none, and _ matches one character. Upper and lower case are
equal.

Case is ignored by Unicode casefold: pattern and text are folded, and then compared. So "strasse" is like "Straße", and
_ stands for one code point of the folded text; a folded ß has two. A backslash before %, _ or another backslash
takes that character literally (`100\%`); before anything else, and at the end, it stands for itself.
"""

from __future__ import annotations

import re
import sys
from functools import cache, lru_cache

_TOKEN = re.compile(r"\\([%_\\])|(%)|(_+)|(.)", re.DOTALL)


@lru_cache(64)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the regular expression that matches a folded text as a whole if it is like the pattern.

    Each part between two % is looked for from the left. The groups are atomic, so that no part is looked for again: %
    takes whatever is between two parts.
    """
    parts = [""]
    for escaped, any_run, ones, character in _TOKEN.findall(pattern):
        if any_run:
            parts.append("")
        elif len(ones) > 1:
            parts[-1] += f".{{{len(ones)}}}"  # one step of the expression, however many there are
        else:
            parts[-1] += "." if ones else re.escape((escaped or character).casefold())
    expression = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return re.compile(f"{parts[0]}{expression}.*{parts[-1]}" if len(parts) > 1 else parts[0], re.DOTALL)


def is_like(text: str, pattern: str) -> bool:
    """Return whether a text is like a pattern."""
    return _compiled(pattern).fullmatch(text.casefold()) is not None


def in_sql(pattern: str) -> str:
    """Return a pattern with its case folded, as the LIKE of standard SQL reads it with a backslash for escapes."""
    parts = []
    for literal, any_run, ones, character in _TOKEN.findall(pattern):
        folded = (literal or character).casefold()
        parts.append(any_run or ones or ("\\" + folded if folded in ("%", "_", "\\") else folded))
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
