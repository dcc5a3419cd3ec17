"""One commit of an index as a `Snapshot`, over the view of any engine."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from copy import copy

import numpy as np

from indexer.filters.tree import COLUMNS, Type, Where
from indexer.records import Vector
from indexer.settings import Meaning, Settings
from indexer.stores.fields.field_types import date_fields, metadata_types
from indexer.stores.port import (
    Candidates,
    CheckReport,
    Conditions,
    Info,
    PassagePairs,
    Ranking,
    Recall,
    Sample,
    Sort,
    Unit,
    WordStatistics,
)
from indexer.stores.reading import candidates, dense
from indexer.stores.reading.document_rows import DocumentReader, stored_rows, vectors_by_id
from indexer.stores.reading.field_values import FieldReader
from indexer.stores.reading.ledger import LedgerReader
from indexer.stores.reading.view import View
from indexer.stores.words.analysis import stored_analysis
from indexer.stores.words.spelling import corrected
from indexer.stores.words.word_ranking import Words


class Snapshot(DocumentReader, FieldReader, LedgerReader):
    """A `Snapshot` of `indexer.stores.port`: valid as long as the view is open."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._words_notes: tuple[str, ...] = ()
        self._word_statistics: WordStatistics | None = None

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
        return self._view.state.version

    @property
    def history(self) -> str:
        return self._view.state.history

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._view.notes, *self._words_notes)

    @property
    def fields(self) -> Mapping[str, Collection[Type]] | None:
        fields = self._view.state.fields
        return fields and {name: types for name, types in fields.items() if name not in COLUMNS}

    # filters

    def matches(self, uri: str, where: Where) -> bool:
        rows = self._view.rows("SELECT id FROM {tables}.document WHERE {key} = %s", self._view.key_of(uri))
        return bool(rows) and self._view.select(where).has(rows[0][0])

    def count(self, where: Where) -> int:
        return self._view.select(where).documents

    def uris(self, where: Where | None = None) -> list[str]:
        return self._column("uri", where)

    def paths(self, where: Where | None = None) -> list[str]:
        return [path for path in self._column("path", where) if path]

    def corrected(self, question: str) -> str:
        def text_of(passage: int) -> str:
            (found,) = self.passages_by_id([passage])
            return f"{found.title} {found.text}"

        return corrected(question, self._view.words(), text_of)

    def first_passages(self, k: int, where: Where | None, sort: Sort) -> tuple[list[int], int]:
        select, ids = "SELECT id, title, uri, modified FROM {tables}.document", self._ids(where)
        rows = self._view.rows(select) if ids is None else self._view.rows_of(f"{select} WHERE id = ANY(%s)", ids)
        if sort == "title":
            rows.sort(key=lambda row: ((row[1].strip() or row[2]).casefold(), row[0]))
        else:
            rows.sort(key=lambda row: (row[3] or "", row[0]), reverse=True)
        documents = [row[0] for row in rows[:k]]
        first = "SELECT document_id, min(id) FROM {tables}.passage WHERE document_id = ANY(%s) GROUP BY document_id"
        passages = dict(self._view.rows_of(first, sorted(documents)))
        return [passages[document] for document in documents if document in passages], len(rows)

    def _ids(self, where: Where | None) -> list[int] | None:
        return None if where is None else self._view.select(where).ids().tolist()

    def _column(self, column: str, where: Where | None) -> list[str]:
        select = f"SELECT {column} FROM {{tables}}.document"
        if (ids := self._ids(where)) is None:
            rows = self._view.rows(f"{select} ORDER BY id")
        else:
            rows = self._view.rows_of(f"{select} WHERE id = ANY(%s) ORDER BY id", ids)
        return [value for (value,) in rows]

    # ranking

    def holding(self, conditions: Conditions, where: Where | None, unit: Unit) -> int:
        words = self._open_words()
        return words.of(unit).count_of(candidates.restriction(self._view, words, where, conditions))

    def similar_words(self, word: str) -> list[str]:
        return self._open_words().documents.near_terms(word, "exact")

    def dense(
        self,
        vector: Vector,
        k: int,
        where: Where | None = None,
        unit: Unit = "document",
        exact: bool = False,
        conditions: Conditions = (),
    ) -> Ranking:
        limit = self._open_words().limit(conditions, unit) if conditions else None
        return dense.rank(self._view.select(where, limit), vector, k, unit, exact)

    def words(
        self, text: str, k: int, where: Where | None = None, unit: Unit = "document", conditions: Conditions = ()
    ) -> Ranking:
        words = self._open_words()
        restriction = candidates.restriction(self._view, words, where, conditions)
        return words.rank(text, k, restriction, unit, conditions)

    def candidates(
        self,
        vector: Vector,
        text: str,
        depth: int,
        where: Where | None,
        unit: Unit,
        exact: bool,
        conditions: Conditions = (),
    ) -> Candidates:
        terms = stored_analysis(self.settings.language).question_terms(text)
        words = self._open_words() if terms else None  # first, because it may raise WordsBuilding
        ranking = self.dense(vector, depth, where, unit, exact, conditions)
        return candidates.join(self._view, vector, terms, ranking, words, depth, where, unit, conditions)

    def word_statistics(self, text: str) -> WordStatistics:
        terms = stored_analysis(self.settings.language).question_terms(text)
        return self._open_words().statistics(terms) if terms else WordStatistics()

    def weighed_by(self, statistics: WordStatistics) -> Snapshot:
        weighed = copy(self)
        weighed._word_statistics = statistics
        return weighed

    def _open_words(self) -> Words:
        words = self._view.words()
        self._words_notes = words.notes
        return words if self._word_statistics is None else words.weighed_by(self._word_statistics)

    # the whole index

    def sample(self, count: int, seed: int = 0) -> Sample:
        ids = self._view.passage_ids()
        if len(ids) > count:  # drawn by the order of addition, so that a copy of the index gives the same passages
            ids = np.sort(np.random.default_rng(seed).choice(ids, count, replace=False))
        return Sample(ids, vectors_by_id(self._view, ids))

    def nearest_pairs(self, count: int, min_score: float) -> PassagePairs:
        from indexer.stores.pairs import nearest_pairs

        ids, documents, rows = stored_rows(self._view)
        pairs = nearest_pairs(rows, count, min_score, documents)
        return PassagePairs(ids[pairs.first], ids[pairs.second], pairs.scores, len(ids))

    def info(self) -> Info:
        state, storage = self._view.state, self._view.storage()
        return Info(
            documents=state.documents,
            passages=state.passages,
            tokens=storage.tokens,
            dimensions=state.settings.dimensions,
            unsealed=storage.unsealed,
            bytes=storage.bytes,
            format_version=storage.format_version,
            history=state.history,
            segments=storage.segments,
            fields=metadata_types(state.fields),
            dates=date_fields(state.fields),
            details=storage.details,
        )

    def recall(self) -> Recall:
        from indexer.stores.reading.recall import NEIGHBOURS, QUESTIONS, measure_recall

        rows = self.sample(3 * QUESTIONS, seed=1).vectors
        return measure_recall(rows, lambda vector, exact: self.dense(vector, NEIGHBOURS, None, "passage", exact))

    def check(self, meaning: Meaning | None) -> CheckReport:
        return self._view.check(meaning)
