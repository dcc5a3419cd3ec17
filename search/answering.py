"""`Answering`: the steps of a question to one index. `Searcher` answers by them, and federation.py asks several indexes
by them.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal

from indexer.deadline import NEVER, Deadline
from indexer.errors import BadInput
from indexer.filters.tree import In, Where, conditions, render
from indexer.filters.unknown_fields import without_unknown_fields
from indexer.lookup import is_uri, unknown_uri
from indexer.records import Vector
from indexer.stores.fields.field_types import check_filter
from indexer.stores.port import FieldValues, Unit
from indexer.stores.reading.snapshot import Snapshot
from search.condition_notes import notes_on_conditions
from search.examples import with_examples
from search.hits import Hits
from search.missing_values import COMPARED_VALUES, may_have_notes, notes_on_values
from search.newer import Newer
from search.query import Query
from search.question_batches import AskedQuestion
from search.ranker import Pool, Ranker

UnknownFields = Literal["error", "empty"]

_NO_DOCUMENT = In("uri", ())
_MAX_NOTED_FILTERS = 256
"""Number of filters whose notes are kept: a few words each."""


class Answering:
    """The steps of a question to one index, each over a snapshot of the caller. Safe to share among threads.

    Attributes:
        ranker: ranks, and embeds questions.
        unknown_fields: as in `Searcher`.
        deadline: of the questions of one caller.
        ahead: a question of this caller that is being embedded.
    """

    def __init__(self, ranker: Ranker, unknown_fields: UnknownFields) -> None:
        self.ranker, self.unknown_fields = ranker, unknown_fields
        self.deadline: Deadline = NEVER
        self.ahead: AskedQuestion | None = None
        self._values: dict[tuple[Hashable, str, int], FieldValues] = {}  # with the version of their snapshot
        self._value_notes: dict[tuple[Hashable, str, bool], tuple[str, ...]] = {}  # with version and filter

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot, which raises DeadlinePassed after the deadline."""
        return self.ranker.store.snapshot(self.deadline)

    def values_of(self, snapshot: Snapshot, field: str, limit: int) -> FieldValues:
        """Return the values of a field, kept until the next commit."""
        key = snapshot.version, field, limit
        if (values := self._values.get(key)) is None:
            values = snapshot.values(field, limit)
            if any(version != snapshot.version for version, _, _ in list(self._values)):
                self._values.clear()
            if values.documents:  # names of fields that clients invent are not kept
                self._values[key] = values
        return values

    def ranked(self, snapshot: Snapshot, query: Query, vector: Vector | None, k: int, pool: Pool | None = None) -> Hits:
        """Return the k best units for a question with this vector."""
        condition = self.known_fields_only(snapshot, query.condition)
        unit: Unit = "passage" if query.passages else "document"
        weights = None if pool is None else pool.weights
        if query.newer is not None and pool is None:
            newer = Newer.read(query.newer)
            newer.check(snapshot.fields, unknown_is_error=self.unknown_fields == "error")
            weights = newer.weigh(snapshot, condition)
        hits = self.ranker.rank(snapshot, query, vector, k, condition, unit, weights, pool)
        notes = list(hits.notes)
        if condition is not None:
            notes += self.notes_on(snapshot, condition, hits.matched > 0)
        if query.conditions:
            notes += notes_on_conditions(
                snapshot, query.conditions, condition, unit, found=hits.matched > 0 or pool is not None
            )
        return replace(hits, notes=tuple(notes))

    def notes_on(self, snapshot: Snapshot, where: Where, found: bool) -> tuple[str, ...]:
        """Return the notes about values that no document has, kept until the next commit.

        An empty index has no notes about values.
        """
        if self.unknown_fields == "empty" or not snapshot.documents or not may_have_notes(where, found):
            return ()
        key = snapshot.version, render(where), found
        if (notes := self._value_notes.get(key)) is None:
            notes = notes_on_values(
                snapshot, where, found, lambda field: self.values_of(snapshot, field, COMPARED_VALUES)
            )
            if len(self._value_notes) >= _MAX_NOTED_FILTERS or any(
                version != snapshot.version for version, _, _ in list(self._value_notes)
            ):
                self._value_notes.clear()
            self._value_notes[key] = notes
        return notes

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
