"""One commit of an index, over the view of any engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from copy import copy

import numpy as np

from indexer.filters.tree import COLUMNS, Type, Where
from indexer.records import RECORD_FORMATS, Vector
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
    """One consistent state of an index: everything that is read through it belongs to the same commit.

    It is valid as long as the view is open.

    Raises:
        FilterError: a filter does not fit the fields of the index.
        IndexDamaged: a stored row does not match its checksum.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._words_notes: tuple[str, ...] = ()
        self._word_statistics: WordStatistics | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the index."""
        return self._view.state.settings

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self._view.state.documents

    @property
    def passages(self) -> int:
        """Number of passages."""
        return self._view.state.passages

    @property
    def version(self) -> Hashable:
        """A key of this commit: a result that was computed from a snapshot is valid for all with an equal version."""
        return self._view.state.version

    @property
    def history(self) -> str:
        """A key of this index, the same for all its commits. A copy of the index has another."""
        return self._view.state.history

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about this state that the caller should know, such as a damaged segment that the catalog replaces.

        Read them after ranking, because ranking by words may add to them. Every snapshot has the notes of its state, so
        that each question gets them and not only the first question.
        """
        return (*self._view.notes, *self._words_notes)

    @property
    def fields(self) -> Mapping[str, Collection[Type]] | None:
        """The types of each metadata field that some document has; None if there is no document."""
        fields = self._view.state.fields
        return fields and {name: frozenset(types) - {"day"} for name, types in fields.items() if name not in COLUMNS}

    # filters

    def matches(self, uri: str, where: Where) -> bool:
        """Return whether a filter leaves this document. For an unknown uri it is False, even if the filter is wrong."""
        rows = self._view.rows("SELECT id FROM {tables}.document WHERE {key} = %s", self._view.key_of(uri))
        return bool(rows) and self._view.select(where).has(rows[0][0])

    def count(self, where: Where) -> int:
        """Return how many documents a filter leaves."""
        return self._view.select(where).documents

    def uris(self, where: Where | None = None) -> list[str]:
        """Return the uris of the documents that a filter leaves, in the order they were added."""
        return self._column("uri", where)

    def paths(self, where: Where | None = None) -> list[str]:
        """Return the path of each document that a filter leaves and that has one, in the order they were added."""
        return [path for path in self._column("path", where) if path]

    def corrected(self, question: str) -> str:
        """Return a question with similar words of the index in place of words that no text has; empty if there are
        none to replace."""

        def text_of(passage: int) -> str:
            (found,) = self.passages_by_id([passage])
            return f"{found.title}. {found.text}"

        return corrected(question, self._view.words(), text_of)

    @property
    def has_words(self) -> bool:
        """Whether words are there, so that a question by meaning alone can look at them."""
        return self._view.has_words

    def known_share(self, question: str) -> float:
        """Return the share of a question's words that some text has, without stop words; 1 if the question has none."""
        return self._open_words().known_share(question)

    def first_passages(self, k: int, where: Where | None, sort: Sort) -> tuple[dict[int, int], int]:
        """Return the first passage of each of the k first documents in an order with the number of documents that it
        represents, and how many documents there are.

        The first record of a file represents all of them, unless there are no other documents.
        """
        select, ids = "SELECT id, title, uri, modified, path, format FROM {tables}.document", self._ids(where)
        rows = self._view.rows(select) if ids is None else self._view.rows_of(f"{select} WHERE id = ANY(%s)", ids)
        if sort == "title":
            rows.sort(key=lambda row: ((row[1].strip() or row[2]).casefold(), row[0]))
        else:
            rows.sort(key=lambda row: (row[3] or "", row[0]), reverse=True)
        files = [row[4] if row[4] and row[5] in RECORD_FORMATS else row[0] for row in rows]
        files = files if len({*files}) > 1 else [row[0] for row in rows]
        sizes, first_of = Counter(files), {file: row[0] for file, row in zip(files[::-1], rows[::-1], strict=True)}
        documents = {first_of[file]: size for file, size in [*sizes.items()][:k]}
        first = "SELECT document_id, min(id) FROM {tables}.passage WHERE document_id = ANY(%s) GROUP BY document_id"
        passages = dict(self._view.rows_of(first, sorted(documents)))
        return {passages[each]: size for each, size in documents.items() if each in passages}, len(rows)

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

    def dense(
        self,
        vector: Vector,
        k: int,
        where: Where | None = None,
        unit: Unit = "document",
        exact: bool = False,
        conditions: Conditions = (),
    ) -> Ranking:
        """Rank the k units nearest to a vector by cosine, each by its best passage.

        Args:
            vector: unit vector (dimensions,), float32.
            where: a filter; None allows every document.
            unit: rank documents, or passages.
            exact: use brute force.
            conditions: each unit of the ranking meets all of them.

        Returns:
            A ranking of min(k, matched) units, whatever the filter and the conditions.
        """
        limit = self._open_words().limit(conditions, unit) if conditions else None
        return dense.rank(self._view.select(where, limit), vector, k, unit, exact)

    def words(
        self, text: str, k: int, where: Where | None = None, unit: Unit = "document", conditions: Conditions = ()
    ) -> Ranking:
        """Rank the k best units that hold a word of a text; documents by all their words, each with its best passage.

        Scores are BM25 with k1 = 1.2 and b = 0.75, with statistics of the whole collection even under a filter. The
        length of a text is rounded to one byte as in Lucene. The constants of fusion assume exactly these scores:
        another formula, or statistics per shard, would make hybrid ranking worse without an error.

        A text without a word to search by is possible with conditions. Then all units that meet the conditions are
        ranked, by the words that the conditions require; units without a score follow in the order they were added.

        Args:
            where: a filter; None allows every document.
            unit: rank documents, or passages.
            conditions: each unit of the ranking meets all of them.

        Raises:
            NoWords: the text has no words, or only stop words, and there are no conditions.
        """
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
        """Return the `depth` best units of `dense` and of `words` together, each with both scores.

        Args:
            vector: unit vector (dimensions,), float32.
            text: the question; if it has no words, only the dense leg gives candidates.
            where, unit, exact, conditions: see `dense`.
        """
        terms = stored_analysis(self.settings.language).question_terms(text)
        words = self._open_words() if terms else None  # first, because it may raise WordsBuilding
        ranking = self.dense(vector, depth, where, unit, exact, conditions)
        return candidates.join(self._view, vector, terms, ranking, words, depth, where, unit, conditions)

    def holds_dashed(self, words: Sequence[str]) -> bool:
        """Return whether a document has these words (exact.py) in a row, and the first of them after a dash: `-xzf`."""
        return self._open_words().holds_dashed(words)

    def word_statistics(self, text: str) -> WordStatistics:
        """Return the statistics by which BM25 weighs the terms of a question in this index."""
        terms = stored_analysis(self.settings.language).question_terms(text)
        return self._open_words().statistics(terms) if terms else WordStatistics()

    def weighed_by(self, statistics: WordStatistics) -> Snapshot:
        """Return this snapshot for one question whose BM25 scores follow the statistics of several indexes."""
        weighed = copy(self)
        weighed._word_statistics = statistics
        return weighed

    def _open_words(self) -> Words:
        words = self._view.words()
        self._words_notes = words.notes
        return words if self._word_statistics is None else words.weighed_by(self._word_statistics)

    # the whole index

    def sample(self, count: int, seed: int = 0) -> Sample:
        """Return `count` random passages, or all if there are fewer. A copy of the index gives the same passages."""
        ids = self._view.passage_ids()
        if len(ids) > count:  # drawn by the order of addition, so that a copy of the index gives the same passages
            ids = np.sort(np.random.default_rng(seed).choice(ids, count, replace=False))
        return Sample(ids, vectors_by_id(self._view, ids))

    def nearest_pairs(self, count: int, min_score: float) -> PassagePairs:
        """Return the `count` most similar pairs of passages of different documents, provably.

        Args:
            min_score: leave out pairs with a lower cosine.
        """
        from indexer.stores.pairs import nearest_pairs

        ids, documents, rows = stored_rows(self._view)
        pairs = nearest_pairs(rows, count, min_score, documents)
        return PassagePairs(ids[pairs.first], ids[pairs.second], pairs.scores, len(ids))

    def info(self) -> Info:
        """Return the state of the store in numbers."""
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
        """Measure how many of the nearest passages a search finds."""
        from indexer.stores.reading.recall import NEIGHBOURS, QUESTIONS, measure_recall

        rows = self.sample(3 * QUESTIONS, seed=1).vectors
        return measure_recall(rows, lambda vector, exact: self.dense(vector, NEIGHBOURS, None, "passage", exact))

    def check(self, meaning: Meaning | None) -> CheckReport:
        """Verify everything that is stored and everything that is derived from it, without a lock.

        Args:
            meaning: what the hashes of embedded content were made with; None leaves those out.
        """
        return self._view.check(meaning)
