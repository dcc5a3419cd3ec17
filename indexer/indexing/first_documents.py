"""The first documents that an object writes: notes on the model, and the languages of their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from indexer.encoders.recipes.notes import model_notes
from indexer.errors import IndexDamaged
from indexer.indexing.embedding import BATCH_CHARACTERS
from indexer.listener import Listener
from indexer.records import Document
from indexer.settings import Settings
from indexer.stores.reading.store import Store


class FirstDocuments:
    """The first documents of an open index, before they are embedded. Each note is given once, and to the listener
    too."""

    def __init__(self, store: Store, settings: Settings, listener: Listener) -> None:
        self._store, self._settings, self._listener = store, settings, listener
        self._is_model_noted = self._are_languages_read = False
        self._texts: list[str] = []  # of documents whose languages are read together with later documents

    def model_notes(self) -> list[str]:
        """Return notes about the model if the index is new."""
        recipe, passages = self._settings.recipe, self._settings.passages
        if self._is_model_noted or recipe is None or passages is None:
            return []
        self._is_model_noted = True
        with self._store.snapshot() as snapshot:
            is_new = not snapshot.passages
        return self._told(model_notes(recipe, passages.max_tokens)) if is_new else []

    def read_languages(
        self, documents: Sequence[Document], *, more_follow: bool, settle: Callable[[str], None]
    ) -> list[str]:
        """Detect the languages of the first documents and return notes. This is done once, because a sample is enough.

        The languages decide the language of a new index if the language was left to be detected. If the documents are
        too short, the next documents decide.

        Args:
            more_follow: whether a later call follows. The first call is then left to it if it has few documents.
            settle: stores the language of the index.
        """
        if self._are_languages_read:
            return []
        from indexer.languages.detect import SAMPLE_TEXTS, languages_of, say_something
        from indexer.languages.notes import other_language_note, unread_note, word_language

        texts = [*self._texts, *(document.text for document in documents)]
        if more_follow and len(texts) < SAMPLE_TEXTS and sum(map(len, texts)) < BATCH_CHARACTERS:
            self._texts = texts
            return []
        self._texts = []
        with self._store.snapshot() as snapshot:
            stored = snapshot.settings
        if stored.language_open:
            with suppress(IndexDamaged):  # this run may be there to replace a damaged document
                stored_texts = {document.text: None for document in islice(self._store.iterate(), SAMPLE_TEXTS)}
                texts = [*dict.fromkeys(texts) | stored_texts]  # Parts of this run may be committed already.
        if not say_something(texts):
            return []
        self._are_languages_read = True
        shares = languages_of(texts)
        other = None
        if stored.language_open:
            settle(word_language(shares))
        else:
            other = other_language_note(stored.language, shares)
        unread = unread_note(self._settings.recipe, shares) if self._settings.recipe is not None else None
        return self._told([message for message in (unread, other) if message is not None])

    def _told(self, notes: list[str]) -> list[str]:
        for message in notes:
            self._listener.note(message)
        return notes
