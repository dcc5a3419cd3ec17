"""The verdict before an index changes its model: a comparison of the answers by old and new vectors.

With judged questions it is nDCG@10 with a paired test. Without judged questions nobody knows which answers are better.
Then the verdict measures how many of the ten hits are the same, and held-out sentences: a sentence is taken out of its
passage and asked, and the rest of the passage is found if fewer than ten other documents are nearer to it (the inverse
cloze task, Lee et al. 2019). Both indexes get the same sentences and the same remaining passages.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from indexer.calibration.probe import PseudoQuestion, pseudo_questions
from indexer.calibration.sample import sample_by_content
from indexer.encoders import Encoder
from indexer.errors import ModelError, RecipeMismatch
from indexer.listener import Listener
from indexer.records import Vector
from indexer.settings import MIN_PSEUDO_QUESTIONS
from indexer.stores.port import Info, Passage
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from likewise.evaluation.measures import Qrels, evaluate
from likewise.evaluation.significance import estimate_averages
from search.answering import Answering
from search.hits.hits import Hits
from search.query.query import Query

HITS = 10

_TIMED_QUESTIONS = 50
"""Number of questions that are asked again, one by one, to measure the time."""

_QUESTION_CHARACTERS = 200
"""Maximum characters of a passage that is used as a question if no sentence can be taken out of a passage."""

_MEASURE = "nDCG@10"

Answer = Sequence[tuple[str, float]]
"""Uri and score of the hits of one question, best first."""


@dataclass(frozen=True, slots=True)
class Sides:
    """A measurement of the old vectors and of the new vectors.

    Attributes:
        p: two-sided p-value of the difference, by the paired bootstrap; None if nothing was tested.
    """

    old: float
    new: float
    p: float | None = None

    def as_json(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of the vectors of two models over the same documents.

    Attributes:
        sides: the measurements, under the names that `likewise migrate --json` prints; None for what could not be
            measured. `ndcg@10` and `ndcg@10_hybrid` exist only with judgments. `success@10` is the share of held-out
            sentences whose passage is found in the first ten, `question_ms` the median of the milliseconds of one
            question, embedded and ranked, and `passages_per_second` how many passages of the collection the encoder of
            questions embeds.
        overlap: mean share of the ten hits that are the same; None in an empty index.
        questions: how many questions were asked for `overlap`: the judged ones, or else sentences of the collection.
        sentences: how many held-out sentences were asked.
        notes: what the caller should know.
    """

    sides: Mapping[str, Sides | None]
    overlap: float | None = None
    questions: int = 0
    sentences: int = 0
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the members that `likewise migrate --json` prints."""
        counts = {"overlap@10": self.overlap, "questions": self.questions, "sentences": self.sentences}
        return {name: sides and sides.as_json() for name, sides in self.sides.items()} | counts


def compare_vectors(
    old: Store,
    new: Store,
    listener: Listener,
    queries: Mapping[str, str] | None = None,
    qrels: Qrels | None = None,
    *,
    trust_remote_code: bool = False,
) -> Verdict:
    """Compare two indexes of the same documents.

    Args:
        listener: receives the steps.
        queries: the text of each judged question by its id; None without judgments.
        qrels: the judgments, by the uris of the indexes.

    Returns:
        The comparison. If the old model can no longer be used, which is a reason to change it, only the sizes are
        compared, and a note says why.

    Raises:
        ModelError, RecipeMismatch: the new model cannot be loaded, or is not the model of its vectors.
    """
    sides = [_Side(store, trust_remote_code) for store in (old, new)]
    if (problem := sides[0].problem()) is not None:
        note = f"the models are not compared, because the old model cannot be used ({problem})"
        unmeasured = dict.fromkeys(("success@10", "question_ms", "passages_per_second"))
        return Verdict({**unmeasured, **_sizes(sides)}, notes=(note,))
    passages, sentences = _draw(old)
    sentences = _readable(sides, sentences)
    texts = [one.question for one in sentences]
    if queries is not None and qrels is not None:
        listener.step("asking the judged questions")
        texts = [queries[query] for query in qrels.judged]
    elif not texts:
        texts = _readable_texts(sides, [passage.text[:_QUESTION_CHARACTERS] for passage in passages])
    dense, hybrid = ([side.ask(texts, mode) for side in sides] for mode in ("dense", "hybrid"))
    listener.step("asking sentences of the collection")
    found = [side.find(passages, sentences) for side in sides]
    judged = {"ndcg@10": dense, "ndcg@10_hybrid": hybrid}
    measured = {
        **{name: _judge(answers, qrels) for name, answers in judged.items() if qrels is not None},
        "success@10": _tested(found) if len(sentences) >= MIN_PSEUDO_QUESTIONS else None,
        "question_ms": Sides(*(side.question_ms(texts[:_TIMED_QUESTIONS]) for side in sides)) if texts else None,
        "passages_per_second": Sides(*(side.passages_per_second for side in sides)) if sentences else None,
    }
    return Verdict(
        {**measured, **_sizes(sides)},
        _overlap(*dense) if texts else None,
        len(texts),
        len(sentences),
        tuple(dict.fromkeys(note for side in sides for note in side.notes)),
    )


class _Side:
    """One of the two indexes, with its model.

    Attributes:
        passages_per_second: speed at which `find` has embedded its answers.
        notes: the notes of searches for the same questions.
    """

    def __init__(self, store: Store, trust_remote_code: bool) -> None:
        self._store = store
        self.notes: list[str] = []
        self._answering = Answering(store, trust_remote_code=trust_remote_code)
        self._vectors: Vector | None = None  # of the questions that `ask` was given first
        self.passages_per_second = 0.0

    def info(self) -> Info:
        with self._store.snapshot() as snapshot:
            return snapshot.info()

    def problem(self) -> str | None:
        """Return why the model cannot be loaded or reached; None if it can be asked."""
        try:
            with self._store.snapshot() as snapshot:
                self._encoder(snapshot)
        except (ModelError, RecipeMismatch) as error:
            return str(error)
        return None

    def _encoder(self, snapshot: Snapshot) -> Encoder:
        encoder, notes = self._answering.questions.encoder_of(snapshot)
        self.notes.extend(notes)
        return encoder

    def _encode(self, snapshot: Snapshot, texts: Sequence[str]) -> Vector:
        vectors, notes = self._answering.questions.encode(snapshot, texts)
        self.notes.extend(chain.from_iterable(notes))
        return vectors

    def _hits(self, snapshot: Snapshot, query: Query, vector: Vector) -> Hits:
        return self._answering.hits(snapshot, self._answering.plan(snapshot, query, vector), HITS)

    def readable(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether the model reads a token of it."""
        with self._store.snapshot() as snapshot:
            encoder = self._encoder(snapshot)
        return [len(offsets) > 0 for offsets in encoder.offsets(list(texts))]

    def ask(self, texts: Sequence[str], mode: Literal["dense", "hybrid"]) -> list[list[tuple[str, float]]]:
        """Return uri and score of the ten hits of each question. They are embedded once for both modes."""
        answers = []
        with self._store.snapshot() as snapshot:
            if self._vectors is None and texts:
                self._vectors = self._encode(snapshot, texts)
            for text, vector in zip(texts, () if self._vectors is None else self._vectors, strict=True):
                hits = self._hits(snapshot, Query(text, mode=mode), vector)
                answers.append([(hit.uri, hit.score) for hit in hits])
        return answers

    def question_ms(self, texts: Sequence[str]) -> float:
        """Ask one question after the other; return the median of their milliseconds."""
        times = []
        with self._store.snapshot() as snapshot:
            for text in texts:
                begun = time.perf_counter()
                vector = self._encode(snapshot, [text])[0]
                self._hits(snapshot, Query(text), vector)
                times.append(1000 * (time.perf_counter() - begun))
        return statistics.median(times)

    def find(self, passages: Sequence[Passage], sentences: Sequence[PseudoQuestion]) -> list[float]:
        """Return 1 for each sentence whose passage, without it, would be among the first ten documents, and 0 else."""
        if not sentences:
            return []
        found = []
        with self._store.snapshot() as snapshot:
            encoder = self._encoder(snapshot)
            questions = encoder.encode([one.question for one in sentences], role="query", truncate=True)
            begun = time.perf_counter()
            answers = encoder.encode([one.answer for one in sentences], role="document", truncate=True)
            self.passages_per_second = len(sentences) / max(time.perf_counter() - begun, 1e-9)
            for one, question, answer in zip(sentences, questions, answers, strict=True):
                ranking = snapshot.dense(question, HITS + 1)
                ranked = snapshot.passages_by_id(ranking.passages.tolist())
                own, score = passages[one.position].uri, float(question @ answer)
                nearer = sum(
                    passage.uri != own and cosine > score
                    for passage, cosine in zip(ranked, ranking.scores.tolist(), strict=True)
                )
                found.append(float(nearer < HITS))
        return found


