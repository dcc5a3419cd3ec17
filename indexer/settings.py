"""The settings of an index: how it was made, and what was measured and learned about it.

`Settings` is one value; stores/setting_rows.py has the names of its fields in the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from math import log
from typing import NamedTuple

from indexer.encoders.recipes.recipe import Recipe
from indexer.passages.cut import PassageSettings, passages_identity

DEFAULT_RECALL = 0.98
"""Share of the ten nearest passages that approximate segments find, unless the user chooses another share."""


class Meaning(NamedTuple):
    """Everything that the vectors depend on, except the document itself. Both texts go into every content hash.

    Attributes:
        recipe: identity of the recipe; empty for an index of the user's own vectors.
        passages: identity of the passage settings.
    """

    recipe: str
    passages: str


MOST_WORDS = 0.5
"""Share of a question's words that an answer holds, with a model of many languages: its cosines tell less than those of
a model of one language, which needs all words (docs/scores.md)."""

OTHER_LANGUAGE_MARGIN = 0.5
"""Share of the margin that the best hit of a question in another language must be above its level."""

OTHER_LANGUAGE_SHARE = 0.3
"""A question of whose words the texts hold a smaller share is in another language. A larger share may be a question in
their language about something else, which they do not answer."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How near unrelated questions come to the passages of one index.

    Attributes:
        threshold: the cosine below which the best hit of a question looks like background.
        passages: how many passages the index had when this was measured.
        margin: how far above the level of a question's own cosines its best hit must be, in place of `threshold`; None
            unless the model reads many languages.
    """

    threshold: float
    passages: int
    margin: float | None = None

    @property
    def min_share(self) -> float:
        """Share of a question's words that an answer holds, however far it is."""
        return 1.0 if self.margin is None else MOST_WORDS

    def background(self, level: Callable[[], float], known_share: float) -> float:
        """Return the cosine below which the best hit of a question looks like background.

        Args:
            level: returns the level of the question's own cosines.
            known_share: share of the question's words that the texts hold.
        """
        if self.margin is None:
            return self.threshold
        return level() + self.margin * (OTHER_LANGUAGE_MARGIN if known_share < OTHER_LANGUAGE_SHARE else 1.0)

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        fields = json.loads(text)  # A later version may have written more members.
        margin = fields.get("margin")
        return cls(float(fields["threshold"]), int(fields["passages"]), None if margin is None else float(margin))


MIN_PSEUDO_QUESTIONS = 50
"""Minimum pseudo-questions. Fewer say nothing about a collection."""

RANK_SMOOTHING = 0.1
"""Added to both mean reciprocal ranks, so that neither is preferred if both find almost nothing."""


@dataclass(frozen=True, slots=True)
class Probed:
    """How well words and vectors find the answers to pseudo-questions in a collection (calibration/probe.py).

    Attributes:
        words, dense: mean reciprocal rank of the answer, by BM25 and by cosine.
        questions: number of pseudo-questions; 0 if the collection has too few passages of two sentences.
    """

    words: float = 0.0
    dense: float = 0.0
    questions: int = 0

    @property
    def log_ratio(self) -> float:
        """Natural logarithm of `words` / `dense`, smoothed: above 0 if words find more, 0 without enough questions."""
        if self.questions < MIN_PSEUDO_QUESTIONS:
            return 0.0
        return log((self.words + RANK_SMOOTHING) / (self.dense + RANK_SMOOTHING))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Probed:
        fields = json.loads(text)  # A later version may have written more members.
        return cls(float(fields["words"]), float(fields["dense"]), int(fields["questions"]))


class MapRecord(NamedTuple):
    """The record of a map that was drawn of the index.

    Attributes:
        sha256: sha256 of its file.
        documents: number of documents that it shows.
    """

    sha256: str
    documents: int

    def to_json(self) -> str:
        return json.dumps({"sha256": self.sha256, "documents": self.documents})

    @classmethod
    def from_json(cls, text: str) -> MapRecord:
        """Raises KeyError, TypeError or ValueError for another text."""
        values = json.loads(text)
        return cls(str(values["sha256"]), int(values["documents"]))


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """A SOURCE that was read into an index, so that it can be read again (sources/folders/recorded.py).

    Attributes:
        argument: absolute path of a file or folder, or a pattern.
        options: options for reading that differ from the defaults, as JSON.
    """

    argument: str
    options: str = "{}"


def sources_to_json(sources: tuple[RecordedSource, ...]) -> str:
    """Return recorded sources as the text that is stored."""
    return json.dumps([{"argument": each.argument, "options": json.loads(each.options)} for each in sources])


def sources_from_json(text: str) -> tuple[RecordedSource, ...]:
    """Return recorded sources of the text that is stored."""
    return tuple(RecordedSource(each["argument"], json.dumps(each["options"])) for each in json.loads(text))


@dataclass(frozen=True, slots=True)
class Settings:
    """How an index was made, and what was measured and learned about it.

    Attributes:
        dimensions: of a vector.
        recipe: how its vectors are made; None for the user's own vectors.
        passages: how its documents are cut; None for the user's own vectors.
        language: code of the language whose word endings are ignored in searches by words, or `none`.
        recall: share of the ten nearest passages that approximate segments find; None for DEFAULT_RECALL.
        words_bias: how much more hybrid search weighs words than it would by itself, in natural logarithms of the odds,
            learned from judged questions by `tune`; None if nothing was learned.
        calibration: how near unrelated questions come; None if it was not measured.
        probed: the result of pseudo-questions; None if they were not asked.
        uncompiled: why the encoder could not be compiled; empty if it could, or was not tried.
        map: the map that was drawn of it; None if there is none.
        sources: what `likewise update` reads again.
        language_noted: whether a note on the languages of its texts was given.
        language_open: whether the first documents that say something about their language will decide it. Until then
            searches by words use `language`.
        columns_searched: whether the other columns of records are searched by words (columns.py). The first record
            turns it on. An index that has records without it was made before, and keeps its scores.
        model_reason: why the model was chosen by the texts; empty if it was named.
        model_open: whether the first documents will choose the model: the most tokens and the overlap of a passage that
            were given for it, or None for both. None if the model is settled.
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
    map: MapRecord | None = None
    sources: tuple[RecordedSource, ...] = ()
    language_open: bool = False
    language_noted: bool = False
    columns_searched: bool = False
    model_reason: str = ""
    model_open: tuple[int | None, int | None] | None = None

    @property
    def model_note(self) -> str:
        """The model that the texts have chosen, and why; empty if it was named or is open."""
        return f"the model is {self.recipe.model}: {self.model_reason}" if self.recipe and self.model_reason else ""

    @property
    def meaning(self) -> Meaning:
        """Everything that the vectors depend on, except the document itself."""
        return Meaning(self.recipe.identity if self.recipe else "", passages_identity(self.passages))

    @property
    def kind(self) -> tuple[int, Meaning]:
        """Dimensions and meaning. If they change, another index has replaced this index."""
        return self.dimensions, self.meaning
