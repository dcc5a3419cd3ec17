"""`IndexCore`: the store, the settings and the encoder of an open index, and how documents become a commit.

`Index` is the public class. The command line, ingest.py and rebuild.py use `IndexCore`, because they hold the writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Self

from indexer.encoders import Encoder, Recipe, RecipeSpec, get_encoder
from indexer.encoders.endpoints.endpoint_address import EndpointAddress
from indexer.encoders.recipes.notes import model_notes
from indexer.encoders.recipes.port import loaded, of_role
from indexer.encoders.recipes.recipe import is_endpoint
from indexer.errors import BadInput, IndexDamaged, ModelError
from indexer.exchange import Embedded
from indexer.indexing.batches import (
    ChangedDocument,
    Incoming,
    Pending,
    Prepared,
    diff,
    refuse_unembedded,
    require_embedded,
)
from indexer.indexing.context import Context
from indexer.indexing.embedder import DEFAULT_WINDOW, Embedder, Workers
from indexer.indexing.embedding import (
    BATCH_CHARACTERS,
    COMMIT_S,
    FIRST_BATCH_CHARACTERS,
    Embedding,
)
from indexer.indexing.identity import as_stored, index_was_replaced, require_recipe
from indexer.passages.cut import PassageSettings
from indexer.records import Changes, Document
from indexer.settings import Settings
from indexer.stores.addresses.open import open_store
from indexer.stores.port import Batch, EmbeddedDocument, Hashes
from indexer.stores.reading.store import Store, Writer

Model = str | PathLike[str] | Recipe | RecipeSpec | Encoder
"""A model as a caller names it: a name, a folder, a recipe, its text, an endpoint's address or an encoder."""


