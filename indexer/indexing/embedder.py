"""Embedding without an index: by `Embedder`, in this process or in another, and the interface of workers.

What an `Embedder` returns can be sent to the machine that has the index: `Index.add(documents, embedded=...)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Protocol

from indexer.encoders import Encoder, Recipe, get_encoder, steady
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.recipe import PROBE
from indexer.errors import BadInput
from indexer.exchange import Embedded
from indexer.indexing.batches import batches, listed_documents
from indexer.indexing.embedding import BATCH_CHARACTERS, Embedding
from indexer.listener import Collecting
from indexer.passages.cut import PassageSettings
from indexer.records import Document, Vector


class Workers(Protocol):
    """Processes or machines that embed documents for an index. `Index.add(documents, workers=...)` uses them.

    Optional attribute: `window`, the number of batches to submit before the first is committed; `DEFAULT_WINDOW`
    without it.
    """

    def submit(self, documents: Sequence[Document]) -> Future[list[Embedded]]:
        """Embed documents, and return what `Embedder.embed` returns for them, later."""

    def close(self) -> None:
        """End the workers."""


DEFAULT_WINDOW = 8


class Embedder:
    """Cuts documents into passages and embeds them as an index does, and needs no index.

    It holds values only, until its first call loads the model, so it can be sent to another process. Threads may share
    it.

    Attributes:
        recipe, passages: as given.
        notes: what its user should know, such as a runtime that cannot be used.
    """

    def __init__(self, recipe: Recipe, passages: PassageSettings, *, runtime: Runtime | None = None) -> None:
        """Take the recipe and the passage settings of an index: `index.recipe` and `index.passage_settings`.

        Args:
            runtime: how the encoder computes.

        Raises:
            BadInput: an index of the user's own vectors has neither.
        """
        if not isinstance(recipe, Recipe) or not isinstance(passages, PassageSettings):
            raise BadInput(
                f"an Embedder needs a Recipe and PassageSettings, not {recipe!r:.80} and {passages!r:.80}: "
                "take index.recipe and index.passage_settings of an index with a model"
            )
        self.recipe, self.passages = recipe, passages
        self.runtime = runtime or Runtime()
        self.notes: tuple[str, ...] = ()
        self._embedding = Embedding(recipe, passages)

    @property
    def encoder(self) -> Encoder:
        """The encoder of the recipe, which this process shares. The first use loads it."""
        return get_encoder(self.recipe, self.runtime)

    def embed(self, documents: Iterable[Document] | Document) -> list[Embedded]:
        """Return the passages of each document with unit vectors, float32 (passages, dimensions).

        A document without text that the model reads has no passages, nor has one that is `too_long`.

        Raises:
            BadInput: a document that no index can store.
            ModelError: the model cannot be loaded, or has other weights than the recipe was made with.
        """
        parts = batches(((document, None) for document in listed_documents(documents)), lambda: BATCH_CHARACTERS)
        return [embedded for part in parts for embedded in self._embed([document for document, _ in part])]

    def _embed(self, documents: Sequence[Document]) -> list[Embedded]:
        embedded = self._embedding.embed(self.encoder, documents, notes := Collecting())
        self.notes = tuple(dict.fromkeys((*self.notes, *notes.texts)))
        return embedded

    def probe(self) -> Vector:
        """Return the unit vector of a fixed text (dimensions,), by which two machines compare their models."""
        vector: Vector = steady(self.encoder).encode([PROBE], truncate=True)[0]
        return vector
