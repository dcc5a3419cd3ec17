"""The file that talks to tantivy: texts are added to an index, and the best of them by BM25 come back.

BM25 (Robertson, Zaragoza 2009) with k1 = 1.2 and b = 0.75, as tantivy computes it: lengths are rounded as in Lucene.
tantivy's statistics also count texts that were deleted and not merged away. They are corrected here, so that scores
depend on nothing but the texts that are alive: document frequencies by a factor on each term, the mean length by
padding. Characters that are a word of the question, compounds that begin with one, and words that are found joined or
in a column, are scored as in a text of mean length. So a column changes the score of no word of a text.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from indexer.lazy_property import LazyProperty
from indexer.passages.cut import visible_parts
from indexer.stores.port import Condition, Ids, TextStatistics
from indexer.stores.words.analysis import Analysis, Terms, characters, is_compound
from indexer.stores.words.exact import BORDER, dashed_words, exact_words

Engine: TypeAlias = tantivy.Index

UNITS = ("documents", "passages")
"""The indexes of a word index, by the folder of each."""

_MAX_TERM_QUERIES = 200
"""Maximum ids that are looked up one by one. More ids are looked up as a set, which takes at least 0.3 ms."""

_MAX_RANGE_QUERIES = 16
"""Maximum runs of successive ids, such as the documents of one source, that are looked up by their bounds. 50,000 ids
in one run take 1 ms instead of 16 ms."""

_WRITER_HEAP_BYTES = 50_000_000

_NEAR_TERMS = 3
_MAX_EDITS = 2
_KEPT_TERMS = 100_000
"""Number of terms that are kept for `near_terms`; 300,000 take 49 MB. The terms of one first letter are kept anyway."""

_SCORE_DECIMALS = 4
"""Scores that agree to this many decimals are equal, because tantivy sums single floats in varying order."""

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)

_TRIM_INTERVAL_SECONDS = 0.25
"""Minimum seconds between two returns of memory. The next writing thread needs about 7 ms to get the memory back."""

_MAX_TRIM_TIME_SHARE = 0.1
"""Maximum share of the process's time for returning memory."""

_next_trim = 0.0

COMPOUND_WEIGHT = 0.5
"""Weight of a compound that begins with a word of the question, of a word that is found joined, and of a word of a
column. Of 0.1 to 0.5, it is the best for compounds, by the nDCG@10 of words on XQuAD in German and in one index of four
languages (python -m benchmarks.languages)."""

OCCURRENCES = {1: 1.0, 2: 0.375, 4: 0.317, 8: 0.221}
"""What BM25 adds to the score of a character, in a text of mean length, when it occurs at least this often."""

_K1, _B = 1.2, 0.75
"""tantivy's own parameters of BM25."""

_PADDING_ID = 0  # no text has this id
_PADDING_TERM = "_"  # analysis never makes this term

