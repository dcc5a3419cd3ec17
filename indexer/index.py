"""The index: documents in, passages and vectors kept. The public face of the indexer room.

What is stored where, the store knows (stores/); what a vector means, the recipe (encoders/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from indexer.batches import Given, Prepared, batches, broken_at, compared, given, readable
from indexer.embedding import FITTED_TO, TOGETHER, Embedding, loaded, settings_of_new
from indexer.encoders import Encoder, Recipe, RecipeSpec, encoder_for
from indexer.encoders.hardware import Precision
from indexer.errors import BadInput, UnknownUri
from indexer.identity import as_fitted, index_was_replaced, require_recipe
from indexer.notes import note_as_warning
from indexer.passages import PassageSettings
from indexer.records import Changes, Document
from indexer.settings import Settings
from indexer.stores.open import create_store, open_store
from indexer.stores.port import Batch, CheckReport, Hashes, Info, Kind, Store


class Index:
    """A folder of documents, their passages and vectors. Safe to share among threads."""

    def __init__(self, store: Store, encoder: Encoder | None = None) -> None:
        """Use `Index.create` or `Index.open`."""
        self.store = store
        self._settings = self.settings
        self._encoder = encoder
        self._computed: tuple[Precision, str, bool] = ("auto", "auto", False)  # precision, device, trust
        self._embedding = Embedding(self._settings.passages) if self._settings.passages else None

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None = None,
        *,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        overlap: int | None = None,
        language: str = "en",
        precision: Precision = "auto",
        device: str = "auto",
        trust_remote_code: bool = False,
    ) -> Index:
        """Make an empty index.

        Args:
            path: a folder that does not exist yet, or is empty.
            model: a name, a folder, a recipe (or its text) or an encoder of your own; the default is
                all-MiniLM-L6-v2. What the recipe fits (center, whiten) it fits to the first passages added.
            dimensions: of vectors you bring yourself, instead of a model.
            max_tokens: of a passage; the model's own limit unless it is less.
            overlap: tokens that neighbouring passages share; 32, or a quarter of passages under 128 tokens.
            language: whose endings searching by words passes over, by code or name; `none` for no language's.
            precision: of the model's weights while documents are embedded, as in `load_encoder`; int8 is
                calibrated on the first of them.
            device: `cpu`, `cuda`, ...; `auto` is CUDA where there is one.
            trust_remote_code: run the Python that comes with a model.

        Raises:
            BadInput: something is there already, or the settings do not fit the model.
            ModelError: the model cannot be loaded.
        """
        settings, encoder = settings_of_new(
            model,
            dimensions=dimensions,
            max_tokens=max_tokens,
            overlap=overlap,
            language=language,
            precision=precision,
            device=device,
            trust_remote_code=trust_remote_code,
        )
        return cls(create_store(path, settings), encoder)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None = None,
        *,
        precision: Precision = "auto",
        device: str = "auto",
        trust_remote_code: bool = False,
    ) -> Index:
        """Open an index that exists.

        Args:
            model: checked against the index's own recipe; needed only for an encoder of your own.
            precision, device, trust_remote_code: as in `create`.

        Raises:
            NotAnIndex, NewerFormat, IndexDamaged: there is no index that can be read.
            RecipeMismatch: `model` is not the one the index was made with.
        """
        index = cls(open_store(path))
        index._computed = precision, device, trust_remote_code
        if isinstance(model, Recipe):
            index.require(model)
        elif model is not None:
            index.use(*loaded(model, *index._computed))
        return index

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def dimensions(self) -> int:
        return self._settings.dimensions

    @property
    def recipe(self) -> Recipe | None:
        """How its vectors are made; None for vectors of the user's own."""
        return self._settings.recipe

    @property
    def passage_settings(self) -> PassageSettings | None:
        """How its documents are cut; None for vectors of the user's own."""
        return self._settings.passages

    @property
    def settings(self) -> Settings:
        """Everything that is stored about the index, as of now."""
        with self.store.snapshot() as snapshot:
            return snapshot.settings

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index's recipe; loaded when first asked for and shared by the process.

        Raises:
            BadInput: the index holds vectors of the user's own.
            RecipeMismatch: the model of this name has other weights now.
        """
        if self._encoder is None:
            if self.recipe is None:
                raise BadInput(f"{self.store.address}: holds your own vectors and has no model: give vectors")
            with self.store.snapshot() as snapshot:
                fitted_parameters = snapshot.fitted_parameters()
            self._encoder = encoder_for(self.recipe, fitted_parameters, *self._computed)
        return self._encoder

    def use(self, encoder: Encoder, recipe: Recipe) -> None:
        """Embed with this encoder, of `recipe` or to fit it to. Raises RecipeMismatch as `require`."""
        self.require(recipe)
        with self.store.snapshot() as snapshot:
            self._encoder = as_fitted(encoder, self.recipe, snapshot.fitted_parameters())

    def moved(self, model: str) -> None:
        """Keep where the model of this recipe is now."""

        def renamed(stored: Settings) -> Settings:
            assert stored.recipe is not None
            return replace(stored, recipe=replace(stored.recipe, model=model))

        with self.store.writer() as writer:
            self._settings = writer.change(renamed)

    def require(self, recipe: Recipe) -> None:
        """Raise RecipeMismatch, naming both, unless vectors of `recipe` may be mixed with the index's."""
        require_recipe(self.store.address, self.recipe, recipe)

    # writing

    def add(self, documents: Iterable[Document], vectors: NDArray[np.floating] | None = None) -> Changes:
        """Add documents, replace those whose content changed, pass by those that are the same.

        Args:
            documents: of one uri given twice the last one counts.
            vectors: one row a document (n, dimensions), float32 or float16, instead of embedding: each document
                becomes one passage.

        Returns:
            What changed; each batch is durable and searchable when it was committed, all when this returns.
            An index that has doubled is also measured (calibration/background.py), which takes about a second.

        Raises:
            BadInput: a document or vector that cannot be stored; documents before it may have been.
            RecipeMismatch: an index of another recipe has come into the folder since this one was opened.
        """
        from indexer.calibration.background import renew  # which a reader does not need

        changes = Changes()
        for batch in batches(given(documents, vectors, self.dimensions), lambda: self.together):
            changes += self._commit(batch)
        if vectors is None and (changes.added or changes.replaced):
            renew(self.store, self.encoder, growth=2)
        return changes

    def _commit(self, batch: Sequence[Given]) -> Changes:
        prepared = self.prepare(batch)  # without the lock: others may write meanwhile
        if not prepared.work:
            return Changes(unchanged=readable(prepared).unchanged)
        with self.store.writer() as writer:
            self._require_as_opened()
            if self._known(batch) != prepared.known:
                prepared = self.prepare(batch)
            earlier = len(writer.notes)
            changes = writer.put(Batch(readable(prepared).work))
            for note in writer.notes[earlier:]:
                note_as_warning(note)
            return replace(changes, unchanged=prepared.unchanged)

    def _known(self, batch: Sequence[Given]) -> Mapping[str, Hashes]:
        with self.store.snapshot() as snapshot:
            return snapshot.hashes([document.uri for document, _ in batch])

    def _require_as_opened(self) -> None:
        if self._settings.kind != self.settings.kind:
            with self.store.writer():  # another thread may just have stored what it fitted
                if self._settings.kind != self.settings.kind:
                    raise index_was_replaced(self.store.address)

    def prepare(self, documents: Sequence[Given]) -> Prepared:
        """Compare valid documents of distinct uris with the index and embed what is new, or take its own vectors."""
        self._require_as_opened()
        known = self._known(documents)
        if self.recipe is not None and not self.recipe.fitted:
            self._fit(self._settings, [document for document, own in documents if own is None])
        work, unchanged = compared(documents, known, self._settings.meaning)
        new = [item.document for item in work if item.spans == ()]
        if new and self._embedding is None:
            raise BadInput(f"{new[0].uri}: {self.store.address} holds your own vectors: pass vectors= with documents")
        passages = iter(
            self._embedding.embed(self.encoder, new, note=note_as_warning) if new and self._embedding else []
        )
        embedded_work = [
            replace(item, spans=spans, vectors=vectors)
            for item in work
            for spans, vectors in ([next(passages)] if item.spans == () else [(item.spans, item.vectors)])
        ]
        return Prepared(
            work=tuple(item for item in embedded_work if item.spans != ()),
            unchanged=unchanged,
            empty=tuple(item.document.uri for item in embedded_work if item.spans == ()),
            known=known,
        )

    @property
    def together(self) -> int:
        """Characters to embed and commit together; of the first batch so many more as there is to be fitted to."""
        return TOGETHER if self.recipe is None or self.recipe.fitted else FITTED_TO

    def _fit(self, unfitted: Settings, documents: Sequence[Document]) -> None:
        """Fit the recipe's post-processing to passages of these documents and store it, before any is committed.

        All under the writer lock: before this is done nobody can write anything, and only one may do it.
        """
        if not documents:
            return
        from indexer.encoders import fit_post

        with self.store.writer() as writer:
            if self._settings is not unfitted:  # another thread was first
                return
            self._require_as_opened()  # or another process
            recipe = unfitted.recipe
            assert self._embedding is not None and recipe is not None and recipe.post is not None
            vectors = self._embedding.sample(self.encoder, documents)
            fitted = fit_post(self.encoder, vectors, recipe.post, recipe.dimensions)
            settings = writer.change(
                lambda stored: replace(stored, recipe=fitted.recipe), fitted.post_parameters() or b""
            )
            # Set before the settings: another thread that sees the fitted recipe must find this encoder.
            self._encoder = fitted
            self._settings = settings

    def remove(self, uris: Iterable[str]) -> int:
        """Remove documents; how many.

        Raises:
            UnknownUri: one of them is no document; nothing was removed.
        """
        if not isinstance(uris, Iterable):
            raise BadInput(f"the uris are no list but {type(uris).__name__}")
        given = [uris] if isinstance(uris, str) else list(uris)
        for uri in given:
            if uri not in self:
                raise UnknownUri(f"{self.store.address}: has no document {uri!r}; nothing was removed")
        with self.store.writer() as writer:
            return writer.remove(given)

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        """Rewrite the vectors into one segment and give free space back to the disk.

        Args:
            kind: "exact", "approximate", or "auto": approximate from 100,000 passages on.
            recall: share of the ten nearest that an approximate segment is tuned to find; kept for later ones.
        """
        with self.store.writer() as writer:
            writer.compact(kind, recall)

    def compile(self) -> None:
        """Write the encoder into the folder as a graph, with which questions need no torch.

        Raises:
            ModelError: it cannot be compiled, or its vectors would be others; torch will embed the questions.
        """
        from indexer.encoders.openvino.export import compile_encoder

        with self.store.writer():
            compile_encoder(self.encoder, self.store.artifacts())

    def backup(self, destination: str | PathLike[str]) -> None:
        """Copy the index as of one commit to a new folder, while it is read and written.

        Raises:
            BadInput: something is there already.
        """
        for note in self.store.backup(fspath(destination)):
            note_as_warning(note)

    # reading

    def get(self, uri: str) -> Document:
        """Raises UnknownUri."""
        document = None
        if broken_at(uri) is None:
            with self.store.snapshot() as snapshot:
                document = snapshot.get(uri)
        if document is None:
            raise UnknownUri(f"{self.store.address}: has no document {uri!r}; likewise list shows what there is")
        return document

    def __contains__(self, uri: object) -> bool:
        if not isinstance(uri, str) or broken_at(uri) is not None:
            return False
        with self.store.snapshot() as snapshot:
            return bool(snapshot.hashes([uri]))

    def __len__(self) -> int:
        with self.store.snapshot() as snapshot:
            return snapshot.documents

    def __iter__(self) -> Iterator[Document]:
        """Documents in the order they were added."""
        return self.store.iterate()

    def check(self, repair: bool = False) -> CheckReport:
        """Verify every checksum; `repair` rebuilds what can be rebuilt."""
        from indexer.check import check

        return check(self.store, self._settings.meaning if self.recipe else None, self.compile if repair else None)

    def info(self) -> Info:
        with self.store.snapshot() as snapshot:
            return snapshot.info()
