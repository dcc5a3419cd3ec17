"""A store made of a dict and numpy: the oracle that says what every other store must answer.

It is written from the port's docstrings and from the rules that every engine shares, and computes each answer by brute
force from one immutable state. A commit replaces that state, so that a snapshot is a reference to an older one. Tests
that need a store, and not a folder, use it too: it makes no file.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import tempfile
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from indexer.columns import searched_columns
from indexer.deadline import NEVER, Deadline
from indexer.errors import BadInput, IndexDamaged, IndexLocked, NotAnIndex, NoWords, count_of
from indexer.filters.dates import day_of, read_date
from indexer.filters.tree import COLUMNS, Fields, Type, Where, matches, type_of
from indexer.ledger import Code
from indexer.listener import SILENT, Listener
from indexer.passages.markup import VisibleText
from indexer.records import RECORD_FORMATS, Changes, Document, KnownFile, Span, Stamp, Vector
from indexer.settings import Meaning, Settings
from indexer.stores import port
from indexer.stores.fields.field_types import check_filter, metadata_types, only_dates
from indexer.stores.fields.flatten import scalars
from indexer.stores.hashes import content_hash, row_hash
from indexer.stores.move import Move
from indexer.stores.port import (
    BEST_PASSAGES,
    SIDE_SLOTS,
    Batch,
    Hashes,
    Kind,
    LedgerRow,
    Ranking,
    RunOutcome,
    Slot,
    Unit,
)
from indexer.stores.vectors import cosines, from_blobs, to_blobs
from indexer.stores.words.analysis import UNSPACED, Analysis, Terms, characters, code, is_compound
from indexer.stores.words.tantivy_index import COMPOUND_WEIGHT, OCCURRENCES

EXTRACTED = {"html", "pdf", "docx", "pptx", "xlsx", "epub", "eml", "mbox", "maildir", "rtf", "xml"}
EXTRACTED |= {"odt", "ods", "odp", "json", "jsonl", "csv", "tsv", "ipynb", "ics", "vcf", "canvas"}
"""Formats whose text is not the file's own: their passages have no line number."""

HELD = ("indexed", "updated", "unchanged")
"""States of a ledger row whose file had the document when it was last read."""

PAGE_DOCUMENTS = 100
"""Documents read from one state while all of them are iterated over."""

UNREAD = Stamp(-1, 0, 0, 0)
"""Stamp of a file that the next run reads, whatever its status: no file has this size."""


@dataclass(frozen=True, slots=True)
class StoredPassage:
    id: int
    span: Span
    line: int | None
    vector: bytes


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is stored.

    `fields` is what a filter sees of it, `tokens` how many the encoder read, `origin` its content hash when it
    was taken from another index, and the one that it had there.
    """

    id: int
    document: Document
    hashes: Hashes
    fields: Fields
    tokens: int
    passages: tuple[StoredPassage, ...]
    origin: tuple[bytes, bytes] | None = None


@dataclass(frozen=True, slots=True)
class CommitState:
    """Everything that one commit holds. `entries` is the ledger, each row with the run that wrote it."""

    settings: Settings
    history: str = field(default_factory=lambda: secrets.token_hex(8))
    commit: int = 0
    documents: Mapping[str, StoredDocument] = field(default_factory=dict)
    last_document: int = 0
    last_passage: int = 0
    files: Mapping[str, Stamp] = field(default_factory=dict)
    entries: tuple[tuple[int, LedgerRow], ...] = ()
    run: int = 0
    finished_run: int = 0


class Bm25:
    """BM25 (k1 = 1.2, b = 0.75) of texts by their ids, with the length of a text rounded to one byte as in Lucene."""

    def __init__(self, texts: Mapping[int, tuple[str, ...]], analysis: Analysis) -> None:
        """`texts`: title, visible text and columns of each."""
        own = {id_: " ".join(text[:2]) for id_, text in texts.items()}
        self._counts = {id_: Counter(analysis.stems(text)) for id_, text in own.items()}
        self._joined = {
            id_: {*analysis.joined(own[id_]), *analysis.stems("\t".join(text[2:]))} for id_, text in texts.items()
        }
        self._characters = {id_: Counter(characters("\t".join(text))) for id_, text in texts.items()}
        self._mean = sum(count.total() for count in self._counts.values()) / max(1, len(texts))

    def scores(self, terms: Terms) -> dict[int, float]:
        """Return the score of each text that holds one of these terms, or a compound. Four digits of it count."""
        known = {term for count in self._counts.values() for term in count}
        found: dict[int, float] = {}
        for term, beginning in terms.items():
            compounds = {other for other in known if beginning and is_compound(other, beginning)}
            best = self._character_scores(term) if characters(term) == [term] else self._scores(term)
            others = {id_ for id_, joined in self._joined.items() if term in joined}
            others |= {id_ for id_, count in self._counts.items() if count.keys() & compounds}
            idf = self._idf(others | {id_ for id_, count in self._counts.items() if term in count})
            for id_ in others:
                best[id_] = max(best.get(id_, 0.0), COMPOUND_WEIGHT * idf)
            for id_, score in best.items():
                found[id_] = found.get(id_, 0.0) + score
        return {id_: round(score, 4) for id_, score in found.items()}

    def _idf(self, holding: Collection[int]) -> float:
        return math.log(1 + (len(self._counts) - len(holding) + 0.5) / (len(holding) + 0.5))

    def _character_scores(self, character: str) -> dict[int, float]:
        occurrences = {id_: count[character] for id_, count in self._characters.items() if character in count}
        idf = self._idf(occurrences)
        return {
            id_: idf * sum(gain for least, gain in OCCURRENCES.items() if count >= least)
            for id_, count in occurrences.items()
        }

    def _scores(self, term: str) -> dict[int, float]:
        idf = self._idf([id_ for id_, count in self._counts.items() if term in count])
        scores = {}
        for id_, count in self._counts.items():
            if term in count:
                norm = 1.2 * (0.25 + 0.75 * rounded_length(count.total()) / self._mean)
                scores[id_] = idf * 2.2 * count[term] / (count[term] + norm)
        return scores


ONE_FORM = str.maketrans("\u0649\u06cc\u06a9\u0131", "\u064a\u064a\u0643i", "\u0307")
"""Arabic and Persian yeh and kaf, and the i of Turkish, as conditions compare them."""


@cache
def rows_of_words(text: str) -> str:
    """Return a text as conditions compare it: its words between spaces, one character each in unspaced scripts."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(ONE_FORM)
    apart = ""
    for character in folded:
        if re.match(f"[{UNSPACED}]", character):
            apart += f" {character} "
        elif character == "\u00ad":  # a soft hyphen
            continue
        elif unicodedata.category(character)[0] in "LNM" or character == "_":
            apart += character
        else:
            apart += " "
    return f" {' '.join(word.strip('_') for word in apart.split() if word.strip('_'))} "