def _sizes(sides: Sequence[_Side]) -> dict[str, Sides]:
    infos = [side.info() for side in sides]
    return {name: Sides(*(getattr(info, name) for info in infos)) for name in ("bytes", "passages", "dimensions")}


def _draw(store: Store) -> tuple[list[Passage], list[PseudoQuestion]]:
    """Return passages of an index as if at random, and sentences taken out of some of them."""
    with store.snapshot() as snapshot:
        passages, _ = sample_by_content(snapshot)
    return passages, list(pseudo_questions(passages))


def _readable(sides: Sequence[_Side], sentences: Sequence[PseudoQuestion]) -> list[PseudoQuestion]:
    """Return the pairs in which both models can read a token of the question and of the answer."""
    flags = [
        side.readable(texts)
        for side in sides
        for texts in ([one.question for one in sentences], [one.answer for one in sentences])
    ]
    return [one for one, *readable in zip(sentences, *flags, strict=True) if all(readable)]


def _readable_texts(sides: Sequence[_Side], texts: Sequence[str]) -> list[str]:
    flags = [side.readable(texts) for side in sides]
    return [text for text, *readable in zip(texts, *flags, strict=True) if all(readable)]


def _overlap(old: Sequence[Answer], new: Sequence[Answer]) -> float:
    """Return the mean share of hits that both have."""
    shares = []
    for one, other in zip(old, new, strict=True):
        mine, theirs = {uri for uri, _ in one}, {uri for uri, _ in other}
        shares.append(len(mine & theirs) / max(len(mine), len(theirs), 1))
    return sum(shares) / len(shares)


def _judge(answers: Sequence[Sequence[Answer]], qrels: Qrels) -> Sides:
    """Return nDCG@10 of both sides, which were asked the judged questions in their order."""
    values = []
    for side in answers:
        per_query = evaluate(dict(zip(qrels.judged, side, strict=True)), qrels, [_MEASURE]).per_query
        values.append([per_query[query][_MEASURE] for query in qrels.judged])
    return _tested(values)


def _tested(values: Sequence[Sequence[float]]) -> Sides:
    """Return the averages of both sides with the p-value of their difference."""
    old, new = estimate_averages([np.array(side, np.float64) for side in values])
    return Sides(old.value, new.value, new.p)
