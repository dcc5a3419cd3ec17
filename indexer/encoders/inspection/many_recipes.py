"""Several recipes over the same texts: rows for a file, of texts or of their tokens, a forward pass a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexer.encoders.checkpoint import Checkpoint
from indexer.encoders.inspection.tokens import Token, TokenReader, token_vectors, with_layers, word_vectors, words_of
from indexer.encoders.inspection.vector_files import Embedded
from indexer.encoders.load import encode_many
from indexer.encoders.port import Encoder, Role
from indexer.encoders.recipe import RecipeSpec
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import TextTooLong

Item = tuple[str | int, str]
"""id and text."""


def embed_texts(
    encoders: Mapping[str, Encoder], items: Sequence[Item], role: Role, truncate: bool, number: int = 0
) -> list[Embedded]:
    """A unit vector a text and recipe, texts in their order; `number` is that of the first.

    Raises:
        TextTooLong: a text is over a recipe's limit and `truncate` is False.
    """
    found = encode_many(list(encoders.values()), [text for _, text in items], role, truncate)
    return [
        Embedded(number + at, own, text, name, encoder.recipe, None, vectors[at])
        for at, (own, text) in enumerate(items)
        for (name, encoder), vectors in zip(encoders.items(), found, strict=True)
    ]


class TokenEmbedder:
    """Vectors of tokens, or of words, by several recipes: their hidden states, neither pooled nor normalised.

    Special tokens and the prompt's are rows like the others; of words, special tokens are none.
    """

    def __init__(self, encoders: Mapping[str, Encoder], role: Role, words: bool, trust_remote_code: bool) -> None:
        """Raises ModelError for an encoder that shows no hidden layers."""
        self._encoders = {name: with_layers(encoder) for name, encoder in encoders.items()}
        self._role, self._words = role, words
        self._groups: dict[int, list[str]] = {}
        for name, encoder in self._encoders.items():
            self._groups.setdefault(id(encoder.transformer), []).append(name)
        self._readers = {
            key: self._reader(self._encoders[names[0]], trust_remote_code) for key, names in self._groups.items()
        }

    def embed(self, items: Sequence[Item], truncate: bool, number: int = 0) -> list[Embedded]:
        """As `embed_texts`, with `vectors` (tokens, width) and their names."""
        rows: dict[tuple[int, str], Embedded] = {}
        for key, names in self._groups.items():
            group = [self._encoders[name] for name in names]
            recipe = group[0].recipe
            prompt = recipe.query_prompt if self._role == "query" else recipe.document_prompt
            texts = [prompt + text for _, text in items]
            read = self._read(self._readers[key], texts, truncate)
            for name, encoder, found in zip(names, group, token_vectors(group, read), strict=True):
                for at, (tokens, vectors) in enumerate(zip(read, found, strict=True)):
                    own, text = items[at]
                    if self._words:
                        words = words_of(tokens, texts[at])
                        labels, vectors = tuple(word.text for word in words), word_vectors(vectors, words)  # noqa: PLW2901
                    else:
                        labels = tuple(token.token for token in tokens)
                    rows[at, name] = Embedded(number + at, own, text, name, encoder.recipe, labels, vectors)
        return [rows[at, name] for at in range(len(items)) for name in self._encoders]

    @staticmethod
    def _reader(encoder: TorchEncoder, trust_remote_code: bool) -> TokenReader:
        spec = RecipeSpec(encoder.recipe.model, max_tokens=encoder.max_tokens)
        return TokenReader(Checkpoint(spec, trust_remote_code))

    @staticmethod
    def _read(reader: TokenReader, texts: Sequence[str], truncate: bool) -> list[list[Token]]:
        found = []
        for at, text in enumerate(texts):
            try:
                found.append(reader.read(text, truncate=truncate))
            except TextTooLong as error:
                raise TextTooLong(at, error.tokens, error.limit) from error
        return found
