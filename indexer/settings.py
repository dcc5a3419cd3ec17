"""What an index is, and what was learned about it: the values that a store keeps beside the documents.

`Settings` is one value. How its fields are named where they are stored is in stores/setting_rows.py.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import log

import numpy as np

from indexer.encoders.recipe import Recipe
from indexer.passages import PassageSettings, identity_of

DEFAULT_RECALL = 0.98
"""Share of the ten nearest passages that approximate segments are tuned to find."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What vectors depend on besides the document. Both texts go into every content hash.

    Attributes:
        recipe: identity of the recipe; empty for an index of the user's own vectors.
        passages: identity of the passage settings.
    """

    recipe: str
    passages: str


PERCENTILES = (
    *(0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0),
    *(99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 100.0),
)
"""Percentiles at which distributions of cosines are kept; closest where hits are."""

BACKGROUND_PERCENTILE = 98.0
"""Per cent of unrelated questions whose best hit is to count as background: docs/scores.md."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distributions of cosines in one index, each as its value at every one of PERCENTILES.

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
        return float(np.interp(cosine, self.questions, PERCENTILES))

    @property
    def threshold(self) -> float:
        """Cosine below which the best hit looks like background."""
        return float(np.interp(BACKGROUND_PERCENTILE, PERCENTILES, self.best))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        fields = json.loads(text)  # a later version may have written more
        pairs, questions, best = (tuple(fields[name]) for name in ("pairs", "questions", "best"))
        return cls(pairs, questions, best, fields["passages"])


MIN_PSEUDO_QUESTIONS = 50
"""Fewer pseudo-questions than this say nothing about a collection."""

RANK_SMOOTHING = 0.1
"""Added to both mean reciprocal ranks: where neither leg finds anything, neither is preferred."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What pseudo-questions said about a collection (calibration/probe.py).

    Attributes:
        words, dense: mean reciprocal rank of the passage that the sentence was taken from, by each leg.
        questions: how many were asked; 0 where the collection has too few passages of two sentences.
    """

    words: float = 0.0
    dense: float = 0.0
    questions: int = 0

    @property
    def log_ratio(self) -> float:
        """Natural logarithm of words over dense, smoothed: above 0 where words find more, 0 where nothing is known."""
        if self.questions < MIN_PSEUDO_QUESTIONS:
            return 0.0
        return log((self.words + RANK_SMOOTHING) / (self.dense + RANK_SMOOTHING))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Probed:
        fields = json.loads(text)  # a later version may have written more
        return cls(float(fields["words"]), float(fields["dense"]), int(fields["questions"]))


@dataclass(frozen=True, slots=True)
class Settings:
    """What an index is, and what was learned about it.

    Attributes:
        dimensions: of a vector.
        recipe: how its vectors are made; None for vectors of the user's own.
        passages: how its documents are cut; None for vectors of the user's own.
        language: code of the language whose endings words are searched without, or `none`.
        recall: what approximate segments are tuned to; None for DEFAULT_RECALL.
        words_bias: how far judged questions say that hybrid should lean to words, in natural logarithms of the odds;
            None where `tune` has learned nothing.
        calibration: what cosines mean here; None where that was not measured.
        probed: what pseudo-questions said; None where they were not asked.
        uncompiled: why the encoder could not be compiled; empty where it could, or nobody has tried.
    """

    dimensions: int
    recipe: Recipe | None = None
    passages: PassageSettings | None = None
    language: str = "en"
    recall: float | None = None
    words_bias: float | None = None
    calibration: Calibration | None = field(default=None, repr=False)
    probed: Probed | None = None
    uncompiled: str = ""

    @property
    def meaning(self) -> Meaning:
        """What vectors depend on besides the document."""
        return Meaning(self.recipe.identity if self.recipe else "", identity_of(self.passages))

    @property
    def kind(self) -> tuple[int, Meaning]:
        """What tells an index from another that has taken its place. Where the model is kept has no part in it."""
        return self.dimensions, self.meaning
