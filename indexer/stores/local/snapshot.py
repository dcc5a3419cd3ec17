"""One commit of a folder as a `Snapshot`: each question is passed to the file that answers it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from indexer.filters.tree import COLUMNS, Type, Where
from indexer.records import Document, KnownFile, Vector
from indexer.settings import Meaning, Settings
from indexer.stores import document_rows, ledger
from indexer.stores.field_types import date_fields, metadata_types
from indexer.stores.local import queries
from indexer.stores.local.candidates import candidates
from indexer.stores.local.dense import rank as rank_dense
from indexer.stores.local.filter_sql import read_values
from indexer.stores.local.generation import loss
from indexer.stores.local.sample import sample
from indexer.stores.local.slots import size_of
from indexer.stores.local.views import View
from indexer.stores.local.words.rank import restriction
from indexer.stores.local.words.reader import WordReader
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
from indexer.stores.word_ranking import Words


class LocalSnapshot:
    """A `Snapshot` of a folder: a read transaction, and what is kept in memory for its commit."""

    def __init__(self, view: View, folder: Path, words: WordReader) -> None:
        self._view, self._folder, self._words = view, folder, words
        self._words_notes: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        return self._view.state.settings

    @property
    def documents(self) -> int:
        return self._view.state.documents

    @property
    def passages(self) -> int:
        return self._view.state.passages

    @property
    def version(self) -> Hashable:
        state = self._view.state
        return state.catalog, state.history, state.generation

    @property
    def history(self) -> str:
        return self._view.state.history

    @property
    def notes(self) -> tuple[str, ...]:
        missing = (loss(self._folder, self._view.lost),) if self._view.lost else ()
        return (*missing, *self._view.state.notes, *self._words_notes)

    def hashes(self, uris: Iterable[str] | None = None) -> Mapping[str, Hashes]:
        return document_rows.hashes(self._view, None if uris is None else list(uris))

    def origins(self, uris: Iterable[str]) -> Mapping[str, bytes]:
        return document_rows.origins(self._view, list(uris)) if queries.has_origins(self._view) else {}

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
        return int(np.count_nonzero(queries.document_flags(self._view, where)))

    def uris(self, where: Where | None = None) -> list[str]:
        return queries.uris(self._view, where)

    def values(self, field: str, limit: int) -> FieldValues:
        return read_values(self._view.connection, field, limit)

    def dense(
        self, vector: Vector, k: int, where: Where | None = None, unit: Unit = "document", exact: bool = False
    ) -> Ranking:
        return rank_dense(self._view, vector, k, where, unit, exact)

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
        return sample(self._view, count, seed)

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
        view, segments = self._view, queries.segments(self._view)
        return Info(
            documents=view.state.documents,
            passages=view.state.passages,
            tokens=queries.tokens(view),
            dimensions=view.state.dimensions,
            unsealed=view.state.passages - sum(row.alive for row in segments),
            bytes=size_of(self._folder),
            format_version=queries.format_version(view),
            history=view.state.history,
            segments=tuple({**asdict(row.recorded), "alive": row.alive} for row in segments),
            fields=metadata_types(view.state.fields),
            dates=date_fields(view.state.fields),
        )

    def recall(self) -> Recall:
        from indexer.stores.recall import recall_of

        return recall_of(self)

    def check(self, meaning: Meaning | None) -> CheckReport:
        from indexer.stores.local import check  # questions do not need it

        return check.check(self._view, self._folder, meaning)
