"""Texts that begin with a prefix, as the range that an ordered index looks up."""

from __future__ import annotations

import sys


def end_of_prefix(prefix: str) -> str | None:
    """Return the smallest text, by code points, above all texts that begin with a prefix.

    None if there is no such text: then every text from the prefix on begins with the prefix.
    """
    head = prefix.rstrip(chr(sys.maxunicode))
    if not head:
        return None
    following = 0xE000 if head[-1] == "\ud7ff" else ord(head[-1]) + 1  # no text contains a surrogate
    return head[:-1] + chr(following)
