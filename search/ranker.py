"""Ranking over snapshots of one index: the encoder embeds the question, the store finds candidates, modes.py ranks.

`Searcher` is the public interface. Tuning uses this file, because it needs the scores of all candidates.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain

import numpy as np

from indexer.calibration.sample import DRAWN_PASSAGES
from indexer.encoders import Encoder, Recipe, get_query_encoder
from indexer.errors import BadInput, Message
from indexer.filters.tree import Where
from indexer.indexing.identity import require_recipe
from indexer.passages.cut import titled_text
from indexer.records import Vector
from indexer.settings import Settings
from indexer.stores.port import Snapshot, Store, Unit
from indexer.stores.words.analysis import stored_analysis
from search import modes
from search.fusion import CosineStatistics, probed_words_bias
from search.hits import Hit, Hits
from search.marks import QuestionWords
from search.modes import ScoredCandidates
from search.query import Mode, check_text
from search.question_batches import AskedQuestion, QuestionBatches
from search.timings import NoTimings, Timings
from search.why import DeferredWhy


class Ranker:
    """Ranks the units of an index for a question. Safe to share among threads.

    Attributes:
        store: the store of the index.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder | None = None,
        *,
        trust_remote_code: bool = False,
        timings: Timings | None = None,
    ) -> None:
        """Rank over this store; arguments and errors are those of `Searcher`."""
        self.store = store
        self._timings = timings or NoTimings()
        self._encoder, self._trust = encoder, trust_remote_code
        self._last_encoder: Encoder | None = None
        self._questions = QuestionBatches(timings)
        self._statistics: tuple[str, int, CosineStatistics] | None = None  # with the index's history and passages
        self._checked_recipe: Recipe | None = None  # recipe of the index that the user's own encoder was checked with
        if encoder is not None:
            with store.snapshot() as snapshot:
                self._require_same_recipe(snapshot, encoder)

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
            text: the question; empty if only its vector is known.
            vector: the question as a unit row (dimensions,); not needed in words mode.

        Raises:
            NoWords: in words mode, the question has no word to search by.
            FilterError: the filter does not fit the fields of the index.
        """
        begun = time.perf_counter()
        notes: list[str] = []
        if mode == "words":
            ranked = modes.rank_words(snapshot, text, k, where, unit)
        elif mode == "dense":
            assert vector is not None
            ranked = modes.rank_dense(snapshot, vector, k, where, unit, exact)
        else:
            assert vector is not None
            statistics = self._current_statistics(snapshot)
            scored = modes.score_candidates(snapshot, statistics, text, vector, k, where, unit, exact)
            if not scored.candidates.terms:
                notes.append(f"the question {text[:40]!r} has no word to search by: ranked by meaning alone")
            ranked = modes.rank_hybrid(scored, words_bias(snapshot.settings), k)
        passages = snapshot.passages_by_id(ranked.passages.tolist())
        calibration = snapshot.settings.calibration
        question = QuestionWords(stored_analysis(snapshot.settings.language), text)
        cosines = ranked.cosines or (None,) * len(passages)
        far = -1.0 if calibration is None or mode == "words" else calibration.threshold
        hits = tuple(
            Hit.from_passage(
                passage,
                score,
                cosine,
                calibration.percentile(cosine) if calibration and cosine is not None else None,
                DeferredWhy(why, passage, question, cosine is not None and cosine < far) if text else why,
            )
            for passage, score, cosine, why in zip(passages, ranked.scores, cosines, ranked.whys, strict=True)
        )
        answered = None
        if calibration is not None and text and mode != "words":
            near = ranked.nearest >= calibration.threshold
            answered = near or (mode == "hybrid" and _holds_all_words(hits, question))
        did_you_mean = "" if mode == "dense" else snapshot.corrected(text)
        notes.extend(snapshot.notes)
        self._timings.ranked(time.perf_counter() - begun)
        return Hits(hits, ranked.matched, ranked.exact, text, mode, answered, tuple(notes), did_you_mean)

    def candidates(self, texts: Sequence[str]) -> tuple[list[ScoredCandidates], list[list[str]], list[str]]:
        """Return the scored candidates of hybrid mode for each question, the uris of these candidates, and notes.

        These are the notes that searches for these questions would have in `Hits.notes`, each once.
        """
        for text in texts:
            check_text(text)
        candidates, uris = [], []
        with self.store.snapshot() as snapshot:
            statistics = self._current_statistics(snapshot)
            vectors, notes = self.encode(snapshot, texts)
            for text, vector in zip(texts, vectors, strict=True):
                scored = modes.score_candidates(snapshot, statistics, text, vector, 10, None, "document")
                candidates.append(scored)
                ids = scored.candidates.passages.tolist()
                uris.append([passage.uri for passage in snapshot.passages_by_id(ids)])
            every = [*chain.from_iterable(notes), *snapshot.notes]
        return candidates, uris, list(dict.fromkeys(every))

    def ask_ahead(self, text: str) -> AskedQuestion | None:
        """Begin to embed a question for `encode`; None before the first question, whose snapshot names the encoder."""
        return None if self._last_encoder is None else self._questions.ask(self._last_encoder, text)

    def encode(
        self, snapshot: Snapshot, texts: Sequence[str], ahead: AskedQuestion | None = None
    ) -> tuple[Vector, list[tuple[str, ...]]]:
        """Return the vectors of questions (questions, dimensions) and the notes of each question.

        A single question is embedded together with the questions that others ask at the same time. A note says that a
        question is longer than the model reads, or that the compiled encoder cannot be used.

        Args:
            ahead: a question that was asked before. It is used if it has the same text, and if the snapshot still has
                the same encoder.

        Raises:
            BadInput: the model reads no token of a question, or the index has no model.
        """
        encoder, encoder_notes = self.encoder_of(snapshot)
        self._last_encoder = encoder
        notes = []
        begun = time.perf_counter()
        offsets = encoder.offsets(list(texts))
        self._timings.tokenized(time.perf_counter() - begun)
        for text, tokens in zip(texts, offsets, strict=True):
            if not len(tokens):
                raise BadInput(f"the question {text!r} is empty: ask with at least one word")
            own = encoder_notes
            if (over := len(tokens) + encoder.overhead("query") - encoder.max_tokens) > 0:
                own += (
                    f"the question has {len(tokens)} tokens, {over} more than the model reads: "
                    f"its end, from {text[tokens[-over][0] :][:40]!r} on, was left out",
                )
            notes.append(own)
        if len(texts) == 1:
            if ahead is None or ahead.encoder is not encoder or ahead.text != texts[0]:
                ahead = self._questions.ask(encoder, texts[0])
            return ahead.vector.result()[None], notes
        begun = time.perf_counter()
        vectors = encoder.encode(list(texts), role="query", truncate=True)
        self._timings.encoded(len(texts), time.perf_counter() - begun)
        return vectors, notes

    def encoder_of(self, snapshot: Snapshot) -> tuple[Encoder, tuple[str, ...]]:
        """Return the encoder for this snapshot's recipe, which differs from earlier ones if the folder was replaced.

        The first call of a process for this encoder also returns notes.

        Raises:
            BadInput: the index holds vectors of the user's own.
            RecipeMismatch: the user's own encoder does not have the recipe of the index.
        """
        if self._encoder is not None:
            self._require_same_recipe(snapshot, self._encoder)
            return self._encoder, ()
        recipe = snapshot.settings.recipe
        if recipe is None:
            raise BadInput(
                Message(
                    f"{self.store.address}: holds your own vectors and has no model: give the question's vector, or "
                    'ask with the mode "words"',
                    " (--mode words)",
                )
            )
        return get_query_encoder(recipe, self.store.artifacts(), snapshot.fitted_parameters, self._trust)

    def _require_same_recipe(self, snapshot: Snapshot, encoder: Encoder) -> None:
        recipe = snapshot.settings.recipe
        if recipe is not None and recipe != self._checked_recipe:
            require_recipe(self.store.address, recipe, encoder.recipe)
            self._checked_recipe = recipe

    def _current_statistics(self, snapshot: Snapshot) -> CosineStatistics:
        """Return statistics of the index's cosines. They are kept until its passages change in number by a tenth."""
        history, passages, cached = snapshot.history, snapshot.passages, self._statistics
        if cached is None or cached[0] != history or abs(passages - cached[1]) > cached[1] / 10:
            rows = snapshot.sample(DRAWN_PASSAGES).vectors
            if not len(rows):
                rows = np.zeros((1, snapshot.settings.dimensions), np.float32)
            self._statistics = cached = (history, passages, CosineStatistics.from_sample(rows))
        return cached[2]


def _holds_all_words(hits: Sequence[Hit], question: QuestionWords) -> bool:
    """Return whether the first hit holds every word of the question, such as an error number that no vector knows."""
    return bool(hits) and question.are_all_in(titled_text(hits[0].title, hits[0].text, hits[0].format))


def words_bias(settings: Settings) -> float:
    """Return the words bias of hybrid mode: learned from judged questions (`tune`), or else from pseudo-questions."""
    return default_words_bias(settings) if settings.words_bias is None else settings.words_bias


def default_words_bias(settings: Settings) -> float:
    """Return the words bias from pseudo-questions alone; 0 if they were not asked."""
    return probed_words_bias(settings.probed) if settings.probed else 0.0
