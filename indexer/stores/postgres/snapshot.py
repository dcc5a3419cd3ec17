"""One commit of an index in a database as a `Snapshot`: each question is passed to the file that answers it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from indexer.filters.tree import COLUMNS, Type, Where
from indexer.records import Document, KnownFile, Vector
from indexer.settings import Meaning, Settings
from indexer.stores import document_rows, ledger
from indexer.stores.field_types import date_fields, metadata_types
from indexer.stores.port import (
    Candidates,
    CheckReport,
    FieldValues,
    Hashes,
    Info,
    LedgerRow,
    Passage,
    PassagePairs,
    Ranking,
    ReasonCount,
    Recall,
    Sample,
    Unit,
)
from indexer.stores.postgres import queries
from indexer.stores.postgres.address import Address
from indexer.stores.postgres.candidates import candidates
from indexer.stores.postgres.dense import rank
from indexer.stores.postgres.filter_sql import read_values
from indexer.stores.postgres.views import View
from indexer.stores.postgres.words import WordReplicas, restriction
from indexer.stores.word_ranking import Words


class PostgresSnapshot:
    """A `Snapshot` of an index in a database: a transaction, and what is kept in memory for its commit."""

    def __init__(self, view: View, words: WordReplicas, address: Address) -> None:
        self._view, self._words, self._address = view, words, address
        self._words_notes: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        return self._view.state.settings

    @property
    def documents(self) -> int:
        return self._view.state.row.documents

    @property
    def passages(self) -> int:
        return self._view.state.row.passages

    @property
    def version(self) -> Hashable:
        return self._view.state.version

    @property
    def history(self) -> str:
        return self._view.state.row.history

    @property
    def notes(self) -> tuple[str, ...]:
        return self._words_notes

    def hashes(self, uris: Iterable[str] | None = None) -> Mapping[str, Hashes]:
        return document_rows.hashes(self._view, None if uris is None else list(uris))

    def origins(self, uris: Iterable[str]) -> Mapping[str, bytes]:
        return document_rows.origins(self._view, list(uris))

    def changed_since(self, earlier: Mapping[str, Hashes]) -> Iterator[str]:
        now = self.hashes()
        yield from (uri for uri, hashes in now.items() if earlier.get(uri) != hashes)
        yield from (uri for uri in earlier if uri not in now)

    def get(self, uri: str) -> Document | None:
        return document_rows.get(self._view, uri)

    def matches(self, uri: str, where: Where) -> bool:
        return queries.matches(self._view, uri, where)

    @property
    def fields(self) -> Mapping[str, Collection[Type]] | None:
        fields = self._view.state.fields
        return fields and {name: types for name, types in fields.items() if name not in COLUMNS}

    def count(self, where: Where) -> int:
        return self._view.allowed(where).documents

    def uris(self, where: Where | None = None) -> list[str]:
        return queries.uris(self._view, where)

    def values(self, field: str, limit: int) -> FieldValues:
        return read_values(self._view.connection, self._view.state.row.tables, field, limit)

    def dense(
        self, vector: Vector, k: int, where: Where | None = None, unit: Unit = "document", exact: bool = False
    ) -> Ranking:
        return rank(self._view, vector, k, where, unit, exact)

    def words(self, text: str, k: int, where: Where | None = None, unit: Unit = "document") -> Ranking:
        words = self._open_words()
        return words.rank(text, k, restriction(self._view, words, where), unit)

    def candidates(
        self, vector: Vector, text: str, depth: int, where: Where | None, unit: Unit, exact: bool
    ) -> Candidates:
        return candidates(self._view, self._open_words, vector, text, depth, where, unit, exact)

    def _open_words(self) -> Words:
        words = self._words.words_of(self._view)
        self._words_notes = words.notes
        return words

    def passages_by_id(self, ids: Sequence[int]) -> list[Passage]:
        return document_rows.passages(self._view, ids)

    def vectors_of(self, uri: str) -> Vector | None:
        return document_rows.document_vectors(self._view, uri)

    def fitted_parameters(self) -> bytes | None:
        return document_rows.fitted_parameters(self._view)

    def sample(self, count: int, seed: int = 0) -> Sample:
        ids = queries.live_ids(self._view)
        if len(ids) > count:
            ids = np.sort(np.random.default_rng(seed).choice(ids, count, replace=False))
        return Sample(ids, document_rows.vectors_by_id(self._view, ids))

    def nearest_pairs(self, count: int, min_score: float) -> PassagePairs:
        from indexer.stores.pairs import nearest_pairs

        ids, documents, rows = document_rows.stored_rows(self._view)
        pairs = nearest_pairs(rows, count, min_score, documents)
        return PassagePairs(ids[pairs.first], ids[pairs.second], pairs.scores, len(ids))

    def files(self) -> Mapping[str, KnownFile]:
        return ledger.files(self._view)

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        return ledger.rows(self._view, state)

    def ledger_of_documents(self) -> Iterator[LedgerRow]:
        return ledger.rows_of_documents(self._view)

    def ledger_counts(self) -> Mapping[str, int]:
        return ledger.counts(self._view)

    def ledger_reasons(self) -> list[ReasonCount]:
        return ledger.reasons(self._view)

    def info(self) -> Info:
        state = self._view.state
        row = state.row
        segments: tuple[Mapping[str, Any], ...] = ()
        if row.ef_search is not None:
            segments = (
                {"kind": "approximate", "count": row.passages, "alive": row.passages, "ef_search": row.ef_search},
            )
        return Info(
            documents=row.documents,
            passages=row.passages,
            tokens=row.tokens,
            dimensions=state.settings.dimensions,
            unsealed=0 if segments else row.passages,
            bytes=queries.size(self._view),
            format_version=row.format_version,
            history=row.history,
            segments=segments,
            fields=metadata_types(state.fields),
            dates=date_fields(state.fields),
        )

    def recall(self) -> Recall:
        from indexer.stores.recall import recall_of

        return recall_of(self)

    def check(self, meaning: Meaning | None) -> CheckReport:
        from indexer.stores.postgres import check  # questions do not need it

        return check.check(self._view, meaning, self._address)
