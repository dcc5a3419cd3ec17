"""An encoder that looks for vectors in the user's cache first. It belongs to indexing: questions never use it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from indexer.encoders import Encoder, Role
from indexer.encoders.machine.hardware import Precision
from indexer.encoders.recipes.port import Tokenizing, of_role
from indexer.encoders.tokens.batching import tell
from indexer.errors import NothingKnown, TextTooLong
from indexer.records import Vector
from indexer.stores.vectors import from_blobs, to_blobs
from likewise.cache.vector_cache import VectorCache


class CachedEncoder(Tokenizing):
    """The vectors of another encoder, as an index stores them: rounded to float16. Threads may share it."""

    def __init__(
        self,
        encoder: Encoder,
        cache: VectorCache,
        precision: Precision,
        ready: Callable[[Encoder], Encoder] = lambda encoder: encoder,
    ) -> None:
        """Wrap `encoder`.

        Args:
            precision: the requested precision. Vectors of two precisions are kept apart.
            ready: function that makes the encoder ready when a text must be embedded.
        """
        self.recipe, self.tokenizer = encoder.recipe, encoder
        self._encoder, self._cache, self._precision, self._ready = encoder, cache, precision, ready

    def of_role(self, role: Role) -> Encoder:
        """Return the encoder itself of texts of this role."""
        return of_role(self._encoder, role)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        """Return unit rows (texts, dimensions), float32 whose values are float16. Errors are the encoder's.

        Equal texts are encoded once.
        """
        keys = [self._key(text, role, truncate) for text in texts]
        blobs = {
            key: blob
            for key, blob in self._cache.get([*dict.fromkeys(keys)]).items()
            if len(blob) == 2 * self.dimensions
        }
        missing = {key: index for index, key in reversed(list(enumerate(keys))) if key not in blobs}
        tell(len(keys) - len(missing))
        if missing:
            order = sorted(missing.values())
            try:
                vectors = self._ready(self._encoder).encode([texts[index] for index in order], role, truncate)
            except NothingKnown as error:
                raise NothingKnown([order[place] for place in error.texts], self.recipe.model) from error
            except TextTooLong as error:
                raise TextTooLong(order[error.index], error.tokens, error.limit) from error
            new = {keys[index]: blob for index, blob in zip(order, to_blobs(vectors), strict=True)}
            self._cache.put(new)
            blobs |= new
        return from_blobs([blobs[key] for key in keys], self.dimensions)

    def known(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the cached rows (dimensions,) of those documents' texts that the cache has."""
        keys = {text: self._key(text, "document", False) for text in texts}
        blobs = self._cache.get([*dict.fromkeys(keys.values())])
        width = 2 * self.dimensions
        known = {text: blob for text, key in keys.items() if len(blob := blobs.get(key, b"")) == width}
        return dict(zip(known, from_blobs([*known.values()], self.dimensions), strict=True))

    def keep(self, texts: Sequence[str], rows: Vector) -> None:
        """Put the rows (texts, dimensions) of documents' texts, which were embedded elsewhere, into the cache."""
        keys = [self._key(text, "document", False) for text in texts]
        self._cache.put(dict(zip(keys, to_blobs(rows), strict=True)))

    def _key(self, text: str, role: Role, truncate: bool) -> bytes:
        """Return the hash of everything that decides a vector."""
        recipe = self.recipe.for_questions if role == "query" else self.recipe.for_documents
        prompt = recipe.query_prompt if role == "query" else recipe.document_prompt
        content = hashlib.sha256((prompt + text).encode("utf-8", "surrogatepass")).hexdigest()
        fields = [recipe.identity, role, truncate, self._precision, content]
        return hashlib.sha256(json.dumps(fields).encode()).digest()
