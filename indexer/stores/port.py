"""The interface between likewise and whatever keeps its passages: three protocols, and the values that cross it.

A `Store` gives consistent snapshots to read and a writer to change it. Nothing here names a folder, a database or a
library: open.py turns an address into a store, and each engine has a folder of its own. The rules that every engine
follows are in neutral files beside this one: hashes.py (what has changed), vectors.py (how a vector is stored),
analysis.py (text to terms), flatten.py (metadata to fields), field_types.py (which filters are refused), lines.py (the
line of a passage) and setting_rows.py (the names of settings). tests/contracts/test_store.py holds every engine to this
file, by comparison with a store made of a dict and numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Type, Where
from indexer.records import Changes, Document, KnownFile, Span, Stamp, Vector
from indexer.settings import Meaning, Settings

Unit = Literal["document", "passage"]
Kind = Literal["auto", "exact", "approximate"]
Ids = NDArray[np.int64]

BEST_PASSAGES = 3
"""Passages of a document, the best ones, whose mean cosine `Candidates` carries."""

DUPLICATE = "duplicate id: a later record of the same run has it"
"""Reason of a skipped ledger row whose document came from another file: `end_run` looks for it."""


@dataclass(frozen=True, slots=True)
class Hashes:
    """What tells a document that has changed from one that is the same (hashes.py).

    Attributes:
        content: of everything that is embedded, 16 bytes.
        row: of the rest, 16 bytes.
    """

    content: bytes
    row: bytes


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document with its passages and their unit vectors (passages, dimensions).

    Without `spans` and `vectors` only the row of a known document is rewritten: its metadata changed.
    """

    document: Document
    hashes: Hashes
    spans: tuple[Span, ...] | None = None
    vectors: Vector | None = None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The outcome of one file or record. `file` is the file that holds it, equal to `uri` for whole files."""

    file: str
    uri: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction of an indexing run writes.

    Attributes:
        documents: new, changed and updated documents, each uri once.
        rows: the outcome of each file and record; with none, files that hold these documents are read again next time.
        finished: files that were read to their end, by path, so that the next run can skip them unread.
        run: number that `begin_run` gave; 0 outside of a run.
    """

    documents: Sequence[EmbeddedDocument] = ()
    rows: Sequence[LedgerRow] = ()
    finished: Mapping[str, Stamp] = field(default_factory=dict)
    run: int = 0


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What is known at the end of an indexing run.

    Attributes:
        read: files of which every entry is in the ledger: what this run did not meet in them is gone.
        unchanged: files that were not opened, as they have not changed.
    """

    read: Sequence[str] = ()
    unchanged: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in order of their score, best first; equal scores in the order the passages were added.

    Attributes:
        passages: passage ids (n,), int64.
        documents: ids of the documents they belong to (n,).
        scores: cosine of each (n,), float32, computed from the stored vectors; or BM25.
        matched: units that pass the filter, whatever their score; by words, those that also hold a word.
        exact: the order is provably that of brute force over the stored vectors, or words.
    """

    passages: Ids
    documents: Ids
    scores: NDArray[np.float32]
    matched: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best units by cosine and the best by words, each with its score by both, in order of their unit's id.

    Attributes:
        passages: ids of the passages to show (n,): of a document the one nearest to the question.
        cosines: of these passages (n,), float32.
        best_means: mean cosine of the BEST_PASSAGES nearest passages of the unit (n,), float64; of a passage its own.
        words: BM25 of the unit (n,), float32; 0 where it holds no word of the question.
        terms: how many different terms the question asks for.
        matched: units that pass the filter.
        complete: every one of them is a candidate, and the dense leg was exact.
    """

    passages: Ids
    cosines: NDArray[np.float32]
    best_means: NDArray[np.float64]
    words: NDArray[np.float32]
    terms: int
    matched: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage with what is stored of its document."""

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
    """Passages drawn at random: ids ascending (n,), and their vectors as stored (n, dimensions)."""

    passages: Ids
    vectors: Vector


