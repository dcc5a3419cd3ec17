"""The port between likewise and whatever keeps its passages: one protocol, in words of the domain.

Rankings go through it alone (search/modes.py). `LocalStore` (local.py) is a folder on this machine. Vectors given to a
store are unit rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Changes, Document, Span, Vector

if TYPE_CHECKING:
    from indexer.stores.postings import Found

Unit = Literal["document", "passage"]


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document with its passages and their unit vectors (passages, dimensions).

    Without `spans` and `vectors` only the row of a known document is rewritten: its metadata changed.
    """

    document: Document
    content_hash: bytes
    row_hash: bytes
    spans: tuple[Span, ...] | None = None
    vectors: Vector | None = None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What became of one file or record. `file` is the file it lies in, equal to `uri` for whole files."""

    file: str
    uri: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in order of their score, best first.

    Attributes:
        passages: passage ids (n,), int64.
        documents: of each the document it is of (n,).
        scores: cosine of each (n,), float32, computed from the stored vectors; or BM25.
        matched: units that pass the filter, whatever their score; by words, those that hold one.
        exact: the order is provably that of brute force over the stored vectors, or words.
    """

    passages: NDArray[np.int64]
    documents: NDArray[np.int64]
    scores: NDArray[np.float32]
    matched: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage with what its document says of itself."""

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
class Report:
    """What `check` found: `problems` are wrong, `notes` are worth knowing."""

    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Info:
    """The state of a store in numbers. Sizes in bytes."""

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


class Store(Protocol):
    """A transactional home for passages and their vectors."""

    def put(self, documents: Sequence[EmbeddedDocument], rows: Sequence[LedgerRow] = (), run: int = 0) -> Changes:
        """Add, replace or update documents: durable and visible when it returns, all or none."""

    def remove(self, uris: Iterable[str]) -> int:
        """Remove documents; how many there were."""

    def dense(
        self, vector: Vector, k: int, where: Where | None = None, unit: Unit = "document", exact: bool = False
    ) -> Ranking:
        """The k units nearest to a unit vector by cosine, each by its best passage."""

    def words(self, text: str, k: int, where: Where | None = None, unit: Unit = "document") -> Ranking:
        """The k units that hold a word of a text, best first by BM25; documents by all their words, each with its
        best passage.

        Raises:
            NoWords: the text has no word but stop words.
        """

    def dense_scores(self, vector: Vector, ids: NDArray[np.int64], unit: Unit = "passage") -> NDArray[np.float32]:
        """Cosine of passages, or of the nearest passage of documents, by id (n,); NaN where there is none."""

    def words_scores(self, text: str, ids: NDArray[np.int64], unit: Unit = "passage") -> NDArray[np.float32]:
        """BM25 of passages, or of documents, by id (n,), as `words` has it; 0 where no word matches."""

    def terms(self, text: str) -> list[str]:
        """The different terms that a question asks for, without stop words."""

    def word_documents(self, text: str, k: int, where: Where | None = None) -> Found:
        """As `words` ranks documents, without the passage to show of each."""

    def passages_of(
        self, vector: Vector, documents: NDArray[np.int64], known: Ranking | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Every passage of the documents (passages,): its id, its document, its cosine.

        Args:
            known: a ranking for the same vector, whose cosines need not be computed again.
        """

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        """Passages by id, in the order asked for; checksums verified."""

    def documents(self, where: Where | None = None) -> Iterator[Document]:
        """Documents in the order they were added."""

    def info(self) -> Info: ...

    def check(self, repair: bool = False) -> Report: ...

    def compact(self, kind: str = "auto", recall: float | None = None) -> None: ...
