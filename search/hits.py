"""What a search gives back: hits, best first, and how many there were to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from indexer.stores.port import Passage


@dataclass(frozen=True, slots=True)
class Hit:
    """A document by its best passage, or a passage.

    Attributes:
        uri, title, path, format, modified, metadata: of the document.
        text: the passage, `document.text[start:end]`.
        start, end: its offsets in the document's text, in code points.
        line: 1-based line it begins on, for files whose text is the file's own; else None.
        heading, page: of the part of the document it begins in.
        score: what the ranking goes by, higher is better; the cosine in dense mode.
        cosine: cosine of question and passage within [-1, 1], None where it was not computed.
        percentile: per cent of random passages of this index that an unrelated question is less near to than this;
            None where there is no cosine, or the index has not been calibrated.
        why: how the score came about: `cosine`, `bm25`, `weights`, and `contributions`, which sum to the score;
            `words`, those of the question in the passage, with offsets in the document; where asked for, `sentence`,
            the nearest to the question. Of reranked hits the first ranking's are under `first`, with rank and score.
    """

    uri: str
    title: str
    text: str
    start: int
    end: int
    score: float
    cosine: float | None
    page: int | None = None
    line: int | None = None
    heading: str = ""
    path: str | None = None
    format: str | None = None
    modified: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    why: Mapping[str, Any] | None = None
    percentile: float | None = None

    @classmethod
    def of(
        cls,
        passage: Passage,
        score: float,
        cosine: float | None,
        percentile: float | None = None,
        why: Mapping[str, Any] | None = None,
    ) -> Hit:
        return cls(
            uri=passage.uri,
            title=passage.title,
            text=passage.text,
            start=passage.start,
            end=passage.end,
            score=score,
            cosine=None if cosine is None else max(-1.0, min(1.0, cosine)),
            page=passage.page,
            line=passage.line,
            heading=passage.heading,
            path=passage.path,
            format=passage.format,
            modified=passage.modified,
            metadata=passage.metadata,
            percentile=percentile,
            why=why,
        )


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """Hits in order, best first.

    Attributes:
        query: the question, empty where a vector or a document was asked with.
        mode: how they were ranked.
        matched: documents (or passages) that the filter leaves, of which these are the best.
        exact: the ranking is provably that of brute force over the stored vectors.
        answered: whether something is nearer than what unrelated questions find here, or in hybrid mode the first hit
            holds every word that is asked for; None where that is not known.
        notes: sentences that the caller should read: the question was cut, its words were ignored, a damaged segment
            was answered from the catalog, ...; usually none.
    """

    hits: tuple[Hit, ...]
    matched: int
    exact: bool
    query: str = ""
    mode: str = "dense"
    answered: bool | None = None
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, at: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[at]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def as_json(self) -> dict[str, Any]:
        """The shape `--json` prints."""
        return {
            "query": self.query,
            "mode": self.mode,
            "matched": self.matched,
            "exact": self.exact,
            "answered": self.answered,
            "notes": list(self.notes),
            "hits": [asdict(hit) for hit in self.hits],
        }
