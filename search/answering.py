"""`Answering`: the steps of a question to one index. `Searcher` answers by them, and the part `federation` asks several
indexes by them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from typing import Any, Literal, TypeVar

from indexer.calibration.cosines import CosineStatistics
from indexer.deadline import NEVER, Deadline
from indexer.encoders import Encoder
from indexer.errors import BadInput
from indexer.filters.tree import And, In, Where, conditions, render
from indexer.filters.unknown_fields import without_unknown_fields
from indexer.languages.questions import MIN_KNOWN_SHARE, known_share_of, names, unread_question_note
from indexer.lookup import is_uri, unknown_uri
from indexer.records import Vector
from indexer.settings import Calibration
from indexer.stores.fields.field_types import check_filter
from indexer.stores.port import FieldValues
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from indexer.stores.words.analysis import DEFAULT, stored_analysis
from search.hits.hits import Hit, Hits
from search.hits.marks import QuestionWords
from search.hits.why import holds, reasons
from search.query.conditions import notes_on_reading
from search.query.examples import with_examples
from search.query.newer import Newer, Weights
from search.query.query import Query, changed
from search.question_batches import AskedQuestion
from search.question_encoder import QuestionEncoder
from search.ranking.fusion import words_bias
from search.ranking.plan import Plan
from search.ranking.ranker import rank
from search.timings import Timings

UnknownFields = Literal["error", "empty"]

_NO_DOCUMENT = In("uri", ())
_MAX_KEPT = 512
"""Maximum values that are kept of a commit. Clients may invent any number of filters and fields."""

VERDICT_HITS = 10
"""Number of hits in which the words of a question are looked for if no passage is near to it."""

Value = TypeVar("Value")


class _Kept:
    """Values that were computed from one commit. They are kept until the next commit, and statistics for longer."""

    def __init__(self) -> None:
        self._of: tuple[Hashable, dict[Hashable, Any]] = None, {}  # the version, and its values
        self._statistics: tuple[str, int, CosineStatistics] | None = None  # with the index's history and passages

    def get(self, snapshot: Snapshot, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value with this key, which `compute` returns if it is not kept."""
        version, values = self._of
        if version != snapshot.version or len(values) >= _MAX_KEPT:
            _, values = self._of = snapshot.version, {}  # not emptied: another thread may be reading it
        if key not in values:
            values[key] = compute()
        kept: Value = values[key]
        return kept

    def statistics(self, snapshot: Snapshot) -> CosineStatistics:
        """Return statistics of the index's cosines. They are kept until its passages change in number by a tenth."""
        history, passages, kept = snapshot.history, snapshot.passages, self._statistics
        if kept is None or kept[0] != history or abs(passages - kept[1]) > kept[1] / 10:
            self._statistics = kept = (history, passages, CosineStatistics.of_index(snapshot))
        return kept[2]


