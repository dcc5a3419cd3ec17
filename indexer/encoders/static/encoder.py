"""The encoder of static models (StaticEmbedding, model2vec): the mean of a text's vectors of tokens. Numpy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexer.encoders.recipes.locate import weight_files
from indexer.encoders.recipes.port import Role, Tokenizing
from indexer.encoders.recipes.recipe import Recipe
from indexer.encoders.tokens.batching import unit, unknown_token
from indexer.encoders.tokens.tokenizer import Ids, Tokenizer
from indexer.encoders.torch.weights import load_weights
from indexer.errors import ModelError
from indexer.records import Vector

BATCH_TOKENS = 65_536
"""Maximum tokens whose vectors are gathered together."""


@dataclass(frozen=True, slots=True)
class StaticEncoder(Tokenizing):
    """An `Encoder` of a table of vectors.

    Attributes:
        table: one row per token of the vocabulary (tokens, width), float32.
    """

    recipe: Recipe
    tokenizer: Tokenizer
    table: Vector

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        rows = self.tokenizer.ids(texts, role, truncate)
        vectors = np.empty((len(rows), self.dimensions), np.float32)
        for start, end in _blocks(rows):
            for number in range(start, end):
                # The mean of no row is not defined: a text without a known token is reported by `unit`.
                try:
                    gathered = self.table[rows[number], : self.dimensions]
                except IndexError as error:
                    raise unknown_token(self.recipe.model) from error
                vectors[number] = gathered.mean(0) if len(gathered) else 0
            vectors[start:end] = unit(vectors[start:end], range(start, end), self.recipe.model)
        return vectors


def _blocks(rows: Sequence[Ids]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last position of blocks of texts, so that a progress bar moves."""
    start = tokens = 0
    for number, row in enumerate(rows):
        tokens += len(row)
        if tokens >= BATCH_TOKENS:
            yield start, number + 1
            start, tokens = number + 1, 0
    if start < len(rows):
        yield start, len(rows)


def read_table(folder: Path) -> Vector:
    """Return one vector per token (tokens, width), float32, as StaticEmbedding or model2vec have stored it. Only torch
    reads bfloat16 and pytorch_model.bin.

    model2vec may store eight-bit vectors, vectors that several tokens share, and a weight per token.

    Raises:
        ModelError: the weights are damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file, weights = folder / "model.safetensors", None
    try:
        if weight_files(folder) == [file]:
            weights = load_file(file)
    except (TypeError, AttributeError, KeyError):
        pass  # Numpy has no bfloat16.
    except (SafetensorError, OSError) as error:
        raise ModelError(f"weights {file} cannot be read: they are damaged; fetch the model again") from error
    if weights is None:
        tensors = load_weights(folder).items()
        weights = {name: (part.float() if part.is_floating_point() else part).numpy() for name, part in tensors}
    if "embedding.weight" in weights:
        return np.asarray(weights["embedding.weight"], np.float32)
    if "embeddings" not in weights:
        raise ModelError(f"weights in {folder} hold no vectors of tokens: fetch the model again")
    table = np.asarray(weights["embeddings"], np.float32)
    if "mapping" in weights:
        table = table[weights["mapping"].astype(np.int64)]
    return table * np.asarray(weights["weights"], np.float32)[:, None] if "weights" in weights else table
