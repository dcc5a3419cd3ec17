"""`Answering`: the steps of a question to one index. `Searcher` answers by them, and federation.py asks several indexes
by them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, TypeVar

from indexer.deadline import NEVER, Deadline
from indexer.errors import BadInput
from indexer.filters.tree import In, Where, conditions, render
from indexer.filters.unknown_fields import without_unknown_fields
from indexer.lookup import is_uri, unknown_uri
from indexer.records import Vector
from indexer.stores.fields.field_types import check_filter
from indexer.stores.port import FieldValues
from indexer.stores.reading.snapshot import Snapshot
from search.conditions import note_on_conditions
from search.examples import with_examples
from search.fusion import CosineStatistics
from search.hits import Hits
from search.missing_values import COMPARED_VALUES, may_have_notes, notes_on_values
from search.newer import Newer, Weights
from search.query import Query
from search.question_batches import AskedQuestion
from search.ranker import Ranker

UnknownFields = Literal["error", "empty"]

_NO_DOCUMENT = In("uri", ())
_MAX_KEPT = 512
"""Maximum values that are kept of a commit. Clients may invent any number of filters and fields."""

Value = TypeVar("Value")


class _OfCommit:
    """Values that were computed from one commit. They are kept until the next commit."""

    def __init__(self) -> None:
        self._of: tuple[Hashable, dict[Hashable, Any]] = None, {}  # the version, and its values

    def get(self, snapshot: Snapshot, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value with this key, which `compute` returns if it is not kept."""
        version, values = self._of
        if version != snapshot.version or len(values) >= _MAX_KEPT:
            _, values = self._of = snapshot.version, {}  # not emptied: another thread may be reading it
        if key not in values:
            values[key] = compute()
        kept: Value = values[key]
        return kept


class Answering:
    """The steps of a question to one index, each over a snapshot of the caller. Safe to share among threads.

    Attributes:
        ranker: ranks, and embeds questions.
        unknown_fields: as in `Searcher`.
        statistics: if given, dense scores are the z-scores by these statistics.
        deadline: of the questions of one caller.
        ahead: a question of this caller that is being embedded.
        kept: values of the last commit.
    """

    def __init__(self, ranker: Ranker, unknown_fields: UnknownFields) -> None:
        self.ranker, self.unknown_fields = ranker, unknown_fields
        self.statistics: CosineStatistics | None = None
        self.deadline: Deadline = NEVER
        self.ahead: AskedQuestion | None = None
        self.kept = _OfCommit()

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot, which raises DeadlinePassed after the deadline."""
        return self.ranker.store.snapshot(self.deadline)

    def values_of(self, snapshot: Snapshot, field: str, limit: int) -> FieldValues:
        """Return the values of a field, kept until the next commit."""
        return self.kept.get(snapshot, ("values", field, limit), lambda: snapshot.values(field, limit))

    def ranked(
        self, snapshot: Snapshot, query: Query, vector: Vector | None, k: int, weights: Weights | None = None
    ) -> Hits:
        """Return the k best units for a question with this vector.

        Args:
            weights: of the documents for newer ones first; without them they are computed where the question asks.
        """
        condition = self.known_fields_only(snapshot, query.condition)
        if query.newer is not None and weights is None:
            newer = Newer.read(query.newer)
            newer.check(snapshot.fields, unknown_is_error=self.unknown_fields == "error")
            weights = newer.weigh(snapshot, condition)
        hits = self.ranker.rank(snapshot, query, vector, k, condition, weights, self.statistics)
        notes = list(hits.notes)
        if condition is not None:
            notes += self.notes_on(snapshot, condition, hits.matched > 0)
        if query.conditions:
            notes.append(note_on_conditions(query.conditions))
        return replace(hits, notes=tuple(notes))

    def notes_on(self, snapshot: Snapshot, where: Where, found: bool) -> tuple[str, ...]:
        """Return the notes about values that no document has, kept until the next commit.

        An empty index has no notes about values.
        """
        if self.unknown_fields == "empty" or not snapshot.documents or not may_have_notes(where, found):
            return ()
        return self.kept.get(
            snapshot,
            ("notes", render(where), found),
            lambda: notes_on_values(
                snapshot, where, found, lambda field: self.values_of(snapshot, field, COMPARED_VALUES)
            ),
        )

    def vector(self, snapshot: Snapshot, query: Query) -> tuple[Vector | None, tuple[str, ...]]:
        """Return the question as a unit row (dimensions,) and notes; None in words mode, which needs no model."""
        if query.ranked_by == "words":
            return None, ()
        vector, notes = None if query.row is None else self._given(snapshot, query.row), tuple[str, ...]()
        if vector is None and query.asked:
            vector, notes = self.encoded(snapshot, query.asked)
        if query.examples:
            liked, unliked = ([self.vectors_of(snapshot, uri) for uri in uris] for uris in (query.like, query.unlike))
            vector = with_examples(vector, liked, unliked)
        return vector, notes

    def _given(self, snapshot: Snapshot, row: Vector) -> Vector:
        """Return the vector that a question has brought."""
        dimensions = snapshot.settings.dimensions
        if dimensions and len(row) != dimensions:
            raise BadInput(
                f"the question's vector has {len(row)} dimensions and {self.ranker.store.address} has {dimensions}"
            )
        return row[:dimensions]  # nothing of it where the index has taken no width yet

    def encoded(self, snapshot: Snapshot, text: str) -> tuple[Vector, tuple[str, ...]]:
        """Return a question's vector (dimensions,) and notes about the question."""
        (row,), (notes,) = self.ranker.encode(snapshot, [text], self.ahead)
        return row, notes

    def known_fields_only(self, snapshot: Snapshot, where: Where | None) -> Where | None:
        """Return the filter to rank with; None if it leaves every document."""
        if where is None or self.unknown_fields == "error" or (fields := snapshot.fields) is None:
            return where
        for condition in conditions(where):  # one on an unknown field must not hide a wrong type beside it
            if without_unknown_fields(condition, fields) is condition:
                check_filter(condition, fields)
        known = without_unknown_fields(where, fields)
        return known if not isinstance(known, bool) else None if known else _NO_DOCUMENT

    def vectors_of(self, snapshot: Snapshot, uri: str) -> Vector:
        rows = snapshot.vectors_of(uri) if is_uri(uri) else None
        if rows is None:
            raise unknown_uri(self.ranker.store.address, uri)
        return rows
