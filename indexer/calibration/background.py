"""The background of an index: the cosines of unrelated questions with their best passages.

Cosines of two models cannot be compared: unrelated texts have .05 in one model and .75 in another. The meaning of a
score is how seldom an unrelated question reaches it in the same index. docs/scores.md explains it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexer.calibration.cosines import CosineStatistics
from indexer.calibration.probe import AskedPseudoQuestions, ask, compare
from indexer.calibration.questions import UNRELATED_QUESTIONS
from indexer.calibration.sample import sample_by_content
from indexer.encoders import Encoder, steady
from indexer.languages.models import reads_many_languages
from indexer.settings import Calibration
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from indexer.stores.words.analysis import stored_analysis

MIN_PASSAGES = 50
"""An index with fewer passages is too small to measure."""

BACKGROUND_PERCENTILE = 98.0
"""Percentage of unrelated questions whose best hit counts as background (docs/scores.md)."""

MARGIN_PERCENTILE = 90.0
"""Percentage of unrelated questions whose best hit is no further above their level than background."""

PSEUDO_MARGIN_PERCENTILE = 20.0
"""At most this percentage of pseudo-questions counts as unanswered: in a collection of one topic, the best hit of an
answered question is hardly above its level, too."""

UNPROVEN_MARGIN_PERCENTILE = 50.0
"""As MARGIN_PERCENTILE, for a collection without pseudo-questions."""


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
            pseudo = ask(sample, vectors, steady(encoder))
            calibration = measure_background(snapshot, encoder, pseudo)
            analysis = stored_analysis(snapshot.settings.language)
        probed = compare(pseudo, sample, analysis.stems)
        writer.change(lambda settings: replace(settings, probed=probed, calibration=calibration))


def measure_background(snapshot: Snapshot, encoder: Encoder, pseudo: AskedPseudoQuestions | None = None) -> Calibration:
    """Ask an index unrelated questions, and return how near its best passages are to them.

    The unrelated questions are English. With a model of many languages, a question in another language has other
    cosines with all passages. There the best hit is compared with the level of the question's own cosines.

    Args:
        pseudo: pseudo-questions of this index, which it answers.
    """
    questions = encoder.encode(list(UNRELATED_QUESTIONS), role="query", truncate=True)
    best = np.array([snapshot.dense(question, 1).scores[0] for question in questions])
    margin = None
    if reads_many_languages(snapshot.settings.recipe):
        statistics = CosineStatistics.of_index(snapshot)
        percentile = MARGIN_PERCENTILE if pseudo else UNPROVEN_MARGIN_PERCENTILE
        margin = float(np.percentile(best - [statistics.level(question) for question in questions], percentile))
        if pseudo:
            of_pseudo = pseudo.nearest - [statistics.level(question) for question in pseudo.questions]
            margin = min(margin, float(np.percentile(of_pseudo, PSEUDO_MARGIN_PERCENTILE)))
        margin = round(margin, 5)
    return Calibration(round(float(np.percentile(best, BACKGROUND_PERCENTILE)), 5), snapshot.passages, margin)
