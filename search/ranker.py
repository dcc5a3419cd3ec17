"""Ranking over snapshots of one index: the encoder embeds the question, the store finds candidates, modes.py ranks.

`Searcher` is the public interface. Tuning uses this file, because it needs the scores of all candidates.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from indexer.calibration.sample import DRAWN_PASSAGES
from indexer.encoders import Encoder, Recipe, get_query_encoder
from indexer.encoders.recipes.port import of_role
from indexer.errors import BadInput, Message
from indexer.filters.tree import Where
from indexer.indexing.identity import require_recipe
from indexer.languages.models import reads_english_alone
from indexer.languages.notes import DEFAULT
from indexer.languages.questions import pieces_per_word
from indexer.records import Vector
from indexer.settings import Settings
from indexer.stores.port import Passage
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from indexer.stores.words.analysis import stored_analysis
from search import modes
from search.examples import without_examples
from search.families import Words, best_families, words_of_passage
from search.fusion import CosineStatistics, probed_words_bias, unread_words_bias
from search.hits import Hit, Hits
from search.marks import QuestionWords
from search.modes import Ranked, ScoredCandidates
from search.newer import RankAt, Weights
from search.query import Query
from search.question_batches import AskedQuestion, QuestionBatches
from search.timings import Timings
from search.why import holds_all, reasons

VERDICT_HITS = 10
"""Number of hits in which the words of a question are looked for if no passage is near to it."""


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
        self._timings = timings or Timings()
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
        query: Query,
        vector: Vector | None,
        k: int,
        where: Where | None,
        weights: Weights | None = None,
        statistics: CosineStatistics | None = None,
    ) -> Hits:
        """Return the k best units for a question.

        Args:
            vector: the question as a unit row (dimensions,); not needed in words mode.
            where: the filter to rank with, in place of the query's.
            weights: of the documents, for newer ones first.
            statistics: in dense mode, the scores are the z-scores of the cosines by these statistics.

        Raises:
            NoWords: in words mode, the question has no word to search by.
            FilterError: the filter does not fit the fields of the index.
        """
        begun = time.perf_counter()
        notes: list[str] = []
        mode, text, exact, unit = query.ranked_by, query.asked, bool(query.exact), query.unit
        conditions = query.conditions

        def rank_at(depth: int) -> Ranked:
            if mode == "words":
                return modes.rank_words(snapshot, text, depth, where, unit, conditions)
            assert vector is not None
            if mode == "dense":
                return modes.rank_dense(snapshot, vector, depth, where, unit, exact, conditions, statistics)
            scored = self.score_candidates(snapshot, query, vector, depth, where)
            if not scored.candidates.terms and text:
                notes[:] = [f"the question {text[:40]!r} has no word to search by: ranked by meaning alone"]
            return modes.rank_hybrid(scored, words_bias(snapshot.settings))

        ordered: RankAt = rank_at
        if query.examples and vector is not None:
            ordered = without_examples(ordered, snapshot, vector, query.examples, where, unit, conditions)
        if weights is not None:
            ordered = weights.newest_first(ordered, exact=exact)
        ranked, passages, uris = _folded(snapshot, ordered, k) if query.fold else _plain(snapshot, ordered, k)
        notes += () if weights is None else weights.notes
        calibration = snapshot.settings.calibration
        question = QuestionWords(stored_analysis(snapshot.settings.language), query.words)
        cosines = [None] * len(passages) if ranked.cosines is None else ranked.cosines.tolist()
        far = -1.0 if calibration is None or mode == "words" else calibration.threshold
        hits = tuple(
            Hit.from_passage(
                passage,
                score,
                cosine,
                partial(reasons, why, passage, question, cosine is not None and cosine < far, conditions)
                if query.text
                else why,
                family,
            )
            for passage, score, cosine, why, family in zip(
                passages, ranked.scores.tolist(), cosines, map(ranked.why, range(len(passages))), uris, strict=True
            )
        )
        did_you_mean = corrected = "" if mode == "dense" or not text else snapshot.corrected(text)
        answered = None
        if calibration is not None and query.text and mode != "words":
            holding = (holds_all(question, hit) for hit in hits[:VERDICT_HITS])
            answered = ranked.nearest >= far or (mode == "hybrid" and any(holding))
            if not answered and corrected and query.row is None:  # a misspelt question is near to nothing
                vectors, _ = self.encode(snapshot, [corrected])
                answered = modes.rank_dense(snapshot, vectors[0], 1, where, unit, exact, conditions).nearest >= far
        if corrected and conditions:  # conditions stay as they were typed; notes name words like theirs
            did_you_mean = query.text.replace(text, corrected) if query.text.count(text) == 1 else ""
        notes.extend(snapshot.notes)
        self._timings.ranked(time.perf_counter() - begun)
        return Hits(hits, ranked.matched, ranked.exact, query.text, mode, answered, tuple(notes), did_you_mean)

    def score_candidates(
        self, snapshot: Snapshot, query: Query, vector: Vector, k: int, where: Where | None
    ) -> ScoredCandidates:
        """Return the candidates of hybrid mode."""
        statistics = self.current_statistics(snapshot)
        scored = modes.score_candidates(
            snapshot, statistics, query.asked, vector, k, where, query.unit, bool(query.exact), query.conditions
        )
        if query.row is not None:  # Nothing is known of how another program made the vector.
            return scored
        return replace(scored, unread_bias=self._unread_bias(snapshot, query.asked))

    def _unread_bias(self, snapshot: Snapshot, text: str) -> float:
        """Return how much more words weigh because the model does not read the question; 0 if nothing says so."""
        settings = snapshot.settings
        if not text or settings.recipe is None or settings.language == DEFAULT:
            return 0.0
        if not reads_english_alone(settings.recipe.for_questions):
            return 0.0
        encoder = of_role(self.encoder_of(snapshot)[0], "query")
        return unread_words_bias(pieces_per_word(text, encoder.offsets([text])[0]))

    def candidates(self, texts: Sequence[str]) -> tuple[list[ScoredCandidates], list[list[str]], list[str]]:
        """Return the scored candidates of hybrid mode for each question, the uris of these candidates, and notes.

        These are the notes that searches for these questions would have in `Hits.notes`, each once.
        """
        questions = [Query(text, mode="hybrid") for text in texts]
        candidates, uris = [], []
        with self.store.snapshot() as snapshot:
            vectors, notes = self.encode(snapshot, texts)
            for query, vector in zip(questions, vectors, strict=True):
                scored = self.score_candidates(snapshot, query, vector, query.k, None)
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
        both, encoder_notes = self.encoder_of(snapshot)
        encoder = of_role(both, "query")
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
        return get_query_encoder(recipe, self.store.artifacts(), self._trust)

    def _require_same_recipe(self, snapshot: Snapshot, encoder: Encoder) -> None:
        recipe = snapshot.settings.recipe
        if recipe is not None and recipe != self._checked_recipe:
            require_recipe(self.store.address, recipe, encoder.recipe)
            self._checked_recipe = recipe

    def current_statistics(self, snapshot: Snapshot) -> CosineStatistics:
        """Return statistics of the index's cosines. They are kept until its passages change in number by a tenth."""
        history, passages, cached = snapshot.history, snapshot.passages, self._statistics
        if cached is None or cached[0] != history or abs(passages - cached[1]) > cached[1] / 10:
            rows = snapshot.sample(DRAWN_PASSAGES).vectors
            if not len(rows):
                rows = np.zeros((1, snapshot.settings.dimensions), np.float32)
            self._statistics = cached = (history, passages, CosineStatistics.from_sample(rows))
        return cached[2]


