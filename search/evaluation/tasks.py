"""What recipes are worth at a task: likeness of sentences, or finding the documents that answer questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.embedding import FIT_SAMPLE_PASSAGES
from indexer.encoders import Encoder
from indexer.records import Document, Vector
from search.evaluation.contenders import TOGETHER, Contenders, processed
from search.evaluation.measures import Qrels, Run, evaluate
from search.evaluation.significance import Estimate, of_averages, of_correlations
from search.evaluation.sts import JudgedPairs

MEASURES = {"nDCG@10": "nDCG@10", "recall@100": "R@100", "MRR@10": "RR@10"}
"""What retrieval is judged by, as it is printed and as ir_measures spells it."""

RELATED = 0.8
"""How high in the range of a file's scores a pair counts as related: 4 of 0 to 5, "mostly equivalent" in STS."""

_DEPTH = 100
_COSINES = 2000

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Documents, questions, and which answers which."""

    documents: Sequence[Document]
    queries: Mapping[str, str]
    qrels: Qrels

    @property
    def texts(self) -> list[str]:
        """What is embedded of each document: title and text."""
        return [f"{document.title} {document.text}".strip() for document in self.documents]


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines of random pairs and of pairs that people found related, up to a few thousand of each."""

    random: Vector
    related: Vector

    @property
    def separation(self) -> float | None:
        """Probability that a related pair has the higher cosine (area under the ROC curve); None without pairs."""
        from scipy.stats import mannwhitneyu

        both = len(self.random) * len(self.related)
        return float(mannwhitneyu(self.related, self.random).statistic) / both if both else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one task says of every recipe, in their order.

    Attributes:
        measures: estimates by the measure's name.
        encoders: as they were fitted for this task.
    """

    measures: Mapping[str, Sequence[Estimate]]
    cosines: Sequence[Cosines]
    encoders: Sequence[Encoder]


def judge_sts(contenders: Contenders, sts: Sequence[JudgedPairs], sentences: Sequence[str]) -> Verdict:
    """Spearman's correlation of cosines with scores; post-processing is fitted to the distinct `sentences`."""
    below = contenders.encode(sentences)
    fitted = contenders.fit(below)
    place = {text: number for number, text in enumerate(sentences)}
    random = np.random.default_rng(0)
    sides = [[np.array([place[text] for text in side]) for side in (each.first, each.second)] for each in sts]
    others = [random.permutation(second) for _, second in sides]
    found: list[list[Vector]] = [[] for _ in sts]
    cosines = []
    for encoder, base in zip(fitted, contenders.base, strict=True):
        rows = processed(encoder, below[base])
        apart, related = [], []
        for own, each, (first, second), other in zip(found, sts, sides, others, strict=True):
            own.append(_cosines(rows, first, second))
            low, high = each.scores.min(), each.scores.max()
            related.append(own[-1][each.scores >= low + RELATED * (high - low)])
            apart.append(_cosines(rows, first, other)[(other != second) & (other != first)])
        cosines.append(Cosines(np.concatenate(apart)[:_COSINES], np.concatenate(related)[:_COSINES]))
    measures = {f"STS {each.name}": of_correlations(own, each.scores) for each, own in zip(sts, found, strict=True)}
    return Verdict(measures, cosines, fitted)


def judge_retrieval(contenders: Contenders, task: Retrieval, progress: Callable[[str], None]) -> Verdict:
    """Rankings of all documents by cosine; post-processing is fitted to documents.

    Vectors of the documents are kept only as long as it takes: until something is fitted, or for one pass.
    """
    asked = task.qrels.judged
    ids = [document.uri for document in task.documents]
    below = contenders.encode([task.queries[query] for query in asked], "query")
    relevant = _Relevant(task.qrels, ids)
    fitted: list[Encoder] = []
    best = [_Best(len(asked)) for _ in contenders.recipes]
    for places, rows in _passes(contenders, task.texts, progress):
        fitted = fitted or contenders.fit(rows)
        for own, encoder, base in zip(best, fitted, contenders.base, strict=True):
            questions = processed(encoder, below[base])
            for start in range(0, len(places), TOGETHER):
                some = places[start : start + TOGETHER]
                scores = questions @ processed(encoder, rows[base][start : start + TOGETHER]).T
                own.add(some, scores, relevant.among(some))
    runs = [own.run(asked, ids) for own in best]
    reports = [evaluate(run, task.qrels, tuple(MEASURES.values())) for run in runs]
    measures = {
        name: of_averages([np.array([report.per_query[query][spelt] for query in asked]) for report in reports])
        for name, spelt in MEASURES.items()
    }
    return Verdict(measures, [own.cosines for own in best], fitted)


