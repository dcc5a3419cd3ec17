"""Seeing inside a model: the tokens it reads of a text, and a vector for each token or word.

What a model's files hold is in model_card.py; one vector per text is torch/encoder.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.encoders.batching import batches
from indexer.encoders.checkpoint import Checkpoint
from indexer.encoders.locate import read_json
from indexer.encoders.port import Encoder
from indexer.encoders.recipe import RecipeSpec
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import _WHERE_UNLIMITED
from indexer.encoders.torch.pooling import Packed, combine_layers
from indexer.errors import BadInput, ModelError, TextTooLong
from indexer.records import Vector

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the model reads it.

    Attributes:
        token: its name in the vocabulary (`##ber`, `Ġbank`, `[CLS]`).
        id: its number there.
        segment: 0, or 1 in the second text of a pair where the model tells the two apart.
        mask: 1, the model attends to it; only padding would have 0.
        text: what it stands for; empty for a special token.
        start, end: of `text`, in code points of its own text.
        sequence: 0, or 1 in the second text of a pair, whatever the model makes of it; None for a special token.
        word: number of its word over both texts; None for a special token.
    """

    token: str
    id: int
    segment: int
    mask: int
    text: str
    start: int
    end: int
    sequence: int | None
    word: int | None


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the tokenizer splits a text, before it is cut into pieces: its text and its tokens' positions."""

    text: str
    positions: tuple[int, ...]


class TokenReader:
    """A model's tokenizer with its template for one text and for a pair. Loads no weights."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        import tokenizers

        place = checkpoint.transformer
        self._special = place is not None  # static embeddings read no special tokens
        self.limit = token_limit(checkpoint)
        config = read_json((place or checkpoint.folder) / "config.json", {})
        # A tokenizer may number segments that its model has no embeddings for, as DistilBERT's and MPNet's do.
        self._segments = config.get("type_vocab_size", 2 if config.get("model_type") == "bert" else 1) > 1
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(checkpoint.tokenizer_json(place or checkpoint.folder))
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"tokenizer.json cannot be read ({error}): fetch the model again") from error
        self._tokenizer.no_padding()

    def read(self, text: str, pair: str | None = None, truncate: bool = False) -> list[Token]:
        """Tokens of a text, or of a pair, with the special tokens around them. No prompt is added.

        Raises:
            BadInput: a text that is empty or only whitespace.
            TextTooLong: more tokens than the model reads, and `truncate` is False.
        """
        texts = [text] if pair is None else [text, pair]
        for number, each in enumerate(texts):
            if not each or each.isspace():
                raise BadInput(f"text {number + 1} is empty: it has no tokens")
        if truncate:
            self._tokenizer.enable_truncation(self.limit)
        else:
            self._tokenizer.no_truncation()
        found = self._tokenizer.encode(text, pair, add_special_tokens=self._special)
        if len(found.ids) > self.limit:
            raise TextTooLong(0, len(found.ids), self.limit)
        words: dict[tuple[int, int], int] = {}
        tokens = []
        for at, number in enumerate(found.ids):
            start, end = found.offsets[at]
            segment = found.type_ids[at] if self._segments else 0
            sequence, word = found.sequence_ids[at], found.word_ids[at]
            covered, place = "", None
            if sequence is not None and word is not None:
                covered = texts[sequence][start:end].strip()
                place = words.setdefault((sequence, word), len(words))
            name, mask = found.tokens[at], found.attention_mask[at]
            tokens.append(Token(name, number, segment, mask, covered, start, end, sequence, place))
        return tokens


def words_of(tokens: Sequence[Token], *texts: str) -> list[Word]:
    """The words of a text, or of a pair, in order; special tokens belong to none."""
    found = []
    for word, members in groupby(enumerate(tokens), key=lambda item: item[1].word):
        group = list(members)
        first, last = group[0][1], group[-1][1]
        if word is not None and first.sequence is not None:
            text = texts[first.sequence][first.start : last.end].strip()
            found.append(Word(text, tuple(at for at, _ in group)))
    return found


def word_vectors(vectors: Vector, words: Sequence[Word]) -> Vector:
    """Vectors of tokens (tokens, width) into their words' means (words, width)."""
    means = [vectors[list(word.positions)].mean(0) for word in words]
    return np.array(means, np.float32).reshape(-1, vectors.shape[1])


