"""Judging recipes by a task: the likeness of sentences (STS), or finding the documents that answer questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.encoders import Encoder
from indexer.encoders.chain.parts import post_process
from indexer.errors import count_of
from indexer.indexing.embedding import FIT_SAMPLE_PASSAGES
from indexer.passages.cut import titled_text
from indexer.records import Document, Vector
from search.evaluation.contenders import BATCH_TEXTS, Contenders
from search.evaluation.measures import Qrels, Run, evaluate
from search.evaluation.significance import Estimate, estimate_averages, estimate_correlations
from search.evaluation.sts import JudgedPairs

MEASURES = {"nDCG@10": "nDCG@10", "recall@100": "R@100", "MRR@10": "RR@10"}
"""The measures of retrieval: printed name to the name in `measures`."""

RELATED = 0.8
"""Minimum score of a related pair, as a share of the range of a file's scores: 4 of 0 to 5, "mostly equivalent" in
STS."""

_RANKED_DOCUMENTS = 100
_SAMPLE_COSINES = 2000

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Documents, questions, and judgments that say which document answers which question."""

    documents: Sequence[Document]
    queries: Mapping[str, str]
    qrels: Qrels

    @property
    def texts(self) -> list[str]:
        """The title and text of each document, which are embedded together."""
        return [titled_text(document.title, document.text, document.format) for document in self.documents]


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines of random pairs and of pairs that people found related, up to a few thousand of each."""

    random: Vector
    related: Vector

    @property
    def separation(self) -> float | None:
        """Probability that a related pair has the higher cosine (area under the ROC curve); None without pairs."""
        from scipy.stats import mannwhitneyu

        combinations = len(self.random) * len(self.related)
        return float(mannwhitneyu(self.related, self.random).statistic) / combinations if combinations else None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The results of every recipe in one task, in the order of the recipes.

    Attributes:
        measures: estimates by the name of the measure.
        cosines: cosines of random and related pairs.
        encoders: the encoders, with post-processing fitted for this task.
    """

    measures: Mapping[str, Sequence[Estimate]]
    cosines: Sequence[Cosines]
    encoders: Sequence[Encoder]


def judge_sts(contenders: Contenders, sts: Sequence[JudgedPairs], sentences: Sequence[str]) -> TaskResult:
    """Measure Spearman's correlation of cosines with people's scores.

    Args:
        sentences: the distinct sentences of all pairs; post-processing is fitted to them.
    """
    base_rows = contenders.encode(sentences)
    fitted = contenders.fit(base_rows)
    position = {text: number for number, text in enumerate(sentences)}
    random = np.random.default_rng(0)
    sides = [[np.array([position[text] for text in side]) for side in (pairs.first, pairs.second)] for pairs in sts]
    shuffled_seconds = [random.permutation(second) for _, second in sides]
    cosines_by_file: list[list[Vector]] = [[] for _ in sts]
    cosines = []
    for encoder, base in zip(fitted, contenders.base, strict=True):
        rows = post_process(encoder, base_rows[base])
        unrelated, related = [], []
        for file_cosines, pairs, (first, second), shuffled in zip(
            cosines_by_file, sts, sides, shuffled_seconds, strict=True
        ):
            pair_cosines = _pair_cosines(rows, first, second)
            file_cosines.append(pair_cosines)
            low, high = pairs.scores.min(), pairs.scores.max()
            related.append(pair_cosines[pairs.scores >= low + RELATED * (high - low)])
            unrelated.append(_pair_cosines(rows, first, shuffled)[(shuffled != second) & (shuffled != first)])
        cosines.append(Cosines(np.concatenate(unrelated)[:_SAMPLE_COSINES], np.concatenate(related)[:_SAMPLE_COSINES]))
    measures = {
        f"STS {pairs.name}": estimate_correlations(file_cosines, pairs.scores)
        for pairs, file_cosines in zip(sts, cosines_by_file, strict=True)
    }
    return TaskResult(measures, cosines, fitted)