def _passes(
    contenders: Contenders, texts: Sequence[str], progress: Callable[[str], None]
) -> Iterator[tuple[Ids, list[Vector]]]:
    """Places of documents and their rows by every encoder below; the first has as many as there are to be fitted to."""
    order, first = np.arange(len(texts)), TOGETHER
    if any(recipe.post for recipe in contenders.recipes):
        order, first = np.random.default_rng(0).permutation(order), FIT_SAMPLE_PASSAGES
    for start, end in _spans(len(texts), first):
        places = order[start:end]
        yield places, contenders.encode([texts[place] for place in places])
        progress(f"{end:,} of {len(texts):,} documents")


def _spans(total: int, first: int) -> Iterator[tuple[int, int]]:
    ends = [*range(first, total, TOGETHER), total]
    return zip([0, *ends], ends, strict=False)


class _Relevant:
    """Which documents answer which judged question."""

    def __init__(self, qrels: Qrels, ids: Sequence[str]) -> None:
        place = {id_: number for number, id_ in enumerate(ids)}
        pairs = [
            (number, place[id_])
            for number, query in enumerate(qrels.judged)
            for id_, grade in qrels.grades[query].items()
            if grade > 0 and id_ in place
        ]
        self._questions, self._places = np.array(pairs, np.int64).reshape(-1, 2).T
        self._shape = (len(qrels.judged), len(ids))

    def among(self, places: Ids) -> NDArray[np.bool_]:
        """Of some documents (n,), which answer which question: (questions, n)."""
        column = np.full(self._shape[1], -1)
        column[places] = np.arange(len(places))
        there = column[self._places] >= 0
        found = np.zeros((self._shape[0], len(places)), np.bool_)
        found[self._questions[there], column[self._places[there]]] = True
        return found


class _Best:
    """The best documents so far of every question, and some cosines on the way, for one recipe."""

    def __init__(self, questions: int) -> None:
        self._places: Ids = np.empty((questions, 0), np.int64)
        self._scores: Vector = np.empty((questions, 0), np.float32)
        self._random: list[Vector] = []
        self._related: list[Vector] = []

    def add(self, places: Ids, scores: Vector, relevant: NDArray[np.bool_]) -> None:
        """Cosines (questions, documents) of more documents, and which of them answer which question."""
        if not self._random:
            apart = scores[~relevant]
            self._random.append(apart[:: -(-len(apart) // _COSINES) or 1])
        self._related.append(scores[relevant])
        scores = np.hstack([self._scores, scores])
        places = np.hstack([self._places, np.tile(places, (len(scores), 1))])
        kept = np.argsort(-scores, axis=1, kind="stable")[:, :_DEPTH]
        self._scores = np.take_along_axis(scores, kept, 1)
        self._places = np.take_along_axis(places, kept, 1)

    @property
    def cosines(self) -> Cosines:
        return Cosines(self._random[0], np.concatenate(self._related)[:_COSINES])

    def run(self, queries: Sequence[str], ids: Sequence[str]) -> Run:
        return {
            query: [(ids[place], float(score)) for place, score in zip(*row, strict=True)]
            for query, *row in zip(queries, self._places, self._scores, strict=True)
        }


def _cosines(rows: Vector, first: Ids, second: Ids) -> Vector:
    return np.asarray(np.einsum("nd,nd->n", rows[first], rows[second]))
