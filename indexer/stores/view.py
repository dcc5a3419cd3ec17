"""The part of a consistent view that only an engine knows: how a statement is asked, and how a value is stored.

Statements over the stored tables are written once for all engines (ledger.py), in this form:

- `{tables}.` stands before the name of each table;
- `%s` is a parameter, and ` = ANY(%s)` compares with each of several values (`Rows.rows_of`);
- `{key}` is the column by which a uri is found, in `document` and in `ledger` (`Rows.key_of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


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
