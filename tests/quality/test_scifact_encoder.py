"""The encoder alone on SciFact, texts cut at 256 tokens: the published nDCG@10, in every precision and runtime."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from hardware import needs_bfloat16, needs_vnni
from numpy.typing import NDArray

from indexer.encoders import Encoder, load_encoder

PUBLISHED = 0.645

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _json_lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Collection:
    documents: dict[str, str]
    questions: dict[str, str]
    qrels: list[Any]

    def cosines(self, encoder: Encoder) -> NDArray[np.float32]:
        """Return the cosine of every question (row) with every document (column)."""
        questions = encoder.encode(list(self.questions.values()), role="query", truncate=True)
        return questions @ encoder.encode(list(self.documents.values()), truncate=True).T

    def ndcg(self, cosines: NDArray[np.float32]) -> float:
        uris = list(self.documents)
        run = [
            ir_measures.ScoredDoc(question, uris[place], float(row[place]))
            for question, row in zip(self.questions, cosines, strict=True)
            for place in np.argsort(-row)[:10]
        ]
        return float(ir_measures.calc_aggregate([ir_measures.nDCG @ 10], self.qrels, run)[ir_measures.nDCG @ 10])


@pytest.fixture(scope="module")
def collection() -> Collection:
    if "LIKEWISE_EVAL_DATA" not in os.environ:
        pytest.skip("LIKEWISE_EVAL_DATA is not set")
    folder = Path(os.environ["LIKEWISE_EVAL_DATA"]) / "data" / "scifact"
    rows = [line.split("\t") for line in (folder / "qrels/test.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    queries = {row["_id"]: row["text"] for row in _json_lines(folder / "queries.jsonl")}
    return Collection(
        {row["_id"]: f"{row['title']} {row['text']}" for row in _json_lines(folder / "corpus.jsonl")},
        {query: queries[query] for query in sorted({query for query, _, _ in rows})},
        [ir_measures.Qrel(query, document, int(grade)) for query, document, grade in rows],
    )


@pytest.fixture(scope="module")
def of_float32(collection: Collection) -> NDArray[np.float32]:
    """The cosines that torch finds in float32."""
    return collection.cosines(load_encoder("all-MiniLM-L6-v2", runtime="torch", precision="float32"))


def test_scifact_as_published(collection: Collection, of_float32: NDArray[np.float32]) -> None:
    assert collection.ndcg(of_float32) == pytest.approx(PUBLISHED, abs=0.003)  # 0.5 %


@pytest.mark.parametrize(
    ("runtime", "precision", "room"),
    [
        pytest.param("torch", "bfloat16", 0.003, marks=needs_bfloat16()),
        ("openvino", "auto", 0.003),
        pytest.param("torch", "int8", 0.01, marks=needs_vnni()),  # of other vectors, 0.996 from the model's own
    ],
)
def test_other_precisions_rank_as_well(
    collection: Collection,
    of_float32: NDArray[np.float32],
    runtime: str,
    precision: str,
    room: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Among a quarter of the documents: those judged, and the five nearest to each question."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    judged = {qrel.doc_id for qrel in collection.qrels}
    near = set(np.argsort(-of_float32)[:, :5].ravel())
    kept = [place for place, uri in enumerate(collection.documents) if place in near or uri in judged]
    texts = list(collection.documents.items())
    part = replace(collection, documents=dict(texts[place] for place in kept))
    found = part.ndcg(part.cosines(load_encoder("all-MiniLM-L6-v2", runtime=runtime, precision=precision)))  # type: ignore[arg-type]
    assert found == pytest.approx(part.ndcg(of_float32[:, kept]), abs=room)