@dataclass(frozen=True, slots=True)
class PassagePairs:
    """Pairs of passages of different documents, best first.

    Attributes:
        first, second: passage ids (n,).
        scores: cosines (n,), float32.
        passages: how many were compared with each other.
    """

    first: Ids
    second: Ids
    scores: NDArray[np.float32]
    passages: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `check` found: `problems` are wrong, `notes` are worth knowing."""

    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Recall:
    """The share of the ten nearest passages that a search without a filter finds, measured against brute force.

    Attributes:
        recall: mean over the questions.
        low, high: its 95 % interval.
        questions: how many were asked; none in an empty index.
        exact: every answer was provably brute force's.
    """

    recall: float
    low: float
    high: float
    questions: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Info:
    """The state of a store in numbers. Sizes in bytes.

    Attributes:
        unsealed: passages that no segment holds yet; all of them where an engine has no segments.
        history: drawn at random when the index was made; a copy has its own.
        segments: each with its kind, its count and how many of those are alive; none where an engine has no segments.
        fields: the types of each metadata field.
        details: what only this engine has; `info --json` prints it beside the rest.
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
    details: Mapping[str, Any] = field(default_factory=dict)


class Snapshot(Protocol):
    """One consistent state of an index: everything that is read through it belongs to the same commit.

    Vectors given to it are unit rows. A filter that does not fit the index raises FilterError; a stored row that does
    not match its checksum raises IndexDamaged.
    """

    @property
    def settings(self) -> Settings: ...

    @property
    def documents(self) -> int:
        """How many documents there are."""

    @property
    def passages(self) -> int:
        """How many passages there are."""

    @property
    def version(self) -> Hashable:
        """Equal for snapshots of the same commit: what was computed from one may be kept for the other."""

    @property
    def history(self) -> str:
        """Equal for snapshots of the same index, whatever was committed in between; a copy has its own."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about this state that the caller should know: a damaged segment is answered from the catalog, say.

        Read them after ranking, as ranking by words may add to them. Every snapshot has the notes of its state, so that
        each question is told and not only the first one.
        """

    def hashes(self, uris: Iterable[str] | None = None) -> Mapping[str, Hashes]:
        """Hashes of those of the uris that are documents, or of all documents."""

    def changed_since(self, earlier: Mapping[str, Hashes]) -> Iterator[str]:
        """Uris that are new, different or gone, compared with all `hashes` of an earlier snapshot."""

    def get(self, uri: str) -> Document | None: ...

    def matches(self, uri: str, where: Where) -> bool:
        """Whether a filter leaves this document; False where there is none, before the filter is looked at."""

    @property
    def fields(self) -> Mapping[str, Collection[Type]] | None:
        """The types of each metadata field that some document has; None where there is no document."""

    def count(self, where: Where) -> int:
        """Return how many documents a filter leaves."""

    def dense(
        self, vector: Vector, k: int, where: Where | None = None, unit: Unit = "document", exact: bool = False
    ) -> Ranking:
        """The k units nearest to a unit vector (dimensions,) by cosine, each by its best passage.

        There are min(k, matched) of them, whatever the filter. `exact` asks for brute force.
        """

    def words(self, text: str, k: int, where: Where | None = None, unit: Unit = "document") -> Ranking:
        """The k units that hold a word of a text, best first; documents by all their words, each with its best passage.

        Scores are BM25 with k1 = 1.2 and b = 0.75, and statistics of the whole collection, filter or not. The length of
        a text is rounded to one byte as in Lucene. Fusion's constants assume exactly these scores: another formula,
        or statistics per shard, would make hybrid worse without an error.

        Raises:
            NoWords: the text has no word but stop words.
        """

    def candidates(
        self, vector: Vector, text: str, depth: int, where: Where | None, unit: Unit, exact: bool
    ) -> Candidates:
        """The `depth` best units of both legs together, with the score that each lacks of the other's computed.

        A text without words leaves the dense leg alone.
        """

    def passages_by_id(self, ids: Sequence[int]) -> list[Passage]:
        """Passages in the order asked for; checksums verified.

        Raises:
            IndexDamaged: one does not match its checksum, or there is no passage of an id.
        """

    def vectors_of(self, uri: str) -> Vector | None:
        """Stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""

    def fitted_parameters(self) -> bytes | None:
        """What the recipe's post-processing was fitted to, as safetensors; None where there is none."""

    def sample(self, count: int, seed: int = 0) -> Sample:
        """`count` random passages, or all there are; a copy of the index gives the same ones."""

    def nearest_pairs(self, count: int, min_score: float) -> PassagePairs:
        """The `count` most similar pairs of passages of different documents, provably."""

    def files(self) -> Mapping[str, KnownFile]:
        """Every file that the ledger knows, by path; entries that are gone are left out."""

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        """Rows of the ledger, in the order they were written; only those of a state."""

    def ledger_of_documents(self) -> Iterator[LedgerRow]:
        """Rows of the ledger whose uri is a document, in no particular order."""

    def ledger_counts(self) -> Mapping[str, int]:
        """How many rows there are of each state."""

    def info(self) -> Info: ...

    def recall(self) -> Recall: ...

    def check(self, meaning: Meaning | None) -> CheckReport:
        """Verify everything that is stored and everything that is derived from it, without a lock.

        Args:
            meaning: what the hashes of embedded content were made with; None leaves those out.
        """


