"""The first documents that an object writes: notes on the model, and the languages of their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from indexer.encoders.recipes.notes import model_notes
from indexer.errors import IndexDamaged
from indexer.indexing.embedding import BATCH_CHARACTERS
from indexer.listener import Listener
from indexer.records import Document
from indexer.settings import Settings
from indexer.stores.reading.store import Store

Update = Callable[[Settings], Settings]


class FirstDocuments:
    """The first documents of an open index, before they are embedded. Each note is given once, and to the listener
    too."""

    def __init__(self, store: Store, settings: Settings, listener: Listener, change: Callable[[Update], None]) -> None:
        """Begin with an index that is open. `change` changes its stored settings."""
        self._store, self._settings, self._listener, self._change = store, settings, listener, change
        self._is_model_noted = self._are_languages_read = self._is_judging = False
        self._was_empty: bool | None = None  # when the first documents came
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

    def read_languages(self, documents: Sequence[Document] = (), *, more_follow: bool = False) -> list[str]:
        """Detect the languages of the first documents and return notes. This is done once, because a sample is enough.

        The languages decide the language of a new index if the language was left to be detected. If the documents are
        too short, the next documents decide.

        Args:
            more_follow: whether a later call follows. The first call is then left to it if it has few documents.
        """
        if self._are_languages_read:
            return []
        from indexer.languages.detect import SAMPLE_TEXTS, languages_of, say_something
        from indexer.languages.notes import notes_on_texts, word_language

        with self._store.snapshot() as snapshot:
            stored = snapshot.settings
            if self._was_empty is None:
                self._was_empty = not snapshot.documents
        texts = [*self._texts, *(document.text for document in documents)]
        if more_follow and len(texts) < SAMPLE_TEXTS and sum(map(len, texts)) < BATCH_CHARACTERS:
            self._texts = texts
            return []
        self._texts = []
        if stored.language_open:
            with suppress(IndexDamaged):  # this run may be there to replace a damaged document
                stored_texts = {document.text: None for document in islice(self._store.iterate(), SAMPLE_TEXTS)}
                texts = [*dict.fromkeys(texts) | stored_texts]  # Parts of this run may be committed already.
        if not say_something(texts):
            return []
        self._are_languages_read = True
        shares = languages_of(texts)
        language = word_language(shares) if stored.language_open else stored.language
        if stored.language_open:
            self.settle_language(language)
        self._is_judging = bool(notes_on_texts(self._settings.recipe, language, shares))
        return self.judge_languages(shares) if self._was_empty else []

    def settle_language(self, language: str) -> None:
        """Store the language of an index without a language, unless another writer has stored one."""

        def settled(stored: Settings) -> Settings:
            return replace(stored, language=language, language_open=False) if stored.language_open else stored

        self._change(settled)

    def judge_languages(self, shares: Mapping[str, float] | None = None) -> list[str]:
        """Return notes on the languages of the whole index if those of its new documents ask for some.

        An index has them once: one text in another language is no reason to change the model for all.

        Args:
            shares: of the texts of the index; None to look at them.
        """
        if not self._is_judging:
            return []
        from indexer.languages.notes import languages_of_index, notes_on_texts

        self._is_judging = False
        with self._store.snapshot() as snapshot:
            stored, shares = snapshot.settings, shares or languages_of_index(snapshot)
        notes = [] if stored.language_noted else notes_on_texts(stored.recipe, stored.language, shares)
        if notes:
            self._change(lambda settings: replace(settings, language_noted=True))
        return self._told(notes)

    def _told(self, notes: list[str]) -> list[str]:
        for message in notes:
            self._listener.note(message)
        return notes
