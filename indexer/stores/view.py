"""The part of a consistent view that only an engine knows: how a statement is asked, and how a value is stored.

Statements over the stored tables are written once for all engines (ledger.py), in this form:

- `{tables}.` stands before the name of each table;
- `%s` is a parameter, and ` = ANY(%s)` compares with each of several values (`Rows.rows_of`);
- `{key}` is the column by which a uri is found, in `document` and in `ledger` (`Rows.key_of`);
- `{stop}` is the column for the end of a passage;
- `{texts}` stands after `document d` where `{t}.text` and `{t}.sections` are read, and `{raw}`: the text in UTF-8 if
  the column `text` cannot hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged
from indexer.stores.port import Ids


class Rows(Protocol):
    """The stored rows of one commit."""

    def rows(self, statement: str, *parameters: Any) -> list[Any]:
        """Return the rows of a statement."""

    def rows_of(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """Return the rows of a statement with ` = ANY(%s)` for these values; without values none.

        An engine may ask for some of the values after the others: only ids in ascending order give ordered rows.
        """

    def stream(self, statement: str, *parameters: Any) -> Iterator[Any]:
        """Yield the rows of a statement without holding all of them."""

    def key_of(self, uri: str) -> Any:
        """Return the value by which a uri is found."""

    def blob_of(self, vector: Any) -> bytes:
        """Return a vector that was read as its checksum was made of it: float16, little-endian."""

    def halves(self, vectors: Sequence[Any]) -> NDArray[np.float16]:
        """Return vectors that were read as rows (n, dimensions), bit for bit.

        Raises:
            IndexDamaged: a vector has another width.
        """

    def damage(self, problem: str) -> IndexDamaged:
        """Return the error for a problem of the rows, in the words that name their place."""

    def require_ranked_by(self, passages: Ids, vectors: Sequence[Any]) -> None:
        """Raise IndexDamaged if questions rank these passages by other vectors than the stored ones, just read."""


class State(Protocol):
    """What is kept in memory for one commit."""

    @property
    def history(self) -> str:
        """A key of this index, the same for all its commits."""


class View(Rows, Protocol):
    """One consistent view: the stored rows, and the state of the same commit."""

    @property
    def state(self) -> State:
        """The state of the commit."""
