"""`IndexCore`: the store, the settings and the encoder of an open index, and how documents become a commit.

`Index` is the public class. The command line and ingest.py use `IndexCore`, because they hold the writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from os import PathLike

from indexer.encoders import Encoder, Recipe, RecipeSpec, get_encoder
from indexer.encoders.registry import Model
from indexer.errors import BadInput
from indexer.indexing.batches import ChangedDocument, Incoming, Pending, Prepared, diff, finish, refuse_unembedded
from indexer.indexing.context import Context
from indexer.indexing.embedder import Embedder, Workers
from indexer.indexing.embedding import BATCH_CHARACTERS, FIRST_BATCH_CHARACTERS, settings_of_new
from indexer.indexing.first_documents import FirstDocuments, Update
from indexer.indexing.identity import as_stored, index_was_replaced, moved_to, require_recipe
from indexer.indexing.index_embedding import IndexEmbedding
from indexer.indexing.new_index import AUTO_MODEL, NewIndex
from indexer.listener import Collecting
from indexer.records import Changes
from indexer.settings import Settings
from indexer.stores.addresses.open import open_store
from indexer.stores.port import Batch, Hashes
from indexer.stores.reading.store import Store, Writer


class IndexCore(AbstractContextManager["IndexCore"]):
    """An open index for code that writes to it. Safe to share among threads.

    Attributes:
        store: the store of the index.
        context: options for working on the index.
        first: its first documents, which decide its language.
        settings: the settings when the index was opened, or when this object last changed them.
    """

    def __init__(self, store: Store, encoder: Encoder | None = None, context: Context | None = None) -> None:
        """Work on the index of a store.

        Args:
            encoder: encoder of the index's recipe; None loads the encoder when it is needed.
        """
        self.store = store
        self.context = context or Context()
        self._use(self.stored_settings(), encoder)

    def _use(self, settings: Settings, encoder: Encoder | None = None) -> None:
        """Work with these settings, which are stored, and with the encoder of their recipe."""
        embedding: IndexEmbedding | None = None
        if settings.recipe is not None and settings.passages is not None:
            embedder = Embedder(settings.recipe, settings.passages, runtime=self.context.runtime)
            embedding = IndexEmbedding(embedder, encoder, self.context)
        self.first = FirstDocuments(self.store, settings, self.context.listener, self._change)
        self._embedding = embedding
        self.settings = settings  # Last: other threads that see these settings embed with them.

    @classmethod
    def open(
        cls, address: str | PathLike[str], model: Model | None = None, context: Context | None = None
    ) -> IndexCore:
        """Open an index that exists; arguments and errors are those of `Index.open`."""
        core = cls(open_store(address), None, context)
        return core if model is None else core.with_model(model)

    def with_model(self, model: Model, *, found_at: str | None = None) -> IndexCore:
        """Return this index with the encoder of `model`.

        If the model is behind an endpoint, requests go to the address that `model` names.

        Args:
            found_at: name or folder under which the model is found from now on. It is stored if it has changed.

        Raises:
            RecipeMismatch: the index was made with another model.
        """
        if self.settings.model_open is not None:  # the caller decides, and not the first documents
            settings, encoder = self._settings_with(model)
            self._settle_model(settings, encoder)
            model = encoder or model
        if isinstance(model, Recipe):
            require_recipe(self.address, self.recipe, model)
            return self
        if isinstance(model, str | PathLike | RecipeSpec) and self.recipe is not None:
            model = as_stored(model, self.recipe)
        encoder = get_encoder(model, self.context.runtime)
        require_recipe(self.address, self.recipe, encoder.recipe)
        if found_at is not None and moved_to(found_at, self.settings) != self.settings:
            with self.writer() as writer:
                writer.change(partial(moved_to, found_at))
        return IndexCore(self.store, encoder, self.context)

    def close(self) -> None:
        self.store.engine.close()

    def __exit__(self, *ended: object) -> None:
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
        if self._embedding is None:
            missing = "holds your own vectors and has no model: there is nothing to load or compile"
            raise BadInput(f"{self.address}: {missing}")
        return self._embedding.encoder

    @property
    def batch_characters(self) -> int:
        """Number of characters to embed and commit together: what is embedded in some seconds, within bounds."""
        if self._embedding is None:
            return BATCH_CHARACTERS  # Nothing is embedded.
        speed, seconds = self._embedding.here.speed, self._embedding.here.batch_s
        return min(BATCH_CHARACTERS, FIRST_BATCH_CHARACTERS if speed is None else max(1, int(speed * seconds)))

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
            more_follow: see `FirstDocuments.read_languages`.
            workers: embed the documents instead of the workers of the context, or this process.
        """
        self.choose_model(batch)
        changed, unchanged, hashes = self.compare(batch)
        notes = Collecting()
        if new := [item.document for item in changed if item.action != "rewrite"]:
            notes.texts += self.first.model_notes()
            notes.texts += self.first.read_languages(new, more_follow=more_follow)
        if not (documents := [item.document for item in changed if item.action == "embed"]):
            return Pending(batch, changed, unchanged, hashes, notes.texts)
        if self._embedding is None:
            raise BadInput(f"{documents[0].uri}: {self.address} holds your own vectors: pass vectors= with documents")
        embedding, is_elsewhere = self._embedding.submit(documents, workers, notes)
        return Pending(batch, changed, unchanged, hashes, notes.texts, embedding, is_elsewhere)

    def finish(self, pending: Pending) -> Prepared:
        """Wait until the documents of a batch are embedded. Errors are those of embedding."""
        return finish(pending, self.recipe, self.settings.dimensions)

    def window(self, workers: Workers | None = None) -> int:
        """Return how many batches are under way while the next is read."""
        return 0 if self._embedding is None else self._embedding.window(workers)

    def require_model(self) -> IndexEmbedding:
        """Return what embeds documents for this index. Raises BadInput if it holds vectors of the user's own."""
        if self._embedding is None:
            raise BadInput(f"{self.address}: holds your own vectors and has no model to embed with")
        return self._embedding

    def choose_model(self, first: Sequence[Incoming]) -> tuple[str, ...]:
        """Choose the model of an index whose model is open by its first documents, and return a note; otherwise do
        nothing.

        Without a note, the index keeps its model: the texts do not show a language, or a document brings its vectors.
        """
        if self.settings.model_open is None or not first:
            return ()
        texts = [] if any(own is not None for _, own in first) else [document.text for document, _ in first]
        chosen, encoder = self._settings_with(AUTO_MODEL, texts)
        unknown = "the first texts do not show a language" if texts else "the first documents brought their vectors"
        is_chosen = self._settle_model(replace(chosen, model_reason=chosen.model_reason or unknown), encoder)
        if not is_chosen or not chosen.model_note:
            return ()
        self.context.listener.chosen(chosen.model_note)
        return (chosen.model_note,)

    def _settings_with(self, model: Model, texts: Sequence[str] = ()) -> tuple[Settings, Encoder | None]:
        """Return the settings of this index, whose model is open, with a model, and its encoder."""
        tokens, overlap = self.settings.model_open or (None, None)
        runtime = self.context.runtime
        options = NewIndex(None, tokens, overlap, None, runtime.precision, runtime.device, runtime.trust_remote_code)
        return settings_of_new(model, options, self.context.cache, texts)

    def _settle_model(self, chosen: Settings, encoder: Encoder | None) -> bool:
        """Store the model of an index whose model is open. Return False if another writer has stored one."""
        meaning = {name: getattr(chosen, name) for name in ("dimensions", "recipe", "passages", "model_reason")}
        with self.writer() as writer:
            self._require_as_opened()
            if is_open := self.settings.model_open is not None:
                self._use(writer.change(lambda stored: replace(stored, **meaning, model_open=None)), encoder)
            return is_open

    def take_width(self, dimensions: int) -> None:
        """Set the width of vectors in an index that was made for any width and has no vectors yet."""
        self._change(lambda stored: replace(stored, dimensions=stored.dimensions or dimensions))

    def _change(self, update: Update) -> None:
        with self.writer() as writer:
            self._require_as_opened()
            self.settings = writer.change(update)

    def _hashes(self, batch: Sequence[Incoming]) -> Mapping[str, Hashes]:
        with self.store.snapshot() as snapshot:
            return snapshot.hashes([document.uri for document, _ in batch])

    def _require_as_opened(self) -> None:
        """Raise RecipeMismatch if another index has replaced the opened index."""
        stored = self.stored_settings()
        if self.settings.model_open is not None and stored.model_open is None:
            self._use(stored)  # another writer has added the first documents
        if not self.settings.dimensions and replace(self.settings, dimensions=stored.dimensions).kind == stored.kind:
            self.settings = stored  # another writer has added the first vector
        if self.settings.kind != stored.kind:
            raise index_was_replaced(self.address)
