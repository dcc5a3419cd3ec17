"""Judging recipes by a task: the likeness of sentences (STS), or finding the documents that answer questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.passages.cut import titled_text
from indexer.records import Document, Vector
from likewise.evaluation.contenders import Contenders
from likewise.evaluation.measures import Qrels, evaluate
from likewise.evaluation.significance import Estimate, estimate_averages, estimate_correlations
from likewise.evaluation.sts import JudgedPairs

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
    """

    measures: Mapping[str, Sequence[Estimate]]
    cosines: Sequence[Cosines]


def judge_sts(contenders: Contenders, sts: Sequence[JudgedPairs], sentences: Sequence[str]) -> TaskResult:
    """Measure Spearman's correlation of cosines with people's scores.

    Args:
        sentences: the distinct sentences of all pairs.
    """
    position = {text: number for number, text in enumerate(sentences)}
    random = np.random.default_rng(0)
    sides = [[np.array([position[text] for text in side]) for side in (pairs.first, pairs.second)] for pairs in sts]
    shuffled_seconds = [random.permutation(second) for _, second in sides]
    cosines_by_file: list[list[Vector]] = [[] for _ in sts]
    cosines = []
    for rows in contenders.encode(sentences):
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
    return TaskResult(measures, cosines)


def judge_retrieval(contenders: Contenders, task: Retrieval, progress: Callable[[str], None]) -> TaskResult:
    """Rank all documents by cosine for every question and measure the rankings."""
    queries, uris = task.qrels.judged, [document.uri for document in task.documents]
    question_rows = contenders.encode([task.queries[query] for query in queries], "query")
    document_rows = contenders.encode(task.texts, progress=progress)
    position = {uri: number for number, uri in enumerate(uris)}
    related = {
        (number, position[uri])
        for number, query in enumerate(queries)
        for uri, grade in task.qrels.grades[query].items()
        if grade > 0 and uri in position
    }
    drawn = np.random.default_rng(0).integers(0, (len(queries), len(uris)), (_SAMPLE_COSINES, 2))
    samples = [
        np.array(pairs, np.int64).reshape(-1, 2).T
        for pairs in (
            [pair for pair in map(tuple, drawn.tolist()) if pair not in related],
            sorted(related)[:_SAMPLE_COSINES],
        )
    ]
    evaluations, cosines = [], []
    for questions, rows in zip(question_rows, document_rows, strict=True):
        run = {query: _best(rows @ question, uris) for query, question in zip(queries, questions, strict=True)}
        evaluations.append(evaluate(run, task.qrels, tuple(MEASURES.values())))
        cosines.append(Cosines(*(np.einsum("nd,nd->n", questions[first], rows[second]) for first, second in samples)))
    measures = {
        printed: estimate_averages(
            [np.array([evaluation.per_query[query][name] for query in queries]) for evaluation in evaluations]
        )
        for printed, name in MEASURES.items()
    }
    return TaskResult(measures, cosines)


def _best(scores: Vector, uris: Sequence[str]) -> list[tuple[str, float]]:
    """Return the best documents by their scores (documents,)."""
    best = np.argsort(-scores, kind="stable")[:_RANKED_DOCUMENTS].tolist()
    return [(uris[position], float(scores[position])) for position in best]


def _pair_cosines(rows: Vector, first: Ids, second: Ids) -> Vector:
    return np.asarray(np.einsum("nd,nd->n", rows[first], rows[second]))
