"""What a filter leaves in a folder: flags over the documents, masks over the parts, and the nearest passages.

FAISS proposes passages, and each is scored again from its vector, so that its score does not depend on the part that
holds it. Vectors are read from the parts; a passage is shown only if the catalog has the same vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexer.filters.tree import And, Not, Or, Scalar, Where
from indexer.records import Vector
from indexer.stores.fields.filter_sql import compile_where
from indexer.stores.local.catalog.filter_sql import SqliteDialect, select_ids
from indexer.stores.local.catalog.views import View
from indexer.stores.local.segments.masks import AllowedRows, Flags
from indexer.stores.port import Ids
from indexer.stores.reading.view import Nearest
from indexer.stores.vectors import cosines
from indexer.stores.words.word_ranking import Limit

_MAX_SCORE_ERROR = 2e-6
"""Maximum difference between FAISS's score of a row and ours. FAISS sums float32 values in another order, and a row's
length is 1 only to about 1e-6 (vectors.py)."""


class LocalSelection:
    """A `Selection` of a folder. Flags and masks are computed at the first use of a filter, and kept with the state."""

    def __init__(self, view: View, where: Where | None, limit: Limit | None = None) -> None:
        self._view = view
        self._allowed = view.state.allowed.get(where, lambda: _allowed_rows(view, where))
        if limit is not None:
            self._allowed = self._limited(limit)

    def _limited(self, limit: Limit) -> AllowedRows:
        allowed = self._allowed
        if limit.unit == "passage":
            return AllowedRows(allowed.documents, allowed.flags, allowed.parts, limit.flags)
        flags = limit.flags(np.arange(self._view.state.last_document + 1))
        if allowed.flags is not None:
            flags &= allowed.flags
        elif limit.excluded:
            # Ids of removed documents have flags too. To read which ids are left takes 50 ms for 100,000 documents.
            return AllowedRows(limit.count(allowed.documents), flags, allowed.parts)
        return AllowedRows(int(np.count_nonzero(flags)), flags, allowed.parts)

    @property
    def documents(self) -> int:
        return self._allowed.documents

    @property
    def passages(self) -> int:
        return self._allowed.passages

    def ids(self) -> Ids:
        return np.flatnonzero(self._flags())

    def other_ids(self) -> Ids:
        return np.flatnonzero(~self._flags())

    def has(self, document: int) -> bool:
        return bool(self._flags()[document])

    def _flags(self) -> Flags:
        return _every_flag(self._view) if self._allowed.flags is None else self._allowed.flags

    def nearest(self, vector: Vector, n: int, depth: int | None) -> Nearest:
        state = self._view.state
        passages, documents, scores, exact = [], [], [], True
        for part, mask in zip(state.parts, self._allowed.masks, strict=True):
            self._view.connection.deadline.check()
            part_scores, positions, part_is_exact = part.segment.search(vector, n, mask, depth)
            scores.append(part_scores)
            passages.append(part.positions.passages[positions])
            documents.append(part.positions.documents[positions])
            exact = exact and part_is_exact
        proposed = np.concatenate(scores)
        order = np.argsort(-proposed, kind="stable")[:n]
        floor = float(proposed[order[-1]]) + _MAX_SCORE_ERROR if len(order) == n else -2.0
        ids, owners = np.concatenate(passages)[order], np.concatenate(documents)[order]
        stored = cosines(state.vectors_of(ids), vector)
        # Equal scores in the order the passages were added, so that answers do not depend on how they are stored.
        order = np.lexsort((ids, -stored))
        return Nearest(ids[order], owners[order], stored[order], floor, exact)


def _allowed_rows(view: View, where: Where | None) -> AllowedRows:
    flags = None
    if where is not None:
        with view.connection.deadline.filtering():
            flags = _document_flags(view, where)
    documents = view.state.documents if flags is None else int(np.count_nonzero(flags))
    return AllowedRows(documents, flags, tuple((part.positions, part.dead) for part in view.state.parts))


def _document_flags(view: View, where: Where) -> Flags:
    """Return one flag per document id, true where the filter holds.

    The parts of a filter are looked up one by one and combined here: SQLite would look up every document in each part.
    """
    view.connection.deadline.check()
    match where:
        case And(parts):
            return _combine(np.logical_and, view, parts)
        case Or(parts):
            return _combine(np.logical_or, view, parts)
        case Not(part):
            return _every_flag(view) & ~_document_flags(view, part)
    condition = compile_where(where, view.state.fields, SqliteDialect())
    return _flags(view, select_ids(condition), condition.parameters)


def _combine(operation: np.ufunc, view: View, parts: Sequence[Where]) -> Flags:
    flags = _document_flags(view, parts[0])
    for part in parts[1:]:
        operation(flags, _document_flags(view, part), out=flags)
    return flags


def _every_flag(view: View) -> Flags:
    return _flags(view, "SELECT id FROM document", ())


def _flags(view: View, select: str, parameters: Sequence[Scalar]) -> Flags:
    flags = np.zeros(view.state.last_document + 1, np.bool_)
    flags[np.fromiter((row[0] for row in view.connection.execute(select, parameters)), np.int64)] = True
    return flags