def with_columns(title: str, visible: str, document: Document) -> tuple[str, ...]:
    """Return title, visible text and the other columns of a record whose words none of these has in a row."""
    parts = [title, visible]
    for column in searched_columns(document.format, document.metadata):
        if not any(rows_of_words(column) in rows_of_words(part) for part in parts):
            parts.append(column)
    return tuple(parts)


def meets(parts: Sequence[str], conditions: Sequence[port.Condition]) -> bool:
    """Return whether a title, column or visible text has the words of each condition in a row, or has not if
    excluded."""
    parts = list(map(rows_of_words, parts))
    rows = [(f" {' '.join(condition.words)} ", condition.excluded) for condition in conditions]
    return all(any(row in part for part in parts) != excluded for row, excluded in rows)


def begins_with_dash(before: str, dash: str, letter: str) -> bool:
    """Return whether a dash begins a word (`-xzf`, `(−40`, `–40`), and is not inside a word or after a bracket."""
    is_dash = dash in "-\u2010\u2011\u2212\uff0d" or (dash == "–" and letter.isdecimal())
    is_inside = unicodedata.category(before)[0] in "LNM" or before in "_-\u2010\u2011\u2212\uff0d–)]}%"
    return is_dash and letter.isalnum() and not is_inside


def rounded_length(length: int) -> int:
    """Return a length as Lucene keeps it in a byte: exact up to 40, then with four significant bits."""
    if length <= 40:
        return length
    shift = (length - 24).bit_length() - 4
    return ((length - 24) >> shift << shift) + 24