class IndexCore:
    """An open index for code that writes to it. Safe to share among threads.

    Attributes:
        store: the store of the index.
        context: options for working on the index.
        settings: the settings when the index was opened, or when this object last changed them.
    """

    def __init__(self, store: Store, encoder: Encoder | None = None, context: Context | None = None) -> None:
        """Work on the index of a store.

        Args:
            encoder: encoder of the index's recipe; None loads the encoder when it is needed.
        """
        self.store = store
        self.context = context or Context()
        self.settings = self.stored_settings()
        self._encoder = encoder
        self._languages_read = False
        self._model_noted = False
        self._first_texts: list[str] = []  # texts of documents whose languages are read together with later documents
        self._workers: Workers | None = None
        self._embedding = Embedding(self.settings.passages) if self.settings.passages else None

    @classmethod
    def open(
        cls, address: str | PathLike[str], model: Model | None = None, context: Context | None = None
    ) -> IndexCore:
        """Open an index that exists; arguments and errors are those of `Index.open`."""
        core = cls(open_store(address), None, context)
        return core if model is None else core.with_model(model)

    def with_model(self, model: Model) -> IndexCore:
        """Return this index with the encoder of `model`.

        If the model is behind an endpoint, requests go to the address that `model` names.

        Raises:
            RecipeMismatch: the index was made with another model.
        """
        if isinstance(model, Recipe):
            self.require(model)
            return self
        if isinstance(model, str) and is_endpoint(model) and self.recipe is not None and self.recipe.remote is not None:
            model = replace(self.recipe, model=str(EndpointAddress.parse(model)))
        if isinstance(model, str | PathLike | RecipeSpec) and self.recipe is not None:
            model = as_stored(model, self.recipe)
        return self.with_encoder(get_encoder(model, self.context.runtime))

    def with_encoder(self, encoder: Encoder) -> IndexCore:
        """Return this index with an encoder. Raises RecipeMismatch as `require` does for its recipe."""
        self.require(encoder.recipe)
        return IndexCore(self.store, encoder, self.context)

    def close(self) -> None:
        self.store.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        return self.store.address

    @property
    def recipe(self) -> Recipe | None:
        return self.settings.recipe

    def writer(self) -> AbstractContextManager[Writer]:
        """Hold the writer of the store for the length of a block. The context decides whether to wait for another
        writer."""
        return self.store.writer(wait=self.context.wait, listener=self.context.listener)

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep everybody from writing to the index for the length of a block, as `Engine.exclusive` does."""
        return self.store.engine.exclusive(wait=self.context.wait, listener=self.context.listener)

    def stored_settings(self) -> Settings:
        """Return the settings that are stored now."""
        with self.store.snapshot() as snapshot:
            return snapshot.settings

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index's recipe, loaded on first use and shared by the process.

        With a cache, the model may be loaded when the first text is embedded.

        Raises:
            BadInput: the index holds vectors of the user's own.
            RecipeMismatch: the model of this name has other weights now.
        """
        if self._encoder is None:
            if self.recipe is None:
                missing = "holds your own vectors and has no model: there is nothing to load or compile"
                raise BadInput(f"{self.address}: {missing}")
            self._encoder = get_encoder(self.recipe, self.context.runtime, self.context.cache)
        return self._encoder

    def require(self, recipe: Recipe) -> None:
        """Raise RecipeMismatch, naming both recipes, unless vectors of `recipe` may be mixed with the index's."""
        require_recipe(self.address, self.recipe, recipe)

    def record_model_place(self, model: str) -> None:
        """Store the name or folder under which the model of this recipe is found now, if it has changed."""

        def renamed(stored: Settings) -> Settings:
            recipe = stored.recipe
            assert recipe is not None
            question = recipe.question and replace(recipe.question, model=model)
            return replace(stored, recipe=replace(recipe, model=model, question=question))

        if renamed(self.settings) != self.settings:
            with self.writer() as writer:
                self.settings = writer.change(renamed)

    def compile(self) -> None:
        """Write the encoder as a graph; errors are those of `Index.compile`."""
        if reason := self.nothing_to_compile():
            raise ModelError(f"{self.address}: there is nothing to compile: {reason}")
        from indexer.encoders.compilation.export import compile_encoder

        with self.writer():
            compile_encoder(loaded(of_role(self.encoder, "query")), self.store.artifacts())

    def nothing_to_compile(self) -> str:
        """Return why the encoder of questions needs no graph; nothing if it needs one."""
        if self.recipe is None or self.recipe.remote is None:
            return ""
        return f"its model is behind {self.recipe.model}"

    @property
    def batch_characters(self) -> int:
        """Number of characters to embed and commit together: what is embedded in `COMMIT_S`, within bounds."""
        if self.recipe is None:
            return BATCH_CHARACTERS  # Nothing is embedded.
        if self._embedding is not None and self._embedding.speed is not None:
            return min(BATCH_CHARACTERS, int(self._embedding.speed * COMMIT_S))
        return min(BATCH_CHARACTERS, FIRST_BATCH_CHARACTERS)

    def commit(self, pending: Pending) -> Changes:
        """Wait for the embedding of a batch, and commit what is new.

        Raises:
            BadInput: a document has no text that the model can read, or could not be embedded; nothing of the batch is
                stored.
        """
        prepared = self.finish(pending)  # without the lock, so that others can write during this time
        refuse_unembedded(prepared)
        if not prepared.work:
            return Changes(unchanged=prepared.unchanged, notes=prepared.notes)
        with self.writer() as writer:
            self._require_as_opened()
            if self._hashes(pending.batch) != prepared.compared_with:
                notes = prepared.notes  # an encoder tells them once
                prepared = self.finish(self.submit(pending.batch))
                prepared = replace(prepared, notes=notes + prepared.notes)
                refuse_unembedded(prepared)
            earlier_notes = len(writer.notes)
            changes = writer.put(Batch(prepared.work))
            notes = tuple(dict.fromkeys((*prepared.notes, *writer.notes[earlier_notes:])))
            return replace(changes, unchanged=prepared.unchanged, notes=notes)

    def prepare(self, batch: Sequence[Incoming]) -> Prepared:
        """Compare valid documents of distinct uris with the index, and embed new and changed documents."""
        return self.finish(self.submit(batch))

    def compare(self, batch: Sequence[Incoming]) -> tuple[list[ChangedDocument], tuple[str, ...], Mapping[str, Hashes]]:
        """Return the documents that differ from the index, the uris of the others, and the hashes that are stored."""
        self._require_as_opened()
        hashes = self._hashes(batch)
        return *diff(batch, hashes, self.settings.meaning), hashes

    def submit(
        self, batch: Sequence[Incoming], *, more_follow: bool = False, workers: Workers | None = None
    ) -> Pending:
        """Compare valid documents of distinct uris with the index, and begin to embed new and changed documents.

        Batches that share a uri must not be under way together.

        Args:
            more_follow: see `read_languages`.
            workers: embed the documents instead of the workers of the context, or this process.
        """
        notes: list[str] = []
        changed, unchanged, hashes = self.compare(batch)
        if new := [item.document for item in changed if item.action != "rewrite"]:
            notes.extend(self._model_notes())
            notes.extend(self.read_languages(new, more_follow=more_follow))
        documents = [item.document for item in changed if item.action == "embed"]
        if workers is None and documents:
            workers = self._own_workers()
        embedding, embedding_notes = self._embed(documents, workers)
        notes.extend(embedding_notes)
        noted = tuple(dict.fromkeys(notes))
        return Pending(batch, changed, unchanged, hashes, noted, embedding, workers is not None)

    def finish(self, pending: Pending) -> Prepared:
        """Wait until the documents of a batch are embedded. Errors are those of embedding."""
        results = pending.embedding.result()
        if pending.is_elsewhere:
            results = self._checked([item.document for item in pending.changed if item.action == "embed"], results)
        passages = iter(results)
        work: list[EmbeddedDocument] = []
        empty: list[str] = []
        failed: dict[str, str] = {}
        for item in pending.changed:
            if item.action == "rewrite":
                work.append(EmbeddedDocument(item.document, item.hashes))
                continue
            embedded = item.embedded or next(passages)
            if embedded.spans:
                work.append(EmbeddedDocument(item.document, item.hashes, embedded.spans, embedded.vectors))
            elif embedded.failure:
                failed[item.document.uri] = embedded.failure
            else:
                empty.append(item.document.uri)
        return Prepared(tuple(work), pending.unchanged, tuple(empty), pending.compared_with, pending.notes, failed)

    def _checked(self, documents: Sequence[Document], embedded: Sequence[Embedded]) -> list[Embedded]:
        """Return what workers made of documents. Raises BadInput or RecipeMismatch if it cannot be stored."""
        if len(embedded) != len(documents):
            raise BadInput(f"the workers returned {len(embedded)} results for {len(documents)} documents")
        return [
            require_embedded(document, item, self.recipe, self.settings.dimensions)
            for document, item in zip(documents, embedded, strict=True)
        ]

    def window(self, workers: Workers | None = None) -> int:
        """Return how many batches are under way together: those of the workers, or none."""
        if workers is None and self.context.workers is None:
            return 0
        return int(getattr(workers or self._workers, "window", DEFAULT_WINDOW))

    def _own_workers(self) -> Workers | None:
        """Return the workers of the context, which are made now if they were not before."""
        if self._workers is None and self.context.workers is not None:
            self._workers = self.context.workers(self.embedder)
            if self.context.cache is not None:
                self._workers = self.context.cache.before_workers(self._workers, self.encoder, self.embedder)
        return self._workers

    def _embed(
        self, documents: Sequence[Document], workers: Workers | None
    ) -> tuple[Future[list[Embedded]], tuple[str, ...]]:
        """Return the passages and vectors of each document, and notes."""
        future = Future[list[Embedded]]()
        if not documents:
            future.set_result([])
            return future, ()
        if self._embedding is None or self.recipe is None:
            raise BadInput(f"{documents[0].uri}: {self.address} holds your own vectors: pass vectors= with documents")
        if workers is not None:
            future = workers.submit(documents)
            future.add_done_callback(self._embedding.timed(documents))
            return future, ()
        rows, notes = self._embedding.embed(
            self.encoder, documents, cached=self.context.cached, listener=self.context.listener
        )
        future.set_result([Embedded(spans, vectors, self.recipe.identity) for spans, vectors in rows])
        return future, notes

    @property
    def embedder(self) -> Embedder:
        """What embeds documents for this index elsewhere; errors are those of `Embedder`."""
        recipe, passages = self.require_model()
        return Embedder(recipe, passages, runtime=self.context.runtime)

    def require_model(self) -> tuple[Recipe, PassageSettings]:
        """Return what documents are embedded with. Raises BadInput if the index holds vectors of the user's own."""
        if self.recipe is None or self.settings.passages is None:
            raise BadInput(f"{self.address}: holds your own vectors and has no model to embed with")
        return self.recipe, self.settings.passages

    def _model_notes(self) -> list[str]:
        """Return notes about the model before the first documents of a new index; the listener receives them."""
        if self._model_noted or self.recipe is None or self.settings.passages is None:
            return []
        self._model_noted = True
        with self.store.snapshot() as snapshot:
            if snapshot.passages:
                return []
        notes = model_notes(self.recipe, self.settings.passages.max_tokens)
        for message in notes:
            self.context.listener.note(message)
        return notes

    def read_languages(self, documents: Sequence[Document] = (), *, more_follow: bool = False) -> list[str]:
        """Detect the languages of the first documents that this object writes. This is done once, because a sample is
        enough.

        The languages decide the language of a new index if the language was left to be detected. If the documents are
        too short, the next documents decide.

        Args:
            more_follow: whether a later call follows. The first call is then left to it if it has few documents.

        Returns:
            Notes for the user. The listener receives them now, before these documents are embedded.
        """
        if self._languages_read:
            return []
        from indexer.languages.detect import SAMPLE_TEXTS, languages_of, say_something
        from indexer.languages.notes import other_language_note, unread_note, word_language

        texts = [*self._first_texts, *(document.text for document in documents)]
        if more_follow and len(texts) < SAMPLE_TEXTS and sum(map(len, texts)) < BATCH_CHARACTERS:
            self._first_texts = texts
            return []
        self._first_texts = []
        stored = self.stored_settings()
        if stored.language_open:
            texts += self._stored_texts(SAMPLE_TEXTS)
        if not say_something(texts):
            return []
        self._languages_read = True
        shares = languages_of(texts)
        if stored.language_open:
            self.settle_language(word_language(shares))
            other = None
        else:
            other = other_language_note(stored.language, shares)
        unread = unread_note(self.recipe, shares) if self.recipe is not None else None
        notes = [message for message in (unread, other) if message is not None]
        for message in notes:
            self.context.listener.note(message)
        return notes

    def _stored_texts(self, count: int) -> list[str]:
        """Return the texts of the first documents of the index, up to a damaged one."""
        texts: list[str] = []
        with suppress(IndexDamaged):  # this run may be there to replace it
            texts.extend(document.text for document in islice(self.store.iterate(), count))
        return texts

    def settle_language(self, language: str) -> None:
        """Store the language of an index without a language, unless another writer has stored one."""
        with self.writer() as writer:
            self._require_as_opened()
            self.settings = writer.change(
                lambda stored: (
                    replace(stored, language=language, language_open=False) if stored.language_open else stored
                )
            )

    def take_width(self, dimensions: int) -> None:
        """Set the width of vectors in an index that was made for any width and has no vectors yet."""
        with self.writer() as writer:
            self._require_as_opened()
            self.settings = writer.change(lambda stored: replace(stored, dimensions=stored.dimensions or dimensions))

    def _hashes(self, batch: Sequence[Incoming]) -> Mapping[str, Hashes]:
        with self.store.snapshot() as snapshot:
            return snapshot.hashes([document.uri for document, _ in batch])

    def _require_as_opened(self) -> None:
        """Raise RecipeMismatch if another index has replaced the opened index."""
        stored = self.stored_settings()
        if not self.settings.dimensions and replace(self.settings, dimensions=stored.dimensions).kind == stored.kind:
            self.settings = stored  # another writer has added the first vector
        if self.settings.kind != stored.kind:
            raise index_was_replaced(self.address)
