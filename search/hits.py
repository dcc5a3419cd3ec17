"""The result of a search: the hits, best first, and how many units they were chosen from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, overload

from indexer.stores.port import Passage


@dataclass(frozen=True, slots=True)
class Hit:
    """A document with its best passage, or one passage.

    Attributes:
        uri, title, path, format, modified, metadata: members of the document.
        text: the passage, `document.text[start:end]`.
        start, end: offsets of the passage in the document's text, in code points.
        line: line on which it begins, counted from 1; None if the text is not the file's own.
        heading, page: heading and page of the section in which it begins.
        score: the score that ranks it, higher is better; the cosine in dense mode.
        cosine: cosine of question and passage within [-1, 1]; None if it was not computed.
        percentile: percentage of random passages of this index whose cosine with an unrelated question is lower;
            None if there is no cosine, or if the index is not calibrated.
        why: the reasons for the score: `cosine`, `bm25`, `weights`, and `contributions`, whose sum is the score;
            `words`, the words of the question in the passage, with offsets in the document; `weak`, whether the
            passage is no nearer than the best hits of unrelated questions usually are, and lacks a word of the
            question; with explain=True,
            `sentence`, the sentence nearest to the question. A reranked hit has the reasons of the first ranking, with
            its rank and score, under `first`.
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
    def from_passage(
        cls,
        passage: Passage,
        score: float,
        cosine: float | None,
        percentile: float | None = None,
        why: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    ) -> Hit:
        """Return the hit of a stored passage; its cosine is clipped to [-1, 1].

        Args:
            why: the reasons, or an object that makes the reasons when they are first read.
        """
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
            why=why,  # type: ignore[arg-type]  # made when it is read
        )


HIT_MEMBERS = tuple(member.name for member in fields(Hit))
"""The names of the members of a hit, in their order."""

_stored_why: Any = Hit.__dict__["why"]


def _read_why(hit: Hit) -> Mapping[str, Any] | None:
    value = _stored_why.__get__(hit, Hit)
    if callable(value):
        value = value()
        _stored_why.__set__(hit, value)
    return value  # type: ignore[no-any-return]


# The slot of the dataclass stays the storage; reading it makes the reasons, so that they are plain dictionaries.
type.__setattr__(Hit, "why", property(_read_why, _stored_why.__set__))


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """Hits in order, best first.

    Attributes:
        query: the question; empty if the search was by a vector or by a document.
        mode: the mode that ranked them.
        matched: how many documents (or passages) pass the filter; the hits are the best of these.
        exact: whether the ranking is provably that of brute force over the stored vectors.
        answered: whether some passage is nearer to the question than the best hits of unrelated questions usually are,
            or, in hybrid mode, the first hit holds every word of the question; None if this is unknown.
        did_you_mean: the question with similar words of the index in place of words that no document has; empty if
            every word is in a document, in dense mode, and without a similar word.
        notes: sentences that the caller should read: the question was cut, its words were ignored, a damaged segment
            was replaced by the catalog, ...; usually none.
    """

    hits: tuple[Hit, ...]
    matched: int
    exact: bool
    query: str = ""
    mode: str = "dense"
    answered: bool | None = None
    notes: tuple[str, ...] = ()
    did_you_mean: str = ""

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def as_json(self, members: Sequence[str] = HIT_MEMBERS) -> dict[str, Any]:
        """Return the object that `--json` prints.

        Args:
            members: the members of each hit. Hits without `why` take less time.
        """
        return {
            "query": self.query,
            "mode": self.mode,
            "matched": self.matched,
            "exact": self.exact,
            "answered": self.answered,
            "did_you_mean": self.did_you_mean,
            "notes": list(self.notes),
            # Not `asdict`, whose deep copies took as long as the search itself.
            "hits": [{name: getattr(hit, name) for name in members} for hit in self.hits],
        }
