"""Ways to join words and meaning, on every judged collection (BEIR form) below folders: nDCG@10.

`python -m benchmarks.fusion [FOLDER ...]`; the default is $LIKEWISE_EVAL_DATA/data. Words are BM25 over whole documents
with the engine's own terms, dense the best passage; both are exact, so that the tables are about fusion alone. Nothing
is learnt from the judgments of a collection. Vectors are kept in the cache of `likewise index`, so that a second run
embeds nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import collections
from indexer import Document, Index, load_encoder
from indexer.calibration.bm25 import Bm25
from indexer.calibration.cosines import CosineStatistics
from indexer.calibration.probe import ask, compare
from indexer.calibration.sample import DRAWN_PASSAGES, sample_by_content
from indexer.encoders import Encoder
from indexer.languages.detect import languages_of
from indexer.languages.notes import word_language
from indexer.languages.questions import pieces_per_word
from indexer.records import Vector
from indexer.settings import Probed
from indexer.stores.addresses.open import open_store
from indexer.stores.reading.candidates import best_passages
from indexer.stores.reading.store import Store
from indexer.stores.words.analysis import DEFAULT, stored_analysis
from likewise.cache.cached_encoder import CachedEncoder
from likewise.cache.vector_cache import open_vector_cache
from likewise.evaluation.measures import Qrels, evaluate, read_qrels, read_queries
from search.ranking.fusion import (
    CANDIDATES,
    Scores,
    fuse,
    mean_with_best,
    probed_words_bias,
    unread_words_bias,
    words_weight,
)

FIXED_WEIGHTS = tuple(round(step / 10, 1) for step in range(1, 10))
"""Weights of the cosine in the convex combinations of min-max scores."""

FACTORS = (0, 5, 10, 15, 20, 30)
"""Values of BIAS_FACTOR among which the best for the other origins is chosen."""

SHOWN = ("words", "dense", "RRF, k = 60", "min-max .7", "hybrid")
"""The ways with a column of their own; the others are in the summary."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of one question with what fusion knows of them.

    Attributes:
        uris: of the candidates (candidates,).
        cosines: of the best passage of each (candidates,).
        z_scores: of the cosines that rank them (candidates,).
        words: their BM25 scores (candidates,).
        terms: how many different terms the question has.
        pieces: tokens per word of the question.
    """

    uris: Sequence[str]
    cosines: Vector
    z_scores: Scores
    words: Scores
    terms: int
    pieces: float


@dataclass(frozen=True, slots=True)
class Legs:
    """Both legs of a judged collection.

    Attributes:
        questions: candidates by question id.
        probed: the result of its pseudo-questions.
        language: the language in which words are searched.
    """

    questions: Mapping[str, Candidates]
    qrels: Qrels
    probed: Probed
    language: str


def reciprocal_rank_fusion(rankings: Sequence[Sequence[int]], k: int = 60) -> dict[int, float]:
    """Return the sum of 1 / (k + rank) of each id over the rankings that hold it (Cormack, Clarke, Büttcher 2009)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, 1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (k + rank)
    return scores


def min_max(scores: NDArray[np.floating]) -> Scores:
    """Return scores shifted and scaled to 0..1; all 0 where they are equal."""
    values = scores.astype(np.float64)
    span = np.ptp(values) if values.size else 0.0
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)


def score_by_each_way(found: Candidates, legs: Legs) -> dict[str, Scores]:
    """Return the scores of one question's candidates (candidates,) by way of joining."""
    both = (found.cosines, found.words)
    reciprocal = reciprocal_rank_fusion([np.argsort(-scores, kind="stable").tolist() for scores in both])
    cosines, words = map(min_max, both)

    unread = 0.0 if legs.language == DEFAULT else unread_words_bias(found.pieces)

    def hybrid(words_bias: float) -> Scores:
        weight = words_weight(found.z_scores, found.words, found.terms, words_bias + unread)
        return fuse(found.z_scores, found.words, weight).scores

    return {
        "words": found.words,
        "dense": found.cosines.astype(np.float64),
        "RRF, k = 60": np.array([reciprocal[row] for row in range(len(found.uris))]),
        **{_min_max_name(fixed): fixed * cosines + (1 - fixed) * words for fixed in FIXED_WEIGHTS},
        "hybrid": hybrid(probed_words_bias(legs.probed)),
        **{_factor_name(factor): hybrid(probed_words_bias(legs.probed, factor)) for factor in FACTORS},
    }


def _min_max_name(weight: float) -> str:
    return f"min-max {weight:.1f}".replace("0.", ".")


def _factor_name(factor: float) -> str:
    return f"hybrid, factor {factor}"


def left_out(origins: Sequence[str], ratios: Scores) -> list[int]:
    """Return for each collection the column that is best for the collections of other origins.

    Args:
        origins: of the collections; two at least.
        ratios: nDCG@10 to that of the better leg (collections, columns); the best column has the highest mean.
    """
    of_others = [np.array([other != origin for other in origins]) for origin in origins]
    return [int(ratios[others].mean(axis=0).argmax()) for others in of_others]


