"""The background of an index: its threshold against numpy over the stored vectors, and what hits say of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of, store_of

from indexer import Document, Index
from indexer.calibration.background import measure_background, renew
from indexer.calibration.questions import UNRELATED_QUESTIONS
from indexer.calibration.sample import SAMPLE_PASSAGES
from indexer.settings import Calibration
from search import Searcher


def fill(folder: Path, encoder: Any, count: int) -> Index:
    random = np.random.default_rng(8)
    index = Index.create(folder, encoder)
    index.add(
        [
            Document(f"d{n}", " ".join(f"w{word}" for word in random.integers(0, 400, 12)) + " the of")
            for n in range(count)
        ]
    )
    return index


def test_questions_are_many_and_differ() -> None:
    assert len(UNRELATED_QUESTIONS) == len(set(UNRELATED_QUESTIONS)) == 100


def test_the_threshold_is_that_of_the_stored_vectors(encoder: Any, tmp_path: Path) -> None:
    with fill(tmp_path / "x.index", encoder, 300) as index:
        with store_of(index).snapshot() as snapshot:
            measured = measure_background(snapshot, encoder)
        rows = snapshot_of(index).sample(SAMPLE_PASSAGES).vectors
    assert measured.passages == len(rows) == 300
    asked = encoder.encode(UNRELATED_QUESTIONS)
    assert measured.threshold == pytest.approx(np.percentile((asked @ rows.T).max(axis=1), 98), abs=1e-4)
    assert Calibration.from_json(measured.to_json()) == measured


def test_it_is_measured_again_when_the_index_is_another(encoder: Any, tmp_path: Path) -> None:
    with fill(tmp_path / "x.index", encoder, 49) as index:
        renew(store_of(index), encoder)
        assert index.settings.calibration is None
        index.add([Document("one", "more")])  # measures by itself, and again when there is twice as much
        first = index.settings.calibration
        assert first is not None
        assert first.passages == 50
        index.add([Document(f"e{n}", f"more {n}") for n in range(10)])
        renew(store_of(index), encoder)
        assert index.settings.calibration == first
        index.add([Document(f"f{n}", f"more {n}") for n in range(10)])
        renew(store_of(index), encoder)
        assert getattr(index.settings.calibration, "passages", 0) == 70
        index.add([Document(f"g{n}", f"more {n}") for n in range(69)])
        assert getattr(index.settings.calibration, "passages", 0) == 70
        index.add([Document("last", "more")])
        assert getattr(index.settings.calibration, "passages", 0) == 140


def test_hits_say_whether_anything_answers(encoder: Any, tmp_path: Path, likewise: Callable[..., Any]) -> None:
    with fill(tmp_path / "x.index", encoder, 300) as index:
        renew(store_of(index), encoder)
        text = index.get("d7").text
    with Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search(text, 300)
        assert hits.answered
        assert hits[0].uri == "d7"
        assert searcher.search("zebra crossing", 3).answered is False
        assert searcher.similar("d7").answered is None
    with Index.open(tmp_path / "x.index", encoder) as index:
        index.add([Document("log", f"{text} parse_zq4711", path="/srv/zq88.csv")])
    with Searcher(tmp_path / "x.index") as searcher:  # a number that no vector knows is an answer where it stands
        for mode, answered in (("dense", False), ("hybrid", True)):
            hits = searcher.search("zq4711", 1, mode=mode)
            assert (hits.answered, hits[0].uri == "log") == (answered, answered)
            named = searcher.search("zq4711 in zq88", 10, mode=mode)  # the second word is the name of the file
            assert named.answered == answered
            assert named[0].uri != "log"
        assert searcher.search("zebra crossing", 1, mode="hybrid").answered is False
    said = likewise("search", tmp_path / "x.index", "zebra crossing", "-k", "1").succeeded()
    assert "nothing here seems to answer this" in said.err
    assert likewise("search", tmp_path / "x.index", "zebra crossing", "--json").json["answered"] is False


def test_whether_anything_answers_is_about_the_corrected_question(encoder: Any, tmp_path: Path) -> None:
    with fill(tmp_path / "x.index", encoder, 300) as index:
        renew(store_of(index), encoder)
        index.add([Document("shot", "chrysanthemum")])
    with Searcher(tmp_path / "x.index") as searcher:
        for typed, answered in (("chrisantemum", True), ("chrisantemum for zebra and giraffe in a herd", False)):
            hits = searcher.search(typed, 1, mode="hybrid")
            assert (hits.did_you_mean, hits.answered) == (typed.replace("chrisantemum", "chrysanthemum"), answered)
            assert searcher.search(typed, 1, mode="dense").answered is False


def test_an_index_without_a_background_says_so(encoder: Any, tmp_path: Path) -> None:
    with fill(tmp_path / "x.index", encoder, 10), Searcher(tmp_path / "x.index") as searcher:
        assert searcher.search("w1", 1).answered is None
