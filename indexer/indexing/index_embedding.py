"""Embedding the documents of an open index: in this process behind the user's cache, or on workers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from indexer.encoders import Encoder, get_encoder
from indexer.encoders.recipes.recipe import scheme_of
from indexer.exchange import Embedded
from indexer.indexing.batches import done
from indexer.indexing.context import Context
from indexer.indexing.embedder import DEFAULT_WINDOW, Embedder, Workers
from indexer.indexing.embedding import Embedding
from indexer.listener import Collecting
from indexer.records import Document


class IndexEmbedding:
    """Embeds documents for one index. Threads may share it.

    Attributes:
        embedder: embeds for this index in other processes.
        here: embeds in this process, and knows how quick this process or its workers are.
    """

    def __init__(self, embedder: Embedder, encoder: Encoder | None, context: Context) -> None:
        """Take the encoder of the index's recipe; None loads it when it is needed."""
        self.embedder, self.here = embedder, Embedding(embedder.recipe, embedder.passages)
        self._encoder, self._context = encoder, context
        self._workers: Workers | None = None

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index's recipe, loaded on first use. With a cache, its model may be loaded later."""
        if self._encoder is None:
            self._encoder = get_encoder(self.embedder.recipe, self._context.runtime, self._context.cache)
        return self._encoder

    def window(self, workers: Workers | None) -> int:
        """Return how many batches are under way while the next is read: in this process none until its speed is known.

        A request to an endpoint may take minutes, and only the caller's thread can be interrupted in it.
        """
        if workers is None and self._context.workers is None:
            waits = self._context.beside is None or self.here.speed is None or scheme_of(self.embedder.recipe.model)
            return 0 if waits else 1
        return int(getattr(workers or self._workers, "window", DEFAULT_WINDOW))

    def submit(
        self, documents: Sequence[Document], workers: Workers | None, notes: Collecting
    ) -> tuple[Future[list[Embedded]], bool]:
        """Begin to embed documents, on these workers, on those of the context, or else in this process.

        Args:
            notes: gets the notes of this process's encoder.

        Returns:
            The passages and vectors of each document, and whether workers make them, so that they must be checked.
        """
        if workers is None and self._context.workers is not None:
            if self._workers is None:
                self._workers = self._context.workers(self.embedder)
                if self._context.cache is not None:
                    self._workers = self._context.cache.before_workers(self._workers, self.encoder, self.embedder)
            workers = self._workers
        if workers is not None:
            future = workers.submit(documents)
            future.add_done_callback(self.here.timed(documents))
            return future, True
        embed = partial(self.here.embed, cached=self._context.cached, listener=self._context.listener)
        if (beside := self._context.beside) is not None and self.window(workers):
            return beside.submit(embed, self.encoder, documents, notes), False
        return done(embed(self.encoder, documents, notes)), False
