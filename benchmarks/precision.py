"""How far bfloat16 turns the vectors of every architecture: the lowest cosine with float32 over PROBES.

python -m benchmarks.precision [ARCHITECTURE...]
python -m benchmarks.precision --int8 [FOLDER]
python -m benchmarks.precision --orders CROSS-ENCODER QUESTIONS.jsonl

FLOAT32_ARCHITECTURES of indexer/encoders/machine/hardware.py follows from it. The models have random weights. --orders
compares the order that a cross-encoder gives the texts of each question with that of sentence-transformers in float32.
Each line of the file has a "question", its "texts", and their "grades". --int8 compares int8 with float32 on the judged
collections of a folder, or of $LIKEWISE_EVAL_DATA/data, with the default model and one vector for each document.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.architectures import ARCHITECTURES, make_folder
from benchmarks.data import evaluation_data
from benchmarks.quality import collections, encoder_alone
from indexer.encoders import load_encoder
from indexer.encoders.torch.cross_encoder import CrossEncoderScorer
from indexer.errors import ModelError
from likewise.speed.compilation.export import PROBES
from likewise.speed.native_cross_encoder import compute_natively

Scores = list[NDArray[np.float64]]
"""The scores (texts,) of each question's texts."""


def lowest_cosine(folder: Path) -> float | None:
    """Return the lowest cosine of a text's vectors in both precisions; None if the model does not run in bfloat16."""
    texts = list(PROBES)
    exact = load_encoder(folder, precision="float32").encode(texts, truncate=True)
    try:
        rounded = load_encoder(folder, precision="bfloat16").encode(texts, truncate=True)
    except ModelError:
        return None
    return float((exact * rounded).sum(1).min())


def eight_bits(folder: Path) -> None:
    """Print nDCG@10 in both precisions, and the lowest and the mean cosine between them."""
    print("| collection | documents | float32 | int8 | lowest cosine | mean cosine |\n|" + " --- |" * 6)
    for collection in collections(folder):
        (exact, whole), (rounded, vectors) = (encoder_alone(collection, name) for name in ("float32", "int8"))
        cosines = (whole * vectors).sum(1)
        cells = f"{len(cosines)} | {exact:.4f} | {rounded:.4f} | {cosines.min():.4f} | {cosines.mean():.4f}"
        print(f"| {collection.relative_to(folder)} | {cells} |", flush=True)


def orders(model: str, questions: Path) -> None:
    """Print how far each way of computing a cross-encoder agrees with sentence-transformers in float32."""
    import torch
    from sentence_transformers import CrossEncoder

    asked = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
    ways = {name: CrossEncoder(model, device="cpu", activation_fn=torch.nn.Identity()) for name in WAYS}
    for name, dtype in zip(WAYS[1:3], (torch.float32, torch.bfloat16), strict=True):
        compute_natively(ways[name], dtype)
    ways[WAYS[3]].to(torch.bfloat16)
    scores: dict[str, Scores] = {name: [] for name in WAYS}
    for one in asked:
        for name, way in ways.items():
            scores[name].append(np.array(CrossEncoderScorer(way)(one["question"], one["texts"])))
    exact = scores[WAYS[0]]
    spread = np.mean([row.std() for row in exact])
    print(f"{len(asked)} questions, standard deviation of a question's scores {spread:.2f}")
    print("| | nDCG@10 | Kendall's tau | same first | same ten | same order of ten | largest difference |")
    print("|" + " --- |" * 7)
    for name in WAYS:
        rows = scores[name]
        pairs = list(zip(exact, rows, strict=True))
        gain = np.mean([_ndcg(row, one["grades"]) for row, one in zip(rows, asked, strict=True) if any(one["grades"])])
        cells = [gain, np.mean([_tau(*pair) for pair in pairs])]
        cells += [np.mean([same(*map(_ten, pair)) for pair in pairs]) for same in (_first, _set, _order)]
        cells.append(max(np.abs(one - other).max() for one, other in pairs))
        print(f"| {name} | {' | '.join(f'{cell:.4f}' for cell in cells)} |")


WAYS = (
    "sentence-transformers float32",
    "likewise float32",
    "likewise bfloat16",
    "sentence-transformers bfloat16",
)


def _ten(scores: NDArray[np.float64]) -> list[int]:
    return np.argsort(-scores, kind="stable")[:10].tolist()


def _first(one: list[int], other: list[int]) -> bool:
    return one[0] == other[0]


def _set(one: list[int], other: list[int]) -> float:
    return len({*one} & {*other}) / len(one)


def _order(one: list[int], other: list[int]) -> bool:
    return one == other


def _tau(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    above = np.triu_indices(len(one), 1)
    signs = (np.sign(row[above[0]] - row[above[1]]) for row in (one, other))
    return float(np.mean(next(signs) * next(signs)))


def _ndcg(scores: NDArray[np.float64], grades: list[float]) -> float:
    discounts = 1 / np.log2(np.arange(2, 12))[: len(grades)]
    best = np.sort(np.array(grades))[::-1][:10] @ discounts
    return float(np.array(grades)[_ten(scores)] @ discounts / best)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--orders"]:
        orders(sys.argv[2], Path(sys.argv[3]))
        sys.exit()
    if sys.argv[1:2] == ["--int8"]:
        eight_bits(Path(sys.argv[2]) if sys.argv[2:] else evaluation_data())
        sys.exit()
    for name in sys.argv[1:] or ARCHITECTURES:
        with tempfile.TemporaryDirectory() as temporary:
            cosine = lowest_cosine(make_folder(name, Path(temporary) / name))
        print(f"{name:24} {'does not run' if cosine is None else f'{cosine:.5f}'}", flush=True)
