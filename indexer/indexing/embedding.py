"""Cutting documents into passages and embedding them, and the settings of a new index.

batches.py and core.py decide which documents are new and what is committed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath

import numpy as np

from indexer.doors import find
from indexer.encoders import Encoder, Recipe, RecipeSpec, get_encoder
from indexer.encoders.recipes.locate import DEFAULT_MODEL
from indexer.encoders.recipes.port import loaded, of_role
from indexer.encoders.recipes.recipe import scheme_of
from indexer.encoders.registry import KnownModels
from indexer.encoders.tokens.batching import watching
from indexer.encoders.torch.quicker import Speed
from indexer.errors import BadInput, Message, NothingKnown, TextTooLong
from indexer.exchange import Embedded
from indexer.indexing.new_index import AUTO_MODEL, NewIndex
from indexer.listener import SILENT, Collecting, Listener
from indexer.passages.cut import DEFAULT_PASSAGE_TOKENS, PassageSettings, cut, embedded_texts, whole_number
from indexer.records import Document, Span
from indexer.settings import Settings
from indexer.stores.words.analysis import is_auto

Ready = Callable[[Encoder], Encoder]
"""Makes an encoder ready to embed a batch of documents."""

BATCH_CHARACTERS = 512 * 1024
"""Number of characters that are embedded and committed together: a few seconds of work, with bounded memory."""

FIRST_BATCH_CHARACTERS, FIRST_BATCH_S = 16_000, 1.0
"""Characters of the first batch, at which the speed of the model is measured, and maximum seconds of reading for it."""

COMMIT_S = 10.0
"""Maximum seconds of embedding after which to commit, so that an interruption costs no more."""

_PLAIN_TEXT = "On 12 May 2020 the weather in the city was good, and 7 people came."
"""A sentence with a token that every sound model knows: most models know English words, the others digits."""


class Embedding:
    """Cuts documents into passages by an encoder's own tokens, and embeds them with it.

    Attributes:
        speed: characters of documents that the encoder embedded per second, when it was needed last; None before.
            Vectors from the cache do not count.
        batch_s: seconds of embedding after which to commit. They grow up to COMMIT_S: the first commits come soon.
    """

    def __init__(self, recipe: Recipe, settings: PassageSettings) -> None:
        """Take the recipe and the passage settings of an index."""
        self.speed: float | None = None
        self.batch_s = 1.0
        self._recipe = recipe
        self._settings = settings
        self._slack = 0
        self._override_told = False

    def embed(
        self,
        encoder: Encoder,
        documents: Sequence[Document],
        notes: Collecting,
        *,
        cached: Callable[[Encoder, Ready], Encoder] = lambda encoder, ready: ready(encoder),
        listener: Listener = SILENT,
    ) -> list[Embedded]:
        """Return the passages of each document with their vectors (passages, dimensions).

        All passages are encoded together.

        Args:
            notes: gets a note if the requested or chosen runtime cannot be used.
            cached: function that puts the user's cache of vectors before an encoder. The encoder is made ready when it
                is needed.
            listener: receives the number of passages after each batch of the model.

        Returns:
            One item per document. A passage whose tokens the model does not know is left out. A document is `too_long`
            if the model finds a passage too long even after it was cut shorter.

        Raises:
            NothingKnown: the model knows no token of any passage, nor of a plain sentence.
        """
        if not documents:
            return []
        unreadable: set[str] = set()
        too_long: dict[int, int] = {}
        slack = self._slack
        while True:
            spans = cut(documents, encoder, self._settings, self._slack)
            spans = [[] if number in too_long else own for number, own in enumerate(spans)]
            if unreadable:
                spans = _without(unreadable, documents, spans)
            texts = [text for pair in zip(documents, spans, strict=True) for text in embedded_texts(*pair)]
            counter = _Counter(len(texts), listener)
            try:
                ready = partial(self._ready, listener=notes, counter=counter)
                with watching(counter.add):
                    vectors = cached(encoder, ready).encode(texts, role="document")
                if rate := counter.rate():
                    self.measured(documents, len(texts) / rate)
                break
            except NothingKnown as error:
                if unreadable or (len(error.texts) == len(texts) > 1 and not _knows_words(cached(encoder, ready))):
                    raise
                unreadable.update(texts[index] for index in error.texts)
            except TextTooLong as error:
                # Some tokenizers read prefix and passage, joined, as a token or two more than the two apart.
                if self._slack < self._settings.max_tokens // 4:
                    self._slack += error.tokens - error.limit
                    continue
                # The server of the model reads less than its user has said. Other documents are not cut shorter for it.
                ends = np.cumsum([len(own) for own in spans])
                too_long[int(np.searchsorted(ends, error.index, "right"))] = len(texts[error.index])
                self._slack = slack
        rows_of = np.split(vectors, np.cumsum([len(own) for own in spans])[:-1])
        return [
            Embedded(tuple(own), rows, self._recipe.identity, too_long=too_long.get(number, 0))
            for number, (own, rows) in enumerate(zip(spans, rows_of, strict=True))
        ]

    def timed(self, documents: Sequence[Document]) -> Callable[[object], None]:
        """Return a function that is called when workers have embedded these documents, and measures their speed."""
        began = time.monotonic()
        return lambda _: self.measured(documents, time.monotonic() - began)

    def measured(self, documents: Sequence[Document], seconds: float) -> None:
        """Note how many seconds it took to embed documents."""
        self.speed = sum(len(document.text) + 256 for document in documents) / max(seconds, 1e-9)
        self.batch_s = min(3 * self.batch_s, COMMIT_S)

    def _ready(self, encoder: Encoder, *, listener: Listener, counter: _Counter) -> Encoder:
        """Return the encoder for a batch of passages. Behind an endpoint there is no runtime to choose."""
        if encoder.recipe.remote is None:
            encoder = loaded(of_role(encoder, "document"))
            speed: Speed | None = find("parts", "speed")
            if speed is not None:
                if not self._override_told and (message := speed.ignored_override(encoder)):
                    self._override_told = True
                    listener.note(message)
                encoder = speed.for_documents(encoder, listener=listener)
        counter.begin()
        return encoder


class _Counter:
    """Counts the passages of a call for a listener, and times those that do not come from the cache. Threads may share
    it."""

    def __init__(self, total: int, listener: Listener) -> None:
        self._total, self._listener, self._lock = total, listener, threading.Lock()
        self._done = self._cached = 0
        self._began: float | None = None

    def begin(self) -> None:
        """Note that the encoder begins: the passages so far came from the cache."""
        self._cached, self._began = self._done, time.monotonic()

    def add(self, passages: int) -> None:
        with self._lock:
            self._done += passages
            self._listener.embedded(self._done, self._total)

    def rate(self) -> float | None:
        """Return how many passages the encoder has embedded per second, now that it has ended; None if it was not
        needed."""
        if self._began is None:
            return None
        return (self._total - self._cached) / max(time.monotonic() - self._began, 1e-9)


def _knows_words(encoder: Encoder) -> bool:
    """Return whether a model knows any word of a plain sentence. A model that knows neither the sentence nor any text
    is broken."""
    try:
        encoder.encode([_PLAIN_TEXT], role="document", truncate=True)
    except NothingKnown:
        return False
    return True


def _without(unreadable: set[str], documents: Sequence[Document], spans: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Return the spans of each document whose embedded text is readable."""
    return [
        [span for span, text in zip(own, embedded_texts(document, own), strict=True) if text not in unreadable]
        for document, own in zip(documents, spans, strict=True)
    ]


