"""Questions to try on an index, made from its central documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index
from indexer.stores.port import Passage
from likewise.service.middles import middles
from likewise.service.overview import _question, questions_to_try
from search import Searcher

TEXTS = {
    "a": "Alzheimer disease is a disease of the brain.",
    "b": "Diseases of the heart are treated with medicines.",
    "c": "The garden needs water in dry summers.",
}


def test_middles_are_the_rows_nearest_to_the_middle_of_each_group() -> None:
    angles = np.radians([0, 10, 20, 90, 100, 180])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert middles(vectors, 3) == [1, 3, 5] or middles(vectors, 3) == [1, 4, 5]
    assert sorted(middles(vectors[:2], 3)) == [0, 1]
    assert middles(vectors[:0], 3) == []


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("How do moons (of planets) move?", "Text.", "How do moons (of planets) move?"),
        ("How moons (of planets) move", "Text.", ""),
        ("Re: FW: Lunch in the garden?", "Text.", "Lunch in the garden?"),
        ("report-01", "It rains. How often is the fridge emptied? Rarely.", "How often is the fridge emptied?"),
        ("", "A sentence that states something.", ""),
        ("", f"Who {'really ' * 20}knows?", ""),  # it would be cut
        ("", "def blob_of(self, vector: bytes) -> bytes: return vector?", ""),
        ("", "compute(values of the vector)?", ""),
        ("", "let x = one moon?", ""),
    ],
)
def test_questions_to_try_are_titles_headings_and_sentences_that_ask(title: str, text: str, expected: str) -> None:
    assert _question(Passage(1, 1, "a", title, text, 0, len(text), 1, "", None, None, "text", None, {})) == expected


def test_questions_to_try_are_those_of_central_documents(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", model=encoder) as index:
        index.add(Document(uri, text, f"What is all about {uri}?") for uri, text in TEXTS.items())
    with Searcher(tmp_path / "x.index", encoder) as opened:
        assert sorted(questions_to_try(opened)) == [
            "What is all about a?",
            "What is all about b?",
            "What is all about c?",
        ]
