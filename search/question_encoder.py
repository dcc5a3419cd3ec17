"""`QuestionEncoder`: embeds the questions to one index with the model of the index."""

from __future__ import annotations

import time
from collections.abc import Sequence

from indexer.encoders import Encoder, Recipe, get_query_encoder
from indexer.encoders.recipes.port import of_role
from indexer.errors import BadInput, Message
from indexer.languages.models import reads_english_alone
from indexer.languages.questions import pieces_per_word
from indexer.records import Vector
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Store
from search.question_batches import AskedQuestion, QuestionBatches
from search.ranking.fusion import unread_words_bias
from search.timings import Timings


class QuestionEncoder:
    """Embeds questions to an index. Safe to share among threads.

    Attributes:
        threads: as for `get_query_encoder`.
    """

    def __init__(self, store: Store, encoder: Encoder | None, trust_remote_code: bool, timings: Timings) -> None:
        """Embed with the model of this store; arguments and errors are those of `Searcher`."""
        self._store, self._encoder, self._trust, self._timings = store, encoder, trust_remote_code, timings
        self.threads: int | None = None
        self._last_encoder: Encoder | None = None
        self._batches = QuestionBatches(timings)
        self._checked_recipe: Recipe | None = None  # recipe of the index that the user's own encoder was checked with
        if encoder is not None:
            with store.snapshot() as snapshot:
                self.encoder_of(snapshot)

    def ask_ahead(self, text: str) -> AskedQuestion | None:
        """Begin to embed a question for `encode`; None before the first question, whose snapshot names the encoder."""
        return None if self._last_encoder is None else self._batches.ask(self._last_encoder, text)

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
                ahead = self._batches.ask(encoder, texts[0])
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
        recipe = snapshot.settings.recipe
        if self._encoder is not None:
            if recipe is not None and recipe != self._checked_recipe:
                from indexer.indexing.identity import require_recipe

                require_recipe(self._store.address, recipe, self._encoder.recipe)
                self._checked_recipe = recipe
            return self._encoder, ()
        if recipe is None:
            raise BadInput(
                Message(
                    f"{self._store.address}: holds your own vectors and has no model: give the question's vector, or "
                    'ask with the mode "words"',
                    " (--mode words)",
                )
            )
        return get_query_encoder(recipe, self._store.artifacts(), self._trust, self.threads)

    def unread_bias(self, snapshot: Snapshot, text: str) -> float:
        """Return how much more words weigh because the model does not read a question of an index that is not English;
        0 if nothing says so."""
        recipe = snapshot.settings.recipe
        if not text or recipe is None or not reads_english_alone(recipe.for_questions):
            return 0.0
        encoder = of_role(self.encoder_of(snapshot)[0], "query")
        return unread_words_bias(pieces_per_word(text, encoder.offsets([text])[0]))