def read_legs(collection: Path, encoder: Encoder) -> Legs:
    """Index a collection, ask it its judged questions and its pseudo-questions."""
    queries = read_queries(collection / "queries.jsonl")
    qrels = read_qrels(collection / "qrels" / "test.tsv")
    asked = [query for query in qrels.judged if query in queries]
    with tempfile.TemporaryDirectory() as folder:
        store = _indexed(collection, Path(folder) / "bench.index", encoder)
        stored = list(store.export())
        language = word_language(languages_of([item.document.text for item in stored]))
        analysis = stored_analysis(language)
        with store.snapshot() as snapshot:
            statistics = CosineStatistics.from_sample(snapshot.sample(DRAWN_PASSAGES).vectors)
            passages, rows = sample_by_content(snapshot)
            probed = compare(ask(passages, rows, encoder), passages, analysis.stems)
        store.close()
    bm25 = Bm25([analysis.stems(f"{item.document.title} {item.document.text}") for item in stored])
    vectors = np.concatenate([item.vectors for item in stored if item.vectors is not None])
    owner = np.repeat(np.arange(len(stored)), [len(item.spans or ()) for item in stored])
    questions = {}
    texts = [queries[query] for query in asked]
    vectors_asked = encoder.encode(texts, role="query", truncate=True)
    pieces = map(pieces_per_word, texts, encoder.offsets(texts))
    for query, vector, cut in zip(asked, vectors_asked, pieces, strict=True):
        terms = analysis.terms(queries[query])
        words, passages = bm25.scores(terms), vectors @ vector
        best = np.full(len(stored), -1.0, np.float32)
        np.maximum.at(best, owner, passages)
        union = np.union1d(*(np.argsort(-leg, kind="stable")[:CANDIDATES] for leg in (best, words)))
        held = np.isin(owner, union)
        _, _, nearest, means = best_passages(np.flatnonzero(held), owner[held], passages[held])
        z_scores = statistics.z_scores(vector, mean_with_best(nearest, means))
        uris = [stored[row].document.uri for row in union]
        questions[query] = Candidates(uris, best[union], z_scores, words[union], len(terms), cut)
    return Legs(questions, qrels, probed, language)


def _indexed(collection: Path, folder: Path, encoder: Encoder) -> Store:
    rows = map(json.loads, (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    documents = [Document(uri=row["_id"], text=row["text"], title=row.get("title", "")) for row in rows]
    with Index.create(folder, model=encoder) as index:
        index.add([document for document in documents if document.text.strip()])
    return open_store(folder)


def measured(legs: Legs) -> dict[str, float]:
    """Return nDCG@10 by way of joining."""
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for query, found in legs.questions.items():
        for way, scores in score_by_each_way(found, legs).items():
            order = np.argsort(-scores, kind="stable")[:100]
            runs.setdefault(way, {})[query] = [(found.uris[at], float(scores[at])) for at in order]
    return {way: evaluate(run, legs.qrels, ["nDCG@10"]).averages["nDCG@10"] for way, run in runs.items()}


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]] or [evaluation_data(" and no folder was given")]
    found = [(str(path.relative_to(folder)), path) for folder in folders for path in collections(folder)]
    encoder: Encoder = load_encoder("all-MiniLM-L6-v2")
    if cache := open_vector_cache():
        encoder = CachedEncoder(encoder, cache, "auto")
    print(f"{machine()}\n\n| collection | {' | '.join(SHOWN)} | to the better leg | words, dense on pseudo-questions |")
    print("| --- " * (len(SHOWN) + 3) + "|")
    rows = []
    for name, path in found:
        legs = read_legs(path, encoder)
        rows.append(values := measured(legs))
        cells = " | ".join(f"{values[way]:.4f}" for way in SHOWN)
        ratio = values["hybrid"] / max(values["words"], values["dense"])
        said = f"{legs.probed.words:.2f}, {legs.probed.dense:.2f}" if legs.probed.questions else "none"
        print(f"| {name} | {cells} | {ratio:.3f} | {said} |", flush=True)
    table = np.array([list(row.values()) for row in rows])
    ways = list(rows[0])
    better = table[:, [ways.index("words"), ways.index("dense")]].max(axis=1, keepdims=True)
    print("\n| way | mean | worst, to the better leg | collections below .99 of it |\n| --- | --- | --- | --- |")
    columns = list(table.T)
    origins = [name.split("/")[0] for name, _ in found]
    if len(set(origins)) > 1:
        first = ways.index(_factor_name(FACTORS[0]))
        factors = table[:, first : first + len(FACTORS)]
        ways.append("hybrid, factor chosen without the origin")
        columns.append(factors[np.arange(len(found)), left_out(origins, factors / better)])
    for way, column in zip(ways, columns, strict=True):
        ratios = column / better[:, 0]
        print(f"| {way} | {column.mean():.4f} | {ratios.min():.3f} | {(ratios < 0.99).sum()} |")


if __name__ == "__main__":
    main()
