"""What a cosine means in one index: its background, measured on random passages and unrelated questions.

Cosines of two models do not compare: unrelated texts are at .05 in one and at .75 in another. What a score means is
how seldom something unrelated reaches it here. docs/scores.md has the measurement of the threshold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from indexer.background import QUESTIONS
from indexer.encoders import Encoder
from indexer.probing import probe
from indexer.records import Vector
from indexer.stores.local import LocalStore

LEVELS = (0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 100.0)
"""Percentiles at which distributions are kept; closest where hits are."""

SAMPLE = 2000
"""Passages that are drawn."""

UNRELATED = 98.0
"""Per cent of unrelated questions whose best hit is to count as background: docs/scores.md."""

LEAST = 50
"""Passages below which an index has no background worth the name."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distributions of cosines in one index, each as its value at every one of LEVELS.

    Attributes:
        pairs: of random passages with each other.
        questions: of unrelated questions with random passages.
        best: of unrelated questions with the best of all passages.
        passages: how many the index had when this was measured.
    """

    pairs: tuple[float, ...]
    questions: tuple[float, ...]
    best: tuple[float, ...]
    passages: int

    def percentile(self, cosine: float) -> float:
        """Per cent of random passages that an unrelated question is less near to than this."""
        return float(np.interp(cosine, self.questions, LEVELS))

    @property
    def threshold(self) -> float:
        """Cosine below which the best hit looks like background."""
        return float(np.interp(UNRELATED, LEVELS, self.best))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        fields = json.loads(text)
        pairs, questions, best = (tuple(fields[name]) for name in ("pairs", "questions", "best"))
        return cls(pairs, questions, best, fields["passages"])


def stored(settings: Mapping[str, str]) -> Calibration | None:
    """The calibration among an index's settings, if it has one."""
    return Calibration.from_json(settings["calibration"]) if "calibration" in settings else None


def renew(store: LocalStore, encoder: Encoder, *, growth: float = 1.25) -> None:
    """Measure an index that has not been, or has grown or shrunk by so much since; and ask it pseudo-questions."""
    with store.reading() as view:
        passages = view.state.passages
    known = stored(store.settings())
    if passages < LEAST or (known is not None and 1 / growth < passages / known.passages < growth):
        return
    with store.writing() as catalog:
        if (measured := calibrate(store, encoder)) is not None:
            ids, rows = store.sample(SAMPLE)
            probed = probe(store.passages(ids.tolist()), rows, encoder, store.analysis().stems)
            catalog.set("probed", probed.to_json())
            catalog.set("calibration", measured.to_json())


def calibrate(store: LocalStore, encoder: Encoder) -> Calibration | None:
    """Measure an index; None where it is too small to have a background."""
    with store.reading() as view:
        passages = view.state.passages
        if passages < LEAST:
            return None
        rows = store.sample(SAMPLE)[1]
        questions = encoder.encode(list(QUESTIONS), role="query", truncate=True)
        best = np.array([store.dense(question, 1).scores[0] for question in questions])
    upper = np.triu_indices(len(rows), 1)
    return Calibration(
        pairs=_levels((rows @ rows.T)[upper]),
        questions=_levels((questions @ rows.T).ravel()),
        best=_levels(best),
        passages=passages,
    )


def _levels(values: Vector) -> tuple[float, ...]:
    return tuple(round(float(value), 5) for value in np.percentile(values, LEVELS))
