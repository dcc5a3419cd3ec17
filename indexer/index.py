"""`Index`: add, remove and read documents. The public class of this package.

stores/ has how an index is kept, encoders/ what its vectors mean.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Literal, Self, Unpack, cast

from indexer.doors import require
from indexer.encoders import Encoder, Recipe, RecipeSpec
from indexer.encoders.kinds import allow_model
from indexer.encoders.machine.hardware import Precision
from indexer.errors import BadInput, Closed, Message, ModelError, RecipeMismatch, UnknownUri, refuse_pickle
from indexer.exchange import Embedded
from indexer.filters.mapping import Filter, filter_tree
from indexer.indexing.batches import Spans, Vectors, batches, read_documents, windowed, with_embedded, with_own_vectors
from indexer.indexing.compiler import Compiler
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedder import Embedder, Workers
from indexer.indexing.embedding import BATCH_CHARACTERS, settings_of_new
from indexer.indexing.new_index import AUTO_MODEL, NewIndex, NewIndexOptions
from indexer.listener import Listener
from indexer.lookup import document_of, has_document, is_uri, read_removal
from indexer.passages.cut import PassageSettings
from indexer.records import Changes, Document
from indexer.settings import Settings
from indexer.stores.addresses.copying import copy_commit
from indexer.stores.addresses.life_cycle import draft
from indexer.stores.addresses.open import create_store, engine_of, is_store
from indexer.stores.port import CheckReport, Info, Kind, Recall
from indexer.stores.temporary import remove_folder


class Index:
    """An index that documents are added to and removed from. Safe to share among threads."""

    def __init__(self, core: IndexCore) -> None:
        """Use `Index.create`, `Index.open` or `Index.temporary`."""
        self._core = core
        self._folder: weakref.finalize[..., Index] | None = None

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None = None,
        *,
        dimensions: int | Literal["auto"] | None = None,
        max_tokens: int | None = None,
        overlap: int | None = None,
        language: str = "auto",
        precision: Precision = "auto",
        device: str = "auto",
        trust_remote_code: bool = False,
        tokenizer: str | PathLike[str] | None = None,
    ) -> Index:
        """Make an empty index.

        Args:
            path: a folder that does not exist yet, or is empty.
            model: a name, a folder, a recipe (or its text) or an encoder of your own; the default is
                all-MiniLM-L6-v2. Or the address of an endpoint, `http://localhost:11434/v1#NAME`: this user may send
                texts to its host from now on (docs/models.md). "auto" chooses all-MiniLM-L6-v2 or
                multilingual-e5-small by the languages of the documents of the first `add` (docs/languages.md).
            dimensions: width of vectors that you bring yourself, instead of a model; "auto" takes the width of the
                first vector that is added.
            max_tokens: most tokens in a passage; the default is the model's limit. A model behind an endpoint needs it.
            overlap: tokens that neighbouring passages share; the default is 32, or a quarter of `max_tokens` if
                that is below 128.
            language: the language whose word endings a search by words ignores, by code or name; `none` for none.
                `auto` finds it in the first documents that are added (docs/languages.md).
            precision: precision of the model's weights while documents are embedded, as in `load_encoder`.
            device: `cpu`, `cuda`, ...; `auto` uses CUDA if there is a CUDA device.
            trust_remote_code: run Python code that comes with the model.
            tokenizer: name or path of the tokenizer that cuts passages for a model behind an endpoint; without it they
                are cut by characters.

        Raises:
            BadInput: something exists at the path, or the settings do not fit the model.
            ModelError: the model cannot be loaded.
        """
        allow_model(model)
        options = NewIndex(dimensions, max_tokens, overlap, language, precision, device, trust_remote_code, tokenizer)
        settings, encoder = settings_of_new(model, options)
        return cls(IndexCore(create_store(path, settings), encoder, Context(options.runtime)))

    @classmethod
    def temporary(
        cls,
        model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None = None,
        **options: Unpack[NewIndexOptions],
    ) -> Index:
        """Make an empty index in a temporary folder, which is deleted when the object is closed or garbage-collected.

        `index.address` is its path, for a `Searcher`. Arguments and errors are those of `create`.
        """
        folder = Path(tempfile.mkdtemp(prefix="likewise-"))
        try:
            index = cls.create(folder / "temporary.index", model, **options)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        index._folder = weakref.finalize(index, remove_folder, folder, os.getpid())
        return index

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None = None,
        *,
        create: bool = False,
        **options: Unpack[NewIndexOptions],
    ) -> Index:
        """Open an index that exists; with `create=True`, make it if there is none.

        Processes that do this at the same time get the same index.

        Args:
            model: for an index that exists it may be left out, unless it was made with an encoder of your own.
            create: make the index if there is none, with the arguments of `create`.
            options: as in `create`. An index that exists must have been made with these `dimensions`, `max_tokens`,
                `overlap` and `language`, unless they are left out or "auto"; it keeps its own `tokenizer`.

        Raises:
            NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: there is no index that can be read.
            RecipeMismatch: the index was made with another model or with other settings.
            BadInput: with `create`, something that is not an index is there, or the settings do not fit the model.
        """
        if unknown := options.keys() - NewIndexOptions.__annotations__.keys():
            raise TypeError(f"Index.open() got an unexpected keyword argument {min(unknown)!r}")
        wanted = NewIndex(**options)
        if create and not is_store(path):
            try:
                return cls.create(path, model, **options)
            except BadInput:
                if not is_store(path):
                    raise
                # Another process has made it in between: this one opens it.
        core = IndexCore.open(path, None if model == AUTO_MODEL else model, Context(wanted.runtime))
        settings = core.settings
        width = None if core.recipe is not None else settings.dimensions or wanted.dimensions
        for name, given, stored in wanted.compared(settings, width):
            if given not in (None, "auto", stored):
                core.close()
                raise RecipeMismatch(
                    f"{core.address}: was made with {name} {stored!r} and not {given!r}: leave {name} out, or make "
                    "another index"
                )
        if (chosen := wanted.language_code) is not None and settings.language_open:  # no text has decided it yet
            core.first.settle_language(chosen)
        return cls(core)

    def close(self) -> None:
        """Release connections and memory. Later calls are refused. A temporary index is deleted."""
        self._core.close()
        remedy = "a temporary index is deleted, make another" if self._folder else "open it again with Index.open"
        self._core = cast(IndexCore, Closed(self.address, f"this Index is closed: {remedy}"))
        if self._folder is not None:
            self._folder()

    __reduce_ex__ = refuse_pickle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Where the index is: the path of its folder."""
        return self._core.address

    @property
    def dimensions(self) -> int:
        """The width of a vector; 0 in an index that will take the width of its first vector."""
        return self._core.settings.dimensions

    @property
    def recipe(self) -> Recipe | None:
        """How its vectors are made; None for vectors of your own."""
        return self._core.recipe

    @property
    def passage_settings(self) -> PassageSettings | None:
        """How its documents are cut into passages; None for vectors of your own."""
        return self._core.settings.passages

    @property
    def settings(self) -> Settings:
        """The settings that are stored now."""
        return self._core.stored_settings()

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index's recipe, loaded on first use and shared by the process.

        Raises:
            BadInput: the index holds vectors of your own.
            RecipeMismatch: the model of this name has other weights now.
        """
        return self._core.encoder

    @property
    def embedder(self) -> Embedder:
        """What embeds documents for this index, here or on another machine. It can be sent to another process.

        Raises:
            BadInput: the index holds vectors of your own.
        """
        return self._core.require_model().embedder

    def changed(self, documents: Iterable[Document] | Document) -> list[Document]:
        """Return the documents that must be embedded: new documents, and documents with other content than stored.

        If a uri occurs twice, its last document counts.

        Raises:
            BadInput: a document cannot be stored, or the index holds vectors of your own, which nothing here can embed.
        """
        self._core.require_model()
        incoming, _ = read_documents(documents, None, None, 0)
        changed: list[Document] = []
        for batch in batches(incoming, lambda: BATCH_CHARACTERS):
            changed += [item.document for item in self._core.compare(batch)[0] if item.action == "embed"]
        return changed

    # writing

    def add(
        self,
        documents: Iterable[Document] | Document,
        vectors: Vectors | None = None,
        *,
        spans: Spans | None = None,
        embedded: Sequence[Embedded] | None = None,
        workers: Workers | None = None,
    ) -> Changes:
        """Add new documents, replace changed documents, and leave equal documents as they are.

        Args:
            documents: if a uri occurs twice, its last document is kept and a note names the uri; with vectors this is
                an error.
            vectors: vectors of your own; nothing is embedded then. Without `spans`, an array (documents, dimensions):
                each document becomes one passage. With `spans`, a list with one array (passages, dimensions) per
                document. Any type of number; rows are scaled to length 1 and stored as float16.
            spans: a list with one list per document of the (start, end) of its passages, in code points of its text,
                in the order of its rows.
            embedded: what an `Embedder` of this index's recipe and passage settings returned for these documents, here
                or on another machine. They are stored as if they had been embedded here.
            workers: embed the documents instead of this process.

        Returns:
            What changed. Every batch is durable and searchable when it is committed, and all are when this returns.
            If the index has doubled, its cosines are also measured (calibration/background.py): about one second.

        Raises:
            BadInput: a document or vector cannot be stored; documents before it may be stored already.
            RecipeMismatch: the folder now contains an index made with another model, or `embedded` was made with
                another model.
        """
        from indexer.calibration.background import renew  # not needed by a program that only reads

        if workers is not None and (vectors is not None or embedded is not None):
            raise BadInput("workers embed documents, and these bring their vectors: leave out workers")
        if embedded is not None and (vectors is not None or spans is not None):
            raise BadInput("give either vectors of your own, or what an Embedder returned (embedded), and not both")
        notes = tuple[str, ...]()
        if embedded is not None:
            incoming = with_embedded(documents, embedded, self.recipe, self.dimensions)
        else:
            incoming, notes = read_documents(documents, vectors, spans, self.dimensions)
        if vectors is None and embedded is None:
            notes += self._core.choose_model(incoming)
        elif not self.dimensions and incoming and (first := incoming[0][1]) is not None:
            self._core.take_width(first.vectors.shape[1])
        changes = Changes(notes=notes)
        submitted = (
            self._core.submit(batch, workers=workers)
            for batch in batches(incoming, lambda: self._core.batch_characters)
        )
        for pending in windowed(submitted, self._core.window(workers)):
            changes += self._core.commit(pending)
        changes += Changes(notes=tuple(self._core.first.judge_languages()))
        if vectors is None and (changes.added or changes.replaced):
            try:
                renew(self._core.store, self.encoder, growth=2)
            except ModelError as error:
                if embedded is None:
                    raise
                note = f"{error}: the vectors are stored, but searches will not say when nothing answers"
                changes += Changes(notes=(note,))
        return changes

    def remove(
        self, uris: Iterable[str] | str | None = None, *, where: Filter | None = None, missing_ok: bool = False
    ) -> int:
        """Remove documents by uri or by filter, in one commit, and return how many there were.

        Args:
            uris: one uri or several.
            where: a filter as in `Searcher.search`, instead of uris: every document that passes it is removed.
            missing_ok: ignore uris that are not documents.

        Raises:
            BadInput: the filter is empty.
            UnknownUri: one of the uris is not a document; nothing was removed.
            FilterError: a filter that does not parse or does not fit the index's fields; nothing was removed.
        """
        chosen = read_removal(uris, where)
        if not isinstance(chosen, list):
            with self._core.store.writer() as writer, self._core.store.snapshot() as snapshot:
                return writer.remove(snapshot.uris(chosen))
        with self._core.store.snapshot() as snapshot:
            stored = snapshot.hashes(uri for uri in chosen if is_uri(uri))
        unknown = [uri for uri in chosen if not isinstance(uri, str) or uri not in stored]
        if unknown and not missing_ok:
            message = f"{self.address}: has no document {unknown[0]!r}; nothing was removed"
            raise UnknownUri(Message(message, "; likewise list shows the whole uri of each"))
        with self._core.store.writer() as writer:
            return writer.remove(uri for uri in chosen if is_uri(uri))

    def replace_all(
        self, documents: Iterable[Document] | Document, vectors: Vectors, *, spans: Spans | None = None
    ) -> Changes:
        """Replace all documents by documents with their own vectors, in one step.

        The vectors may have another width than before. Searches see the old documents until all new documents
        are stored, and a crash leaves either the old or the new documents. Any other `Index` on this address must be
        opened again. A new index with the model "auto" becomes an index of your own vectors.

        Args:
            documents: as in `add`; at least one.
            vectors: as in `add`.
            spans: as in `add`.

        Returns:
            The documents with a new uri as `added`, the others as `replaced`.

        Raises:
            BadInput: the index has a model, or a document or vector cannot be stored; nothing was changed.
        """
        core = self._core
        documents = [documents] if isinstance(documents, Document) else list(documents)
        if not documents:
            raise BadInput(f"{self.address}: no document is given to replace the stored documents: use remove")
        incoming = with_own_vectors(documents, vectors, spans, 0)
        engine = core.store.engine
        uris = [document.uri for document, _ in incoming]
        with engine.exclusive():
            with core.store.snapshot() as snapshot:
                stored, settings = snapshot.hashes(uris), snapshot.settings
            if settings.recipe is not None and settings.model_open is None:
                raise BadInput(f"{self.address}: has a model: remove its documents and add others, or rebuild it")
            width = next(own.vectors.shape[1] for _, own in incoming if own is not None)
            settings = replace(settings, dimensions=width, recipe=None, passages=None, model_open=None)
            with draft(engine, settings) as store, IndexCore(store) as new, store.writer():
                for batch in batches(incoming, lambda: new.batch_characters):
                    new.commit(new.submit(batch))
            self._core = IndexCore(core.store, None, core.context)
        return Changes(
            added=tuple(uri for uri in uris if uri not in stored), replaced=tuple(uri for uri in uris if uri in stored)
        )

    @contextmanager
    def lock(self, *, wait: bool = True, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
        """Hold the writer lock for the length of a block, so that no other writer changes the index between its calls.

        Args:
            wait: wait for another writer; otherwise raise at once.
            on_wait: called once, with a message that names the other writer, before waiting.

        Raises:
            IndexLocked: another process or thread is writing and `wait` is False.
        """
        with self._core.store.writer(wait=wait, listener=_Waiting(on_wait)):
            yield

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        """Rewrite the vectors into one segment and give free space back to the disk.

        Args:
            kind: "exact", "approximate", or "auto": approximate from 100,000 passages on.
            recall: share of the ten nearest passages that an approximate segment must find; kept for later segments.
        """
        with self._core.store.writer() as writer:
            writer.compact(kind, recall)

    def compile(self) -> None:
        """Write the encoder into the index as a graph, so that questions need no torch.

        Raises:
            ModelError: it cannot be compiled, or its vectors would differ; torch embeds the questions then.
            BadInput: the part of likewise that compiles is not installed.
        """
        compiler: Compiler = require("parts", "speed", "compiling an encoder")
        compiler.compile_index(self._core)

    def copy(self, destination: str | PathLike[str]) -> tuple[str, ...]:
        """Copy the index to a new folder or DSN, while it is read and written. From a folder to a folder, the copy is
        the index as of one commit.

        Returns:
            Notes on what the copy lacks and how to repair it; usually none.

        Raises:
            BadInput: something exists at the destination.
            IndexDamaged: from or to a database, a document is damaged, or changed until the end of the copy.
        """
        return copy_commit(self._core.store, engine_of(destination))

    # reading

    def get(self, uri: str) -> Document:
        """Return a document.

        Raises:
            UnknownUri: no document has this uri.
        """
        return document_of(self._core.store, uri)

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        """Iterate over the documents that a filter leaves, or all, in the order they were added.

        They are read in pages. If another index replaces this index between two pages, the iterator raises NotAnIndex.
        """
        return self._core.store.iterate(filter_tree(where))

    def count(self, where: Filter | None = None) -> int:
        """Return how many documents a filter leaves, or how many there are."""
        condition = filter_tree(where)
        with self._core.store.snapshot() as snapshot:
            return snapshot.documents if condition is None else snapshot.count(condition)

    def __contains__(self, wanted: object) -> bool:
        """Return whether the index has a document of this uri, or a document that is equal to this one."""
        return has_document(self._core.store, wanted)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Document]:
        """Iterate over all documents in the order they were added."""
        return self.documents()

    def check(self, repair: bool = False) -> CheckReport:
        """Verify every checksum; `repair` rebuilds everything that can be rebuilt."""
        from indexer.indexing.check import check

        core = self._core
        return check(core.store, core.settings.meaning if core.recipe else None, self.compile if repair else None)

    def recall(self) -> Recall:
        """Measure the share of the ten nearest passages that a search without a filter finds."""
        with self._core.store.snapshot() as snapshot:
            return snapshot.recall()

    def info(self) -> Info:
        """Return the state of the index in numbers, also of a closed one."""
        if isinstance(self._core, Closed):
            with Index.open(self.address) as index:
                return index.info()
        with self._core.store.snapshot() as snapshot:
            return snapshot.info()


class _Waiting(Listener):
    """Calls a function with the message before a wait; None ignores the message."""

    def __init__(self, call: Callable[[str], None] | None) -> None:
        self._call = call

    def waiting(self, text: str) -> None:
        if self._call is not None:
            self._call(text)