class ReferenceSnapshot:
    """A `Snapshot` of one state."""

    def __init__(self, state: CommitState, deadline: Deadline = NEVER) -> None:
        self._state, self._deadline = state, deadline
        pairs = [(document, passage) for document in state.documents.values() for passage in document.passages]
        pairs.sort(key=lambda pair: pair[1].id)
        self._stored = {passage.id: (document, passage) for document, passage in pairs}
        self._ids = np.array(list(self._stored), np.int64)
        self._owners = np.array([document.id for document, _ in pairs], np.int64)
        self._vectors = from_blobs([passage.vector for _, passage in pairs], state.settings.dimensions)
        self._analysis = analysis_of(state.settings.language)

    @property
    def settings(self) -> Settings:
        return self._state.settings

    @property
    def documents(self) -> int:
        return len(self._state.documents)

    @property
    def passages(self) -> int:
        return len(self._ids)

    @property
    def version(self) -> Hashable:
        return self._state.history, self._state.commit

    @property
    def history(self) -> str:
        return self._state.history

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is derived here, so that nothing can be damaged."""
        return ()

    @cached_property
    def _visible(self) -> dict[Unit, dict[int, tuple[str, ...]]]:
        """Title, visible text and columns of documents, each by the id of its first passage, and of passages."""
        whole, parts, texts = {}, {}, {}
        for id_, (stored, passage) in self._stored.items():
            document = stored.document
            if id_ == stored.passages[0].id:
                texts[stored.id] = VisibleText.read(document.text, document.format)
                whole[id_] = document.title, texts[stored.id].text
            parts[id_] = document.title, texts[stored.id].part(passage.span.start, passage.span.end)
        if self.settings.columns_searched:
            for visible in (whole, parts):
                for id_, (title, text) in visible.items():
                    visible[id_] = with_columns(title, text, self._stored[id_][0].document)
        return {"document": whole, "passage": parts}

    @cached_property
    def _bm25(self) -> dict[Unit, Bm25]:
        """Documents, each by the id of its first passage, and passages. Both are found by their title too."""
        return {unit: Bm25(texts, self._analysis) for unit, texts in self._visible.items()}

    # documents

    def hashes(self, uris: Iterable[str] | None = None) -> Mapping[str, Hashes]:
        documents = self._state.documents
        return {uri: documents[uri].hashes for uri in (documents if uris is None else uris) if uri in documents}

    def origins(self, uris: Iterable[str]) -> Mapping[str, bytes]:
        known = {uri: stored for uri in uris if (stored := self._state.documents.get(uri)) is not None}
        return {
            uri: stored.origin[1]
            for uri, stored in known.items()
            if stored.origin is not None and stored.origin[0] == stored.hashes.content
        }

    def get(self, uri: str) -> Document | None:
        stored = self._state.documents.get(uri)
        return None if stored is None else sound(stored).document

    def documents_after(self, after: int, where: Where | None = None) -> Iterator[tuple[int, Document]]:
        allowed = self._allowed(where)
        for stored in sorted(self._state.documents.values(), key=lambda stored: stored.id):
            if stored.id > after and stored.id in allowed:
                yield stored.id, sound(stored).document

    def matches(self, uri: str, where: Where) -> bool:
        stored = self._state.documents.get(uri)
        return stored is not None and stored.id in self._allowed(where)

    @property
    def fields(self) -> Mapping[str, Collection[Type]] | None:
        documents = self._state.documents.values()
        known = known_fields(documents)
        return {name: known[name] for name in known if name not in COLUMNS} if documents else None

    def count(self, where: Where) -> int:
        return len(self._allowed(where))

    def uris(self, where: Where | None = None) -> list[str]:
        allowed = self._allowed(where)
        stored = sorted(self._state.documents.items(), key=lambda item: item[1].id)
        return [uri for uri, document in stored if document.id in allowed]

    @property
    def has_words(self) -> bool:
        return True

    def corrected(self, question: str) -> str:
        return ""  # what is similar is not settled by the interface

    def first_passages(self, k: int, where: Where | None, sort: port.Sort) -> tuple[dict[int, int], int]:
        uris = self.uris(where)
        if sort == "title":
            uris.sort(key=lambda uri: (self.get(uri).title.strip() or uri).casefold())
        else:
            uris.reverse()
            uris.sort(key=lambda uri: self.get(uri).modified or "", reverse=True)
        owners = [self._state.documents[uri].id for uri in uris[:k]]
        return {int(self._ids[self._owners == owner][0]): 1 for owner in owners}, len(uris)

    def paths(self, where: Where | None = None) -> list[str]:
        return [self.get(uri).path for uri in self.uris(where) if self.get(uri).path]

    def histogram(self, field: str, kind: str, bins: int, where: Where | None = None) -> list[int]:
        def numbers(documents: Any) -> list[float]:
            values = (value for stored in documents for value in set_of(values_of(stored.fields.get(field))))
            if kind == "date":
                return [date.start for value in values if type(value) is str and (date := read_date(value))]
            return [value for value in values if type_of(value) == "number"]

        every = numbers(self._state.documents.values())
        low, high, allowed = float(min(every, default=0)), float(max(every, default=0)), self._allowed(where)
        if not 0 < high - low < math.inf:
            return []
        counts = [0] * bins
        for value in numbers(stored for stored in self._state.documents.values() if stored.id in allowed):
            counts[min(bins - 1, int((float(value) - low) * (bins / (high - low))))] += 1
        return counts

    def dates(self, field: str, where: Where | None = None) -> tuple[Any, Any] | None:
        def latest(kind: str, documents: Iterable[StoredDocument]) -> list[tuple[int, int]] | None:
            read = [
                (stored.id, [date.start for value in values if (date := read_date(f"{value}"))])
                for stored in documents
                if (values := [each for each in values_of(stored.fields.get(field)) if type_of(each) == kind])
            ]
            dated = [(id_, max(dates)) for id_, dates in read if dates]
            return dated if kind == "text" or 2 * len(dated) >= len(read) else None

        every, allowed = self._state.documents.values(), self._allowed(where)
        if (rows := latest("text", every) or latest("number", every)) is None:
            return None
        pairs = np.array(sorted(row for row in rows if row[0] in allowed), np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def values(self, field: str, limit: int, where: Where | None = None) -> port.FieldValues:
        every = [values_of(stored.fields.get(field)) for stored in self._state.documents.values()]
        allowed = self._allowed(where)
        of_documents = [
            values_of(stored.fields.get(field)) for stored in self._state.documents.values() if stored.id in allowed
        ]
        counts = Counter((type_of(value), value) for values in of_documents for value in set_of(values))
        frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        listed = [(value, many) for (kind, value), many in frequent if kind != "text" or len(value) <= 200]
        numbers = [value for values in every for value in values if type_of(value) == "number"]
        texts = (value for values in every for value in values if type_of(value) == "text")
        dates = [date.start for value in texts if (date := read_date(value))]
        days = [day_of(moment) for moment in (min(dates), max(dates))] if dates else None
        return port.FieldValues(
            sum(bool(values) for values in of_documents),
            tuple(listed[:limit]),
            (min(numbers), max(numbers)) if numbers else None,
            days and (days[0], days[1]),
        )

    def _allowed(self, where: Where | None) -> set[int]:
        """Return the ids of the documents that a filter leaves. Raises FilterError."""
        self._deadline.check()
        documents = self._state.documents.values()
        if where is not None:
            where = check_filter(where, known_fields(documents) if documents else None)
        return {stored.id for stored in documents if where is None or matches(where, stored.fields)}

    # ranking

    def _meeting(self, conditions: port.Conditions, where: Where | None, unit: Unit) -> list[int]:
        """Return the units that filter and conditions leave: passages, or the first passages of documents."""
        allowed = self._allowed(where)
        return [
            id_
            for id_, text in self._visible[unit].items()
            if self._stored[id_][0].id in allowed and meets(text, conditions)
        ]

    def holds_dashed(self, words: Sequence[str]) -> bool:
        row = port.Condition("", tuple(words))
        return any(
            rows_of_words(text[place + 1 :]).split()[0] == words[0]
            for parts in self._visible["document"].values()
            if meets(parts, [row])
            for text in (f" {part}" for part in parts)
            for place in range(1, len(text) - 1)
            if begins_with_dash(*text[place - 1 : place + 2])
        )

    def dense(
        self,
        vector: Vector,
        k: int,
        where: Where | None = None,
        unit: Unit = "document",
        exact: bool = False,
        conditions: port.Conditions = (),
    ) -> Ranking:
        allowed = self._meeting(conditions, where, unit)
        scores = cosines(self._vectors, vector)
        best = np.lexsort((self._ids, -scores))
        if unit == "document":
            owners = [self._stored[id_][0].id for id_ in allowed]
            best = best[np.isin(self._owners[best], owners)]
            best = best[np.sort(np.unique(self._owners[best], return_index=True)[1])]
        else:
            best = best[np.isin(self._ids[best], allowed)]
        best = best[:k]
        return Ranking(self._ids[best], self._owners[best], scores[best], len(allowed), exact=True)

    def words(
        self, text: str, k: int, where: Where | None = None, unit: Unit = "document", conditions: port.Conditions = ()
    ) -> Ranking:
        terms = asked = self._analysis.question_terms(text)
        if not terms and not conditions:
            reason = "has only words that are too common" if self._analysis.words(text) else "has no word"
            raise NoWords(f"the question {text!r} {reason}")
        meeting = self._meeting(conditions, where, unit)
        if not asked:
            required = [" ".join(condition.words) for condition in conditions if not condition.excluded]
            terms = self._analysis.question_terms(" ".join(required))
        scores = self._bm25[unit].scores(terms)
        ranked = sorted((-scores.get(id_, 0.0), id_) for id_ in meeting if id_ in scores or not asked)
        shown = [id_ for _, id_ in ranked[:k]]
        if unit == "document":
            of_passages = self._bm25["passage"].scores(terms)
            first = set() if asked else set(self._meeting(conditions, where, "passage"))
            owned = [[passage.id for passage in self._stored[id_][0].passages] for id_ in shown]
            shown = [max(ids, key=lambda id_: (id_ in first, of_passages.get(id_, 0.0), -id_)) for ids in owned]
        passages = np.array(shown, np.int64)
        owners = np.array([self._stored[id_][0].id for id_ in shown], np.int64)
        best = np.array([-score for score, _ in ranked[:k]], np.float32)
        return Ranking(passages, owners, best, len(ranked), exact=True)

    def candidates(
        self,
        vector: Vector,
        text: str,
        depth: int,
        where: Where | None,
        unit: Unit,
        exact: bool,
        conditions: port.Conditions = (),
    ) -> port.Candidates:
        terms = self._analysis.question_terms(text)
        legs = [near := self.dense(vector, depth, where, unit, exact, conditions)]
        if terms:
            legs.append(self.words(text, depth, where, unit, conditions))
        units = self._ids if unit == "passage" else self._owners
        scores, of_words = cosines(self._vectors, vector), self._bm25[unit].scores(terms)
        shown, means, words = [], [], []
        for id_ in sorted({id_ for leg in legs for id_ in (leg.passages if unit == "passage" else leg.documents)}):
            (own,) = np.nonzero(units == id_)
            best = own[np.lexsort((self._ids[own], -scores[own]))][:BEST_PASSAGES]
            shown.append(best[0])
            means.append(scores[best].astype(np.float64).mean())
            words.append(of_words.get(int(self._ids[own[0]]), 0.0))
        at, complete = np.array(shown, np.int64), len(shown) == near.matched
        best_means, of_units = np.array(means, np.float64), np.array(words, np.float32)
        shown_ids, owners = self._ids[at], self._owners[at]
        return port.Candidates(shown_ids, owners, scores[at], best_means, of_units, len(terms), near.matched, complete)

    # passages

    def passages_by_id(self, ids: Sequence[int]) -> list[port.Passage]:
        if missing := [id_ for id_ in ids if id_ not in self._stored]:
            raise IndexDamaged(f"there is no passage {missing[0]}")
        return [as_passage(*self._stored[id_]) for id_ in ids]

    def passages_of(self, uri: str) -> list[port.Passage] | None:
        stored = self._state.documents.get(uri)
        return None if stored is None else [as_passage(stored, passage) for passage in stored.passages]

    def vectors_of(self, uri: str) -> Vector | None:
        stored = self._state.documents.get(uri)
        if stored is None:
            return None
        return from_blobs([passage.vector for passage in stored.passages], self.settings.dimensions)

    def sample(self, count: int, seed: int = 0) -> port.Sample:
        at = np.arange(len(self._ids))
        if len(at) > count:
            at = np.sort(np.random.default_rng(seed).choice(at, count, replace=False))
        return port.Sample(self._ids[at], self._vectors[at])

    def nearest_pairs(self, count: int, min_score: float) -> port.PassagePairs:
        first, second = np.triu_indices(len(self._ids), 1)
        scores = np.einsum("ij,ij->i", self._vectors[first], self._vectors[second])
        wanted = (self._owners[first] != self._owners[second]) & (scores >= np.float32(min_score))
        first, second, scores = first[wanted], second[wanted], scores[wanted]
        best = np.lexsort((second, first, -scores))[:count]
        return port.PassagePairs(self._ids[first[best]], self._ids[second[best]], scores[best], len(self._ids))

    # ledger

    def files(self) -> Mapping[str, KnownFile]:
        held: dict[str, list[LedgerRow]] = {path: [] for path in self._state.files}
        for _, row in self._state.entries:
            if row.state != "gone":
                held[row.file].append(row)
        return {
            path: KnownFile(
                stamp,
                tuple((row.uri, row.state, row.reason) for row in held[path]),
                frozenset(row.reader for row in held[path]),
                {row.uri: row.notes for row in held[path] if row.notes},
            )
            for path, stamp in self._state.files.items()
        }

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        return (row for _, row in self._state.entries if state in (None, row.state))

    def noted(self) -> Iterator[LedgerRow]:
        return (row for _, row in self._state.entries if row.notes)

    def noted_count(self) -> int:
        return sum(bool(row.notes) for _, row in self._state.entries)

    def ledger_of_documents(self) -> Iterator[LedgerRow]:
        return (row for _, row in self._state.entries if row.uri in self._state.documents)

    def files_of_documents(self) -> Iterator[tuple[str, str | None]]:
        for uri, item in self._state.documents.items():
            named = {None, item.document.path or "-"}
            files = [row.file for _, row in self._state.entries if row.uri == uri and row.state != "gone"]
            yield from ((uri, file) for file in files or [None] if file in named)

    def file_of(self, uri: str) -> tuple[LedgerRow, Stamp] | None:
        rows = (row for _, row in self._state.entries if row.uri == uri and row.state in HELD)
        return next(((row, self._state.files[row.file]) for row in rows), None)

    def ledger_counts(self) -> Mapping[str, int]:
        return Counter(row.state for _, row in self._state.entries)

    def ledger_reasons(self) -> list[port.ReasonCount]:
        counts = Counter((row.state, row.reason) for _, row in self._state.entries if row.reason)
        return [port.ReasonCount(state, reason, count) for (state, reason), count in counts.items()]

    # the whole of it

    def info(self) -> port.Info:
        documents = self._state.documents.values()
        known = known_fields(documents)
        return port.Info(
            documents=self.documents,
            passages=self.passages,
            tokens=sum(stored.tokens for stored in documents),
            dimensions=self.settings.dimensions,
            unsealed=self.passages,
            bytes=self._vectors.nbytes + sum(len(stored.document.text) for stored in documents),
            format_version=1,
            history=self.history,
            fields=metadata_types(known),
            dates=tuple(sorted(name for name in known if "date" in known[name] and name not in COLUMNS)),
        )

    def recall(self) -> port.Recall:
        return port.Recall(1.0, 1.0, 1.0, 200 if self.passages else 0, exact=True)

    def check(self, meaning: Meaning | None) -> port.CheckReport:
        problems = [f"{uri}: its stored row or text is damaged" for uri in self.damaged(meaning)]
        unfinished = self._state.run != self._state.finished_run
        notes = ["the last indexing run did not finish; run it again to continue"] if unfinished else []
        return port.CheckReport(tuple(problems), tuple(notes))

    def damaged(self, meaning: Meaning | None) -> list[str]:
        """Return the uris of documents that are not what their hashes say. What nobody embedded has no content hash."""
        return [
            uri
            for uri, stored in self._state.documents.items()
            if row_hash(stored.document) != stored.hashes.row
            or (meaning and stored.tokens and content_hash(stored.document, meaning) != stored.hashes.content)
        ]


class ReferenceWriter:
    """A `Writer`: each method makes a new state of the old one, and commits it by a single assignment."""

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def _commit(self, **changes: Any) -> None:
        state = self._store.state
        self._store.state = replace(state, commit=state.commit + 1, **changes)

    def put(self, batch: Batch) -> Changes:
        state = self._without(batch.removed)
        state = replace(state, entries=tuple((run, row) for run, row in state.entries if row.uri not in batch.removed))
        documents, last_document, last_passage = dict(state.documents), state.last_document, state.last_passage
        has_records = any(stored.document.format in RECORD_FORMATS for stored in documents.values())
        brings_first = not has_records and any(item.document.format in RECORD_FORMATS for item in batch.documents)
        settings = replace(state.settings, columns_searched=state.settings.columns_searched or brings_first)
        changes: dict[str, list[str]] = {"added": [], "replaced": [], "updated": []}
        for item in batch.documents:
            uri, known = item.document.uri, documents.get(item.document.uri)
            document, fields = as_stored(item.document)
            origin = known.origin if known is not None else None
            if item.origin is not None:
                origin = item.hashes.content, item.origin
            if item.spans is None or item.vectors is None:
                if known is None:
                    raise BadInput(f"{uri}: cannot be updated, as it is not a document of this index")
                changes["updated"].append(uri)
                documents[uri] = replace(known, document=document, hashes=item.hashes, fields=fields, origin=origin)
                continue
            changes["added" if known is None else "replaced"].append(uri)
            if known is None:
                last_document += 1
            passages = tuple(
                StoredPassage(id_, span, line_of(document, span), vector)
                for id_, (span, vector) in enumerate(
                    zip(item.spans, to_blobs(item.vectors), strict=True), last_passage + 1
                )
            )
            last_passage += len(passages)
            tokens = sum(span.tokens for span in item.spans)
            id_ = last_document if known is None else known.id
            documents[uri] = StoredDocument(id_, document, item.hashes, fields, tokens, passages, origin)
        files, entries = {**state.files}, list(state.entries)
        for row in batch.rows:
            files.setdefault(row.file, UNREAD)
        written = {(row.file, row.uri) for row in batch.rows}
        taken = {row.uri for row in batch.rows if row.state in HELD}
        entries = [
            (run, row)
            for run, row in entries
            if run >= batch.run or not ((row.file, row.uri) in written or (row.state == "gone" and row.uri in taken))
        ]
        entries += [(batch.run, row) for row in batch.rows]
        if not batch.rows:
            files = unread(files, entries, {item.document.uri for item in batch.documents})
        self._commit(
            documents=documents,
            settings=settings,
            last_document=last_document,
            last_passage=last_passage,
            files={**files, **batch.finished},
            entries=tuple(entries),
        )
        return Changes(**{name: tuple(uris) for name, uris in changes.items()})

    def remove(self, uris: Iterable[str]) -> int:
        given = set(uris)
        before, state = self._store.state, self._without(given)
        self._commit(
            documents=state.documents,
            files=state.files,
            entries=tuple(
                (run, row) for run, row in state.entries if row.uri not in given or not row.reason.is_left_out
            ),
        )
        return len(before.documents) - len(state.documents)

    def _without(self, uris: Iterable[str]) -> CommitState:
        """Return the state without these documents and their rows of the ledger."""
        state = self._store.state
        removed = set(uris) & state.documents.keys()
        return replace(
            state,
            documents={uri: stored for uri, stored in state.documents.items() if uri not in removed},
            files=unread(state.files, state.entries, removed),
            entries=tuple((run, row) for run, row in state.entries if row.uri not in removed),
        )

    def change(self, update: Callable[[Settings], Settings]) -> Settings:
        self._commit(settings=update(self._store.state.settings))
        return self._store.state.settings

    def move(self, old: str, new: str) -> int:
        state = self._store.state
        move = Move.named(old, new, is_file=old in state.files)
        documents, moved, taken = dict[str, StoredDocument](), 0, list[str]()
        for uri, stored in state.documents.items():
            before = stored.document
            document = replace(before, uri=move.place(uri), path=move.place(before.path))
            moved += document != before
            hashes = replace(stored.hashes, row=row_hash(document)) if document != before else stored.hashes
            is_taken = document.uri in state.documents and move.place(document.uri) == document.uri != uri
            taken += [document.uri] if is_taken else []
            documents[document.uri] = replace(stored, document=document, hashes=hashes)
        if taken:
            raise move.taken(taken)
        files = {move.place(path): stamp for path, stamp in state.files.items()}
        entries = tuple(
            (run, replace(row, file=move.place(row.file), uri=move.place(row.uri))) for run, row in state.entries
        )
        sources = tuple(replace(each, argument=move.place(each.argument)) for each in state.settings.sources)
        settings = replace(state.settings, sources=sources)
        if (files, entries, settings, moved) == (state.files, state.entries, state.settings, 0):
            raise move.unknown()
        self._commit(documents=documents, files=files, entries=entries, settings=settings)
        return moved

    def begin_run(self) -> int:
        self._commit(run=self._store.state.run + 1)
        return self._store.state.run

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        entries, read, same = [], set(outcome.read), set(outcome.unchanged)
        for written, row in self._store.state.entries:
            if row.file in read and written < run:
                if row.state in ("skipped", "failed") and row.uri not in self._store.state.documents:
                    continue
                entries.append((written, replace(row, state="gone")))
            elif row.file in same and row.state in ("indexed", "updated"):
                entries.append((written, replace(row, state="unchanged")))
            else:
                entries.append((written, row))
        gone = {row.uri for _, row in entries if row.state == "gone"}
        stale = {
            row.file
            for _, row in entries
            if row.uri in gone and (row.state in HELD or (row.state == "skipped" and row.reason.code is Code.DUPLICATE))
        }
        files = {**self._store.state.files, **outcome.finished}
        files = {path: replace(stamp, size=-1) if path in stale else stamp for path, stamp in files.items()}
        self._commit(entries=tuple(entries), files=files, finished_run=run)
        return len(stale)

    def settle(self, recall: float | None = None) -> None:
        if recall is not None:
            if not 0 < recall <= 1:
                raise BadInput(f"recall {recall} is not a share: give a number above 0 and up to 1")
            self.change(lambda settings: replace(settings, recall=recall))

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        if kind not in ("auto", "exact", "approximate"):
            raise BadInput(f"kind {kind!r} is unknown: use auto, exact or approximate")
        self.settle(recall)

    def repair(self, meaning: Meaning | None) -> port.CheckReport:
        broken = ReferenceSnapshot(self._store.state).damaged(meaning)
        if broken:
            state = self._store.state
            documents = dict(state.documents)
            for uri in broken:
                row = documents[uri].hashes.row
                documents[uri] = replace(documents[uri], hashes=Hashes(bytes(16), row))
            self._commit(documents=documents, files=unread(state.files, state.entries, set(broken)))
        report = ReferenceSnapshot(self._store.state).check(meaning)
        note = f"{count_of(len(broken), 'damaged document')} will be embedded again when the source is indexed again"
        return replace(report, notes=(*([note] if broken else []), *report.notes))


class ReferenceEngine:
    """An `Engine` in memory: one store for each slot. Those of `at` are found again by their address."""

    _known: ClassVar[dict[str, ReferenceEngine]] = {}

    def __init__(self, address: str) -> None:
        self.address, self._is_exclusive = address, False
        self._slots: dict[Slot, ReferenceStore] = {}

    @classmethod
    def at(cls, address: str) -> ReferenceEngine:
        return cls._known.setdefault(address, cls(address))

    def exists(self, slot: Slot = "live") -> bool:
        return slot in self._slots

    def make(self, slot: Slot, settings: Settings) -> ReferenceStore:
        beside = slot in SIDE_SLOTS and (slot == "previous" or any(map(self.exists, SIDE_SLOTS)))
        if beside or (slot == "draft" and self.exists() and not self._is_exclusive):
            raise BadInput(f"{self.address}: is there already")
        self._slots[slot] = ReferenceStore(settings, ReferenceEngine(f"{self.address}/{slot}"))
        return self._slots[slot]

    def open(self, slot: Slot = "live") -> ReferenceStore:
        if slot not in self._slots:
            raise NotAnIndex(f"{self.address}: is not an index")
        return self._slots[slot]

    @contextmanager
    def exclusive(self, *, wait: bool = True, listener: Listener = SILENT) -> Iterator[ReferenceWriter]:
        with self.open().writer(wait=wait, listener=listener) as writer:
            self._is_exclusive = True
            try:
                yield writer
            finally:
                self._is_exclusive = False

    def publish(self, slot: Slot) -> None:
        if slot not in self._slots or (slot != "previous" and self.exists("previous")):
            raise BadInput(f"{self.address}: has no index at {slot}, or one before it")
        if self.exists() and not self._is_exclusive:
            raise BadInput(f"{self.address}: is there already")
        other = self._slots.pop(slot)
        live = self._slots.setdefault("live", other)
        if live is other:
            other.engine = self
            return
        live.state, other.state = other.state, live.state
        self._slots = {"live": live, "previous": other} if slot in SIDE_SLOTS else {"live": live}

    def discard(self, slot: Slot) -> int:
        if self._slots.pop(slot, None) is None:
            raise BadInput(f"{self.address}: has no index at {slot}")
        return 1

    def leftovers(self) -> tuple[str, ...]:
        return ()

    def sweep(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is kept that could be released."""


