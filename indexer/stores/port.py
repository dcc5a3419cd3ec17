"""The interface between likewise and the engines that store its passages: three protocols, and the values they use.

A `Store` gives consistent snapshots to read and a writer to change it. Nothing here names a folder, a database or a
library: open.py turns an address into a store, and each engine has a folder of its own. The rules that every engine
follows are in neutral files beside this file: hashes.py (whether a document has changed), vectors.py (how a vector is
stored), analysis.py (text to terms), flatten.py (metadata to fields), field_types.py (which filters are refused),
lines.py (the line of a passage), setting_rows.py (the stored names of settings) and pairs.py (the most similar pairs).
tests/contracts/stores/ holds every engine to this file, by comparison with a store made of a dict and numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.deadline import NEVER, Deadline
from indexer.filters.tree import Scalar, Type, Where
from indexer.ledger import NO_REASON, LedgerState, Reason
from indexer.listener import SILENT, Listener
from indexer.records import Changes, Document, KnownFile, Span, Stamp, Vector
from indexer.settings import Meaning, Settings

Unit = Literal["document", "passage"]
Kind = Literal["auto", "exact", "approximate"]
Sort = Literal["newest", "title"]
Slot = Literal["live", "draft", "unfinished", "next", "previous"]
"""A place for an index at one address. "live" is the index that is searched. A "draft" is discarded if it fails, an
"unfinished" index is kept for the next attempt. "next" is made to replace the live index, "previous" is the index that
it has replaced."""

SideSlot = Literal["next", "previous"]
SIDE_SLOTS: tuple[SideSlot, ...] = ("next", "previous")
"""The slots of indexes that live beside the live index, with vectors of another model."""
Ids = NDArray[np.int64]

BEST_PASSAGES = 3
"""How many of a document's best passages are in its mean cosine (`Candidates.best_means`)."""


@dataclass(frozen=True, slots=True)
class Hashes:
    """The hashes by which a change of a document is noticed (hashes.py).

    Attributes:
        content: hash of everything that is embedded, 16 bytes.
        row: hash of the other stored members, 16 bytes.
    """

    content: bytes
    row: bytes


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document with its passages and their vectors.

    Attributes:
        spans: the passages; None to rewrite only the row of a known document, whose metadata changed.
        vectors: unit rows (passages, dimensions); None if `spans` is None.
        origin: the document's content hash in the index it was copied from, 16 bytes; None if it was not copied.
    """

    document: Document
    hashes: Hashes
    spans: tuple[Span, ...] | None = None
    vectors: Vector | None = None
    origin: bytes | None = None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The outcome of one file or record.

    Attributes:
        file: path of the file that holds it; equal to `uri` for a whole file.
        uri: uri of its document, also if there is none.
        reason: why the file or record was skipped or failed; `NO_REASON` for most indexed documents. If an indexed
            document was read in an unusual way, the reason names the way.
        reader: format and version of its reader, such as "pdf/2" (`indexer.sources.formats.reader_of`); "" for a file
            that was not opened, and for a row that an earlier version of likewise wrote.
        notes: the parts of the file that were not read, such as pages without text; usually none.
    """

    file: str
    uri: str
    state: LedgerState
    reason: Reason = NO_REASON
    reader: str = ""
    notes: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """The number of rows of the ledger that have a state for the same reason."""

    state: LedgerState
    reason: Reason
    count: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything that one transaction writes.

    Attributes:
        documents: new, changed and updated documents, each uri once.
        rows: the outcome of each file and record. Without rows the documents were changed outside of a run, and the
            next run reads the files that hold them again.
        finished: files that were read to their end, by path, so that the next run can skip them unread.
        run: the number that `begin_run` returned; 0 outside of a run.
        removed: uris to remove from the documents, if they are there, and from the ledger.
    """

    documents: Sequence[EmbeddedDocument] = ()
    rows: Sequence[LedgerRow] = ()
    finished: Mapping[str, Stamp] = field(default_factory=dict)
    run: int = 0
    removed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The files that an indexing run has read or skipped, by path.

    Attributes:
        read: files that were read whole, so an older ledger entry that this run did not meet is gone.
        unchanged: files that were not opened, because they have not changed.
        finished: stamps, by path, of files in which older entries may be gone. The stamps and the gone entries are
            written together: if the run is interrupted before, the next run reads these files again.
    """

    read: Sequence[str] = ()
    unchanged: Sequence[str] = ()
    finished: Mapping[str, Stamp] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Condition:
    """Words that a unit must hold one directly after the other, in its title or in its visible text, or must not hold.

    Attributes:
        text: the condition as a person writes it: "a phrase", +word, -word or -"a phrase".
        words: the words (`indexer.stores.words.exact`), at least one.
        excluded: the unit must not hold them.
    """

    text: str
    words: tuple[str, ...]
    excluded: bool = False


