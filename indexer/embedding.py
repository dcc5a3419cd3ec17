"""Documents cut into passages and embedded together, and what a new index is to be: its encoder and its settings.

What is compared with the index and committed is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Literal

import numpy as np

from indexer.encoders import Encoder, Recipe, RecipeSpec, load_with_recipe, steady
from indexer.encoders.locate import DEFAULT_MODEL
from indexer.encoders.runtime import Runtime
from indexer.errors import BadInput, NothingKnown, TextTooLong
from indexer.notes import Note
from indexer.passages import PassageSettings, cut, embedded, usual_overlap, whole
from indexer.records import Document, Span, Vector
from indexer.settings import Settings

BATCH_CHARACTERS = 512 * 1024
"""Characters embedded and committed together: a few seconds of work, and bounded memory."""

FIT_BATCH_CHARACTERS = 16 * 1024 * 1024
"""Characters of the first batch where something is to be fitted: about FIT_SAMPLE_PASSAGES passages."""

FIT_SAMPLE_PASSAGES = 20_000
"""Passages that post-processing is fitted to, at most."""


class Embedding:
    """Cuts by an encoder's own tokens and embeds with it."""

    def __init__(self, settings: PassageSettings) -> None:
        self._settings = settings
        self._slack = 0
        self._calibrated = False

    def embed(
        self, encoder: Encoder, documents: Sequence[Document], *, note: Note
    ) -> list[tuple[tuple[Span, ...], Vector]]:
        """Return the passages of each document with their vectors (passages, dimensions); all are encoded together.

        Args:
            note: is told that the runtime that was asked for, or chosen, cannot be used.
        """
        if not documents:
            return []
        from indexer.encoders.documents import for_documents

        unknown: set[str] = set()
        while True:
            spans = cut(documents, encoder, self._settings, self._slack)
            if unknown:
                spans = [_known(document, own, unknown) for document, own in zip(documents, spans, strict=True)]
            texts = _texts(documents, spans)
            try:
                if not self._calibrated:
                    from indexer.encoders import calibrate_int8

                    calibrate_int8(encoder, texts)
                    self._calibrated = True
                tokens = sum(span.tokens for own in spans for span in own)
                vectors = for_documents(encoder, tokens, note=note).encode(texts, role="document")
                break
            except NothingKnown as error:
                if unknown or len(error.texts) == len(texts) > 1:  # then it is the model that is broken
                    raise
                unknown.update(texts[at] for at in error.texts)
            except TextTooLong as error:
                # Joined to its prefix a text can be a token or two longer than its parts; leave that much free.
                if self._slack >= self._settings.max_tokens // 4:
                    raise
                self._slack += error.tokens - error.limit
        ends = np.cumsum([len(own) for own in spans])[:-1]
        return [(tuple(own), rows) for own, rows in zip(spans, np.split(vectors, ends), strict=True)]

    def sample(self, encoder: Encoder, documents: Sequence[Document]) -> Vector:
        """Vectors of at most FIT_SAMPLE_PASSAGES passages, spread evenly over the documents.

        Never of another runtime: what is fitted to them is applied to this one's.
        """
        encoder = steady(encoder)
        texts = _texts(documents, cut(documents, encoder, self._settings, self._slack))
        some = texts[:: -(-len(texts) // FIT_SAMPLE_PASSAGES) or 1]
        try:
            return encoder.encode(some, role="document", truncate=True)
        except NothingKnown as error:
            known = [text for at, text in enumerate(some) if at not in set(error.texts)]
            return encoder.encode(known, role="document", truncate=True)


def _known(document: Document, spans: Sequence[Span], unknown: set[str]) -> list[Span]:
    return [span for span in spans if embedded(document, span) not in unknown]


def _texts(documents: Sequence[Document], spans: Sequence[Sequence[Span]]) -> list[str]:
    return [embedded(document, span) for document, own in zip(documents, spans, strict=True) for span in own]


def settings_of_new(
    model: str | PathLike[str] | Recipe | RecipeSpec | Encoder | None,
    *,
    dimensions: int | Literal["auto"] | None = None,
    max_tokens: int | None = None,
    overlap: int | None = None,
    language: str = "en",
    runtime: Runtime | None = None,
) -> tuple[Settings, Encoder | None]:
    """The settings of an index that is to be made, and its encoder; arguments are those of `Index.create`.

    Raises:
        BadInput: the settings do not fit the model.
        ModelError: the model cannot be loaded.
    """
    if dimensions is not None:
        width = 0 if dimensions == "auto" else whole("dimensions", dimensions)
        if model is not None or (dimensions != "auto" and width < 1):
            raise BadInput('give either a model, or dimensions (1 or more, or "auto") of your own vectors')
        return Settings(width, language=language), None
    encoder, recipe = load_with_recipe(DEFAULT_MODEL if model is None else model, runtime or Runtime())
    limit = encoder.max_tokens
    if (room := limit if max_tokens is None else whole("max tokens", max_tokens)) > limit:
        raise BadInput(f"max tokens {room} is over what {encoder.recipe.model} reads: {limit}")
    passages = PassageSettings(room, whole("overlap", overlap) if overlap is not None else usual_overlap(room))
    return Settings(recipe.dimensions, recipe, passages, language), encoder
