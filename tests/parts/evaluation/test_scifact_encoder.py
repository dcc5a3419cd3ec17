"""The encoder alone on SciFact, texts cut at 256 tokens: the published nDCG@10, in every precision and runtime."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hardware import needs_bfloat16
from numpy.typing import NDArray

from indexer.encoders import Encoder, load_encoder
from likewise.evaluation.measures import Qrels, evaluate, read_qrels, read_queries

PUBLISHED = 0.645

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def _json_lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Collection:
    documents: dict[str, str]
    questions: dict[str, str]
    qrels: Qrels

    def cosines(self, encoder: Encoder) -> NDArray[np.float32]:
        """Return the cosine of every question (row) with every document (column)."""
        questions = encoder.encode(list(self.questions.values()), role="query", truncate=True)
        return questions @ encoder.encode(list(self.documents.values()), truncate=True).T

    def ndcg(self, cosines: NDArray[np.float32]) -> float:
        uris = list(self.documents)
        run = {
            question: [(uris[place], float(row[place])) for place in np.argsort(-row)[:10]]
            for question, row in zip(self.questions, cosines, strict=True)
        }
        return evaluate(run, self.qrels, ["nDCG@10"]).averages["nDCG@10"]


@pytest.fixture(scope="module")
def collection() -> Collection:
    if "LIKEWISE_EVAL_DATA" not in os.environ:
        pytest.skip("LIKEWISE_EVAL_DATA is not set")
    folder = Path(os.environ["LIKEWISE_EVAL_DATA"]) / "data" / "scifact"
    queries = read_queries(folder / "queries.jsonl")
    qrels = read_qrels(folder / "qrels/test.tsv", queries)
    return Collection(
        {row["_id"]: f"{row['title']} {row['text']}" for row in _json_lines(folder / "corpus.jsonl")},
        {query: queries[query] for query in qrels.judged},
        qrels,
    )


@pytest.fixture(scope="module")
def of_all(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> NDArray[np.float32]:
    """The cosines of all documents by OpenVINO, which takes a quarter of the time of torch in float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return collection.cosines(load_encoder("all-MiniLM-L6-v2", runtime="openvino"))


def test_scifact_as_published(collection: Collection, of_all: NDArray[np.float32]) -> None:
    assert collection.ndcg(of_all) == pytest.approx(PUBLISHED, abs=0.003)  # 0.5 %


@pytest.mark.parametrize(
    ("precision", "room"),
    [
        ("float32", 0.003),
        pytest.param("bfloat16", 0.003, marks=needs_bfloat16()),
    ],
)
def test_torch_ranks_as_well(
    collection: Collection,
    of_all: NDArray[np.float32],
    precision: str,
    room: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Among a quarter of the documents: those judged, and the five nearest to each question."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    judged = {uri for grades in collection.qrels.grades.values() for uri in grades}
    near = set(np.argsort(-of_all)[:, :5].ravel())
    kept = [place for place, uri in enumerate(collection.documents) if place in near or uri in judged]
    texts = list(collection.documents.items())
    part = replace(collection, documents=dict(texts[place] for place in kept))
    found = part.ndcg(part.cosines(load_encoder("all-MiniLM-L6-v2", runtime="torch", precision=precision)))  # type: ignore[arg-type]
    assert found == pytest.approx(part.ndcg(of_all[:, kept]), abs=room)