def settings_of_new(
    model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None,
    options: NewIndex | None = None,
    cache: KnownModels | None = None,
    texts: Sequence[str] = (),
) -> tuple[Settings, Encoder | None]:
    """Return the settings of a new index and its encoder, or None for an index of the user's own vectors.

    Args:
        model, options: as in `Index.create`.
        cache: if the cache knows the recipe of the model, the model is loaded only when a text is embedded.
        texts: choose the model "auto". If they do not show a language, the default model is taken and stays open.

    Raises:
        BadInput: the settings do not fit the model.
        ModelError: the model cannot be loaded.
    """
    options = options or NewIndex()
    if (dimensions := options.dimensions) is not None:
        width = 0 if dimensions == "auto" else whole_number("dimensions", dimensions)
        if model is not None or (dimensions != "auto" and width < 1):
            raise BadInput('give either a model, or dimensions (1 or more, or "auto") of your own vectors')
        return _in_language(options.language, Settings(width)), None
    max_tokens, overlap = options.max_tokens, options.overlap
    if model == AUTO_MODEL:
        from indexer.languages.choice import choose_model

        model, reason = choose_model(texts) or (DEFAULT_MODEL, "")
        settings, encoder = settings_of_new(model, options, cache)
        is_open = None if reason else (max_tokens, overlap)
        return replace(settings, model_reason=reason, model_open=is_open), encoder
    model = _endpoint_spec(DEFAULT_MODEL if model is None else model, max_tokens, options.tokenizer)
    encoder = get_encoder(model, options.runtime, cache)
    recipe = model if isinstance(model, Recipe) else encoder.recipe
    limit = encoder.max_tokens
    if max_tokens is None and isinstance(model, RecipeSpec):
        max_tokens = model.max_tokens
    room = min(limit, DEFAULT_PASSAGE_TOKENS) if max_tokens is None else whole_number("max tokens", max_tokens)
    if room > limit:
        raise BadInput(f"max tokens {room} is over what {encoder.recipe.model} reads: {limit}")
    shared = PassageSettings.default_overlap(room) if overlap is None else whole_number("overlap", overlap)
    passages = PassageSettings(room, shared)
    return _in_language(options.language, Settings(recipe.dimensions, recipe, passages)), encoder


def _in_language(language: str | None, settings: Settings) -> Settings:
    """Return the settings of a new index with its language. Without a language, the first documents will decide it."""
    if language is None or is_auto(language):
        return replace(settings, language_open=True)
    return replace(settings, language=language)


def _endpoint_spec(
    model: str | PathLike[str] | Recipe | RecipeSpec | Encoder,
    max_tokens: int | None,
    tokenizer: str | PathLike[str] | None,
) -> str | PathLike[str] | Recipe | RecipeSpec | Encoder:
    """Return the model; if it has a loader, such as one behind an endpoint, with the tokenizer and the token limit that
    were given."""
    spec = RecipeSpec.parse(model) if isinstance(model, str) and scheme_of(model) else model
    if isinstance(spec, RecipeSpec) and scheme_of(spec.model):
        return replace(
            spec,
            max_tokens=spec.max_tokens if max_tokens is None else whole_number("max tokens", max_tokens),
            tokenizer=spec.tokenizer if tokenizer is None else fspath(tokenizer),
        )
    if isinstance(spec, RecipeSpec) and spec.input_type:
        problem = f"input_type is for endpoints, and {spec.model!r:.80} is not one: leave it out"
        raise BadInput(Message(problem, ", in the shell --input-type"))
    if tokenizer is not None:
        problem = "tokenizer is for endpoints, and this model has its own: leave it out"
        raise BadInput(Message(problem, ", in the shell --tokenizer"))
    return model
