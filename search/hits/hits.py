"""The result of a search: the hits, best first, and how many units they were chosen from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import groupby
from typing import Any, overload

from indexer.settings import RecordedSource
from indexer.stores.port import Passage
from search.hits.shown import shown_ranges

MAX_LISTED = 100
"""Maximum uris that a hit lists of its family."""


class _MadeWhenRead:
    """A member of a hit: a function that makes its value is kept until the value is read."""

    def __init__(self, default: object) -> None:
        self._default = default

    def __set_name__(self, kind: type[Hit], name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, hit: Hit | None, kind: type[Hit]) -> Any:
        if hit is None:
            return self._default
        members = vars(hit)
        value = members[self._name]  # read once: another thread may put the value in place of the function
        if callable(value):
            value = members[self._name] = value()
        return value

    def __set__(self, hit: Hit, value: object) -> None:
        vars(hit)[self._name] = value


@dataclass(frozen=True)
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
        why: the reasons for the score: `cosine`, `bm25`, `weights`, and `contributions`, whose sum is the score;
            `words`, the words of the question in the passage, with offsets in the document; `weak`, whether the
            passage is no nearer than the best hits of unrelated questions usually are, and lacks a word of the
            question; with explain=True,
            `sentence`, the sentence nearest to the question. A reranked hit has the reasons of the first ranking, with
            its rank and score, under `first`.
        index: name of the index that holds it, if several were asked; None otherwise.
        family: with fold=True, the uris of other documents whose hits have nearly the same text, the best first, at
            most 100.
        family_size: how many such hits the search has met, with other passages of the same document.
        family_indexes: the index of each document of the family, if several were asked.
        gone: whether its file has been removed or moved since it was read (`is_gone`), which is looked up when this is
            read. It is False for a document without a file, and for an index on another machine.
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
    why: Mapping[str, Any] | None = _MadeWhenRead(None)  # type: ignore[assignment]  # read as this type
    index: str | None = None
    family: tuple[str, ...] = ()
    family_size: int = 0
    family_indexes: tuple[str, ...] = ()
    gone: bool = _MadeWhenRead(False)  # type: ignore[assignment]  # read as this type

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_why": self.why, "_gone": self.gone}

    @property
    def shown(self) -> list[tuple[int, int]]:
        """The ranges of `text`, in code points, that do not say again what title, heading and metadata say."""
        return shown_ranges(self.text, self.format, self.title or self.uri, self.heading)

    @classmethod
    def from_passage(
        cls,
        passage: Passage,
        score: float,
        cosine: float | None,
        why: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        family: Sequence[str] = (),
        sources: Sequence[RecordedSource] = (),
    ) -> Hit:
        """Return the hit of a stored passage; its cosine is clipped to [-1, 1].

        Args:
            why: the reasons, or an object that makes the reasons when they are first read.
            family: uri of every other passage of the family.
            sources: those of the index.
        """
        return cls(
            **{name: getattr(passage, name) for name in _PASSAGE_MEMBERS},
            score=score,
            cosine=None if cosine is None else max(-1.0, min(1.0, cosine)),
            why=why,  # type: ignore[arg-type]  # made when it is read
            gone=partial(_is_gone, passage.path, sources),  # type: ignore[arg-type]  # looked up when it is read
            **(family_members((passage.uri, None), [(uri, None) for uri in family]) if family else {}),
        )


def _is_gone(path: str | None, sources: Sequence[RecordedSource]) -> bool:
    """Return whether a file is gone, as `is_gone`. Most files exist, and then nothing is imported."""
    if path is None or os.path.exists(path):  # noqa: PTH110
        return False
    from indexer.sources.folders.recorded import is_gone

    return is_gone(path, sources)


def existing_first(
    passages: Sequence[Passage], scores: Sequence[float], sources: Sequence[RecordedSource]
) -> list[int]:
    """Return the order of ranked passages in which, of equal texts with equal scores, those of gone files come last."""
    order = list[int]()
    for _, equal in groupby(range(len(passages)), lambda row: (scores[row], passages[row].text)):
        row, *more = equal  # A file is looked up only if there is a choice.
        gone = {each: _is_gone(passages[each].path, sources) for each in (row, *more) if more}
        order += sorted(gone, key=gone.__getitem__) or [row]
    return order


def in_index(hit: Hit, name: str) -> Hit:
    """Return a hit with the name of its index. What is made when it is first read still is."""
    return replace(hit, index=name, why=vars(hit)["_why"], gone=vars(hit)["_gone"])


def family_members(own: tuple[str, str | None], others: Sequence[tuple[str, str | None]]) -> dict[str, Any]:
    """Return the members of a hit that describe its family.

    Args:
        own: uri and index of the hit.
        others: those of the other hits of the family, the best first.
    """
    listed = [each for each in dict.fromkeys(others) if each != own][:MAX_LISTED]
    indexes = tuple(index for _, index in listed if index is not None)
    return {"family": tuple(uri for uri, _ in listed), "family_size": len(others), "family_indexes": indexes}


HIT_MEMBERS = tuple(member.name for member in fields(Hit))
"""The names of the members of a hit, in their order."""

_PASSAGE_MEMBERS = tuple(member.name for member in fields(Passage) if member.name in HIT_MEMBERS)


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """Hits in order, best first.

    Attributes:
        query: the question; empty if the search was by a vector or by a document.
        mode: the mode that ranked them.
        matched: how many documents (or passages) pass the filter; the hits are the best of these, also with `fold`.
        exact: whether the ranking is provably that of brute force over the stored vectors.
        answered: whether some passage is nearer to the question than the best hits of unrelated questions usually are,
            or, in hybrid mode, one of the first ten hits holds every word of the question, or some passage is near to
            the question with corrected words (`did_you_mean`); None if this is unknown.
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