Conditions = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in order of their score, best first; equal scores in the order the passages were added.

    Attributes:
        passages: passage ids (n,), int64.
        documents: ids of the documents they belong to (n,), int64.
        scores: the cosines with the stored vectors (`dense`) or the BM25 scores (`words`) (n,), float32.
        matched: how many units pass the filter, whatever their score; in `words`, how many of them also hold a word.
        exact: whether the order is provably that of brute force.
    """

    passages: Ids
    documents: Ids
    scores: NDArray[np.float32]
    matched: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best units by cosine and the best by words, each with both scores, in order of the units' ids.

    Attributes:
        passages: ids of the passages to show (n,), int64. A document shows its passage nearest to the question.
        documents: ids of the documents they belong to (n,), int64.
        cosines: cosines of these passages (n,), float32.
        best_means: mean cosine of the BEST_PASSAGES nearest passages of each document (n,), float64. If the units are
            passages, the cosine of each.
        words: BM25 score of each unit (n,), float32; 0 for a unit without a word of the question.
        terms: how many different terms the question has.
        matched: how many units pass the filter.
        complete: whether every unit that passes the filter is a candidate, and the dense leg was exact.
    """

    passages: Ids
    documents: Ids
    cosines: NDArray[np.float32]
    best_means: NDArray[np.float64]
    words: NDArray[np.float32]
    terms: int
    matched: int
    complete: bool


@dataclass(frozen=True, slots=True)
class TextStatistics:
    """The numbers by which BM25 weighs the terms of one question. Those of several collections can be added.

    Attributes:
        texts: how many texts there are.
        words: how many words they have together.
        holding: how many texts have each term, and how many have the term or a compound that begins with its word.
    """

    texts: int = 0
    words: int = 0
    holding: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __add__(self, other: TextStatistics) -> TextStatistics:
        holding = dict(self.holding)
        for term, (words, compounds) in other.holding.items():
            mine = holding.get(term, (0, 0))
            holding[term] = mine[0] + words, mine[1] + compounds
        return TextStatistics(self.texts + other.texts, self.words + other.words, holding)


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """The statistics of documents and of passages for the terms of one question."""

    documents: TextStatistics = TextStatistics()
    passages: TextStatistics = TextStatistics()

    def __add__(self, other: WordStatistics) -> WordStatistics:
        return WordStatistics(self.documents + other.documents, self.passages + other.passages)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage with the stored members of its document.

    Attributes:
        id: id of the passage, which no other passage ever gets.
        document_id: id of its document in this index.
        uri, title, path, format, modified, metadata: members of the document (`indexer.records.Document`).
        text: text of the passage.
        start, end: offsets of the passage in the document's text, in code points.
        line: line of the document's file that it begins in, counted from 1; None if the text is not the file's own.
        heading: path of the headings above the passage; empty if there is no heading.
        page: page, slide or sheet, counted from 1; None if the format has no pages.
    """

    id: int
    document_id: int
    uri: str
    title: str
    text: str
    start: int
    end: int
    line: int | None
    heading: str
    page: int | None
    path: str | None
    format: str | None
    modified: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Passages drawn at random.

    Attributes:
        passages: ids in ascending order (n,), int64.
        vectors: their stored vectors (n, dimensions), float32.
    """

    passages: Ids
    vectors: Vector


