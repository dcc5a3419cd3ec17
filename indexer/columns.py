"""The other columns of a record, beside its id, title and text: their texts are searched by words, as the title is.

Numbers, dates and addresses are left out, because nobody looks for them as words: filters find them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from indexer.records import RECORD_FORMATS

MAX_COLUMN_CHARACTERS = 5_000
"""Maximum characters of the columns of a record that are searched by words, the shortest first. Each passage has them,
so that more would take more room than the text."""

_WORD = re.compile(r"(?<!\S)(?!\S*://|\d{4}-\d\d-\d\dT)\S*?[^\W\d_]")


def searched_columns(format_: str | None, metadata: str | Mapping[str, Any]) -> list[str]:
    """Return the texts in the metadata of a record that are searched by words; of documents of other formats none.

    Args:
        metadata: as an object, or as stored.
    """
    return _columns(format_, metadata)[0]


def unsearched_columns(format_: str | None, metadata: Mapping[str, Any], text: str) -> list[str]:
    """Return the names of the columns that are too long to be searched by words and are not in the text either."""
    return [name for column, name in _columns(format_, metadata)[1].items() if column.strip() not in text]


def _columns(format_: str | None, metadata: str | Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the texts that are searched, and the names of the others by their texts."""
    if format_ not in RECORD_FORMATS:
        return [], {}
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except ValueError:  # `check` reports the damaged row
            return [], {}
    names = {text: name for name, text in _texts(metadata) if _WORD.search(text)}
    columns = sorted(names, key=lambda text: (len(text), text))
    searched = sum(end <= MAX_COLUMN_CHARACTERS for end in accumulate(map(len, columns)))
    return columns[:searched], {text: names[text] for text in columns[searched:]}


def _texts(metadata: object) -> Iterator[tuple[str, str]]:
    """Yield each text in an object, with the dotted path of its member."""
    waiting: list[tuple[str, object]] = [("", metadata)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path[1:], value
        elif isinstance(value, Mapping):
            waiting.extend((f"{path}.{name}", member) for name, member in value.items())
        elif isinstance(value, list | tuple):
            waiting.extend((path, member) for member in value)
