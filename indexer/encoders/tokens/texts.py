"""Checks of the texts that are given to an encoder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from indexer.encoders.recipes.port import Role
from indexer.errors import BadInput
from indexer.records import broken_at


def checked_texts(texts: Iterable[str], role: Role) -> list[str]:
    """Return texts as a list.

    Raises:
        BadInput: a text is empty, only whitespace, not a string or not valid Unicode, one string was given instead of a
            list, or there is no such role.
    """
    if isinstance(texts, str):
        raise BadInput("one string was given in place of a list of texts: put it in brackets")
    if not isinstance(texts, Iterable):
        raise BadInput(f"the texts are not a list but {type(texts).__name__}")
    if role not in get_args(Role):
        raise BadInput(f"role {role!r} is not one of query, document")
    checked = list(texts)
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise BadInput(f"text {index} is not a string but {type(text).__name__}")
        if not text or text.isspace():
            raise BadInput(f"text {index} is empty: there is nothing to embed; leave it out")
        if (broken := broken_at(text)) is not None:
            raise BadInput(f"text {index} is not valid Unicode at character {broken}")
    return checked
