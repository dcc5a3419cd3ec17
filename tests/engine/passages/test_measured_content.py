"""Measurements of an index depend only on its content: an updated index has the scores of a new index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import store_of

from indexer import Document, Index
from indexer.calibration import sample
from indexer.calibration.background import renew
from indexer.calibration.sample import sample_by_content
from indexer.records import Vector
from search import Searcher


def document(number: int) -> Document:
    random = np.random.default_rng(number)
    first, second = (" ".join(f"w{word}" for word in random.integers(0, 90, 8)) for _ in range(2))
    return Document(f"d{number}", f"Here {first}. There {second}.")


def updated(folder: Path, encoder: Any) -> Index:
    """An index of 120 documents that was begun with other texts and measured in between."""
    index = Index.create(folder, encoder)
    index.add([Document(f"d{number}", f"Old words of {number}. And more words.") for number in range(60, 110)])
    index.add([document(number) for number in range(119, 40, -1)])
    index.add([Document("gone", "It is removed again. It was of no use.")])
    index.add([document(number) for number in range(41)])
    index.remove("gone")
    return index


def both(tmp_path: Path, encoder: Any) -> tuple[Index, Index]:
    new = Index.create(tmp_path / "new.index", encoder)
    new.add([document(number) for number in range(120)])
    old = updated(tmp_path / "old.index", encoder)
    assert [each.uri for each in old] != [each.uri for each in new]
    return old, new


@pytest.mark.parametrize("passages", [pytest.param(1000, marks=pytest.mark.slow), 50])
def test_an_updated_index_is_measured_like_a_new_one(
    encoder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passages: int
) -> None:
    monkeypatch.setattr(sample, "SAMPLE_PASSAGES", passages)
    old, new = both(tmp_path, encoder)
    for index in (old, new):
        renew(store_of(index), encoder, growth=1)
    assert new.settings.probed is not None
    assert new.settings.probed.questions == min(passages, 120)
    assert old.settings.probed == new.settings.probed
    assert old.settings.calibration == new.settings.calibration
    with Searcher(tmp_path / "old.index") as one, Searcher(tmp_path / "new.index") as other:
        for question in ("w1 w2", "here w7 of w8", "unknown"):
            hits = [{hit.uri: hit.score for hit in each.search(question, 120, mode="hybrid")} for each in (one, other)]
            assert hits[0] == pytest.approx(hits[1], abs=1e-5)


def test_the_sample_is_chosen_by_content_and_looks_random(encoder: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sample, "SAMPLE_PASSAGES", 60)
    drawn: list[tuple[list[str], Vector]] = []
    for index in both(tmp_path, encoder):
        with store_of(index).snapshot() as snapshot:
            passages, vectors = sample_by_content(snapshot)
        drawn.append(([passage.uri for passage in passages], vectors))
    assert drawn[0][0] == drawn[1][0]
    np.testing.assert_array_equal(drawn[0][1], drawn[1][1])
    numbers = sorted(int(uri.removeprefix("d")) for uri in drawn[0][0])
    assert len(set(numbers)) == 60
    assert 15 < sum(number < 60 for number in numbers) < 45