# Signed integers: the engine silently deletes nothing when asked to delete by an unsigned number.
_SCHEMA = (
    tantivy.SchemaBuilder()
    .add_integer_field("id", indexed=True, fast=True)
    .add_integer_field("document", indexed=True, fast=True)
    .add_integer_field("length", fast=True)
    .add_text_field("words", tokenizer_name="words", index_option="freq")
    .add_text_field("characters", tokenizer_name="whitespace", index_option="basic")
    .add_text_field("exact", tokenizer_name="whitespace", index_option="position")
    .build()
)


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text to be found, of a document or a passage: its id, its document's id, its words (`Analysis.words`), its
    characters that can be a word, its terms that are also written as one word (`Analysis.joined`) with those of its
    columns, and its words as conditions compare them, between spaces; those after a dash again, with a hyphen."""

    id: int
    document: int
    words: list[str]
    characters: list[str]
    joined: list[str]
    exact: str


def indexed_texts(
    document: int,
    title: str,
    columns: Sequence[str],
    text: str,
    format_: str | None,
    passages: Sequence[tuple[int, int, int]],
    analysis: Analysis,
) -> tuple[IndexedText, list[IndexedText]]:
    """Return a document, under the id of its first passage, and its passages.

    Both are found by the words of the title and of columns too. Link targets and comments are left out.

    Args:
        columns: texts of the other columns of a record (columns.py).
        passages: id, start and end of each.
    """
    spans = [(start, end) for _, start, end in passages]
    whole, *parts = visible_parts(text, format_, [(0, len(text)), *spans])
    found = _words_of(title, columns, whole, analysis)
    indexed = [
        IndexedText(id_, document, *(found if end - start == len(text) else _words_of(title, columns, part, analysis)))
        for (id_, start, end), part in zip(passages, parts, strict=True)
    ]
    return IndexedText(passages[0][0], document, *found), indexed


def _words_of(
    title: str, columns: Sequence[str], visible: str, analysis: Analysis
) -> tuple[list[str], list[str], list[str], str]:
    exact = " ".join([*exact_words(title), BORDER, *exact_words(visible)])
    text, beside = f"{title} {visible}", ""
    for column in columns:
        words = " ".join(exact_words(column))
        if f" {words} " not in f" {exact} ":  # a row that is a text of its own has its columns in it
            beside, exact = f"{beside}\t{column}", f"{exact} {BORDER} {words}"
    also = [*analysis.joined(text), *analysis.stems(beside)]
    return analysis.words(text), characters(text + beside), also, " ".join([exact, *dashed_words(text + beside)])


@dataclass(frozen=True, slots=True)
class WordHits:
    """The best texts, best first, equal scores by id.

    Attributes:
        ids: ids of the texts (n,).
        documents: ids of their documents (n,).
        scores: BM25 of each (n,).
        matched: how many texts match in all.
    """

    ids: Ids
    documents: Ids
    scores: NDArray[np.float32]
    matched: int

    def first(self, n: int) -> WordHits:
        """Return the n best of them."""
        return WordHits(self.ids[:n], self.documents[:n], self.scores[:n], self.matched)


Restriction: TypeAlias = tuple[tuple[Occur, Query], ...]
"""Limits a search to the texts that meet all of these queries. They add nothing to the score."""


def restrict(field: str, ids: Ids, *, excluded: bool = False) -> Restriction:
    """Limit a search to texts whose `field` is one of the ids; if `excluded`, to texts whose field is none of them.

    Args:
        field: "id" or "document".
        ids: in ascending order (n,).
    """
    queries: list[Query]
    if len(ids) <= _MAX_TERM_QUERIES:
        queries = [Query.term_query(_SCHEMA, field, id_, "basic") for id_ in ids.tolist()]
    elif len(runs := np.split(ids, np.flatnonzero(np.diff(ids) > 1) + 1)) <= _MAX_RANGE_QUERIES:
        bounds = ((int(run[0]), int(run[-1])) for run in runs)
        queries = [Query.range_query(_SCHEMA, field, tantivy.FieldType.Integer, *bound) for bound in bounds]
    else:
        queries = [Query.term_set_query(_SCHEMA, field, ids.tolist())]
    return (_clause(Query.boolean_query([(Occur.Should, one) for one in queries]), excluded=excluded),)


def restrict_to(conditions: Sequence[Condition]) -> Restriction:
    """Limit a search to the texts that meet all conditions."""
    return tuple(_clause(_row_of(one.words), excluded=one.excluded) for one in conditions)


def restrict_to_dashed(words: Sequence[str]) -> Restriction:
    """Limit a search to the texts that have these words in a row, and the first of them after a dash."""
    return tuple(_clause(_row_of(row), excluded=False) for row in ([f"-{words[0]}"], words))


def restrict_to_others(conditions: Sequence[Condition]) -> Restriction:
    """Limit a search to the texts that do not meet all conditions."""
    every = (Occur.Must, Query.all_query())
    failures = [
        row if one.excluded else Query.boolean_query([every, (Occur.MustNot, row)])
        for one, row in ((one, _row_of(one.words)) for one in conditions)
    ]
    return (_clause(Query.boolean_query([(Occur.Should, one) for one in failures]), excluded=False),)


def _clause(query: Query, *, excluded: bool) -> tuple[Occur, Query]:
    return (Occur.MustNot, query) if excluded else (Occur.Must, Query.const_score_query(query, 0.0))


def _row_of(words: Sequence[str]) -> Query:
    """Return the query of the texts that have these words in a row."""
    if len(words) == 1:
        return Query.term_query(_SCHEMA, "exact", words[0], "basic")
    return Query.phrase_query(_SCHEMA, "exact", list(words))


def open_indexes(folder: Path | None, analysis: Analysis) -> list[Engine]:
    """Open the indexes of documents and of passages in a folder, or make them there; without a folder in memory."""
    return [_open(None if folder is None else folder / unit, analysis) for unit in UNITS]


def link_indexes(files: Iterable[Path], target: Path, link: Callable[[Path, Path], object] = os.link) -> None:
    """Link the files of both indexes into another folder, where the indexes may be changed.

    Links are enough, because the engine never changes a file of terms. It rewrites its lists of files, which are
    copied.
    """
    for path in files:
        linked = target / path.parent.name / path.name
        linked.parent.mkdir(exist_ok=True)
        if path.suffix == ".json":
            shutil.copy(path, linked)
            continue
        try:
            link(path, linked)
        except OSError:  # on another disk, or one without links; a full one refuses the copy too
            shutil.copyfile(path, linked)


def update_indexes(
    indexes: Sequence[Engine],
    removed: Sequence[int],
    texts: Iterable[tuple[IndexedText, list[IndexedText]]],
    field: str = "id",
) -> list[tuple[int, int]]:
    """Remove texts by a field (`IndexWriter.remove`), and add documents with their passages.

    Returns:
        The id of each added document, and that of its last passage.
    """
    of_documents, of_passages = writers = [IndexWriter(index) for index in indexes]
    for writer in writers:
        writer.remove(removed, field)
    added = []
    for document, passages in texts:
        of_documents.add(document)
        for passage in passages:
            of_passages.add(passage)
        added.append((document.document, passages[-1].id))
    for writer in writers:
        writer.commit()
    return added


def _open(folder: Path | None, analysis: Analysis) -> Engine:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    index = Engine(_SCHEMA, None if folder is None else str(folder))
    index.register_tokenizer("words", analysis.stemmed)
    index.config_reader("manual")
    return index


def trim_memory() -> None:
    """Return memory that writing threads have freed to the system; only glibc keeps it.

    Each writer works in a thread of its own, and glibc keeps the memory that the thread has freed: 2.4 MB for each
    small index whose word index lacks some documents, and 0.5 MB after this call. A call takes 0.03 ms, but 50 ms if a
    process has freed every second one of 200,000 objects. After such a long call, memory is not returned for a while.
    """
    global _next_trim  # noqa: PLW0603
    start = time.monotonic()
    if _TRIM is not None and start >= _next_trim:
        _TRIM(0)
        end = time.monotonic()
        _next_trim = end + max(_TRIM_INTERVAL_SECONDS, (end - start) / _MAX_TRIM_TIME_SHARE)


class IndexWriter:
    """Changes to an index. They appear together with `commit`."""

    def __init__(self, index: Engine) -> None:
        # One thread: texts of equal score come out in the order they went in.
        self._writer = index.writer(_WRITER_HEAP_BYTES, 1)

    def add(self, text: IndexedText) -> None:
        counts = Counter(text.characters).items()
        levels = [f"{one}{least}" for one, count in counts for least in OCCURRENCES if count >= least]
        values = {
            "length": len(text.words),
            "words": " ".join(text.words),
            "characters": " ".join(levels + text.joined),
            "exact": text.exact,
        }
        self._writer.add_document(tantivy.Document(id=text.id, document=text.document, **values))

    def remove(self, ids: Sequence[int], field: str = "id") -> None:
        """Remove texts by their ids, or by the ids of their documents (`field` "document")."""
        if ids:
            self._writer.delete_documents_by_query(Query.term_set_query(_SCHEMA, field, ids))

    def pad(self, words: int, empty: int) -> None:
        """Add one text of this many padding words, and this many empty texts."""
        for text in [" ".join([_PADDING_TERM] * words)] + [""] * empty:
            self._writer.add_document(tantivy.Document(id=_PADDING_ID, document=_PADDING_ID, length=0, words=text))

    def commit(self) -> None:
        self._writer.commit()
        self._writer.wait_merging_threads()


class Postings:
    """One state of an index; later changes to the index are not seen. Safe to share among threads.

    Attributes:
        count: texts that are alive.
    """

    def __init__(self, index: Engine, *, has_deletions: bool) -> None:
        """`has_deletions`: texts were deleted from the index since it was made."""
        self._has_deletions = has_deletions
        self._counted_texts = 0
        self._factors: dict[str, float] = {}  # by term, for terms that were asked for
        self._kept_terms: dict[str, tuple[NDArray[np.object_], Ids]] = {}  # by first letter
        self._shared: TextStatistics | None = None
        index.reload()
        self._searcher = index.searcher()
        self.count = self._searcher.num_docs
        if has_deletions:
            self._pad_to_mean_length(index)

    def statistics(self, terms: Terms) -> TextStatistics:
        """Return the statistics of the texts that are alive, for these terms."""
        holding = {}
        for term, beginning in terms.items():
            if characters(term) == [term]:
                holding[term] = self._count(self._levels(term)[0]), 0
            else:
                others = self._others(term, beginning)
                own = self._count(_of_term(term))
                holding[term] = own, self._count(_any_of([_of_term(term), others])) if others else own
        return TextStatistics(self.count, self._length, holding)

    def weighed_by(self, statistics: TextStatistics) -> Postings:
        """Return these postings with scores by the statistics of a larger collection, for one question."""
        weighed = copy(self)
        weighed._shared, weighed._factors = statistics, {}
        return weighed

    @LazyProperty
    def _length(self) -> int:
        """Number of words of the texts that are alive."""
        total = self._searcher.aggregate(Query.all_query(), {"total": {"sum": {"field": "length"}}})
        return int(total["total"]["value"])

    def _count(self, query: Query) -> int:
        return int(self._searcher.search(query, 1).count)

    @property
    def _mean_lengths(self) -> tuple[float, float]:
        """Mean length of these texts, and of those whose statistics give the scores."""
        shared = self._shared or TextStatistics()
        return max(1.0, self._length / max(1, self.count)), max(1.0, shared.words / max(1, shared.texts))

    def search(self, terms: Terms, n: int, restriction: Restriction = (), *, every: bool = False) -> WordHits:
        """Return the n best texts that hold one of the terms.

        Args:
            every: texts that hold none of the terms follow, with the score 0.
        """
        query = self._query(terms, restriction, every=every)
        wanted = min(n, self.count)
        n = max(1, wanted)  # the engine makes room for as many as it is asked for, and refuses to look for none
        fetched = n + 8
        # By a larger mean length, no score grows more than the mean length does.
        growth = 1.0 if self._shared is None else max(1.0, self._mean_lengths[1] / self._mean_lengths[0])
        while True:
            result = self._searcher.search(query, fetched)
            hits = self._hits(self._scored(terms, result.hits), n, result.count)
            # A text that was not fetched may have the same score as the last one that was.
            if fetched >= result.count or hits.scores[-1] > _rounded([growth * result.hits[-1][0]])[0]:
                return hits.first(wanted)
            fetched *= 4

    def scores(self, terms: Terms, field: str, ids: Ids) -> NDArray[np.float32]:
        """Return the score of each text (n,); 0 if it has none of the terms.

        Args:
            field: "id" or "document": what the ids are.
        """
        score_by_id: dict[int, float] = {}
        if terms and len(ids):
            query = self._query(terms, restrict(field, np.unique(ids)))
            hits = self._scored(terms, self._searcher.search(query, max(1, len(ids)), count=False).hits)
            ids_of_hits = self._values(field, [address for _, address in hits]).tolist()
            score_by_id = dict(zip(ids_of_hits, _rounded([score for score, _ in hits]).tolist(), strict=True))
        return np.array([score_by_id.get(id_, 0.0) for id_ in ids.tolist()], np.float32)

    def count_of(self, restriction: Restriction) -> int:
        """Return how many texts a restriction leaves."""
        return int(self._searcher.search(self._query({}, restriction, every=True), 1).count)

    def ids(self, restriction: Restriction, field: str) -> Ids:
        """Return the ids of the texts that a restriction leaves (n,), ascending.

        Args:
            field: "id" or "document": which ids.
        """
        query = self._query({}, restriction, every=True)
        hits = self._searcher.search(query, max(1, self._searcher.num_docs), count=False).hits
        return np.sort(self._values(field, [address for _, address in hits]))

    def lacks(self, terms: Iterable[str]) -> bool:
        """Return whether at least one of these terms is in no text."""
        return not all(map(self._has, terms))

    def _has(self, term: str) -> bool:
        return any(self._searcher.doc_freq(field, term) for field in ("words", "characters"))

    def near_terms(self, term: str) -> list[str]:
        """Return terms that are spelled like a term, the most similar first; none if the index has the term itself."""
        if self._has(term):
            return []
        from rapidfuzz import process  # here, because importing it takes 20 ms, and most questions do not need it
        from rapidfuzz.distance import OSA

        terms, lengths = self._beginning_with(term[0])
        alike = terms[np.abs(lengths - len(term)) <= _MAX_EDITS].tolist()
        near = process.extract(term, alike, scorer=OSA.distance, score_cutoff=_MAX_EDITS, limit=_NEAR_TERMS)
        return [other for other, _, _ in near]

    def _beginning_with(self, letter: str) -> tuple[NDArray[np.object_], Ids]:
        """Return the terms that begin with a letter (terms,), the most frequent first, and their lengths (terms,)."""
        if (kept := self._kept_terms.get(letter)) is None:
            by_frequency = sorted(self._searcher.terms_with_prefix("words", letter), key=lambda one: -one[1])
            terms = np.array([term for term, _ in by_frequency], np.object_)
            kept = terms, np.array([len(term) for term in terms], np.int64)
            others = self._kept_terms
            if len(terms) + sum(len(other) for other, _ in others.values()) > _KEPT_TERMS:
                others = {}
            self._kept_terms = {**others, letter: kept}  # a new one: another thread may be reading it
        return kept

    def _scored(self, terms: Terms, hits: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Return texts with their scores; these differ from tantivy's where other statistics give them.

        tantivy weighs a term by the mean length of its own texts. Its score for one term gives how often a text has the
        term, and this gives the score by the other mean length.
        """
        if self._shared is None or not hits:
            return hits
        addresses = [address for _, address in hits]
        ids, lengths = self._values("id", addresses), self._values("length", addresses)
        own, shared = (_K1 * (1 - _B + _B * _as_one_byte(lengths) / mean) for mean in self._mean_lengths)
        limit = restrict("id", np.unique(ids))
        total = np.zeros(len(ids))
        for term, beginning in terms.items():
            if characters(term) == [term]:
                total += self._part(self._character(term), limit, ids)
                continue
            best = self._idf(term) * (_K1 + 1)
            share = np.minimum(self._part(self._term(term), limit, ids) / best, 1 - 1e-7)
            times = np.round(share * own / (1 - share))
            score = best * times / (times + shared)
            if others := self._others(term, beginning):
                score = np.maximum(score, self._part(self._scored_others(term, others), limit, ids))
            total += score
        return list(zip(total.tolist(), addresses, strict=True))

    def _part(self, query: Query, limit: Restriction, ids: Ids) -> NDArray[np.float64]:
        """Return what a part of a question adds to the score of each text (n,)."""
        both = Query.boolean_query([(Occur.Must, query), *limit])
        hits = self._searcher.search(both, len(ids), count=False).hits
        score_by_id = dict(zip(self._values("id", [address for _, address in hits]).tolist(), hits, strict=True))
        return np.array([score_by_id[id_][0] if id_ in score_by_id else 0.0 for id_ in ids.tolist()], np.float64)

    def _hits(self, hits: list[tuple[Any, Any]], n: int, matched: int) -> WordHits:
        addresses = [address for _, address in hits]
        ids = self._values("id", addresses)
        scores = _rounded([score for score, _ in hits])
        order = np.lexsort((ids, -scores))[:n]
        documents = self._values("document", addresses)
        return WordHits(ids[order], documents[order], scores[order], matched)

    def _values(self, field: str, addresses: list[Any]) -> Ids:
        return np.array(self._searcher.fast_field_values(field, addresses), np.int64)

    def _query(self, terms: Terms, restriction: Restriction, *, every: bool = False) -> Query:
        any_term = Query.boolean_query([(Occur.Should, self._word(*each)) for each in terms.items()])
        if every:
            padding = Query.term_query(_SCHEMA, "id", _PADDING_ID, "basic")
            alive = (Occur.Must, Query.const_score_query(Query.all_query(), 0.0)), (Occur.MustNot, padding)
            return Query.boolean_query([*alive, (Occur.Should, any_term), *restriction])
        return Query.boolean_query([(Occur.Must, any_term), *restriction]) if restriction else any_term

    def _word(self, term: str, beginning: str) -> Query:
        """Return the query of a term, or of its other forms if they give a better score."""
        if characters(term) == [term]:
            return self._character(term)
        query = self._term(term)
        if (others := self._others(term, beginning)) is None:
            return query
        return Query.disjunction_max_query([query, self._scored_others(term, others)])

    def _others(self, term: str, beginning: str) -> Query | None:
        """Return the query of the texts with compounds that begin with a word, or with its term joined.

        All compounds together are one query: a word may begin 20,000 of them.
        """
        longer = self._searcher.terms_with_prefix("words", beginning) if beginning else ()
        compounds = [other for other, _ in longer if is_compound(other, beginning)]
        queries = [Query.term_set_query(_SCHEMA, "words", compounds)] if compounds else []
        if self._searcher.doc_freq("characters", term):
            queries.append(Query.term_query(_SCHEMA, "characters", term, "basic"))
        return _any_of(queries) if queries else None

    def _scored_others(self, term: str, others: Query) -> Query:
        idf = self._idf(term, _any_of([_of_term(term), others]), with_others=True)
        return Query.const_score_query(others, COMPOUND_WEIGHT * idf)

    def _levels(self, character: str) -> list[Query]:
        return [Query.term_query(_SCHEMA, "characters", f"{character}{least}", "basic") for least in OCCURRENCES]

    def _character(self, character: str) -> Query:
        levels = self._levels(character)
        idf = self._idf(character, levels[0])
        scored = zip(levels, OCCURRENCES.values(), strict=True)
        return Query.boolean_query(
            [(Occur.Should, Query.const_score_query(query, idf * gain)) for query, gain in scored]
        )

    def _idf(self, term: str, query: Query | None = None, *, with_others: bool = False) -> float:
        """Return the weight of a term, or of a term with its other forms.

        Args:
            query: finds the texts that hold it; without it, those that hold the term as a word.
        """
        if self._shared is not None:
            return _idf(self._shared.texts, self._shared.holding[term][with_others])
        return _idf(self.count, self._count(query or _of_term(term)))

    def _term(self, term: str) -> Query:
        query = _of_term(term)
        if not self._has_deletions and self._shared is None:
            return query
        if (factor := self._factors.get(term)) is None:
            texts = self._counted_texts if self._has_deletions else self.count
            factor = self._idf(term) / _idf(texts, self._searcher.doc_freq("words", term))
            self._factors[term] = factor
        return Query.boost_query(query, factor)

    def _pad_to_mean_length(self, index: Engine) -> None:
        """Pad the index until the mean length that tantivy counts is that of the texts that are alive."""
        padding = Query.term_query(_SCHEMA, "id", _PADDING_ID)
        words, empty = 1, 0
        for _ in range(8):  # a merge in the background may change the counts again
            writer = IndexWriter(index)
            writer.pad(words, empty)
            writer.commit()
            index.reload()
            self._searcher = index.searcher()
            self.count = self._searcher.num_docs - self._searcher.search(padding, 1).count
            alive_mean = self._length / max(1, self.count)
            self._counted_texts, mean = self._statistics()
            if not alive_mean or abs(mean / alive_mean - 1) < 1e-7:
                return
            words, empty = _padding(round(mean * self._counted_texts), self._counted_texts, alive_mean)

    def _statistics(self) -> tuple[int, float]:
        """Return how many texts tantivy counts, dead ones and padding included, and their mean length."""
        query = Query.term_query(_SCHEMA, "words", _PADDING_TERM, "freq")
        ((_, address),) = self._searcher.search(query, 1).hits
        values = dict(_flatten(json.loads(query.explain(self._searcher, address).to_json())))
        return int(values["N, total number of docs"]), values["avgdl, average length of field"]


