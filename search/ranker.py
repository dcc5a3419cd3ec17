"""Ranking over snapshots of one index: embedding is the encoder's work, finding candidates the store's; here they meet.

`Searcher` is the public face. Tuning and evaluation, which need what a ranking is made of, use this file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexer.calibration.probe import SAMPLE_PASSAGES
from indexer.encoders import Encoder, Recipe, get_query_encoder
from indexer.errors import BadInput
from indexer.filters.tree import Where
from indexer.identity import require_recipe
from indexer.notes import Note
from indexer.records import Vector
from indexer.settings import Settings
from indexer.stores.analysis import stored_analysis
from indexer.stores.port import Snapshot, Store, Unit
from search import modes
from search.explain import all_words
from search.fusion import Background, lean
from search.hits import Hit, Hits
from search.modes import ScoredCandidates
from search.query import Mode, check_text
from search.question_batches import QuestionBatches
from search.why import Why


class Ranker:
    """Ranks the units of an index for a question. Safe to share among threads.

    Attributes:
        store: where the index is kept.
    """

    def __init__(self, store: Store, encoder: Encoder | None = None, *, trust_remote_code: bool = False) -> None:
        """Rank over this store; arguments and errors are those of `Searcher`."""
        self.store = store
        self._encoder, self._trust = encoder, trust_remote_code
        self._questions = QuestionBatches()
        self._background: tuple[str, int, Background] | None = None
        self._fits: Recipe | None = None  # the index's recipe that the encoder of the user's own was found to have
        if encoder is not None:
            with store.snapshot() as snapshot:
                self._require_fitting(snapshot, encoder)

    def rank(
        self,
        snapshot: Snapshot,
        text: str,
        vector: Vector | None,
        k: int,
        where: Where | None,
        mode: Mode,
        unit: Unit,
        exact: bool,
    ) -> Hits:
        """Return the k best units for a question.

        Args:
            text: the question; empty where only its vector is known.
            vector: the question as a unit row (dimensions,); not needed for words.

        Raises:
            NoWords: in words mode, the question has no word to search by.
            FilterError: the filter does not fit the fields of the index.
        """
        notes: list[str] = []
        if mode == "words":
            ranked = modes.by_words(snapshot, text, k, where, unit)
        elif mode == "dense":
            assert vector is not None
            ranked = modes.by_meaning(snapshot, vector, k, where, unit, exact)
        else:
            assert vector is not None
            background = self._background_of(snapshot)
            both = modes.candidates(snapshot, background, text, vector, k, where, unit, exact)
            if not both.candidates.terms:
                notes.append(f"the question {text[:40]!r} has no word to search by: ranked by meaning alone")
            ranked = modes.by_both(both, words_bias(snapshot.settings), k)
        passages = snapshot.passages_by_id(ranked.passages.tolist())
        calibration, analysis = snapshot.settings.calibration, stored_analysis(snapshot.settings.language)
        cosines = ranked.cosines or (None,) * len(passages)
        hits = tuple(
            Hit.of(
                passage,
                score,
                cosine,
                calibration.percentile(cosine) if calibration and cosine is not None else None,
                Why(why, passage.text, passage.start, analysis, text) if text else why,
            )
            for passage, score, cosine, why in zip(passages, ranked.scores, cosines, ranked.whys, strict=True)
        )
        answered = None
        if calibration is not None and text and mode != "words":
            answered = ranked.nearest >= calibration.threshold or (mode == "hybrid" and all_words(hits, analysis, text))
        notes.extend(snapshot.notes)
        return Hits(hits, ranked.matched, ranked.exact, text, mode, answered, tuple(notes))

    def candidates(self, texts: Sequence[str]) -> tuple[list[ScoredCandidates], list[list[str]]]:
        """Return what hybrid chooses from for each question, with both scores, and the uris of the candidates."""
        scored, uris, notes = [], [], list[str]()
        with self.store.snapshot() as snapshot:
            background = self._background_of(snapshot)
            for text, vector in zip(texts, self.encode(snapshot, texts, notes.append), strict=True):
                one = modes.candidates(snapshot, background, text, vector, 10, None, "document")
                scored.append(one)
                ids = one.candidates.passages.tolist()
                uris.append([passage.uri for passage in snapshot.passages_by_id(ids)])
        return scored, uris

    def encode(self, snapshot: Snapshot, texts: Sequence[str], note: Note) -> Vector:
        """Return the vectors of questions (questions, dimensions).

        A single question is embedded together with those that other threads ask at the same time.

        Args:
            note: is told of questions that are longer than the model reads.

        Raises:
            BadInput: a question is empty, or the index has no model.
        """
        encoder = self.encoder_of(snapshot, note)
        for text in texts:
            check_text(text)
        for text, tokens in zip(texts, encoder.offsets(list(texts)), strict=True):
            if not len(tokens):
                raise BadInput(f"the question {text!r} is empty: ask with at least one word")
            if (over := len(tokens) + encoder.overhead("query") - encoder.max_tokens) > 0:
                note(
                    f"the question has {len(tokens)} tokens, {over} more than the model reads: "
                    f"its end, from {text[tokens[-over][0] :][:40]!r} on, was left out"
                )
        if len(texts) == 1:
            return self._questions.encode(encoder, texts[0])[None]
        return encoder.encode(list(texts), role="query", truncate=True)

    def encoder_of(self, snapshot: Snapshot, note: Note) -> Encoder:
        """Return the encoder of the index as it is in this snapshot: a replaced folder may have another recipe.

        Raises:
            BadInput: the index holds vectors of the user's own.
            RecipeMismatch: the index has another recipe than the encoder that was given.
        """
        if self._encoder is not None:
            self._require_fitting(snapshot, self._encoder)
            return self._encoder
        recipe = snapshot.settings.recipe
        if recipe is None:
            raise BadInput(
                f"{self.store.address}: holds your own vectors and has no model: "
                "ask in words mode, or give the question's vector"
            )
        return get_query_encoder(recipe, self.store.artifacts(), snapshot.fitted_parameters, self._trust, note=note)

    def _require_fitting(self, snapshot: Snapshot, encoder: Encoder) -> None:
        recipe = snapshot.settings.recipe
        if recipe is not None and recipe != self._fits:
            require_recipe(self.store.address, recipe, encoder.recipe)
            self._fits = recipe

    def _background_of(self, snapshot: Snapshot) -> Background:
        """The background of the index as it is now, or was a tenth of its passages ago."""
        history, passages, cached = snapshot.history, snapshot.passages, self._background
        if cached is None or cached[0] != history or abs(passages - cached[1]) > cached[1] / 10:
            rows = snapshot.sample(SAMPLE_PASSAGES).vectors
            if not len(rows):
                rows = np.zeros((1, snapshot.settings.dimensions), np.float32)
            self._background = cached = (history, passages, Background.of(rows))
        return cached[2]


def words_bias(settings: Settings) -> float:
    """Return how far hybrid leans to words: what judged questions said, or else pseudo-questions."""
    return default_words_bias(settings) if settings.words_bias is None else settings.words_bias


def default_words_bias(settings: Settings) -> float:
    """Return how far hybrid leans to words by pseudo-questions alone; 0 where they were not asked."""
    return lean(settings.probed) if settings.probed else 0.0
