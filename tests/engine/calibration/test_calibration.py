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
from indexer.calibration.probe import ask
from indexer.calibration.questions import UNRELATED_QUESTIONS
from indexer.calibration.sample import SAMPLE_PASSAGES, sample_by_content
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
    assert measured.to_json() == f'{{"threshold": {measured.threshold}, "passages": 300}}'


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


def test_questions_to_a_model_of_many_languages_are_compared_with_their_own_cosines(
    make_encoder: Callable[..., Any], tmp_path: Path
) -> None:
    encoder = make_encoder(name="multilingual-e5-small")
    with fill(tmp_path / "x.index", encoder, 300) as index:
        renew(store_of(index), encoder)
        calibration, text = index.settings.calibration, index.get("d7").text
        rows = snapshot_of(index).sample(SAMPLE_PASSAGES).vectors
    assert calibration is not None
    assert calibration.margin is not None
    assert Calibration.from_json(calibration.to_json()) == calibration
    asked = encoder.encode(UNRELATED_QUESTIONS)
    cosines = asked @ rows.T
    above = cosines.max(axis=1) - cosines.mean(axis=1) - 2 * cosines.std(axis=1)
    assert calibration.margin == pytest.approx(np.percentile(above, 50), abs=1e-3)  # no pseudo-questions
    with Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search(text, 300)
        assert hits.answered
        assert hits[0].uri == "d7"
        verdicts = {}
        for question in ("w1 zebra lions", "zebra crossing at the school of giraffes", "the of"):
            (cosines,) = encoder.encode([question]) @ rows.T
            share = 0.5 if question.startswith("zebra") else 1.0  # the texts hold none of its words
            verdicts[question] = cosines.max() >= cosines.mean() + 2 * cosines.std() + share * calibration.margin
            hits = searcher.search(question, 3)
            assert hits.answered is bool(verdicts[question])
            assert (hits[0].why or {})["weak"] is not hits.answered
            (filtered,) = hits = searcher.search(question, 1, where='uri = "d7"')  # no verdict
            assert (hits.answered, (filtered.why or {})["weak"]) == (None, False)
        assert {*map(bool, verdicts.values())} == {False, True}
        most = " ".join([*text.split()[:8], *["zebra", "crossing", "at", "schools", "with", "tall", "giraffes"]])
        assert searcher.search(most, 3).answered


def test_pseudo_questions_bound_the_margin(make_encoder: Callable[..., Any], tmp_path: Path) -> None:
    encoder, random = make_encoder(name="multilingual-e5-small"), np.random.default_rng(3)
    words = [f"w{number}" for number in range(400)]
    texts = [". ".join(" ".join(random.choice(words, 9)) for _ in range(3)) + "." for _ in range(120)]
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(Document(str(number), text) for number, text in enumerate(texts))
        with store_of(index).snapshot() as snapshot:
            pseudo = ask(*sample_by_content(snapshot), encoder)
            assert pseudo is not None
            proven, unproven = (measure_background(snapshot, encoder, some).margin for some in (pseudo, None))
            cosines = pseudo.questions @ snapshot.sample(SAMPLE_PASSAGES).vectors.T
        own = np.percentile(pseudo.nearest - cosines.mean(axis=1) - 2 * cosines.std(axis=1), 20)
        assert proven is not None
        assert unproven is not None
        assert proven <= own + 1e-3
        index.add([Document("more", "w1")])
        assert getattr(index.settings.calibration, "margin", None) is not None


def test_an_index_without_a_background_says_so(encoder: Any, tmp_path: Path) -> None:
    with fill(tmp_path / "x.index", encoder, 10), Searcher(tmp_path / "x.index") as searcher:
        assert searcher.search("w1", 1).answered is None