@dataclass(frozen=True, slots=True)
class PassagePairs:
    """Pairs of passages of different documents, best first.

    Attributes:
        first, second: passage ids (n,), int64.
        scores: cosines (n,), float32.
        passages: how many passages were compared with each other.
    """

    first: Ids
    second: Ids
    scores: NDArray[np.float32]
    passages: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check.

    Attributes:
        problems: what is damaged or wrong, one sentence each.
        notes: facts that are worth knowing but are not problems.
    """

    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Recall:
    """The share of the ten nearest passages that a search without a filter finds, compared with brute force.

    Attributes:
        recall: mean over the questions, between 0 and 1.
        low, high: its 95 % interval.
        questions: how many questions were asked; 0 in an empty index.
        exact: whether every answer was provably that of brute force.
    """

    recall: float
    low: float
    high: float
    questions: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Info:
    """The state of a store in numbers.

    Attributes:
        documents, passages: how many there are.
        tokens: how many tokens the encoder has read.
        dimensions: of each vector.
        unsealed: passages that no segment holds yet; all passages if the engine has no segments.
        bytes: size of everything that is stored.
        format_version: version of the format that the index is stored in.
        history: drawn at random when the index was made; a copy has another.
        segments: kind, number of vectors and number of living vectors of each segment; empty if the engine has no
            segments.
        fields: the types of each metadata field: "boolean", "number" or "text".
        dates: the metadata fields in which some text reads as a date.
        details: numbers that only this engine has; `info --json` prints them beside the others.
    """

    documents: int
    passages: int
    tokens: int
    dimensions: int
    unsealed: int
    bytes: int
    format_version: int
    history: str
    segments: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dates: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


MAX_VALUE_CHARACTERS = 200
"""Maximum characters of a text that is listed among the frequent values of a field. Nobody chooses a longer text from a
list."""


@dataclass(frozen=True, slots=True)
class FieldValues:
    """The values that a field has in the documents of an index.

    Attributes:
        documents: how many documents have a value.
        frequent: the most frequent values with the number of documents that have each, in descending order of that
            number; equal numbers in the order of type and value. Texts longer than MAX_VALUE_CHARACTERS are left out.
        numbers: the smallest and the largest number; None if the field has no numbers.
        days: the first and the last day in UTC, in ISO 8601, of the texts that read as dates; None if no text does.
    """

    documents: int = 0
    frequent: tuple[tuple[Scalar, int], ...] = ()
    numbers: tuple[float, float] | None = None
    days: tuple[str, str] | None = None


class Snapshot(Protocol):
    """One consistent state of an index: everything that is read through it belongs to the same commit.

    Raises:
        FilterError: a filter does not fit the fields of the index.
        IndexDamaged: a stored row does not match its checksum.
    """

    @property
    def settings(self) -> Settings:
        """The settings of the index."""

    @property
    def documents(self) -> int:
        """Number of documents."""

    @property
    def passages(self) -> int:
        """Number of passages."""

    @property
    def version(self) -> Hashable:
        """A key of this commit: a result that was computed from a snapshot is valid for all with an equal version."""

    @property
    def history(self) -> str:
        """A key of this index, the same for all its commits. A copy of the index has another."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about this state that the caller should know, such as a damaged segment that the catalog replaces.

        Read them after ranking, because ranking by words may add to them. Every snapshot has the notes of its state, so
        that each question gets them and not only the first question.
        """

    def hashes(self, uris: Iterable[str] | None = None) -> Mapping[str, Hashes]:
        """Return the hashes of the given uris; unknown uris are omitted. Without uris, return all hashes."""

    def origins(self, uris: Iterable[str]) -> Mapping[str, bytes]:
        """Return `EmbeddedDocument.origin` of the given documents. Documents whose content has changed since are
        omitted."""

    def get(self, uri: str) -> Document | None:
        """Return a document; None for an unknown uri."""

    def documents_after(self, after: int, where: Where | None = None) -> Iterator[tuple[int, Document]]:
        """Yield the documents that a filter leaves with their ids, in the order they were added.

        Args:
            after: an id: only documents with a larger one. 0 for all.
            where: a filter; None for all documents.
        """

    def matches(self, uri: str, where: Where) -> bool:
        """Return whether a filter leaves this document. For an unknown uri it is False, even if the filter is wrong."""

    @property
    def fields(self) -> Mapping[str, Collection[Type]] | None:
        """The types of each metadata field that some document has; None if there is no document."""

    def count(self, where: Where) -> int:
        """Return how many documents a filter leaves."""

    def uris(self, where: Where | None = None) -> list[str]:
        """Return the uris of the documents that a filter leaves, in the order they were added."""

    def corrected(self, question: str) -> str:
        """Return a question with similar words of the index in place of words that no text has; empty if there are
        none to replace."""

    def first_passages(self, k: int, where: Where | None, sort: Sort) -> tuple[list[int], int]:
        """Return the first passage of each of the k first documents in an order, and how many documents there are."""

    def values(self, field: str, limit: int, where: Where | None = None) -> FieldValues:
        """Return the values of a field and the `limit` most frequent of them. An unknown field has no values.

        Args:
            field: a metadata field as filters write it, or one of `COLUMNS`.
            where: count only the documents that this filter leaves. `numbers` and `days` are of all documents.
        """

    def histogram(
        self, field: str, kind: Literal["number", "date"], bins: int, where: Where | None = None
    ) -> list[int]:
        """Return how many values are in each of equally wide parts of the range of all numbers, or dates, of a field.

        Args:
            where: count only the documents that this filter leaves; the range is that of all documents.

        Returns:
            One number per part (bins,), the lowest values first; empty if there are not two different values.
        """

    def dates(self, field: str, where: Where | None = None) -> tuple[Ids, NDArray[np.int64]]:
        """Return the documents that a filter leaves and that have a date in a field.

        Args:
            field: a metadata field as filters write it, or `modified`. In a field without dates, a whole number of four
                digits is a year.

        Returns:
            Their ids in ascending order (n,), and the latest date of each in microseconds since 1970 (n,).
        """

    def paths(self, where: Where | None = None) -> list[str]:
        """Return the path of each document that a filter leaves and that has one, in the order they were added."""

    def holding(self, conditions: Conditions, where: Where | None, unit: Unit) -> int:
        """Return how many units that a filter leaves meet all conditions."""

    def similar_words(self, word: str) -> list[str]:
        """Return words of the index that are spelled like a word of a condition, the most similar first; none if a text
        has the word itself."""

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

    def words(
        self,
        text: str,
        k: int,
        where: Where | None = None,
        unit: Unit = "document",
        conditions: Conditions = (),
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

    def word_statistics(self, text: str) -> WordStatistics:
        """Return the statistics by which BM25 weighs the terms of a question in this index."""

    def weighed_by(self, statistics: WordStatistics) -> Snapshot:
        """Return this snapshot for one question whose BM25 scores follow the statistics of several indexes."""

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

    def passages_by_id(self, ids: Sequence[int]) -> list[Passage]:
        """Return passages in the order of their ids given here, after verifying their checksums.

        Raises:
            IndexDamaged: a passage does not match its checksum, or there is no passage with an id.
        """

    def passages_of(self, uri: str) -> list[Passage] | None:
        """Return a document's passages in the order of `vectors_of`; None for an unknown uri.

        Raises:
            IndexDamaged: a passage does not match its checksum.
        """

    def vectors_of(self, uri: str) -> Vector | None:
        """Return the stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""

    def fitted_parameters(self) -> bytes | None:
        """Return the parameters fitted for the recipe's post-processing, as safetensors; None if nothing was fitted."""

    def sample(self, count: int, seed: int = 0) -> Sample:
        """Return `count` random passages, or all if there are fewer. A copy of the index gives the same passages."""

    def nearest_pairs(self, count: int, min_score: float) -> PassagePairs:
        """Return the `count` most similar pairs of passages of different documents, provably.

        Args:
            min_score: leave out pairs with a lower cosine.
        """

    def files(self) -> Mapping[str, KnownFile]:
        """Return every file of the ledger, by path. Entries that are gone are left out."""

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        """Yield the rows of the ledger in the order they were written; with a state only the rows of this state."""

    def noted(self) -> Iterator[LedgerRow]:
        """Yield the rows of the ledger that have notes, in the order they were written."""

    def noted_count(self) -> int:
        """Return the number of rows of the ledger that have notes."""

    def ledger_of_documents(self) -> Iterator[LedgerRow]:
        """Yield the rows of the ledger whose uri is a document, in no particular order."""

    def file_of(self, uri: str) -> tuple[LedgerRow, Stamp] | None:
        """Return the row of a document, and the stamp of its file; None for a document that comes from no file."""

    def ledger_counts(self) -> Mapping[str, int]:
        """Return the number of rows of each state that occurs."""

    def ledger_reasons(self) -> Sequence[ReasonCount]:
        """Return every reason of the ledger, with the number of its rows, in no particular order."""

    def info(self) -> Info:
        """Return the state of the store in numbers."""

    def recall(self) -> Recall:
        """Measure how many of the nearest passages a search finds."""

    def check(self, meaning: Meaning | None) -> CheckReport:
        """Verify everything that is stored and everything that is derived from it, without a lock.

        Args:
            meaning: what the hashes of embedded content were made with; None leaves those out.
        """


