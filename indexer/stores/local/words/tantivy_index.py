"""The file that talks to tantivy's index: units of text in, the best of them by BM25 out.

BM25 (Robertson, Zaragoza 2009) with k1 = 1.2 and b = 0.75, as tantivy has it: lengths are rounded as in Lucene. Its
statistics also count what was deleted and not merged away. They are put right here, so that scores depend on nothing
but the units that are alive: document frequencies by a factor on each term, the mean length by padding.
"""

from __future__ import annotations

import ctypes
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from indexer.stores.analysis import Analysis

Ids = NDArray[np.int64]
Engine: TypeAlias = tantivy.Index

_FEW = 200
"""Ids asked for one by one; more are looked up as a set, which takes 0.3 ms to begin with."""

_RUNS = 16
"""Runs of successive ids looked for by their bounds: documents of one source, say. 50,000 in one take 1 ms, not 16."""

_HEAP = 50_000_000
_DIGITS = 4
"""Scores that agree to so many digits are equal: tantivy sums single floats, in an order of its own."""

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
_TRIM_EVERY = 0.25
"""Seconds between two returns of memory: the next writing thread has to ask the system for it again, about 7 ms."""

_TRIM_SHARE = 0.1
"""Share of the time that it may take."""
_next_trim = 0.0

_PADDING = 0  # the id of what is no unit
_FILLER = "_"  # a term that analysis never makes

# Signed: the engine silently deletes nothing by an unsigned number.
_SCHEMA = (
    tantivy.SchemaBuilder()
    .add_integer_field("id", indexed=True, fast=True)
    .add_integer_field("document", indexed=True, fast=True)
    .add_integer_field("length", fast=True)
    .add_text_field("words", tokenizer_name="words", index_option="freq")
    .build()
)


@dataclass(frozen=True, slots=True)
class Unit:
    """Something to be found: its id, the document it is of, and its words as `Analysis.words` has them."""

    id: int
    document: int
    words: list[str]


@dataclass(frozen=True, slots=True)
class Found:
    """The best units, best first, equal scores by id: ids, documents, scores (n,), and how many there are in all."""

    ids: Ids
    documents: Ids
    scores: NDArray[np.float32]
    matched: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """Documents that may be found, as part of a question: None are excluded where `excluded` is not set."""

    query: Query
    excluded: bool = False


def chosen(field: str, ids: Ids, *, excluded: bool = False) -> Chosen:
    """Units whose `field` ("id" or "document") is one of the ids, which ascend, or none of them."""
    pieces: list[Query]
    if len(ids) <= _FEW:
        pieces = [Query.term_query(_SCHEMA, field, id_, "basic") for id_ in ids.tolist()]
    elif len(runs := np.split(ids, np.flatnonzero(np.diff(ids) > 1) + 1)) <= _RUNS:
        bounds = ((int(run[0]), int(run[-1])) for run in runs)
        pieces = [Query.range_query(_SCHEMA, field, tantivy.FieldType.Integer, *bound) for bound in bounds]
    else:
        pieces = [Query.term_set_query(_SCHEMA, field, ids.tolist())]
    query = Query.boolean_query([(Occur.Should, piece) for piece in pieces])
    return Chosen(query if excluded else Query.const_score_query(query, 0.0), excluded)


