"""Examples as relevance feedback: does naming one hit as like, or as unlike, improve the rest of the ranking?

`python -m benchmarks.feedback [MODEL [FOLDER]]`; by default the model of likewise and $LIKEWISE_EVAL_DATA/data. Each
judged question is asked. The first of its ten hits that answers it becomes `like`, the first that does not becomes
`unlike`. The ranking without these documents, by the question alone and with the examples, is measured on the judged
documents that remain (nDCG@10); questions without a remaining answer are left out, and tables of fewer than 20 of them.
Printed is the difference for each weight of the question, and for each share of the unliked document.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE, collections
from search import Mode, Query, Searcher, examples
from search.evaluation.measures import Qrels, evaluate, read_qrels, read_queries

DEPTH = 100
MIN_QUESTIONS = 20
QUESTION_WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0)
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75)
MODES: tuple[Mode, ...] = ("dense", "hybrid")


def ndcg(runs: dict[str, list[tuple[str, float]]], qrels: Qrels) -> float:
    return evaluate(runs, qrels, ["nDCG@10"]).averages["nDCG@10"]


class Feedback:
    """The judged questions of a collection with their examples."""

    def __init__(self, searcher: Searcher, collection: Path) -> None:
        queries = read_queries(collection / "queries.jsonl")
        qrels = read_qrels(collection / "qrels" / "test.tsv", queries)
        judged = {name: qrels.grades[name] for name in qrels.judged}
        self.searcher, self.texts, self.judged = searcher, queries, judged
        names = list(judged)
        vectors = searcher.encoder.encode([queries[name] for name in names], role="query", truncate=True)
        self.vectors = dict(zip(names, vectors, strict=True))

    def first(self, name: str, mode: Mode, answers: bool) -> list[str]:
        """Return the first of ten hits that answers the question, or the first that does not."""
        hits = self.searcher.answer(Query(self.texts[name], mode=mode, vector=self.vectors[name]))
        return [hit.uri for hit in hits if (self.judged[name].get(hit.uri, 0) > 0) == answers][:1]

    def gain(self, mode: Mode, like: bool, unlike: bool) -> tuple[int, float, float]:
        """Return the number of questions, and nDCG@10 of the rest without and with examples."""
        qrels, plain, fed = dict[str, dict[str, int]](), dict[str, list[tuple[str, float]]](), {}
        for name, grades in self.judged.items():
            liked = self.first(name, mode, True) if like else []
            unliked = self.first(name, mode, False) if unlike else []
            left = {uri: grade for uri, grade in grades.items() if uri not in (*liked, *unliked)}
            if (like and not liked) or (unlike and not unliked) or not any(grade > 0 for grade in left.values()):
                continue
            qrels[name] = left
            text, vector = self.texts[name], self.vectors[name]
            before = self.searcher.answer(Query(text, DEPTH, mode=mode, vector=vector))
            plain[name] = [(hit.uri, hit.score) for hit in before if hit.uri not in (*liked, *unliked)]
            after = self.searcher.answer(Query(text, DEPTH, mode=mode, vector=vector, like=liked, unlike=unliked))
            fed[name] = [(hit.uri, hit.score) for hit in after]
        if not qrels:
            return 0, 0.0, 0.0
        return len(qrels), ndcg(plain, Qrels(qrels)), ndcg(fed, Qrels(qrels))


def row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def print_rows(name: str, feedback: Feedback) -> None:
    """Print the rows of one collection."""
    chosen = examples.QUESTION_WEIGHT, examples.UNLIKED_WEIGHT
    for mode in MODES:
        for like, unlike in ((True, False), (False, True), (True, True)):
            after = []
            for weight in SHARES if unlike else QUESTION_WEIGHTS:
                examples.QUESTION_WEIGHT, examples.UNLIKED_WEIGHT = chosen
                if unlike:
                    examples.UNLIKED_WEIGHT = weight
                else:
                    examples.QUESTION_WEIGHT = weight
                asked, before, value = feedback.gain(mode, like, unlike)
                after.append(value)
            examples.QUESTION_WEIGHT, examples.UNLIKED_WEIGHT = chosen
            if asked >= MIN_QUESTIONS:
                kind = " and ".join(["like"] * like + ["unlike"] * unlike)
                cells = [f"{value - before:+.3f}" for value in np.array(after)]
                print(row([name, mode, kind, asked, f"{before:.3f}", *cells]), flush=True)


def main() -> None:
    model = [] if len(sys.argv) < 2 else ["--model", sys.argv[1]]
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else evaluation_data()
    print(f"{machine()}, {Path(model[1]).name if model else 'all-MiniLM-L6-v2'}")
    print(f"Weights of the question for like: {QUESTION_WEIGHTS}; shares of the unliked for the other rows: {SHARES}\n")
    print(row(["collection", "mode", "example", "questions", "without", *["difference"] * len(SHARES)]))
    print("| --- " * (5 + len(SHARES)) + "|")
    for collection in collections(folder):
        with tempfile.TemporaryDirectory() as temporary:
            index = str(Path(temporary) / "x.index")
            command = [LIKEWISE, "index", index, str(collection / "corpus.jsonl"), *model]
            subprocess.run(command, check=True, capture_output=True)
            with Searcher(index) as searcher:
                print_rows(collection.name, Feedback(searcher, collection))


if __name__ == "__main__":
    main()
