"""Long stretches of a text without a space, such as base64. They are not language, and their vectors are only noise."""

from __future__ import annotations

import re

_UNBROKEN = re.compile(
    r"""(?<![!-~]) (?: [!-~]{2001,}
    | (?: (?:[A-Za-z0-9+/]{76}\r?\n){26,} | (?:[A-Za-z0-9+/]{64}\r?\n){31,} ) [A-Za-z0-9+/=]* )""",
    re.VERBOSE,
)
"""More than 2,000 characters of ASCII without white space. Chinese, Japanese and Thai are written without spaces, but
not in ASCII. Mail breaks base64 into lines of 76 characters, PEM into lines of 64."""


def unbroken_ranges(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each stretch, in order."""
    return [match.span() for match in _UNBROKEN.finditer(text)]


def is_unbroken(text: str) -> bool:
    """Return whether a text has letters and digits only in such stretches."""
    return bool(unbroken_ranges(text)) and not any(map(str.isalnum, _UNBROKEN.sub("", text)))
