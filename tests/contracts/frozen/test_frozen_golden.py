"""What the golden indexes answer through the public names, hybrid and the reasons of a hit with them.

golden/files/golden.index was made with the default model and its questions' vectors are kept beside it: an encoder of
one's own that says it has the index's recipe gives them back. No model is loaded.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frozen_models import WordEncoder

from indexer import Index, Recipe
from search import Searcher

GOLDEN = Path(__file__).parents[2] / "golden"
QUESTIONS = json.loads((GOLDEN / "files" / "expected.json").read_text())
SEAL, BREAD, STARS = QUESTIONS[0], QUESTIONS[1], QUESTIONS[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen") / "golden.index"
    shutil.copytree(GOLDEN / "files" / "golden.index", folder)
    return folder


@pytest.fixture(scope="module")
def searcher(folder: Path) -> Iterator[Searcher]:
    with Index.open(folder) as index:
        recipe = index.recipe
    assert recipe is not None
    encoder = WordEncoder(recipe, {question["text"]: question["vector"] for question in QUESTIONS})
    with Searcher(folder, encoder) as searcher:
        yield searcher


def test_the_recipe_of_the_index(folder: Path) -> None:
    with Index.open(folder) as index:
        assert index.recipe is not None
        assert (index.recipe.identity, str(index.recipe)) == ("4f71a3b459de6375", "all-MiniLM-L6-v2")
        assert index.dimensions == 384
        info = index.info()
    assert (info.documents, info.passages, info.tokens) == (111, 124, 8108)


@pytest.mark.parametrize("mode", ["dense", "words", "hybrid"])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["text"])
def test_its_answers_in_every_mode(searcher: Searcher, question: dict[str, Any], mode: Any) -> None:
    hits = searcher.search(question["text"], 5, mode=mode)
    (many,) = searcher.search_many([question["text"]], 5, mode=mode)
    assert [hit.uri for hit in hits] == [hit.uri for hit in many] == [uri for uri, _ in question[mode]]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in question[mode]], abs=1e-3)
    assert (hits.query, hits.mode) == (question["text"], mode)
    assert hits.exact == (mode != "hybrid")  # of 111 documents 100 are candidates of each leg
    assert (hits.matched == 111) == (mode != "words")


def test_why_a_hit_is_first(searcher: Searcher) -> None:
    hits = searcher.search(SEAL["text"], 2, mode="hybrid", explain=True)
    assert hits.answered is True
    hit = hits[0]
    assert hit.why is not None
    assert (hit.uri, hit.cosine) == ("part-px4017", pytest.approx(0.5651, abs=1e-3))
    assert hit.why["bm25"] == pytest.approx(9.531, abs=1e-3)
    assert hit.why["weights"] == pytest.approx({"cosine": 0.4327, "words": 0.5673}, abs=1e-3)
    assert hit.why["contributions"] == pytest.approx({"cosine": 1.7054, "words": 5.4073}, abs=2e-3)
    assert sum(hit.why["contributions"].values()) == pytest.approx(hit.score)
    assert hit.why["words"] == [{"text": "Seal", "start": 0, "end": 4}, {"text": "PX4017", "start": 5, "end": 11}]
    assert hit.why["sentence"].keys() >= {"text", "start", "end", "cosine"}


def test_what_scores_mean_here(searcher: Searcher) -> None:
    hits = searcher.search(BREAD["text"], 3)
    assert hits.answered is True
    assert len(searcher.search(BREAD["text"], 10, min_score=0.4)) == 6


def test_passages_and_a_file_as_a_hit(searcher: Searcher) -> None:
    hits = searcher.search(QUESTIONS[3]["text"], 3, mode="words", passages=True)
    hit = hits[0]
    assert (hit.uri, hit.path, hit.format) == ("/golden/sources/handbook/bicycle.rst",) * 2 + ("rst",)
    assert (hit.title, hit.heading, hit.line, hit.page) == (
        *("A bicycle notebook", "A bicycle notebook > Cleaning the chain", 7, None),
    )
    assert (hit.start, hit.end, hit.modified) == (96, 437, "2024-01-02T03:04:05+00:00")
    assert searcher.search(STARS["text"], 3, passages=True).matched == 124


@pytest.mark.parametrize(
    ("where", "matched"),
    [
        ("year >= 2024", 22),
        ('topic in ("stars", "planets") and not year < 2023', 9),
        ("volcano = true", 5),
        ("prominence > 3326.25 and prominence < 4000", 5),
        ('climbed >= "1889-10-06"', 4),
        ("exists deep.level", 1),
        ('format = "rst" or format = "markdown"', 5),
        ('path = "/golden/sources/mountains.csv"', 10),
        ('modified > "2024-01-03" and format = "markdown"', 1),
        ('tags = "safety"', 1),
    ],
)
def test_filters_over_files_records_and_typed_columns(searcher: Searcher, where: str, matched: int) -> None:
    assert searcher.search(STARS["text"], 5, where=where).matched == matched


def test_similar(searcher: Searcher) -> None:
    hits = searcher.similar("stars-supernova", 3)
    assert [hit.uri for hit in hits] == ["stars-colour", "stars-fusion", "stars-redgiant"]
    assert hits.matched == 110
    assert [hit.score for hit in hits] == pytest.approx([0.4376, 0.4284, 0.4163], abs=1e-3)


def test_compacting_changes_no_answer(folder: Path, tmp_path: Path, shell: Callable[..., Any]) -> None:
    shutil.copytree(folder, tmp_path / "x.index")
    assert shell("compact", tmp_path / "x.index", "--json").code == 0
    with Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search_vector(np.array(SEAL["vector"]), 5)
        assert [hit.uri for hit in hits] == [uri for uri, _ in SEAL["dense"]]
        words = searcher.search(SEAL["text"], 5, mode="words")
        assert [hit.score for hit in words] == pytest.approx([score for _, score in SEAL["words"]], abs=1e-3)
    info = shell("info", tmp_path / "x.index", "--json").json
    assert [(row["kind"], row["count"], row["alive"]) for row in info["segments"]] == [("exact", 124, 124)]


def test_the_tables_of_the_catalog(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "catalog.db")) as catalog:
        assert catalog.execute("PRAGMA user_version").fetchone() == (1,)
        assert catalog.execute("PRAGMA application_id").fetchone() == (0x6C696B65,)
        tables = [name for (name,) in catalog.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {
            table: " ".join(row[1] for row in catalog.execute(f"PRAGMA table_info({table})"))
            for table in sorted(tables)
            if table[0] != "_" and not table.startswith("sqlite_")
        }
        settings = [name for (name,) in catalog.execute("SELECT name FROM setting ORDER BY name")]
    assert columns == {
        "dead": "passage_id",
        "dead_word": "passage_id",
        "document": "id uri title path format modified metadata content_hash row_hash tokens passages",
        "document_text": "document_id text raw sections",
        "field": "id name type",
        "field_value": "field_id value document_id",
        "file": "id path size mtime_ns inode read_ns",
        "ledger": "id file_id uri state reason run reader notes",
        "origin": "document_id content_hash origin",
        "passage": "id document_id start stop line heading page checksum vector",
        "segment": "id file kind count size sha256 stamp parameters first_id last_id",
        "setting": "name value",
        "word_index": "name analysis last_id removed appended files stamp",
    }
    assert settings == [
        *("calibration", "dimensions", "documents", "finished_run", "generation", "history", "language", "lean"),
        *("passages", "probed", "recipe", "run", "sources", "uncompiled"),
    ]


@pytest.mark.parametrize(
    ("recipe", "identity"),
    [
        (Recipe("any name", "f" * 64, 384, 256), "d9b098f902a9cbf8"),
        (
            Recipe("m", "0" * 64, 1536, 512, layers=(-4, -3, -2, -1), combine="concat", pooling="mean"),
            "b2196231f1752a8a",
        ),
    ],
)
def test_the_identity_of_a_recipe(recipe: Recipe, identity: str) -> None:
    assert recipe.identity == identity
    assert Recipe.from_json(recipe.to_json()) == recipe
