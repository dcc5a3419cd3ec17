"""Embedding the same texts, or their tokens, with several recipes, in one forward pass per model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexer.encoders.chain.many_encoders import encode_many
from indexer.encoders.recipes.port import Encoder, Role
from indexer.encoders.recipes.recipe import RecipeSpec
from indexer.encoders.torch.checkpoint import Checkpoint
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import TextTooLong
from likewise.inspection.hidden_states import require_layers, token_vectors, word_vectors
from likewise.inspection.tokens import Token, TokenReader, words_of
from likewise.inspection.vector_files import EmbeddedText

Item = tuple[str | int, str]
"""The id and the text of one record."""


def embed_texts(
    encoders: Mapping[str, Encoder], items: Sequence[Item], role: Role, truncate: bool
) -> list[EmbeddedText]:
    """Return one unit vector per text and recipe: all recipes of the first text come first.

    Args:
        encoders: encoders by the recipe as the caller wrote it.

    Raises:
        TextTooLong: a text is over a recipe's limit and `truncate` is False.
    """
    vectors_of = encode_many(list(encoders.values()), [text for _, text in items], role, truncate)
    return [
        EmbeddedText(item_id, text, name, None, vectors[index])
        for index, (item_id, text) in enumerate(items)
        for name, vectors in zip(encoders, vectors_of, strict=True)
    ]


class TokenEmbedder:
    """Embeds the tokens, or the words, of texts with several recipes: hidden states, neither pooled nor normalised.

    Special tokens and the prompt's tokens get rows too. Special tokens are not words.
    """

    def __init__(self, encoders: Mapping[str, Encoder], role: Role, words: bool, trust_remote_code: bool) -> None:
        """Prepare a reader of tokens per model.

        Args:
            encoders: encoders by the recipe as the caller wrote it.
            words: whether to give the mean of each word's tokens, and not each token.

        Raises:
            ModelError: the hidden layers of an encoder cannot be read.
        """
        self._encoders = {name: require_layers(encoder) for name, encoder in encoders.items()}
        self._role, self._words = role, words
        self._groups: dict[int, list[str]] = {}
        for name, encoder in self._encoders.items():
            self._groups.setdefault(id(encoder.transformer), []).append(name)
        self._readers = {
            key: self._reader(self._encoders[names[0]], trust_remote_code) for key, names in self._groups.items()
        }

    def embed(self, items: Sequence[Item], truncate: bool) -> list[EmbeddedText]:
        """Embed as `embed_texts` does, with one vector per token or word and their names."""
        rows: dict[tuple[int, str], EmbeddedText] = {}
        for key, names in self._groups.items():
            group = [self._encoders[name] for name in names]
            recipe = group[0].recipe
            prompt = recipe.query_prompt if self._role == "query" else recipe.document_prompt
            texts = [prompt + text for _, text in items]
            tokens_of = self._read(self._readers[key], texts, truncate)
            for name, vectors_of in zip(names, token_vectors(group, tokens_of), strict=True):
                for index, (tokens, vectors) in enumerate(zip(tokens_of, vectors_of, strict=True)):
                    item_id, text = items[index]
                    if self._words:
                        words = words_of(tokens, texts[index])
                        labels, vectors = tuple(word.text for word in words), word_vectors(vectors, words)  # noqa: PLW2901
                    else:
                        labels = tuple(token.token for token in tokens)
                    rows[index, name] = EmbeddedText(item_id, text, name, labels, vectors)
        return [rows[index, name] for index in range(len(items)) for name in self._encoders]

    @staticmethod
    def _reader(encoder: TorchEncoder, trust_remote_code: bool) -> TokenReader:
        spec = RecipeSpec(encoder.recipe.model, max_tokens=encoder.max_tokens, route=encoder.recipe.route)
        return TokenReader(Checkpoint(spec, trust_remote_code))

    @staticmethod
    def _read(reader: TokenReader, texts: Sequence[str], truncate: bool) -> list[list[Token]]:
        tokens = []
        for index, text in enumerate(texts):
            try:
                tokens.append(reader.read(text, truncate=truncate))
            except TextTooLong as error:
                raise TextTooLong(index, error.tokens, error.limit) from error
        return tokens