class ReferenceStore:
    """A `Store` in memory."""

    def __init__(self, settings: Settings, engine: ReferenceEngine | None = None) -> None:
        self.state = CommitState(replace(settings, language=code(settings.language)))
        self.engine = engine or ReferenceEngine("reference")
        self.engine._slots.setdefault("live", self)
        self._lock, self._writer = threading.RLock(), ReferenceWriter(self)

    @property
    def address(self) -> str:
        return self.engine.address

    @contextmanager
    def snapshot(self, deadline: Deadline = NEVER) -> Iterator[ReferenceSnapshot]:
        deadline.check()
        yield ReferenceSnapshot(self.state, deadline)

    @contextmanager
    def writer(self, *, wait: bool = True, listener: Listener = SILENT) -> Iterator[ReferenceWriter]:
        # No other process shares this store, so nobody ever waits.
        if not self._lock.acquire(blocking=wait):
            raise IndexLocked(f"{self.address}: another thread is writing")
        try:
            yield self._writer
        finally:
            self._lock.release()

    def iterate(self, where: Where | None = None) -> Iterator[Document]:
        return (stored.document for stored in self._in_turn(where))

    def export(self, where: Where | None = None) -> Iterator[port.EmbeddedDocument]:
        for stored in self._in_turn(where):
            spans = tuple(
                replace(passage.span, prefix="", tokens=0 if number else stored.tokens)
                for number, passage in enumerate(stored.passages)
            )
            vectors = from_blobs([passage.vector for passage in stored.passages], self.state.settings.dimensions)
            yield port.EmbeddedDocument(stored.document, Hashes(b"", b""), spans, vectors)

    def _in_turn(self, where: Where | None) -> Iterator[StoredDocument]:
        chosen = None if where is None else ReferenceSnapshot(self.state)._allowed(where)
        last, history = 0, self.state.history
        while page := [stored for stored in self.state.documents.values() if stored.id > last][:PAGE_DOCUMENTS]:
            if self.state.history != history:
                raise NotAnIndex(f"{self.address}: was replaced by another index")
            for stored in page:
                sound(stored)
                if chosen is None or stored.id in chosen:
                    yield stored
            last = page[-1].id

    def free_bytes(self) -> int | None:
        return None

    def artifacts(self) -> Path:
        return Path(tempfile.gettempdir(), f"likewise-reference-{self.state.history}", "encoder")

    def derived(self) -> Path:
        return self.artifacts().parent / "derived"

    def duplicate(self, draft: object) -> None:
        return None

    def close(self) -> None:
        """Nothing is kept that could be released."""