class Writer(Protocol):
    """Changes an index: durable and visible when a method returns. Every method but `settle`, `compact` and `repair`,
    which change nothing that is searched for, is one transaction.

    Raises StorageError where the disk refuses; what was committed before is kept.
    """

    @property
    def notes(self) -> tuple[str, ...]:
        """What the commits since this writer was opened have to tell: a derived file could not be written, say."""

    def put(self, batch: Batch) -> Changes:
        """Add, replace and update documents, and write the ledger, in one transaction.

        Raises:
            BadInput: metadata that no filter can hold, vectors that do not fit the passages or the index, or an update
                of what is not a document; nothing is written.
        """

    def remove(self, uris: Iterable[str]) -> int:
        """Remove documents and their ledger rows; returns how many documents there were.

        Ledger rows of uris that are not documents stay.
        """

    def change(self, update: Callable[[Settings], Settings], fitted_parameters: bytes | None = None) -> Settings:
        """Replace the settings by what `update` makes of those that are stored, and return the new ones.

        Args:
            fitted_parameters: what a recipe's post-processing has just been fitted to, to be kept with its recipe.

        Raises:
            BadInput: fitted parameters are stored already: every vector depends on them.
        """

    def begin_run(self) -> int:
        """Number a new indexing run. Until its end `check` notes that it has not finished."""

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        """Mark what the run did not meet in files it read as gone, and files it skipped as unchanged.

        Returns:
            How many files are to be read again, as documents that they also hold came from files that are gone.
        """

    def settle(self, recall: float | None = None) -> None:
        """Put derived indexes in their best shape after an indexing run, where that is worth it.

        Args:
            recall: what approximate segments are tuned to from now on, above 0 and at most 1.
        """

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        """Rewrite everything derived without what was removed, and give free space back.

        Raises:
            BadInput: an unknown kind, or a recall out of range.
        """

    def repair(self, meaning: Meaning | None) -> CheckReport:
        """Check, rebuild what is derived, and have damaged documents embedded again by the next run."""


class Store(Protocol):
    """A home of one index. Safe to share among threads, and usable after a fork."""

    @property
    def address(self) -> str:
        """Where it is, for messages: a path, or a DSN without its password."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """The newest commit, for the length of the block, which may hold a transaction open: embed a question inside
        it, so that question and answer see one index, but never a collection. What is read lazily is read inside it.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: there is no index that can be read.
        """

    def writer(
        self, *, wait: bool = True, on_wait: Callable[[str], None] | None = None
    ) -> AbstractContextManager[Writer]:
        """The right to write, for the length of the block. A thread that has it gets the same writer again.

        What the lock covers is the engine's choice: a folder has one writer.

        Args:
            wait: wait for another holder; otherwise raise at once.
            on_wait: told once, with a message that names the holder, before waiting for another process.

        Raises:
            NotAnIndex: there is no index any more.
            IndexLocked: another process or thread is writing and `wait` is False.
        """

    def iterate(self, where: Where | None = None) -> Iterator[Document]:
        """Documents in the order they were added, read in pages: no transaction stays open between two of them.

        A filter is that of the moment the iteration begins. Without one, documents added meanwhile may be among them.
        """

    def export(self) -> Iterator[EmbeddedDocument]:
        """Documents with their passages and vectors, in the order they were added, read in pages.

        They come without hashes and prefixes; the tokens of a document are counted to its first passage.
        """

    def successor(self, settings: Settings) -> AbstractContextManager[Store]:
        """An empty store that takes the place of this one if the block ends well. Use under this one's writer.

        Its history is new, and its ledger and runs are empty.
        """

    def artifacts(self) -> Path:
        """The folder on this machine where the compiled encoder of this index is kept; it need not exist yet."""

    def backup(self, destination: str) -> tuple[str, ...]:
        """Copy the index as of one commit, while it is read and written; the copy appears whole or not at all.

        Returns:
            Facts about the copy that the caller should know: a damaged file was copied as it is, say.

        Raises:
            BadInput: something is there already.
        """

    def close(self) -> None:
        """Release connections and memory. A later call opens what it needs again."""
