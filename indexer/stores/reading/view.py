"""What only an engine knows of one commit: how to run statements and store values, what a filter leaves, what is near.

Everything else that a snapshot answers is written once over it (snapshot.py). Statements over the stored tables are
written once for all engines (document_rows.py, ledger.py), in this form:

- `{tables}.` stands before the name of each table;
- `%s` is a parameter, and ` = ANY(%s)` compares with each of several values (`Rows.rows_of`);
- `{key}` is the column by which a uri is found, in `document` and in `ledger` (`Rows.key_of`);
- ` = SOME(%s)` compares with each of a list of ids, which is one parameter;
- `{number}` is the column for a date or number of a field, and `{text}` that for its text;
- `{floor}` stands before a number in parentheses, at least 0, that a cast makes an integer;
- `{texts}` stands after `document d` where `{t}.text`, `{t}.sections` and `{t}.raw` are read. The last is the text in
  UTF-8 if the column `text` cannot hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.errors import IndexDamaged
from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.settings import Meaning, Settings
from indexer.stores.fields.field_types import FieldTypes
from indexer.stores.port import CheckReport, Ids
from indexer.stores.words.word_ranking import Limit, Words


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


class Nearest(NamedTuple):
    """Passages near a question, best first; equal scores in the order the passages were added.

    Attributes:
        passages, documents: ids of the passages and of their documents (n,), int64.
        scores: their cosines, computed from the stored vectors (n,), float32.
        floor: a unit with a higher score than this is in its place; the order of the others is not sure.
        exact: whether that is provable.
    """

    passages: Ids
    documents: Ids
    scores: NDArray[np.float32]
    floor: float
    exact: bool


class Selection(Protocol):
    """The documents that a filter leaves, and their passages; without a filter all of them."""

    @property
    def documents(self) -> int:
        """Number of documents."""

    @property
    def passages(self) -> int:
        """Number of passages."""

    def ids(self) -> Ids:
        """Return the ids of the documents (n,), ascending."""

    def other_ids(self) -> Ids:
        """Return the ids of all other documents (n,), ascending; ids that no document has may be among them."""

    def has(self, document: int) -> bool:
        """Return whether the filter leaves a document."""

    def nearest(self, vector: Vector, n: int, depth: int | None) -> Nearest:
        """Return the n passages nearest to a unit vector (dimensions,).

        Args:
            n: at most as many as there are.
            depth: how many units are asked for, for an approximate search; None for brute force.
        """


class CommitState(Protocol):
    """What is kept in memory for one commit: see `indexer.stores.reading.snapshot.Snapshot`."""

    @property
    def settings(self) -> Settings: ...
    @property
    def documents(self) -> int: ...
    @property
    def passages(self) -> int: ...
    @property
    def version(self) -> Hashable: ...
    @property
    def history(self) -> str: ...
    @property
    def fields(self) -> FieldTypes: ...


@dataclass(frozen=True, slots=True)
class Storage:
    """The members of `Info` that only an engine knows."""

    tokens: int
    unsealed: int
    bytes: int
    format_version: int
    segments: tuple[Mapping[str, Any], ...]
    details: Mapping[str, Any] = field(default_factory=dict)


class View(Rows, Protocol):
    """One consistent view: the stored rows, the state of the same commit, and what an engine derives from both."""

    @property
    def state(self) -> CommitState:
        """The state of the commit."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about this state that the caller should know."""

    def select(self, where: Where | None, limit: Limit | None = None) -> Selection:
        """Return what a filter leaves. Raises FilterError.

        Args:
            limit: leave only units that the conditions of a question leave. If these are passages, the selection has
                all documents that the filter leaves.
        """

    def vectors_of(self, passages: Ids) -> Vector:
        """Return the vectors of passages (n, dimensions), in the order of their ids (n,)."""

    def passages_of(self, documents: Ids) -> tuple[Ids, Ids, Callable[[NDArray[np.bool_]], Vector]]:
        """Return every passage of these documents (n,).

        Returns:
            Ids (passages,), ascending; the document of each (passages,); and a function that returns the vectors
            (chosen, dimensions) of the passages for which a flag (passages,) is set.
        """

    def passage_ids(self) -> Ids:
        """Return the id of every passage (n,), ascending."""

    def words(self) -> Words:
        """Return the words of the commit, opened at the first question."""

    @property
    def has_words(self) -> bool:
        """Whether `words` does not have to read every text first."""

    def storage(self) -> Storage:
        """Return the size of everything that is stored, and how it is stored."""

    def check(self, meaning: Meaning | None) -> CheckReport:
        """Verify everything. See `indexer.stores.reading.snapshot.Snapshot.check`."""
