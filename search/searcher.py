"""`Searcher`: questions in, ranked hits out, and documents to read. The public class of this package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from indexer.deadline import NEVER, Deadline
from indexer.encoders import Encoder, Recipe
from indexer.errors import BadInput, NotAnIndex, NoWords, UnknownField
from indexer.filters.mapping import Filter, filter_tree
from indexer.filters.tree import Exists, Where, conditions, render
from indexer.filters.unknown_fields import without_unknown_fields
from indexer.lookup import commonest_fields, document_of, documents_of, has_document, is_uri, unknown_uri
from indexer.records import Document, Vector
from indexer.settings import Calibration, MapRecord
from indexer.stores.addresses.open import open_store
from indexer.stores.fields.field_types import check_filter
from indexer.stores.port import FieldValues, Info, Passage, Snapshot, Sort, Unit
from indexer.stores.vectors import unit_rows
from search.asker import Asker, as_list, hits_above, read_queries
from search.explain import add_sentences
from search.hits import Hit, Hits
from search.middles import middles
from search.missing_values import COMPARED_VALUES, may_have_notes, notes_on_values
from search.query import Mode, Query
from search.question_batches import AskedQuestion
from search.ranker import Ranker
from search.rerank import rerank as rerank_hits
from search.timings import Timings

if TYPE_CHECKING:
    from indexer.map.file import Map
    from indexer.sources.original import Original

UnknownFields = Literal["error", "empty"]

SAMPLED_PASSAGES = 1000
"""Number of passages among which central ones are looked for."""

PAGE_DOCUMENTS = 256
PAGE_CHARACTERS = 4_000_000
"""Maximum characters of the texts of a page of documents, unless the first text alone has more."""

_MAX_NOTED_FILTERS = 256
"""Number of filters whose notes are kept: a few words each."""
_ID_DIGITS = 18
"""Maximum digits of an id of a document in a cursor: 64 bits hold every such number."""


class Searcher(Asker):
    """Searches and reads an index. Share one among threads; it sees new commits, and a replaced folder, by itself.

    Questions that several threads ask at the same time are embedded together.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        encoder: Encoder | None = None,
        *,
        unknown_fields: UnknownFields = "error",
        trust_remote_code: bool = False,
        timings: Timings | None = None,
    ) -> None:
        """Open an index for searching. The model is loaded with the first question.

        Args:
            encoder: needed only for an index that was made with an encoder of your own.
            unknown_fields: how to treat a filter on a field that no document has: "error" raises UnknownField,
                "empty" makes the condition false for every document.
            trust_remote_code: run the Python that comes with the index's model.
            timings: is called with the duration of each step of a question.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: there is no index that can be read.
            RecipeMismatch: `encoder` is not the one the index was made with.
        """
        if unknown_fields not in ("error", "empty"):
            raise BadInput(f'unknown_fields is {unknown_fields!r}: give "error" or "empty"')
        self._ranker = Ranker(open_store(path), encoder, trust_remote_code=trust_remote_code, timings=timings)
        self._store = self._ranker.store
        self._unknown_fields, self._deadline = unknown_fields, NEVER
        self._ahead: AskedQuestion | None = None
        self._values: dict[tuple[Hashable, str, int], FieldValues] = {}  # with the version of their snapshot
        self._commonest_fields: dict[Hashable, list[str]] = {}
        self._value_notes: dict[tuple[Hashable, str, bool], tuple[str, ...]] = {}  # with version and filter

    def close(self) -> None:
        self._store.close()

    def until(self, deadline: Deadline) -> Searcher:
        """Return this searcher for one caller. Its questions raise DeadlinePassed when the deadline has passed.

        With `Deadline(seconds, waits=False)`, a question by words to a database raises WordsBuilding while a thread
        reads all words of the index for the first time. Other questions wait for that thread.

        Reading a document by its uri, and iterating over documents, have no deadline.
        """
        limited = copy(self)
        limited._deadline = deadline
        return limited

    def ask_ahead(self, query: Query) -> Future[Vector] | None:
        """Begin to embed a question that this caller's searcher (`until`) will answer; None if it needs no embedding.

        A service waits for the future before it takes a thread, so that questions that wait are embedded together.
        """
        if query.needs_vector:
            self._ahead = self._ranker.ask_ahead(query.text)
        return None if self._ahead is None else self._ahead.vector

    def _snapshot(self) -> AbstractContextManager[Snapshot]:
        return self._store.snapshot(self._deadline)

    # searching

    def answer(self, query: Query) -> Hits:
        # One snapshot for question and answer: another index may replace this index in between.
        with self._snapshot() as snapshot:
            vector, notes = self._vector(snapshot, query)
            hits = self._ranked(snapshot, query, vector, query.depth)
            explains = query.explain and bool(query.text or vector is not None) and snapshot.settings.recipe is not None
            encoder = None
            if explains:
                encoder, encoder_notes = self._ranker.encoder_of(snapshot)
                notes += encoder_notes
                if vector is None:
                    vector, question_notes = self._encoded(snapshot, query.text)
                    notes += question_notes
        if query.rerank is not None:
            hits = rerank_hits(hits, query.rerank, query.k)
        hits = hits_above(hits, query, self._store.address)
        if encoder is not None and vector is not None:
            hits = replace(hits, hits=tuple(add_sentences(hits.hits, encoder, vector)))
        return replace(hits, notes=tuple(dict.fromkeys((*notes, *hits.notes))))

    def search_many(
        self,
        queries: Iterable[str],
        k: int = 100,
        mode: Mode = "dense",
        where: Filter | Sequence[Filter | None] | None = None,
        *,
        vectors: NDArray[np.floating] | Sequence[Sequence[float]] | None = None,
        passages: bool = False,
        min_score: float | None = None,
        exact: bool = False,
    ) -> list[Hits]:
        """Answer each question as `search` does; the questions go through the encoder together.

        In words mode a question without a word to search by has no hits, and `hits.notes` says so.

        Args:
            where: one filter, or a list of one per question.
            vectors: the vectors of the questions (questions, dimensions), instead of embedding them.
        """
        questions = read_queries(queries, k, mode, where, vectors, passages, min_score, exact)
        if not questions:
            return []
        answers = []
        with self._snapshot() as snapshot:
            if mode == "words" or vectors is not None:
                encoded = [self._vector(snapshot, query) for query in questions]
            else:
                encoded = list(zip(*self._ranker.encode(snapshot, [query.text for query in questions]), strict=True))
            for query, (row, notes) in zip(questions, encoded, strict=True):
                try:
                    hits = self._ranked(snapshot, query, row, query.k)
                except NoWords as error:
                    hits = Hits((), 0, True, query.text, mode, notes=(str(error),))
                every = tuple(dict.fromkeys((*notes, *hits.notes)))
                answers.append(replace(hits_above(hits, query, self._store.address), notes=every))
        return answers

    def similar(self, uri: str, k: int = 10, where: Filter | None = None) -> Hits:
        """Return the k documents nearest to a document of the index, by the mean of its passages' vectors.

        Raises:
            UnknownUri: no document has this uri.
        """
        query = Query("-", k, where)
        with self._snapshot() as snapshot:
            rows = self._vectors_of(snapshot, uri)
            (mean,) = unit_rows(rows.mean(axis=0, keepdims=True), rows.shape[1], [uri])
            hits = self._ranked(snapshot, replace(query, text="", vector=mean), mean, query.k + 1)
            condition = self._known_fields_only(snapshot, query.condition)
            counts_itself = condition is not False and (condition is None or snapshot.matches(uri, condition))
            others = tuple(hit for hit in hits if hit.uri != uri)
            return replace(hits, hits=others[: query.k], matched=hits.matched - counts_itself)

    # reading

    def get(self, uri: str) -> Document:
        """Return a document.

        Raises:
            UnknownUri: no document has this uri.
        """
        return document_of(self._store, uri)

    def original(self, uri: str) -> Original:
        """Return the original of a document: the file that it was read from, which is opened when it is read.

        Raises:
            UnknownUri: no document has this uri.
            NoOriginal: the document comes from no file, or it is one of many records of a file.
        """
        from indexer.sources.original import Original, none_of

        document = self.get(uri)
        with self._snapshot() as snapshot:
            recorded = snapshot.file_of(uri)
        if recorded is None:
            raise none_of(document)
        row, stamp = recorded
        return Original(document, row.file, row.reader, row.reason.mark, stamp)

    def get_many(self, uris: Iterable[str]) -> list[Document]:
        """Return documents in the order of the uris, all from one commit; unknown uris are left out."""
        return documents_of(self._store, as_list(uris, "uris", "get"))

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        """Iterate over the documents that a filter leaves, or all, in the order they were added.

        They are read in pages. If another index replaces this index between two pages, the iterator raises NotAnIndex.
        """
        with self._snapshot() as snapshot:
            condition = self._known_fields_only(snapshot, filter_tree(where))
        return iter(()) if condition is False else self._iterate(condition, where)

    def documents_page(
        self, where: Filter | None = None, cursor: str | None = None
    ) -> tuple[list[Document], str | None]:
        """Return the next documents that a filter leaves, in the order they were added, for programs without iterators.

        Args:
            cursor: from the answer with the documents before these; None for the first.

        Returns:
            The documents, and the cursor of the next page; None after the last document.

        Raises:
            BadInput: this is not a cursor.
            NotAnIndex: another index has replaced this index since the page before.
        """
        with self._snapshot() as snapshot:
            after = 0 if cursor is None else _position(cursor, snapshot.history, self._store.address)
            condition = self._known_fields_only(snapshot, filter_tree(where))
            page, characters = list[Document](), 0
            for id_, document in () if condition is False else snapshot.documents_after(after, condition):
                if page and (len(page) == PAGE_DOCUMENTS or characters + len(document.text) > PAGE_CHARACTERS):
                    return page, f"{after}-{snapshot.history}"
                page.append(document)
                characters += len(document.text)
                after = id_
            return page, None

    def _iterate(self, condition: Where | None, where: Filter | None) -> Iterator[Document]:
        try:
            yield from self._store.iterate(condition)
        except UnknownField:  # Before the first document: the last one with a field of the filter was removed.
            if self._unknown_fields == "error":
                raise
            yield from self.documents(where)

    def count(self, where: Filter | None = None) -> int:
        """Return how many documents a filter leaves, or how many there are."""
        with self._snapshot() as snapshot:
            condition = self._known_fields_only(snapshot, filter_tree(where))
            if condition is False:
                return 0
            return snapshot.documents if condition is None else snapshot.count(condition)

    def beginnings(self, k: int = 10, where: Filter | None = None, sort: Sort = "newest") -> Hits:
        """Return documents without a question, each with its first passage; their score is 0.

        Args:
            k: how many documents, at most.
            sort: "newest" for the last modified first, and documents without a time after them, the last added first;
                "title" for the order of their titles.
        """
        query = Query("-", k, where)  # refuses wrong arguments
        with self._snapshot() as snapshot:
            condition = self._known_fields_only(snapshot, query.condition)
            if condition is False:
                return Hits((), 0, True)
            ids, matched = snapshot.first_passages(k, condition, sort)
            passages = snapshot.passages_by_id(ids)
            return Hits(tuple(Hit.from_passage(passage, 0.0, None) for passage in passages), matched, True)

    def central_passages(self, count: int) -> list[Passage]:
        """Return passages from the middles of the main topics, the first from the largest."""
        with self._snapshot() as snapshot:
            sample = snapshot.sample(SAMPLED_PASSAGES)
            chosen = [sample.passages[row] for row in middles(sample.vectors, count)]
            return list(snapshot.passages_by_id([int(id_) for id_ in chosen]))

    def filter_notes(self, where: Filter | None) -> tuple[str, ...]:
        """Return the notes of `Hits.notes` on a filter: values that no document has, with similar values."""
        with self._snapshot() as snapshot:
            condition = self._known_fields_only(snapshot, filter_tree(where))
            return () if not condition else self._notes_on(snapshot, condition, snapshot.count(condition) > 0)

    def values(self, field: str, limit: int = 20, where: Filter | None = None) -> FieldValues:
        """Return how many documents have a field, its most frequent values, and the range of its numbers and dates.

        An answer without a filter is kept until the next commit, because counting takes longer than most searches.

        Args:
            field: a metadata field as filters write it, or uri, title, path, format or modified.
            limit: how many values to list.
            where: count only the documents that this filter leaves; the range stays that of all documents.

        Raises:
            BadInput: `limit` is below 1.
            UnknownField: no document has the field, unless the searcher was opened with unknown_fields="empty".
        """
        if not isinstance(limit, int) or limit < 1:
            raise BadInput(f"limit is {limit!r}: ask for a whole number of values, 1 or more")
        with self._snapshot() as snapshot:
            values = self._values_of(snapshot, field, limit)
            if not values.documents and self._unknown_fields == "error":
                check_filter(Exists(field), snapshot.fields)
            if where is None:
                return values
            condition = self._known_fields_only(snapshot, filter_tree(where))
            return FieldValues() if condition is False else snapshot.values(field, limit, condition)

    def histogram(
        self, field: str, kind: Literal["number", "date"], bins: int = 20, where: Filter | None = None
    ) -> list[int]:
        """Return how many values of the documents that a filter leaves are in each part of a field's range.

        The range from the smallest to the largest value of all documents is cut into `bins` parts of one width.
        The list is empty if there are not two different values.
        """
        with self._snapshot() as snapshot:
            condition = self._known_fields_only(snapshot, filter_tree(where))
            return [] if condition is False else snapshot.histogram(field, kind, bins, condition)

    def folders(self, where: Filter | None = None) -> dict[str, int]:
        """Return how many of the documents that a filter leaves are below each folder, the most first.

        These are the folders directly below the one folder that holds the files of all documents.
        """
        with self._snapshot() as snapshot:
            condition = self._known_fields_only(snapshot, filter_tree(where))
            if condition is False:
                return {}
            every = snapshot.paths()
            paths = every if condition is None else snapshot.paths(condition)
        # The common folder of all paths is that of the first and the last in their order.
        first, last = (min(every), max(every)) if every else ("", "")
        apart = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
        depth = first[:apart].rfind("/")
        below = Counter(path[: path.find("/", depth + 1)] for path in paths if path.find("/", depth + 1) > 0)
        return dict(below.most_common())

    def _values_of(self, snapshot: Snapshot, field: str, limit: int) -> FieldValues:
        """Return the values of a field, kept until the next commit."""
        key = snapshot.version, field, limit
        if (values := self._values.get(key)) is None:
            values = snapshot.values(field, limit)
            if any(version != snapshot.version for version, _, _ in list(self._values)):
                self._values.clear()
            if values.documents:  # names of fields that clients invent are not kept
                self._values[key] = values
        return values

    def uris(self, where: Filter | None = None) -> list[str]:
        """Return the uris of the documents that a filter leaves, or of all, in the order they were added."""
        with self._snapshot() as snapshot:
            condition = self._known_fields_only(snapshot, filter_tree(where))
            return [] if condition is False else snapshot.uris(condition)

    @property
    def map_record(self) -> MapRecord | None:
        """The record of the map of the index, which changes with the map; None if there is no map."""
        with self._snapshot() as snapshot:
            return snapshot.settings.map

    def map(self) -> Map | None:
        """Return the map that `likewise map` has drawn; None if there is no map, or if its file is damaged."""
        from indexer.map.file import read_map

        return read_map(self._store.derived(), self.map_record)

    def vectors(self, uri: str) -> Vector:
        """Return the stored vectors of a document's passages (passages, dimensions), float32 unit rows.

        Raises:
            UnknownUri: no document has this uri.
        """
        with self._snapshot() as snapshot:
            return self._vectors_of(snapshot, uri)

    def info(self) -> Info:
        """Return the state of the index in numbers."""
        with self._snapshot() as snapshot:
            return snapshot.info()

    def commonest_fields(self) -> list[str]:
        """Return metadata fields, the commonest in a sample of the documents first; kept until the next commit."""
        with self._snapshot() as snapshot:
            if (names := self._commonest_fields.get(snapshot.version)) is None:
                names = commonest_fields(snapshot)
                self._commonest_fields.clear()
                self._commonest_fields[snapshot.version] = names
            return names

    @property
    def is_building_words(self) -> bool:
        """Whether a thread reads the words of a database for questions whose deadline does not wait for them."""
        return self._store.is_building_words

    def committed_at(self) -> float | None:
        """Return the time of the last commit in seconds since 1970; None if it is unknown.

        A database knows it if its server runs with track_commit_timestamp.
        """
        return self._store.committed_at()

    @property
    def address(self) -> str:
        """The address of the index, for messages."""
        return self._store.address

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of the index; None if it holds vectors of the user's own."""
        with self._snapshot() as snapshot:
            return snapshot.settings.recipe

    @property
    def language(self) -> str:
        """Code of the language whose word endings a search by words ignores, or `none`."""
        with self._snapshot() as snapshot:
            return snapshot.settings.language

    @property
    def encoder(self) -> Encoder:
        """The encoder of questions, which the process shares; loaded on first use.

        Raises:
            BadInput: the index holds vectors of the user's own.
        """
        with self._snapshot() as snapshot:
            return self._ranker.encoder_of(snapshot)[0]

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True

    def __contains__(self, uri: object) -> bool:
        return has_document(self._store, uri)

    @property
    def calibration(self) -> Calibration | None:
        """The distributions of cosines in this index; None if they were not measured."""
        with self._snapshot() as snapshot:
            return snapshot.settings.calibration

    def _ranked(self, snapshot: Snapshot, query: Query, vector: Vector | None, k: int) -> Hits:
        """Return the k best units for a question with this vector."""
        condition = self._known_fields_only(snapshot, query.condition)
        if condition is False:
            return Hits((), 0, True, query.text, query.mode, notes=snapshot.notes)
        unit: Unit = "passage" if query.passages else "document"
        hits = self._ranker.rank(snapshot, query.text, vector, k, condition, query.mode, unit, query.exact)
        if condition is None:
            return hits
        return replace(hits, notes=(*hits.notes, *self._notes_on(snapshot, condition, hits.matched > 0)))

    def _notes_on(self, snapshot: Snapshot, where: Where, found: bool) -> tuple[str, ...]:
        """Return the notes about values that no document has, kept until the next commit.

        An empty index has no notes about values.
        """
        if self._unknown_fields == "empty" or not snapshot.documents or not may_have_notes(where, found):
            return ()
        key = snapshot.version, render(where), found
        if (notes := self._value_notes.get(key)) is None:
            notes = notes_on_values(
                snapshot, where, found, lambda field: self._values_of(snapshot, field, COMPARED_VALUES)
            )
            if len(self._value_notes) >= _MAX_NOTED_FILTERS or any(
                version != snapshot.version for version, _, _ in list(self._value_notes)
            ):
                self._value_notes.clear()
            self._value_notes[key] = notes
        return notes

    def _vector(self, snapshot: Snapshot, query: Query) -> tuple[Vector | None, tuple[str, ...]]:
        """Return the question as a unit row (dimensions,) and notes; None in words mode, which needs no model."""
        if query.mode == "words":
            return None, ()
        if query.row is None:
            return self._encoded(snapshot, query.text)
        dimensions = snapshot.settings.dimensions
        if dimensions and len(query.row) != dimensions:
            raise BadInput(
                f"the question's vector has {len(query.row)} dimensions and {self._store.address} has {dimensions}"
            )
        return query.row[:dimensions], ()  # nothing of it where the index has taken no width yet

    def _encoded(self, snapshot: Snapshot, text: str) -> tuple[Vector, tuple[str, ...]]:
        """Return a question's vector (dimensions,) and notes about the question."""
        (row,), (notes,) = self._ranker.encode(snapshot, [text], self._ahead)
        return row, notes

    def _known_fields_only(self, snapshot: Snapshot, where: Where | None) -> Where | Literal[False] | None:
        """Return the filter to rank with: None if it leaves every document, False if it leaves none."""
        if where is None or self._unknown_fields == "error" or (fields := snapshot.fields) is None:
            return where
        for condition in conditions(where):  # one on an unknown field must not hide a wrong type beside it
            if without_unknown_fields(condition, fields) is condition:
                check_filter(condition, fields)
        known = without_unknown_fields(where, fields)
        return None if known is True else known

    def _vectors_of(self, snapshot: Snapshot, uri: str) -> Vector:
        rows = snapshot.vectors_of(uri) if is_uri(uri) else None
        if rows is None:
            raise unknown_uri(self._store.address, uri)
        return rows


def _position(cursor: str, history: str, address: str) -> int:
    """Return the id after which a page begins."""
    after, _, of_history = cursor.partition("-")
    if not (after.isascii() and after.isdigit() and len(after) <= _ID_DIGITS and of_history):
        raise BadInput("this is not a cursor from an answer: copy the cursor without changes")
    if of_history != history:
        raise NotAnIndex(f"{address}: was replaced by another index since the page before; read from the first page")
    return int(after)