def judge_retrieval(contenders: Contenders, task: Retrieval, progress: Callable[[str], None]) -> TaskResult:
    """Rank all documents by cosine for every question and measure the rankings.

    Post-processing is fitted to documents. Vectors of documents are kept for one pass only, to bound the memory.
    """
    queries = task.qrels.judged
    uris = [document.uri for document in task.documents]
    base_questions = contenders.encode([task.queries[query] for query in queries], "query")
    judgments = _Judgments(task.qrels, uris)
    fitted: list[Encoder] = []
    rankings = [_Rankings(len(queries)) for _ in contenders.recipes]
    for positions, base_rows in _passes(contenders, task.texts, progress):
        fitted = fitted or contenders.fit(base_rows)
        for ranking, encoder, base in zip(rankings, fitted, contenders.base, strict=True):
            questions = post_process(encoder, base_questions[base])
            for start in range(0, len(positions), BATCH_TEXTS):
                part = positions[start : start + BATCH_TEXTS]
                scores = questions @ post_process(encoder, base_rows[base][start : start + BATCH_TEXTS]).T
                ranking.add(part, scores, judgments.relevant(part))
    evaluations = [evaluate(ranking.run(queries, uris), task.qrels, tuple(MEASURES.values())) for ranking in rankings]
    measures = {
        printed: estimate_averages(
            [np.array([evaluation.per_query[query][name] for query in queries]) for evaluation in evaluations]
        )
        for printed, name in MEASURES.items()
    }
    return TaskResult(measures, [ranking.cosines for ranking in rankings], fitted)


def _passes(
    contenders: Contenders, texts: Sequence[str], progress: Callable[[str], None]
) -> Iterator[tuple[Ids, list[Vector]]]:
    """Yield positions of documents and their rows by every base encoder.

    If a recipe has post-processing, documents come in random order and the first pass is as large as fitting needs.
    """
    order, first = np.arange(len(texts)), BATCH_TEXTS
    if any(recipe.post for recipe in contenders.recipes):
        order, first = np.random.default_rng(0).permutation(order), FIT_SAMPLE_PASSAGES
    for start, end in _pass_bounds(len(texts), first):
        positions = order[start:end]
        yield positions, contenders.encode([texts[position] for position in positions])
        progress(f"{end:,} of {count_of(len(texts), 'document')}")


def _pass_bounds(total: int, first: int) -> Iterator[tuple[int, int]]:
    ends = [*range(first, total, BATCH_TEXTS), total]
    return zip([0, *ends], ends, strict=False)


class _Judgments:
    """The documents that answer each judged question."""

    def __init__(self, qrels: Qrels, uris: Sequence[str]) -> None:
        position = {uri: number for number, uri in enumerate(uris)}
        pairs = [
            (number, position[uri])
            for number, query in enumerate(qrels.judged)
            for uri, grade in qrels.grades[query].items()
            if grade > 0 and uri in position
        ]
        self._questions, self._positions = np.array(pairs, np.int64).reshape(-1, 2).T
        self._shape = (len(qrels.judged), len(uris))

    def relevant(self, positions: Ids) -> NDArray[np.bool_]:
        """Return, as (questions, n), which of these documents (n,) answer which question."""
        column = np.full(self._shape[1], -1)
        column[positions] = np.arange(len(positions))
        included = column[self._positions] >= 0
        relevant = np.zeros((self._shape[0], len(positions)), np.bool_)
        relevant[self._questions[included], column[self._positions[included]]] = True
        return relevant


class _Rankings:
    """The best documents so far of every question, and a sample of cosines, for one recipe."""

    def __init__(self, questions: int) -> None:
        self._positions: Ids = np.empty((questions, 0), np.int64)
        self._scores: Vector = np.empty((questions, 0), np.float32)
        self._random: list[Vector] = []
        self._related: list[Vector] = []

    def add(self, positions: Ids, scores: Vector, relevant: NDArray[np.bool_]) -> None:
        """Add the cosines (questions, n) of n more documents, and whether each of them answers each question."""
        if not self._random:
            unrelated = scores[~relevant]
            self._random.append(unrelated[:: -(-len(unrelated) // _SAMPLE_COSINES) or 1])
        self._related.append(scores[relevant])
        scores = np.hstack([self._scores, scores])
        positions = np.hstack([self._positions, np.tile(positions, (len(scores), 1))])
        best = np.argsort(-scores, axis=1, kind="stable")[:, :_RANKED_DOCUMENTS]
        self._scores = np.take_along_axis(scores, best, 1)
        self._positions = np.take_along_axis(positions, best, 1)

    @property
    def cosines(self) -> Cosines:
        return Cosines(self._random[0], np.concatenate(self._related)[:_SAMPLE_COSINES])

    def run(self, queries: Sequence[str], uris: Sequence[str]) -> Run:
        return {
            query: [(uris[position], float(score)) for position, score in zip(*row, strict=True)]
            for query, *row in zip(queries, self._positions, self._scores, strict=True)
        }


def _pair_cosines(rows: Vector, first: Ids, second: Ids) -> Vector:
    return np.asarray(np.einsum("nd,nd->n", rows[first], rows[second]))