class Answering:
    """The steps of a question to one index, each over a snapshot of the caller. Safe to share among threads.

    Attributes:
        store: the store of the index.
        questions: embeds questions.
        unknown_fields: as in `Searcher`.
        deadline: of the questions of one caller.
        ahead: a question of this caller that is being embedded.
        kept: values of the last commit.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder | None = None,
        unknown_fields: UnknownFields = "error",
        *,
        trust_remote_code: bool = False,
        timings: Timings | None = None,
    ) -> None:
        """Answer from this store; arguments and errors are those of `Searcher`."""
        self.store, self.unknown_fields, self._timings = store, unknown_fields, timings or Timings()
        self.questions = QuestionEncoder(store, encoder, trust_remote_code, self._timings)
        self.deadline: Deadline = NEVER
        self.ahead: AskedQuestion | None = None
        self.kept = _Kept()

    def until(self, deadline: Deadline) -> Answering:
        """Return these steps for the questions of one caller."""
        limited = copy(self)
        limited.deadline = deadline
        return limited

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot, which raises DeadlinePassed after the deadline."""
        return self.store.snapshot(self.deadline)

    def vector(self, snapshot: Snapshot, query: Query) -> tuple[Vector | None, tuple[str, ...]]:
        """Return the question as a unit row (dimensions,) and notes; None in words mode, which needs no model."""
        if query.ranked_by == "words":
            return None, ()
        vector, notes = None if query.row is None else self._given(snapshot, query.row), tuple[str, ...]()
        if vector is None and query.asked:
            (vector,), (notes,) = self.questions.encode(snapshot, [query.asked], self.ahead)
        if query.examples:
            liked, unliked = ([self.vectors_of(snapshot, uri) for uri in uris] for uris in (query.like, query.unlike))
            vector = with_examples(vector, liked, unliked)
        return vector, notes

    def _given(self, snapshot: Snapshot, row: Vector) -> Vector:
        """Return the vector that a question has brought."""
        dimensions = snapshot.settings.dimensions
        if dimensions and len(row) != dimensions:
            raise BadInput(f"the question's vector has {len(row)} dimensions and {self.store.address} has {dimensions}")
        return row[:dimensions]  # nothing of it where the index has taken no width yet

    def vectors_of(self, snapshot: Snapshot, uri: str) -> Vector:
        rows = snapshot.vectors_of(uri) if is_uri(uri) else None
        if rows is None:
            raise unknown_uri(self.store.address, uri)
        return rows

    def plan(self, snapshot: Snapshot, query: Query, vector: Vector | None, weights: Weights | None = None) -> Plan:
        """Return how to rank for a question with this vector.

        Args:
            vector: the question with its examples as a unit row (dimensions,); None in words mode.
            weights: of the documents for newer ones first; without them they are computed where the question asks.

        Raises:
            FilterError: the filter, or the field of the dates, does not fit the fields of the index.
        """
        where = None if query.condition is None else self.known_fields_only(snapshot, query.condition)
        left_out = None
        if query.newer is not None and weights is None:
            newer = Newer.read(query.newer)
            newer.check(snapshot.fields, unknown_is_error=self.unknown_fields == "error")
            weights = newer.weigh(snapshot, where)
        if query.examples and vector is not None:  # A filter on uris would read all documents for each question.
            examples = In("uri", query.examples)
            condition = examples if where is None else And((where, examples))
            left_out = snapshot.dense(vector, snapshot.passages, condition, query.unit, conditions=query.conditions)
        mode, known_share = query.ranked_by, 1.0
        if mode != "dense" or snapshot.has_words:
            known_share = known_share_of(query.asked, snapshot)
        if known_share < MIN_KNOWN_SHARE and mode != "words":
            query = changed(query, asked=names(query.asked))
        if mode != "hybrid":
            return Plan(query, mode, vector, where, weights, left_out, known_share=known_share)
        statistics, settings, unread_bias = self.kept.statistics(snapshot), snapshot.settings, 0.0
        if query.row is None and settings.language != DEFAULT:  # nothing is known of a vector that a program has made
            unread_bias = self.questions.unread_bias(snapshot, query.asked)
        bias = words_bias(settings)
        return Plan(query, mode, vector, where, weights, left_out, statistics, bias, unread_bias, known_share)

    def known_fields_only(self, snapshot: Snapshot, where: Where | None) -> Where | None:
        """Return the filter to rank with; None if it leaves every document."""
        if where is None or self.unknown_fields == "error" or (fields := snapshot.fields) is None:
            return where
        for condition in conditions(where):  # one on an unknown field must not hide a wrong type beside it
            if without_unknown_fields(condition, fields) is condition:
                check_filter(condition, fields)
        known = without_unknown_fields(where, fields)
        return known if not isinstance(known, bool) else None if known else _NO_DOCUMENT

    def hits(self, snapshot: Snapshot, plan: Plan, k: int) -> Hits:
        """Return the k best units for a plan, and whether they answer the question.

        Raises:
            NoWords: in words mode, the question has no word to search by.
            FilterError: the filter does not fit the fields of the index.
        """
        begun, query, settings, notes = time.perf_counter(), plan.query, snapshot.settings, list[str]()
        ranked, found = rank(plan, snapshot, k, self.deadline.check)
        names_alone = plan.known_share < MIN_KNOWN_SHARE and plan.mode != "words"
        question = QuestionWords(stored_analysis(settings.language), query.words, names_alone=names_alone)
        far, min_share, calibration = -1.0, 1.0, settings.calibration
        if calibration is not None and calibration.margin is not None and plan.where is not None:
            calibration = None  # A filter may leave texts in another language, whose cosines are lower than this level.
        if calibration is not None and (vector := plan.vector) is not None:
            min_share = calibration.min_share
            far = calibration.background(lambda: self.kept.statistics(snapshot).level(vector), plan.known_share)
        hits = list[Hit]()
        for row, ((passage, *family), score) in enumerate(zip(found, ranked.scores.tolist(), strict=True)):
            cosine = None if ranked.cosines is None else float(ranked.cosines[row])
            why: Callable[[], Mapping[str, Any]] = partial(ranked.why, row)
            if query.text:
                is_far = cosine is not None and cosine < far
                why = partial(reasons, why, passage, question, is_far, query.conditions, min_share)
            uris = [other.uri for other in family]
            hits.append(Hit.from_passage(passage, score, cosine, why, uris, settings.sources))
        answered, did_you_mean = self._verdict(snapshot, plan, calibration, ranked.nearest - far, question, hits)
        if plan.mode != "words" and query.row is None and settings.model_open is None:
            notes += filter(None, [unread_question_note(settings.recipe, query.asked, plan.mode)])
        if ranked.terms == 0 and query.asked:
            notes.append(f"the question {query.asked[:40]!r} has no word to search by: ranked by meaning alone")
        if plan.weights is not None:
            notes += plan.weights.notes
        notes += (*ranked.notes, *snapshot.notes)
        self._timings.ranked(time.perf_counter() - begun)
        if plan.where is not None:
            notes += self.notes_on(snapshot, plan.where, ranked.matched > 0)
        if not query.literal:
            notes += notes_on_reading(query.asked, query.conditions)
        return Hits(
            tuple(hits), ranked.matched, ranked.exact, query.text, plan.mode, answered, tuple(notes), did_you_mean
        )

    def _verdict(
        self,
        snapshot: Snapshot,
        plan: Plan,
        calibration: Calibration | None,
        above: float,
        question: QuestionWords,
        hits: Sequence[Hit],
    ) -> tuple[bool | None, str]:
        """Return `Hits.answered` and `Hits.did_you_mean`.

        Args:
            calibration: of the index; None if it says nothing under the filter.
            above: how far the highest cosine of all units, whether they are hits or not, is above that of background.
        """
        query, corrected = plan.query, ""
        if plan.mode != "dense" and query.asked and plan.known_share >= MIN_KNOWN_SHARE:
            corrected = snapshot.corrected(query.asked)
        answered = None
        if calibration is not None and query.text and plan.mode != "words":
            min_share = calibration.min_share
            depth = 1 if min_share < 1 and plan.mode == "hybrid" else VERDICT_HITS  # words alone bring half of them up
            holding = (holds(question, hit, min_share) for hit in hits[:depth])
            answered = above >= 0 or ((plan.mode == "hybrid" or min_share < 1) and any(holding))
            if not answered and corrected and query.row is None:  # a misspelt question is near to nothing
                rows, _ = self.questions.encode(snapshot, [corrected])
                best = snapshot.dense(rows[0], 1, plan.where, query.unit, bool(query.exact), query.conditions).scores
                far = calibration.background(lambda: self.kept.statistics(snapshot).level(rows[0]), plan.known_share)
                answered = float(best.max(initial=-1.0)) >= far
        if corrected and query.conditions:  # conditions stay as they were typed; notes name words like theirs
            corrected = query.text.replace(query.asked, corrected) if query.text.count(query.asked) == 1 else ""
        return answered, corrected

    def notes_on(self, snapshot: Snapshot, where: Where, found: bool) -> tuple[str, ...]:
        """Return the notes about values that no document has, kept until the next commit, and about fields of the
        metadata that a filter without a document may mean.

        An empty index has no notes about values.
        """
        from search.query.missing_values import COMPARED_VALUES, may_have_notes, notes_on_names, notes_on_values

        names = () if found else notes_on_names(where, snapshot.fields or ())
        if names and snapshot.count(where):  # documents without a word of the question
            names = ()
        if self.unknown_fields == "empty" or not snapshot.documents or not may_have_notes(where, found):
            return names
        return names + self.kept.get(
            snapshot,
            ("notes", render(where), found),
            lambda: notes_on_values(
                snapshot, where, found, lambda field: self.values_of(snapshot, field, COMPARED_VALUES)
            ),
        )

    def values_of(self, snapshot: Snapshot, field: str, limit: int) -> FieldValues:
        """Return the values of a field, kept until the next commit."""
        return self.kept.get(snapshot, ("values", field, limit), lambda: snapshot.values(field, limit))