def opened(folder: Path | None, analysis: Analysis) -> Engine:
    """The index in a folder, made there where there is none; in memory without a folder."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    index = Engine(_SCHEMA, None if folder is None else str(folder))
    index.register_tokenizer("words", analysis.stemmed)
    index.config_reader("manual")
    return index


def give_memory_back() -> None:
    """Return what writing threads have freed to the system; only glibc keeps it.

    Each writer works in a thread of its own, and glibc keeps for later what that thread has freed: 2.4 MB for each
    small index with documents that its word index lacks, and 0.5 MB after this. It takes 0.03 ms, but 50 ms where a
    process has freed every second one of 200,000 objects: after so long it is left out for a while.
    """
    global _next_trim  # noqa: PLW0603
    begun = time.monotonic()
    if _TRIM is not None and begun >= _next_trim:
        _TRIM(0)
        ended = time.monotonic()
        _next_trim = ended + max(_TRIM_EVERY, (ended - begun) / _TRIM_SHARE)


class Writing:
    """Changes to an index, which appear together with `commit`."""

    def __init__(self, index: Engine) -> None:
        # One thread: units of equal score come out in the order they went in.
        self._writer = index.writer(_HEAP, 1)

    def add(self, unit: Unit) -> None:
        text = " ".join(unit.words)
        self._writer.add_document(
            tantivy.Document(id=unit.id, document=unit.document, length=len(unit.words), words=text)
        )

    def remove(self, ids: Sequence[int]) -> None:
        if ids:
            self._writer.delete_documents_by_query(Query.term_set_query(_SCHEMA, "id", ids))

    def pad(self, words: int, empty: int) -> None:
        for text in [" ".join([_FILLER] * words)] + [""] * empty:
            self._writer.add_document(tantivy.Document(id=_PADDING, document=_PADDING, length=0, words=text))

    def commit(self) -> None:
        self._writer.commit()
        self._writer.wait_merging_threads()


class Postings:
    """One state of an index. Safe to share among threads; changes to the index are not seen.

    Attributes:
        count: units alive.
    """

    def __init__(self, index: Engine, *, worn: bool) -> None:
        """`worn`: units were deleted from it since it was made."""
        self._worn = worn
        self._physical = 0
        self._factors: dict[str, float] = {}  # of terms that were asked for
        index.reload()
        self._searcher = index.searcher()
        self.count = self._searcher.num_docs
        if worn:
            self._mend(index)

    def search(self, terms: Sequence[str], n: int, only: Chosen | None = None) -> Found:
        """The n best units that hold a term."""
        query = self._query(terms, only)
        most = min(n, self.count)
        n = max(1, most)  # the engine makes room for as many as it is asked for, and refuses none
        fetched = n + 8
        while True:
            result = self._searcher.search(query, fetched)
            found = self._found(result.hits, n, result.count)
            # What was left out may score the same as the last that is in.
            if fetched >= result.count or found.scores[-1] > _rounded([result.hits[-1][0]])[0]:
                return found if most else Found(found.ids[:0], found.documents[:0], found.scores[:0], found.matched)
            fetched *= 4

    def scores(self, terms: Sequence[str], field: str, ids: Ids) -> NDArray[np.float32]:
        """The score of units by `field` ("id" or "document"), 0 where none holds a term (n,)."""
        known: dict[int, float] = {}
        if terms and len(ids):
            query = self._query(terms, chosen(field, np.unique(ids)))
            hits = self._searcher.search(query, max(1, len(ids)), count=False).hits
            where = self._values(field, [address for _, address in hits]).tolist()
            known = dict(zip(where, _rounded([score for score, _ in hits]).tolist(), strict=True))
        return np.array([known.get(id_, 0.0) for id_ in ids.tolist()], np.float32)

    def _found(self, hits: list[tuple[Any, Any]], n: int, matched: int) -> Found:
        addresses = [address for _, address in hits]
        ids = self._values("id", addresses)
        scores = _rounded([score for score, _ in hits])
        order = np.lexsort((ids, -scores))[:n]
        documents = self._values("document", addresses)
        return Found(ids[order], documents[order], scores[order], matched)

    def _values(self, field: str, addresses: list[Any]) -> Ids:
        return np.array(self._searcher.fast_field_values(field, addresses), np.int64)

    def _query(self, terms: Sequence[str], only: Chosen | None) -> Query:
        any_term = Query.boolean_query([(Occur.Should, self._term(term)) for term in terms])
        if only is None:
            return any_term
        return Query.boolean_query(
            [(Occur.Must, any_term), (Occur.MustNot if only.excluded else Occur.Must, only.query)]
        )

    def _term(self, term: str) -> Query:
        query = Query.term_query(_SCHEMA, "words", term, "freq")
        if not self._worn:
            return query
        if (factor := self._factors.get(term)) is None:
            alive = self._searcher.search(query, 1).count
            counted = self._searcher.doc_freq("words", term)
            factor = self._factors[term] = _idf(self.count, alive) / _idf(self._physical, counted)
        return Query.boost_query(query, factor)

    def _mend(self, index: Engine) -> None:
        """Pad the index until the mean length that tantivy counts is that of the units alive."""
        padding = Query.term_query(_SCHEMA, "id", _PADDING)
        words, empty = 1, 0
        for _ in range(8):  # a merge in the background may count anew
            writing = Writing(index)
            writing.pad(words, empty)
            writing.commit()
            index.reload()
            self._searcher = index.searcher()
            self.count = self._searcher.num_docs - self._searcher.search(padding, 1).count
            total = self._searcher.aggregate(Query.all_query(), {"total": {"sum": {"field": "length"}}})
            alive = float(total["total"]["value"]) / max(1, self.count)
            self._physical, mean = self._counted()
            if not alive or abs(mean / alive - 1) < 1e-7:
                return
            words, empty = _padding(round(mean * self._physical), self._physical, alive)

    def _counted(self) -> tuple[int, float]:
        """Units that tantivy counts, the dead and the padding among them, and their mean length."""
        query = Query.term_query(_SCHEMA, "words", _FILLER, "freq")
        ((_, address),) = self._searcher.search(query, 1).hits
        said = dict(_flat(json.loads(query.explain(self._searcher, address).to_json())))
        return int(said["N, total number of docs"]), said["avgdl, average length of field"]


def _padding(counted: int, physical: int, mean: float) -> tuple[int, int]:
    """Words of one piece of padding, and how many empty ones beside it, that bring a mean length about.

    Whole words seldom hit it: of a thousand numbers of empty ones the first is taken that hits it nearly.
    """
    least = max(0, math.ceil(counted / mean) - physical - 1)
    empty = least + np.arange(1000)
    words = mean * (physical + 1 + empty) - counted
    off = np.abs(words - np.round(words))
    best = int(np.argmax(off <= max(off.min(), 1e-8 * counted)))
    return round(words[best]), int(empty[best])


def _flat(explained: dict[str, Any]) -> Iterator[tuple[str, float]]:
    yield explained["description"], explained["value"]
    for part in explained.get("details", ()):
        yield from _flat(part)


def _idf(count: int, holding: int) -> float:
    return math.log(1 + (count - holding + 0.5) / (holding + 0.5))


def _rounded(scores: Sequence[float]) -> NDArray[np.float32]:
    return np.round(np.array(scores, np.float64), _DIGITS).astype(np.float32)
