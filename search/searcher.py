"""`Searcher`: questions in, ranked hits out, and documents to read. The public class of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, Protocol, TypeVar, cast

from indexer import doors
from indexer.deadline import Deadline
from indexer.encoders import Encoder, Recipe
from indexer.encoders.recipes.port import Role, of_role
from indexer.errors import BadInput, Closed, NotAnIndex, NoWords, UnknownField
from indexer.filters.mapping import Filter, filter_tree
from indexer.filters.tree import Exists, Where
from indexer.lookup import commonest_fields, document_of, documents_of, has_document, is_uri, unknown_uri
from indexer.records import Document, Vector
from indexer.settings import MapRecord
from indexer.stores.addresses.open import open_store
from indexer.stores.fields.field_types import check_filter
from indexer.stores.port import FieldValues, Info, Passage, Sort
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from search.answering import Answering, UnknownFields
from search.asker import Asker, as_list, hits_above
from search.hits.hits import Hits
from search.query.query import Query, understood
from search.timings import Timings

Item = TypeVar("Item")

PAGE_DOCUMENTS = 256
PAGE_CHARACTERS = 4_000_000
"""Maximum characters of the texts of a page of documents, unless the first text alone has more."""

_ID_DIGITS = 18
"""Maximum digits of an id of a document in a cursor: 64 bits hold every such number."""


class Original(Protocol):
    """The original of a document, as the part `readers` gives it: a file, or a message of a mailbox."""

    document: Document
    name: str
    media_type: str
    size: int | None

    def read(self) -> bytes: ...
    def pieces(self) -> Iterator[bytes]: ...
    def page(self, number: int, marks: Sequence[tuple[int, int]] = ()) -> Any: ...


class Map(Protocol):
    """The map of an index, as the part `map` gives it: uris, their places (documents, 2), and named regions."""

    uris: tuple[str, ...]
    places: Vector
    regions: Sequence[Any]


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
            NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: there is no index that can be read.
            RecipeMismatch: `encoder` is not the one the index was made with.
        """
        if unknown_fields not in ("error", "empty"):
            raise BadInput(f'unknown_fields is {unknown_fields!r}: give "error" or "empty"')
        self._store = open_store(path)
        self.answering = Answering(
            self._store, encoder, unknown_fields, trust_remote_code=trust_remote_code, timings=timings
        )

    def close(self) -> None:
        self._store.close()
        closed = Closed(self.address, "this Searcher is closed: make another Searcher of this path")
        self._store, self.answering = cast(Store, closed), cast(Answering, closed)

    def until(self, deadline: Deadline) -> Searcher:
        """Return this searcher for one caller. Its questions raise DeadlinePassed when the deadline has passed.

        With `Deadline(seconds, waits=False)`, a question by words to a database raises WordsBuilding while a thread
        reads all words of the index for the first time. Other questions wait for that thread.

        Reading a document by its uri, and iterating over documents, have no deadline.
        """
        limited = Searcher.__new__(type(self))
        vars(limited).update(vars(self), answering=self.answering.until(deadline))
        return limited

    def ask_ahead(self, query: Query) -> Callable[[], Future[Vector] | None] | None:
        """Return what begins to embed a question of this caller's searcher (`until`); None if it needs no embedding.

        A service waits for the future before it takes a thread, so that questions that wait are embedded together.
        There is no future before the first question, whose snapshot names the encoder.
        """
        if not query.needs_vector:
            return None

        def begin() -> Future[Vector] | None:
            ahead = self.answering.ahead = self.answering.questions.ask_ahead(query.asked)
            return None if ahead is None else ahead.vector

        return begin

    def _snapshot(self) -> AbstractContextManager[Snapshot]:
        return self.answering.snapshot()

    @contextmanager
    def _filtered(self, where: Filter | None) -> Iterator[tuple[Snapshot, Where | None]]:
        """Open a snapshot, and give it with the filter to ask it with."""
        with self._snapshot() as snapshot:
            yield snapshot, self.answering.known_fields_only(snapshot, filter_tree(where))

    # searching

    def answer(self, query: Query) -> Hits:
        answering, encoder = self.answering, None
        # One snapshot for question and answer: another index may replace this index in between.
        with answering.snapshot() as snapshot:
            query = understood(query, [snapshot])
            vector, notes = answering.vector(snapshot, query)
            hits = answering.hits(snapshot, answering.plan(snapshot, query, vector), query.depth)
            if query.explain and (query.words or vector is not None) and snapshot.settings.recipe is not None:
                encoder, encoder_notes = answering.questions.encoder_of(snapshot)
                notes += encoder_notes
                if vector is None:
                    (vector,), (of_words,) = answering.questions.encode(snapshot, [query.words], answering.ahead)
                    notes += of_words
        if query.rerank is not None:
            from search.hits.rerank import rerank

            hits = rerank(hits, query.rerank, query.words, query.k)
        if query.min_score is not None:
            hits = hits_above(hits, query.min_score)
        if encoder is not None and vector is not None:
            from search.hits.explain import add_sentences

            hits = replace(hits, hits=tuple(add_sentences(hits.hits, encoder, vector)))
        return replace(hits, notes=tuple(dict.fromkeys((*notes, *hits.notes))))

    def _answer_many(self, questions: Sequence[Query]) -> list[Hits]:
        answering, answers = self.answering, []
        with answering.snapshot() as snapshot:
            if questions[0].mode == "words" or questions[0].row is not None:
                encoded = [answering.vector(snapshot, query) for query in questions]
            else:
                texts = [query.text for query in questions]
                encoded = list(zip(*answering.questions.encode(snapshot, texts), strict=True))
            for query, (row, notes) in zip(questions, encoded, strict=True):
                try:
                    hits = answering.hits(snapshot, answering.plan(snapshot, query, row), query.k)
                except NoWords as error:
                    hits = Hits((), 0, True, query.text, query.mode, notes=(str(error),))
                every = tuple(dict.fromkeys((*notes, *hits.notes)))
                answers.append(replace(hits_above(hits, query.min_score), notes=every))
        return answers

    def similar(self, uri: str, k: int = 10, *, where: Filter | None = None) -> Hits:
        """Return the k documents nearest to a document of the index, by the mean of its passages' vectors.

        Raises:
            UnknownUri: no document has this uri.
        """
        return self.answer(Query(k=k, where=where, like=[uri]))

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
        document = self.get(uri)
        with self._snapshot() as snapshot:
            recorded = snapshot.file_of(uri)
        readers = doors.require("parts", "readers", "the original of a document")
        return cast(Original, readers.original_of(document, recorded))

    def get_many(self, uris: Iterable[str]) -> list[Document]:
        """Return documents in the order of the uris, all from one commit; unknown uris are left out."""
        return documents_of(self._store, as_list(uris, "uris", "get"))

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        """Iterate over the documents that a filter leaves, or all, in the order they were added.

        They are read in pages. If another index replaces this index between two pages, the iterator raises NotAnIndex.
        After `close` it raises BadInput.
        """
        return self._iterate(self._store.iterate, filter_tree(where))

    def all_vectors(self, where: Filter | None = None) -> Iterator[tuple[str, Vector]]:
        """Iterate over the uris of the documents that a filter leaves, or all, each with what `vectors` returns.

        They are read in pages, in the order they were added. Errors are those of `documents`.
        """
        stored = self._iterate(self._store.export, filter_tree(where))
        return ((item.document.uri, item.vectors) for item in stored if item.vectors is not None)

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
        with self._filtered(where) as (snapshot, condition):
            after = 0 if cursor is None else _position(cursor, snapshot.history, self._store.address)
            page, characters = list[Document](), 0
            for id_, document in snapshot.documents_after(after, condition):
                if page and (len(page) == PAGE_DOCUMENTS or characters + len(document.text) > PAGE_CHARACTERS):
                    return page, f"{after}-{snapshot.history}"
                page.append(document)
                characters += len(document.text)
                after = id_
            return page, None

    def _iterate(self, read: Callable[[Where | None], Iterator[Item]], where: Where | None) -> Iterator[Item]:
        with self._filtered(where) as (_, condition):
            pass
        try:
            for item in read(condition):
                yield item
                self._snapshot()  # is refused if this Searcher was closed
        except UnknownField:  # Before the first document: the last one with a field of the filter was removed.
            if self.answering.unknown_fields == "error":
                raise
            yield from self._iterate(read, where)

    def count(self, where: Filter | None = None) -> int:
        """Return how many documents a filter leaves, or how many there are."""
        with self._filtered(where) as (snapshot, condition):
            return snapshot.documents if condition is None else snapshot.count(condition)

    def beginnings(self, k: int = 10, where: Filter | None = None, sort: Sort = "newest") -> Hits:
        """Return documents without a question, each with its first passage; their score is 0.

        All records of a file are one hit, with the number of the others as its `family_size`, unless there are no other
        documents.

        Args:
            k: how many documents, at most.
            sort: "newest" for the last modified first, and documents without a time after them, the last added first;
                "title" for the order of their titles.
        """
        query = Query("-", k, where)  # refuses wrong arguments
        with self._filtered(query.condition) as (snapshot, condition):
            return cast(Hits, _browse().beginnings(snapshot, condition, k, sort))

    def central_passages(self, count: int) -> list[Passage]:
        """Return passages from the middles of the main topics, the first from the largest."""
        with self._snapshot() as snapshot:
            return cast(list[Passage], _browse().central_passages(snapshot, count))

    def filter_notes(self, where: Filter | None) -> tuple[str, ...]:
        """Return the notes of `Hits.notes` on a filter: values that no document has, with similar values."""
        with self._filtered(where) as (snapshot, condition):
            if condition is None:
                return ()
            return self.answering.notes_on(snapshot, condition, snapshot.count(condition) > 0)

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
        with self._filtered(where) as (snapshot, condition):
            values = self.answering.values_of(snapshot, field, limit)
            if not values.documents and self.answering.unknown_fields == "error":
                check_filter(Exists(field), snapshot.fields)
            return values if condition is None else snapshot.values(field, limit, condition)

    def histogram(
        self, field: str, kind: Literal["number", "date"], bins: int = 20, where: Filter | None = None
    ) -> list[int]:
        """Return how many values of the documents that a filter leaves are in each part of a field's range.

        The range from the smallest to the largest value of all documents is cut into `bins` parts of one width.
        The list is empty if there are not two different values.
        """
        with self._filtered(where) as (snapshot, condition):
            return snapshot.histogram(field, kind, bins, condition)

    def folders(self, where: Filter | None = None) -> dict[str, int]:
        """Return how many of the documents that a filter leaves are below each folder, the most first.

        These are the folders directly below the one folder that holds the files of all documents.
        """
        with self._filtered(where) as (snapshot, condition):
            return cast(dict[str, int], _browse().folders(snapshot, condition))

    def uris(self, where: Filter | None = None) -> list[str]:
        """Return the uris of the documents that a filter leaves, or of all, in the order they were added."""
        with self._filtered(where) as (snapshot, condition):
            return snapshot.uris(condition)

    @property
    def map_record(self) -> MapRecord | None:
        """The record of the map of the index, which changes with the map; None if there is no map."""
        with self._snapshot() as snapshot:
            return snapshot.settings.map

    def map(self) -> Map | None:
        """Return the map that `likewise map` has drawn; None if there is no map, or if its file is damaged."""
        if (record := self.map_record) is None:
            return None
        reader = doors.require("parts", "map", "the map of an index")
        return cast(Map | None, reader.read_map(self._store.derived(), record))

    def passages(self, uri: str) -> list[Passage]:
        """Return a document's passages, each with its text, offsets, heading, page and line, in the order of `vectors`.

        Raises:
            UnknownUri: no document has this uri.
        """
        with self._snapshot() as snapshot:
            passages = snapshot.passages_of(uri) if is_uri(uri) else None
        if passages is None:
            raise unknown_uri(self._store.address, uri)
        return passages

    def vectors(self, uri: str) -> Vector:
        """Return the stored vectors of a document's passages (passages, dimensions), float32 unit rows.

        Raises:
            UnknownUri: no document has this uri.
        """
        with self._snapshot() as snapshot:
            return self.answering.vectors_of(snapshot, uri)

    def info(self) -> Info:
        """Return the state of the index in numbers."""
        with self._snapshot() as snapshot:
            return snapshot.info()

    def commonest_fields(self) -> list[str]:
        """Return metadata fields, the commonest in a sample of the documents first; kept until the next commit."""
        with self._snapshot() as snapshot:
            return self.answering.kept.get(snapshot, "commonest fields", lambda: commonest_fields(snapshot))

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

    def embed(self, texts: Iterable[str], role: Role = "query") -> Vector:
        """Return the vectors of texts by the model of the index (texts, dimensions), float32 unit rows.

        Args:
            role: embed with the prompt for questions, or with the prompt for documents.

        Raises:
            BadInput: the index holds vectors of the user's own, or `texts` is one string.
            TextTooLong: a text has more tokens than the model reads.
        """
        listed = as_list(texts, "texts", "embed([text])")
        return of_role(self.encoder, role).encode(listed, role=role)

    @property
    def encoder(self) -> Encoder:
        """The encoder of questions, which the process shares; loaded on first use.

        Raises:
            BadInput: the index holds vectors of the user's own.
        """
        with self._snapshot() as snapshot:
            return self.answering.questions.encoder_of(snapshot)[0]

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True

    def __contains__(self, wanted: object) -> bool:
        return has_document(self._store, wanted)