def token_vectors(encoders: Sequence[TorchEncoder], texts: Sequence[Sequence[Token]]) -> list[list[Vector]]:
    """Vectors (tokens, width) of each text for each encoder, from one forward pass of their common transformer.

    They are hidden states of the encoder's layers, combined as it combines them; nothing is pooled or
    normalised. width is the hidden size, times the number of layers where they are concatenated.

    Raises:
        ModelError: the model gives numbers that are not finite.
    """
    import torch

    first = encoders[0]
    wanted = sorted({layer for encoder in encoders for layer in encoder.head.layers})
    rows = [np.array([token.id for token in tokens], np.int32) for tokens in texts]
    found: list[list[Any]] = [[None] * len(rows) for _ in encoders]
    paired = [any(token.segment for token in tokens) for tokens in texts]
    groups = [[index] for index, pair in enumerate(paired) if pair]
    lone = [index for index, pair in enumerate(paired) if not pair]
    groups += [[lone[at] for at in group] for group in batches([rows[index] for index in lone], first.batch_tokens)]
    for group in groups:
        with torch.inference_mode():
            if paired[group[0]]:
                states = _pair_states(first, texts[group[0]], wanted)
            else:
                ids = torch.from_numpy(np.concatenate([rows[index] for index in group])).long()
                states = first.transformer.states(Packed(ids, [(1, len(rows[index])) for index in group]), wanted)
            for encoder, out in zip(encoders, found, strict=True):
                combined = combine_layers([states[layer] for layer in encoder.head.layers], encoder.head.combine)
                if not torch.isfinite(combined).all():
                    raise ModelError(f"model {first.recipe.model!r} gave numbers that are not finite: fetch it again")
                parts = torch.split(combined.float().cpu(), [len(rows[index]) for index in group])
                for index, part in zip(group, parts, strict=True):
                    out[index] = part.numpy()
    return found


def with_layers(encoder: Encoder) -> TorchEncoder:
    """The encoder, as one whose hidden layers can be seen. Raises ModelError for any other."""
    if not isinstance(encoder, TorchEncoder):
        raise ModelError(f"{encoder.recipe} shows no hidden layers: choose a model that is a transformer")
    return encoder


def token_limit(checkpoint: Checkpoint) -> int:
    """Tokens that the model reads of one text, special tokens counted. Reads configuration files alone."""
    place = checkpoint.transformer
    if place is None:
        return checkpoint.spec.max_tokens or _WHERE_UNLIMITED
    config = read_json(place / "config.json", {})
    positions = int(config.get("max_position_embeddings") or 2**20)
    if config.get("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= int(config.get("pad_token_id", 1) or 0) + 1  # those count from behind the padding id
    return checkpoint.limit(place, positions)


def _pair_states(encoder: TorchEncoder, tokens: Sequence[Token], wanted: Sequence[int]) -> dict[int, torch.Tensor]:
    """Hidden states of a pair, by transformers itself: likewise's own forward pass knows segment 0 alone."""
    import torch
    from transformers import AutoModel

    from indexer.encoders.torch.automodel import quiet

    folder: Path | None = Checkpoint(RecipeSpec(encoder.recipe.model), False).transformer
    with quiet():
        model = AutoModel.from_pretrained(folder, dtype=encoder.transformer.dtype, local_files_only=True).eval()
    ids, segments = ([[getattr(token, name) for token in tokens]] for name in ("id", "segment"))
    states = model(
        input_ids=torch.tensor(ids), token_type_ids=torch.tensor(segments), output_hidden_states=True
    ).hidden_states
    return {layer: states[layer][0] for layer in wanted}
