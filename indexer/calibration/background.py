"""What a cosine means in one index: its background, measured on random passages and unrelated questions.

Cosines of two models do not compare: unrelated texts are at .05 in one and at .75 in another. What a score means is
how seldom something unrelated reaches it here. docs/scores.md has the measurement of the threshold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexer.calibration.probe import probe
from indexer.calibration.questions import UNRELATED_QUESTIONS
from indexer.encoders import Encoder, steady
from indexer.records import Vector
from indexer.settings import PERCENTILES, Calibration
from indexer.stores.analysis import stored_analysis
from indexer.stores.port import Snapshot, Store

SAMPLE_PASSAGES = 2000
"""Passages that are drawn."""

MIN_PASSAGES = 50
"""Passages below which an index has no background worth the name."""


def renew(store: Store, encoder: Encoder, *, growth: float = 1.25) -> None:
    """Measure an index that has grown or shrunk by this factor since it was measured, or never was."""
    with store.snapshot() as snapshot:
        passages, known = snapshot.passages, snapshot.settings.calibration
    if passages < MIN_PASSAGES or (known is not None and 1 / growth < passages / known.passages < growth):
        return
    with store.writer() as writer:
        with store.snapshot() as snapshot:
            calibration = measure_background(snapshot, encoder)
            if calibration is None:
                return
            sample = snapshot.sample(SAMPLE_PASSAGES)
            drawn = snapshot.passages_by_id(sample.passages.tolist())
            analysis = stored_analysis(snapshot.settings.language)
        probed = probe(drawn, sample.vectors, steady(encoder), analysis.stems)
        writer.change(lambda settings: replace(settings, probed=probed, calibration=calibration))


def measure_background(snapshot: Snapshot, encoder: Encoder) -> Calibration | None:
    """Measure an index; None where it is too small to have a background."""
    if snapshot.passages < MIN_PASSAGES:
        return None
    rows = snapshot.sample(SAMPLE_PASSAGES).vectors
    questions = encoder.encode(list(UNRELATED_QUESTIONS), role="query", truncate=True)
    best = np.array([snapshot.dense(question, 1).scores[0] for question in questions])
    upper = np.triu_indices(len(rows), 1)
    return Calibration(
        pairs=_levels((rows @ rows.T)[upper]),
        questions=_levels((questions @ rows.T).ravel()),
        best=_levels(best),
        passages=snapshot.passages,
    )


def _levels(values: Vector) -> tuple[float, ...]:
    return tuple(round(float(value), 5) for value in np.percentile(values, PERCENTILES))
