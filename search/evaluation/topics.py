"""Reading questions in the forms of TREC: topics in <top> or <topic> blocks, and lines of id, tab, text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_BLOCK = re.compile(r"<(top|topic)\b([^>]*)>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""number\s*=\s*["']?([^\s"'>]+)""", re.IGNORECASE)
# Older topics do not close their tags: a title ends where the next tag begins.
_TITLE = re.compile(r"<(?:title|query)>\s*(?:Topic:)?\s*(.*?)\s*(?=<|\Z)", re.DOTALL | re.IGNORECASE)


def parse_topics(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the id and the title (or query) of every topic; an id or title that it lacks is empty."""
    for block in _BLOCK.finditer(text):
        number = _ATTRIBUTE.search(block[2]) or _NUMBER.search(block[3])
        title = _TITLE.search(block[3])
        line = text.count("\n", 0, block.start()) + 1
        yield line, number[1] if number else "", " ".join(html.unescape(title[1]).split()) if title else ""


def parse_tabbed(line: str) -> tuple[str, str]:
    """Return the id and the text of a line with a tab between them."""
    query, _, text = line.partition("\t")
    return query.strip(), text.strip()
