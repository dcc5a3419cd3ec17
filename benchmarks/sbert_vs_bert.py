"""SBERT against its own transformer pooled raw, in every strategy and layer: the tables of docs/measured.md.

    python -m benchmarks.sbert_vs_bert [--model all-MiniLM-L6-v2] [--picture docs/sbert-vs-bert.png]

STS-B test (Spearman x 100) and SciFact (nDCG@10), from $LIKEWISE_EVAL_DATA, by the code of `likewise compare`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer.encoders import load_encoder
from indexer.encoders.torch.encoder import TorchEncoder
from likewise.evaluation.collection import read_documents
from likewise.evaluation.compare import Comparison, RecipeResult, compare
from likewise.evaluation.measures import read_qrels, read_queries
from likewise.evaluation.plot import plot
from likewise.evaluation.sts import read_sts
from likewise.evaluation.tasks import Retrieval

STS, NDCG = "STS stsb-test", "nDCG@10"
POOLINGS = ("mean", "cls", "max", "weighted_mean", "last")  # mean_sqrt_len has the cosines of mean


def named(last: int) -> dict[str, str]:
    """The well-known choices as recipes, for a model of so many layers."""
    four = ",".join(str(layer) for layer in range(last - 3, last + 1))
    middle = f"{last // 2},{last // 2 + 1}"
    return {
        "the model itself (SBERT)": "",
        "last layer, [CLS]": ":cls@-1",
        "pooler (a layer on top of [CLS])": ":pooler",
        "last layer, mean": ":mean@-1",
        "second to last, mean (bert-as-service)": ":mean@-2",
        "sum of the last four, mean": f":mean@{four}+sum",
        "concatenation of the last four, mean": f":mean@{four}+concat",
        "first and last, mean": f":mean@1,{last}",
        "middle two, mean": f":mean@{middle}",
        "embedding layer, mean": ":mean@0",
    }


PICTURED = ("the model itself (SBERT)", "last layer, [CLS]", "last layer, mean")
PICTURED += ("second to last, mean (bert-as-service)", "first and last, mean", "embedding layer, mean")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--picture", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    data = evaluation_data()
    encoder = load_encoder(f"{arguments.model}:mean")
    assert isinstance(encoder, TorchEncoder)
    last = encoder.transformer.layers
    choices = {name: f"{arguments.model}{recipe}" for name, recipe in named(last).items()}
    grid = {
        (pooling, layer): f"{arguments.model}:{pooling}@{layer}" for pooling in POOLINGS for layer in range(last + 1)
    }
    queries = read_queries(data / "scifact/queries.jsonl")
    scifact = Retrieval(
        read_documents(data / "scifact/corpus.jsonl"), queries, read_qrels(data / "scifact/qrels/test.tsv", queries)
    )
    found = compare([*choices.values(), *grid.values()], [read_sts(data / "sts/stsb-test.tsv")], scifact)
    rows = dict(zip([*choices, *grid], found.rows, strict=True))
    precision = str(encoder.transformer.dtype).removeprefix("torch.")
    print(f"{machine()}, {precision}\n")
    for measure, digits in ((STS, 2), (NDCG, 4)):
        print(f"{measure} of {arguments.model}, pooled raw\n\n{_grid(rows, measure, digits, last)}\n")
    print(_choices([(name, rows[name]) for name in choices]))
    print("\n" + "\n".join(note for note in found.notes if not note.startswith(("Texts/s", "Bytes"))))
    if arguments.picture:
        plot(Comparison(tuple(rows[name] for name in PICTURED), ()), arguments.picture)


def _grid(rows: dict[str | tuple[str, int], RecipeResult], measure: str, digits: int, last: int) -> str:
    lines = [f"| layer | {' | '.join(POOLINGS)} |", "| --- |" + " --- |" * len(POOLINGS)]
    for layer in range(last + 1):
        values = [f"{rows[pooling, layer].measures[measure].value:.{digits}f}" for pooling in POOLINGS]
        lines.append(f"| {layer} | {' | '.join(values)} |")
    return "\n".join(lines)


def _choices(rows: Sequence[tuple[str, RecipeResult]]) -> str:
    lines = [
        "| vectors | STS-B test | p | SciFact nDCG@10 | p | dimensions | random pairs: cosine, 5 to 95 % "
        "| related pairs: cosine, 5 to 95 % | related above random |",
        "| --- |" + " --- |" * 8,
    ]
    for name, row in rows:
        sts, ndcg = row.measures[STS], row.measures[NDCG]
        random, related = (_spread(values) for values in (row.cosines.random, row.cosines.related))
        lines.append(
            f"| {name} | {sts.value:.2f} ({sts.low:.1f} to {sts.high:.1f}) | {_p(sts.p)} "
            f"| {ndcg.value:.4f} ({ndcg.low:.3f} to {ndcg.high:.3f}) | {_p(ndcg.p)} | {row.dimensions} "
            f"| {random} | {related} | {100 * (row.cosines.separation or 0):.1f} % |"
        )
    return "\n".join(lines)


def _spread(values: np.ndarray) -> str:
    low, middle, high = np.percentile(values, [5, 50, 95]).round(2) + 0.0  # no -0.00
    return f"**{middle:.2f}**, {low:.2f} to {high:.2f}"


def _p(value: float) -> str:
    return "≤ 0.001" if value <= 0.001 else f"{value:.3f}"


if __name__ == "__main__":
    main()