def _padding(counted_words: int, counted_texts: int, mean: float) -> tuple[int, int]:
    """Return the number of words of one padding text, and the number of empty texts to add, that give this mean length.

    A whole number of words seldom gives the exact mean. So up to a thousand numbers of empty texts are tried, and the
    first that comes close enough is used.
    """
    min_empty = max(0, math.ceil(counted_words / mean) - counted_texts - 1)
    empty = min_empty + np.arange(1000)
    words = mean * (counted_texts + 1 + empty) - counted_words
    errors = np.abs(words - np.round(words))
    best = int(np.argmax(errors <= max(errors.min(), 1e-8 * counted_words)))
    return round(words[best]), int(empty[best])


def _flatten(explanation: dict[str, Any]) -> Iterator[tuple[str, float]]:
    yield explanation["description"], explanation["value"]
    for detail in explanation.get("details", ()):
        yield from _flatten(detail)


def _of_term(term: str) -> Query:
    return Query.term_query(_SCHEMA, "words", term, "freq")


def _any_of(queries: Sequence[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, one) for one in queries])


def _as_one_byte(lengths: Ids) -> NDArray[np.float64]:
    """Return lengths (n,) as tantivy and Lucene keep them in a byte: exact up to 40, then four significant bits."""
    _, bits = np.frexp(np.maximum(lengths - 24, 1))
    shift = np.maximum(bits - 4, 0)
    return np.where(lengths <= 40, lengths, ((lengths - 24) >> shift << shift) + 24).astype(np.float64)


def _idf(count: int, containing: int) -> float:
    return math.log(1 + (count - containing + 0.5) / (containing + 0.5))


def _rounded(scores: Sequence[float]) -> NDArray[np.float32]:
    return np.round(np.array(scores, np.float64), _SCORE_DECIMALS).astype(np.float32)
