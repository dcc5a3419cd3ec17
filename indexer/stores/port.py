"""The values that likewise and the engines that store its passages exchange. reading/store.py has the protocols.

Every engine follows the rules in these files: hashes.py (whether a document has changed), vectors.py (how a vector is
stored), words/analysis.py (text to terms), fields/flatten.py (metadata to fields), fields/field_types.py (which filters
are refused), lines.py (the line of a passage), setting_rows.py (the stored names of settings) and pairs.py (the most
similar pairs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Scalar
from indexer.ledger import NO_REASON, LedgerState, Reason
from indexer.records import Document, Span, Stamp, Vector

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
            that was not opened.
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


class Condition(NamedTuple):
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


class Ranking(NamedTuple):
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


class Candidates(NamedTuple):
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
        holding: how many texts have each term, and how many have the term, in a compound, joined, or in a column.
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


class Sample(NamedTuple):
    """Passages drawn at random.

    Attributes:
        passages: ids in ascending order (n,), int64.
        vectors: their stored vectors (n, dimensions), float32.
    """

    passages: Ids
    vectors: Vector


class PassagePairs(NamedTuple):
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