def as_stored(document: Document) -> tuple[Document, Fields]:
    """Return a document as JSON gives it back, and the fields that filters see. Raises BadInput."""
    fields: dict[str, Any] = {}
    for name, _, value in scalars(document.uri, document.metadata):
        fields.setdefault(name, []).append(value)
    metadata = json.loads(json.dumps(document.metadata, default=dict))
    columns = {name: getattr(document, name) for name in COLUMNS}
    return replace(document, metadata=metadata, sections=tuple(document.sections)), {**fields, **columns}


def as_passage(stored: StoredDocument, passage: StoredPassage) -> port.Passage:
    """Return a passage as it is shown, with what is stored of its document. Raises IndexDamaged."""
    document, span = sound(stored).document, passage.span
    of_document: dict[str, Any] = {name: getattr(document, name) for name in (*COLUMNS, "metadata")}
    place: dict[str, Any] = {
        "start": span.start,
        "end": span.end,
        "heading": span.heading,
        "page": span.page,
        "line": passage.line,
    }
    text = document.text[span.start : span.end]
    return port.Passage(id=passage.id, document_id=stored.id, text=text, **place, **of_document)


@cache
def analysis_of(language: str) -> Analysis:
    """Return one analysis for all snapshots: its stemmers are made once."""
    return Analysis(language)


