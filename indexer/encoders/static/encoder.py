"""The encoder of static models (StaticEmbedding, model2vec, WordEmbeddings): a text's vectors of tokens, pooled. Numpy
alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexer.encoders.recipes.locate import weight_files
from indexer.encoders.recipes.port import Role, Tokenizing
from indexer.encoders.recipes.recipe import Pooling, Recipe
from indexer.encoders.tokens.batching import unit, unknown_token
from indexer.encoders.tokens.tokenizer import Ids, Tokenizer
from indexer.encoders.torch.weights import load_weights
from indexer.errors import ModelError
from indexer.records import Vector

BATCH_TOKENS = 65_536
"""Maximum tokens whose vectors are gathered together."""

_TYPES = {name: f"<{name[0].lower()}{int(name[1:]) // 8}" for name in ("F64", "F32", "F16", "I64", "I32", "I16", "I8")}
_TYPES |= {name: f"<u{int(name[1:]) // 8}" for name in ("U64", "U32", "U16", "U8")} | {"BOOL": "?"}
"""Types of numpy by their names in safetensors."""


@dataclass(frozen=True, slots=True)
class StaticEncoder(Tokenizing):
    """An `Encoder` of a table of vectors.

    Attributes:
        table: one row per token of the vocabulary (tokens, width), float32.
        poolings: one, or several whose vectors are concatenated.
        weights: a weight for each token (tokens,), as WordWeights has them; None if all weigh the same.
    """

    recipe: Recipe
    tokenizer: Tokenizer
    table: Vector
    poolings: tuple[Pooling, ...] = ("mean",)
    weights: Vector | None = None

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        rows = self.tokenizer.ids(texts, role, truncate)
        vectors = np.empty((len(rows), self.dimensions), np.float32)
        for start, end in _blocks(rows):
            for number in range(start, end):
                # No pooling of no row is defined: a text without a known token is reported by `unit`.
                try:
                    vectors[number] = self._pooled(rows[number]) if len(rows[number]) else 0
                except IndexError as error:
                    raise unknown_token(self.recipe.model) from error
            vectors[start:end] = unit(vectors[start:end], range(start, end), self.recipe.model)
        return vectors

    def _pooled(self, ids: Ids) -> Vector:
        """Return the vector of a text (dimensions,), computed as WordWeights and Pooling do."""
        rows = self.table[ids, : self.dimensions]
        places = np.arange(1, len(rows) + 1, dtype=np.float32)
        total, of_places = np.float32(len(rows)), places.sum()
        if self.weights is not None:
            weights = self.weights[ids]
            rows = rows * weights[:, None]
            # The library divides a sum over weighted places by the weights alone.
            total = of_places = max(weights.sum(), np.float32(1e-9))
        pooled: dict[Pooling, Callable[[], Vector]] = {
            "mean": lambda: rows.sum(0) / total,
            "mean_sqrt_len": lambda: rows.sum(0) / np.sqrt(total),
            "weighted_mean": lambda: places @ rows / of_places,
            "max": lambda: rows.max(0),
            "last": lambda: rows[-1],
        }
        return np.concatenate([pooled[pooling]() for pooling in self.poolings])[: self.dimensions]


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


def _mapped(file: Path) -> dict[str, Vector] | None:
    """Return the tensors of a safetensors file, of which only the rows that are used will be read.

    Returns:
        None if one of them has a type that numpy does not have.

    Raises:
        SafetensorError: the file is damaged.
    """
    from safetensors import safe_open

    with safe_open(file, framework="numpy"):
        pass  # The header was compared with the size of the file.
    content = np.memmap(file, np.uint8, "r")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    parts = json.loads(content[8:start].tobytes())
    parts.pop("__metadata__", None)
    if not {part["dtype"] for part in parts.values()} <= _TYPES.keys():
        return None
    tensors = {}
    for name, part in parts.items():
        begin, end = part["data_offsets"]
        typed = np.asarray(content[start + begin : start + end]).view(_TYPES[part["dtype"]])
        tensors[name] = typed.reshape(part["shape"])
    return tensors


def read_table(folder: Path) -> Vector:
    """Return one vector per token (tokens, width), float32, as StaticEmbedding, WordEmbeddings or model2vec have stored
    it. Only torch reads bfloat16 and pytorch_model.bin.

    model2vec may store eight-bit vectors, vectors that several tokens share, and a weight per token.

    Raises:
        ModelError: the weights are damaged.
    """
    from safetensors import SafetensorError

    file, weights = folder / "model.safetensors", None
    try:
        if weight_files(folder) == [file]:
            weights = _mapped(file)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"weights {file} cannot be read: they are damaged; fetch the model again") from error
    if weights is None:
        tensors = load_weights(folder).items()
        weights = {name: (part.float() if part.is_floating_point() else part).numpy() for name, part in tensors}
    for name in ("embedding.weight", "emb_layer.weight"):
        if name in weights:
            return np.asarray(weights[name], np.float32)
    if "embeddings" not in weights:
        raise ModelError(f"weights in {folder} hold no vectors of tokens: fetch the model again")
    table = np.asarray(weights["embeddings"], np.float32)
    if "mapping" in weights:
        table = table[weights["mapping"].astype(np.int64)]
    return table * np.asarray(weights["weights"], np.float32)[:, None] if "weights" in weights else table