class Writer(Protocol):
    """Changes an index. A change is durable and visible when its method returns.

    Each method is one transaction, except `settle`, `compact` and `repair`, which do not change any document.

    Raises:
        StorageError: the disk refuses; what was committed before is kept.
    """

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about the commits since this writer was opened, such as a derived file that could not be written."""

    def put(self, batch: Batch) -> Changes:
        """Remove, add, replace and update documents, and write the ledger, in one transaction.

        Raises:
            BadInput: metadata that no filter can hold, vectors whose shape does not fit the passages or the index, or
                an update of an unknown uri; nothing is written.
        """

    def remove(self, uris: Iterable[str]) -> int:
        """Remove documents and their ledger rows. Ledger rows of uris that are not documents stay, unless their reason
        is that only the index with the other model has the document (`Reason.is_left_out`).

        Returns:
            How many documents were removed.
        """

    def change(self, update: Callable[[Settings], Settings], fitted_parameters: bytes | None = None) -> Settings:
        """Change the stored settings.

        Args:
            update: called with the stored settings, returns the new settings.
            fitted_parameters: parameters just fitted for the recipe's post-processing, stored with the recipe.

        Returns:
            The new settings.

        Raises:
            BadInput: fitted parameters are stored already: every vector depends on them.
        """

    def begin_run(self) -> int:
        """Return the number of a new indexing run. Until it ends, `check` notes that it has not finished."""

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        """Mark entries as gone if the run read their file and did not meet them. Mark skipped files as unchanged.

        Entries that were skipped or failed are removed instead, unless their uri is a document.

        Returns:
            Number of files to read again. They also hold a document whose recorded file no longer holds it.
        """

    def settle(self, recall: float | None = None) -> None:
        """Improve the derived indexes after an indexing run, if the improvement is worth the time.

        Args:
            recall: the recall that approximate segments are tuned to from now on, above 0 and at most 1.

        Raises:
            BadInput: a recall out of range.
        """

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        """Rewrite everything derived without the removed documents, and give free space back to the disk.

        Args:
            kind: the kind of segment to write; "auto" decides by the number of passages.
            recall: see `settle`.

        Raises:
            BadInput: an unknown kind, or a recall out of range.
        """

    def repair(self, meaning: Meaning | None) -> CheckReport:
        """Check, rebuild what is derived, and make the next run embed damaged documents again.

        Args:
            meaning: see `Snapshot.check`.

        Returns:
            The problems that are left, and notes that also name the repairs.
        """


class Store(Protocol):
    """The place where one index is stored. Safe to share among threads, and usable after a fork."""

    @property
    def engine(self) -> Engine:
        """The engine of this index's address, where this index is the live one."""

    @property
    def address(self) -> str:
        """The address to show in messages: a path, or a DSN without its password."""

    def snapshot(self, deadline: Deadline = NEVER) -> AbstractContextManager[Snapshot]:
        """Read the newest commit for the length of the block.

        Args:
            deadline: after it, or when it is cancelled, reading ends with DeadlinePassed.

        The block may hold a transaction open. Embed a question inside it, so that question and answer see the same
        index, but never a collection. Iterators that the snapshot returns are valid only inside the block.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: there is no index that can be read.
        """

    def writer(self, *, wait: bool = True, listener: Listener = SILENT) -> AbstractContextManager[Writer]:
        """Hold the right to write for the length of the block. A thread that holds it gets the same writer again.

        The engine decides what its lock covers: a folder has one writer.

        Args:
            wait: wait for another holder; otherwise raise at once.
            listener: its `waiting` is called once before waiting for another process.

        Raises:
            NotAnIndex: there is no longer an index.
            IndexLocked: another process or thread is writing and `wait` is False.
        """

    def iterate(self, where: Where | None = None) -> Iterator[Document]:
        """Yield documents in the order they were added, read in pages. No transaction is open between two pages.

        A filter selects documents as of the beginning of the iteration. Without a filter, documents that are added
        during the iteration may be included.

        Raises:
            NotAnIndex: another index has replaced this index during the reading. Its documents have other ids.
        """

    def export(self) -> Iterator[EmbeddedDocument]:
        """Yield documents with their passages and vectors in the order they were added, read in pages.

        Their hashes and prefixes are empty, and the first passage of each has the tokens of the whole document.

        Raises:
            NotAnIndex: as `iterate` does.
        """

    @property
    def is_building_words(self) -> bool:
        """Whether a thread of this process reads the words of the index for questions that do not wait for them."""

    def committed_at(self) -> float | None:
        """Return the time of the last commit in seconds since 1970; None if it is unknown."""

    def free_bytes(self) -> int | None:
        """Return how many bytes could still be stored; None if this is unknown."""

    def artifacts(self) -> Path:
        """Return the folder on this machine for the compiled encoder of this index. It may not exist yet."""

    def derived(self) -> Path:
        """Return the folder on this machine for files that were computed from this index and can be computed again."""

    def duplicate(self, draft: Store) -> tuple[str, ...]:
        """Fill an empty draft of an engine of the same kind with this index as of one commit.

        The index may be read and written during that time.
        The draft gets the same ids and a history of its own. The indexes at "next" and "previous" are left out.

        Returns:
            Facts about the copy that the caller should know, such as a damaged file that was copied as it is.

        Raises:
            BadInput: the engine cannot reach the draft.
            StorageError: the disk refuses.
        """

    def close(self) -> None:
        """Release connections and memory. A later call opens what it needs again."""