def line_of(document: Document, span: Span) -> int | None:
    """Return the line that a passage begins in, counted from 1, where the text is the file's own."""
    if document.path is None or document.format in EXTRACTED:
        return None
    return 1 + document.text.count("\n", 0, span.start)


def sound(stored: StoredDocument) -> StoredDocument:
    """Return the document. Raises IndexDamaged where its row is not what its hash was made of."""
    if row_hash(stored.document) != stored.hashes.row:
        raise IndexDamaged(f"{stored.document.uri}: its stored row is damaged")
    return stored


def values_of(stored: Any) -> list[Any]:
    """Return the values of a field: a column is one text, and missing where it is empty."""
    values = stored if isinstance(stored, list) else [stored or None]
    return [value for value in values if value is not None]


def set_of(values: Iterable[Any]) -> list[Any]:
    """Return values without repetitions; true is not 1."""
    return list({(type_of(value), value): value for value in values}.values())


def unread(files: Mapping[str, Stamp], entries: Iterable[tuple[int, LedgerRow]], uris: set[str]) -> dict[str, Stamp]:
    """Return the files. Files that have one of the uris will be read again."""
    changed = {row.file for _, row in entries if row.uri in uris and row.state != "gone"}
    return {path: replace(stamp, size=-1) if path in changed else stamp for path, stamp in files.items()}


def known_fields(documents: Iterable[StoredDocument]) -> dict[str, set[Any]]:
    """Return the types that each metadata field has in some document, and those of the document's own time."""
    known: dict[str, set[Any]] = {"modified": {"date"}}
    texts: dict[str, list[str]] = {}
    for stored in documents:
        for name, values in stored.fields.items():
            if isinstance(values, list):
                known.setdefault(name, set()).update(type_of(value) for value in values if value is not None)
                if any(isinstance(value, str) and read_date(value) for value in values):
                    known[name].add("date")
                texts.setdefault(name, []).extend(value for value in values if isinstance(value, str) and value)
    for name, every in texts.items():
        if only_dates(min(every, default=None), max(every, default=None)):
            known[name].discard("text")
    return known