def search_indexes(indexes: Iterable[str | PathLike[str] | Searcher], query: Query | str) -> Hits:
    """Return the best hits of several indexes in one ranking. `Hit.index` names the index of each.

    The filter and all options of the question hold for every index. A field that some of the indexes lack satisfies no
    condition there, and a note says so. `hits.matched` is the sum over the indexes. If the indexes have different
    models, the score of a dense hit is its cosine in standard deviations above the mean cosine of this question and all
    asked indexes with its model.

    Args:
        indexes: addresses, or searchers, which stay open. Each is named by its folder without `.index`; a text may
            give another name, NAME=ADDRESS.
        query: the question; a text is asked in dense mode.

    Raises:
        BadInput: there is no index, two have the same name, or one cannot answer this question.
        FilterError: the filter fits none of the indexes.
        NoWords: in words mode, the question has no word to search by.
    """
    federation = doors.require("parts", "federation", "one question to several indexes")
    return cast(Hits, federation.search_indexes(indexes, query))


def _browse() -> Any:
    """Return the functions of `likewise/service/browse.py`. Raises BadInput if the part `service` is missing."""
    return doors.require("parts", "service", "reading an index without a question")


def _position(cursor: str, history: str, address: str) -> int:
    """Return the id after which a page begins."""
    after, _, of_history = cursor.partition("-")
    if not (after.isascii() and after.isdigit() and len(after) <= _ID_DIGITS and of_history):
        raise BadInput("this is not a cursor from an answer: copy the cursor without changes")
    if of_history != history:
        raise NotAnIndex(f"{address}: was replaced by another index since the page before; read from the first page")
    return int(after)