def _plain(snapshot: Snapshot, rank_at: RankAt, k: int) -> tuple[Ranked, list[Passage], list[list[str]]]:
    """Return the k best units with their passages, and an empty family for each."""
    ranked = rank_at(k)
    ranked = ranked.take(np.arange(min(k, len(ranked.passages))))
    return ranked, snapshot.passages_by_id(ranked.passages.tolist()), [[] for _ in ranked.passages]


def _folded(snapshot: Snapshot, rank_at: RankAt, k: int) -> tuple[Ranked, list[Passage], list[list[str]]]:
    """Return the best unit of each of the k best families with its passage, and the uris of the other units."""

    def fetch(depth: int) -> tuple[tuple[Ranked, list[Passage]], Sequence[Words], int]:
        ranked, passages, _ = _plain(snapshot, rank_at, depth)
        return (ranked, passages), [words_of_passage(each.text, each.format) for each in passages], ranked.matched

    (ranked, passages), founded = best_families(fetch, k)
    first = [rows[0] for rows in founded]
    uris = [[passages[row].uri for row in rows[1:]] for rows in founded]
    return ranked.take(np.array(first, np.int64)), [passages[row] for row in first], uris


def words_bias(settings: Settings) -> float:
    """Return the words bias of hybrid mode: learned from judged questions (`tune`), or else from pseudo-questions."""
    return default_words_bias(settings) if settings.words_bias is None else settings.words_bias


def default_words_bias(settings: Settings) -> float:
    """Return the words bias from pseudo-questions alone; 0 if they were not asked."""
    return probed_words_bias(settings.probed) if settings.probed else 0.0