class Engine(Protocol):
    """One address, where an index is made, opened, replaced and removed: a folder, or a name in a database.

    An index is in a `Slot`. life_cycle.py has everything that is made of these verbs, such as a copy and a rebuild.
    """

    @property
    def address(self) -> str:
        """The address to show in messages: a path, or a DSN without its password."""

    def exists(self, slot: Slot = "live") -> bool:
        """Return whether there is an index in a slot. It may be damaged.

        Raises:
            StorageError: this user may not look into the folder, or the database cannot be asked.
        """

    def make(self, slot: Slot, settings: Settings) -> Store:
        """Make an empty index in a slot. It appears complete or not at all.

        A draft may be made at an address that has a live index only inside of `exclusive`. An index at "next" is made
        under the writer of the live index.

        Raises:
            BadInput: the slot is taken, or there is no stemmer for the language.
            IndexLocked: another process is filling the unfinished index.
            StorageError: the disk or the database refuses.
        """

    def open(self, slot: Slot = "live") -> Store:
        """Open the index in a slot. Everybody who opens it through this engine shares one store, and so its lock.

        Raises:
            NotAnIndex: there is none.
            IndexLocked: another process is filling the unfinished index.
        """

    def exclusive(self, *, wait: bool = True, listener: Listener = SILENT) -> AbstractContextManager[None]:
        """Keep everybody from writing to the live index for the length of the block. The arguments are those of
        `writer`.

        The block must not write to the live index either: in a database the write would wait for the block.

        Raises:
            NotAnIndex, IndexLocked: as in `Store.writer`.
        """

    def publish(self, slot: Slot) -> None:
        """Make the index in a slot the live index, in one commit. After a kill the next writer completes or undoes the
        change.

        If there is a live index, call this inside of `exclusive` and of the writer of the other index. Both blocks end
        after the call without another change. Open snapshots still read the old index; later snapshots read the new
        index.

        The index that was live moves to "previous" if the slot is "next" or "previous". If it is "draft" or
        "unfinished", the index that was live is removed, and the index at "next" with it.

        Raises:
            BadInput: the slot is empty; there is a live index that this engine does not hold; or there is an index at
                "previous" already, and it is not the index that becomes live.
            StorageError: the disk or the database refuses, and nothing has changed.
        """

    def discard(self, slot: Slot) -> int:
        """Remove the index in a slot other than "live"; return its size in bytes.

        For "next" and "previous", the caller holds the writer of the live index, and also the writer of the removed
        index unless that index is damaged. Both blocks end after the call.

        Raises:
            BadInput: the slot is empty.
            IndexLocked: another process is filling the index.
        """

    def leftovers(self) -> tuple[str, ...]:
        """Return a note on everything that killed commands have left here, with its size and how to remove it.

        In a folder these are the drafts beside it, in a database all that were begun in it.
        """

    def sweep(self) -> int:
        """Remove the drafts that killed commands have left at this address; return their size in bytes."""

    def close(self) -> None:
        """Release the connections and the memory of all stores. A later call opens what it needs again."""
