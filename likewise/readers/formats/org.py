"""Org: the text as it is, with the title that its keywords give (https://orgmode.org/manual/Export-Settings.html)."""

from __future__ import annotations

import re

from indexer.sources.content import Content

_HEAD = re.compile(r"(?:[ \t]*(?:[#:][^\r\n]*)?(?:\r\n|\r|\n|$))*+")
"""Keywords, comments, drawers of properties, and blank lines, with which a file begins."""

_TITLE = re.compile(r"^[ \t]*#\+title:[ \t]*(\S[^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def read(text: str) -> Content:
    """Read a text. Several lines of `#+TITLE:` are one title, as they are when Org exports it."""
    head = _HEAD.match(text)
    titles = _TITLE.findall(head[0]) if head else ()
    return Content(text, " ".join(" ".join(titles).split()))
