"""Workers behind the user's cache of vectors: only documents with a passage that the cache lacks go to them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np

from indexer.exchange import Embedded
from indexer.indexing.embedder import DEFAULT_WINDOW, Workers
from indexer.passages.cut import PassageSettings, cut, embedded_texts
from indexer.records import Document
from likewise.cache.cached_encoder import CachedEncoder


class CachedWorkers:
    """`Workers` that ask a cache first and fill it. Cutting needs the tokenizer alone, which the cache may have."""

    def __init__(self, workers: Workers, encoder: CachedEncoder, passages: PassageSettings, recipe: str) -> None:
        """Wrap workers that embed for an index whose recipe has this identity."""
        self._workers, self._encoder, self._passages, self._recipe = workers, encoder, passages, recipe
        self.window = getattr(workers, "window", DEFAULT_WINDOW)

    def submit(self, documents: Sequence[Document]) -> Future[list[Embedded]]:
        """Embed documents; those whose passages are all in the cache at once."""
        spans = cut(documents, self._encoder, self._passages)
        texts = [embedded_texts(document, own) for document, own in zip(documents, spans, strict=True)]
        rows = self._encoder.known([text for own in texts for text in own])
        ready = {
            number: Embedded(tuple(spans[number]), np.array([rows[text] for text in own]), self._recipe)
            for number, own in enumerate(texts)
            if own and all(text in rows for text in own)
        }
        missing = [number for number in range(len(documents)) if number not in ready]
        joined = Future[list[Embedded]]()

        def join(asked: Future[list[Embedded]]) -> None:
            try:
                embedded = dict(zip(missing, asked.result(), strict=True))
                self._keep([documents[number] for number in missing], [*embedded.values()])
                joined.set_result([ready.get(number) or embedded[number] for number in range(len(documents))])
            except Exception as error:  # noqa: BLE001 an error in a callback is only logged, and the run would hang
                joined.set_exception(error)

        if missing:
            self._workers.submit([documents[number] for number in missing]).add_done_callback(join)
        else:
            joined.set_result([ready[number] for number in range(len(documents))])
        return joined

    def _keep(self, documents: Sequence[Document], embedded: Sequence[Embedded]) -> None:
        pairs = zip(documents, embedded, strict=True)
        texts = [text for document, own in pairs for text in embedded_texts(document, own.spans)]
        if texts:
            self._encoder.keep(texts, np.concatenate([own.vectors for own in embedded if own.spans]))

    def close(self) -> None:
        self._workers.close()
