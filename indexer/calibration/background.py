"""The background of an index: the cosines of unrelated questions with their best passages.

Cosines of two models cannot be compared: unrelated texts have .05 in one model and .75 in another. The meaning of a
score is how seldom an unrelated question reaches it in the same index. docs/scores.md has the measurements.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexer.calibration.probe import probe
from indexer.calibration.questions import UNRELATED_QUESTIONS
from indexer.calibration.sample import sample_by_content
from indexer.encoders import Encoder, steady
from indexer.settings import Calibration
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from indexer.stores.words.analysis import stored_analysis

MIN_PASSAGES = 50
"""An index with fewer passages is too small to measure."""

BACKGROUND_PERCENTILE = 98.0
"""Percentage of unrelated questions whose best hit counts as background (docs/scores.md)."""


def renew(store: Store, encoder: Encoder, *, growth: float = 1.25) -> None:
    """Measure an index, and store the result, unless its size is still within a factor `growth` of the last time."""
    with store.snapshot() as snapshot:
        passages, last = snapshot.passages, snapshot.settings.calibration
    if passages < MIN_PASSAGES or (last is not None and 1 / growth < passages / last.passages < growth):
        return
    with store.writer() as writer:
        with store.snapshot() as snapshot:
            if snapshot.passages < MIN_PASSAGES:  # another process may have removed some
                return
            sample, vectors = sample_by_content(snapshot)
            calibration = measure_background(snapshot, encoder)
            analysis = stored_analysis(snapshot.settings.language)
        probed = probe(sample, vectors, steady(encoder), analysis.stems)
        writer.change(lambda settings: replace(settings, probed=probed, calibration=calibration))


def measure_background(snapshot: Snapshot, encoder: Encoder) -> Calibration:
    """Ask an index unrelated questions, and return how near its best passages are to them."""
    questions = encoder.encode(list(UNRELATED_QUESTIONS), role="query", truncate=True)
    best = np.array([snapshot.dense(question, 1).scores[0] for question in questions])
    return Calibration(round(float(np.percentile(best, BACKGROUND_PERCENTILE)), 5), snapshot.passages)
