"""One commit of an index in a database as a `View`. A snapshot is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.settings import Meaning
from indexer.stores.port import CheckReport, Ids
from indexer.stores.reading.document_rows import vectors_by_id
from indexer.stores.reading.view import Storage
from indexer.stores.vectors import to_float32
from indexer.stores.words.word_ranking import Limit, Words
from likewise.postgres.address import Address
from likewise.postgres.citus import shard_count, size_of
from likewise.postgres.selection import PostgresSelection
from likewise.postgres.views import View
from likewise.postgres.words import WordReplicas


@dataclass(frozen=True, slots=True)
class PostgresView(View):
    """A transaction, what is kept in memory for its commit, and the words of the index."""

    address: Address
    replicas: WordReplicas

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def select(self, where: Where | None, limit: Limit | None = None) -> PostgresSelection:
        return PostgresSelection(self, where, limit)

    def vectors_of(self, passages: Ids) -> Vector:
        return vectors_by_id(self, passages)

    def passages_of(self, documents: Ids) -> tuple[Ids, Ids, Callable[[NDArray[np.bool_]], Vector]]:
        rows = self.rows(
            "SELECT id, document_id, vector FROM {tables}.passage WHERE document_id = ANY(%s) ORDER BY id",
            documents.tolist(),
        )
        ids = np.array([row[0] for row in rows], np.int64)
        owners = np.array([row[1] for row in rows], np.int64)
        return ids, owners, lambda chosen: to_float32(self.halves([rows[i][2] for i in np.flatnonzero(chosen)]))

    def words(self) -> Words:
        return self.replicas.words_of(self)

    @property
    def has_words(self) -> bool:
        return self.replicas.are_near(self)

    def storage(self) -> Storage:
        row = self.state.row
        segments: tuple[Mapping[str, Any], ...] = ()
        if row.ef_search is not None:
            segments = (
                {"kind": "approximate", "count": row.passages, "alive": row.passages, "ef_search": row.ef_search},
            )
        shards = shard_count(self.connection, row.tables)
        return Storage(
            tokens=row.tokens,
            unsealed=0 if segments else row.passages,
            bytes=size_of(self.connection, row.tables),
            format_version=row.format_version,
            segments=segments,
            details={"shard_count": shards} if shards else {},
        )

    def check(self, meaning: Meaning | None) -> CheckReport:
        from likewise.postgres import check  # questions do not need it

        return check.find(self, meaning, self.address).report
