"""Two models that every machine computes alike: a tiny BERT in a folder, for the shell, and an encoder of our own.

Of the BERT the layers add nothing: a text's vector is the mean of its words' rows, of +1 and -1, which every precision
holds exactly. Of the encoder a text's vector is looked up, or else the sum of its words' rows.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer import Recipe

WIDTH = 32
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [
    *("bread", "dough", "knead", "flour", "oven", "stale", "moon", "tide", "sea", "star", "sun", "light", "tea"),
    *("leaf", "water", "boil", "cat", "dog", "walk", "sleep", "bank", "river", "money", "the", "a", "of", "and", "."),
    *("to", "in", "is", "with", "loaf", "fresh", "pull", "shine", "cup", "hot", "run", "night", "tax", "fish", "red"),
]


def make_model(folder: Path) -> Path:
    """Write the tiny BERT, in the form of a sentence-transformers model, into a new folder."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    (folder / "1_Pooling").mkdir(parents=True)
    vocabulary = {word: at for at, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(_weights(len(vocabulary)), folder / "model.safetensors", {"format": "pt"})
    for name, content in _settings(len(vocabulary)).items():
        (folder / name).write_text(json.dumps(content))
    return folder


def _settings(words: int) -> dict[str, Any]:
    size = {"hidden_size": WIDTH, "intermediate_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2}
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    return {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": words,
            "max_position_embeddings": 64,
            "type_vocab_size": 2,
            "pad_token_id": 0,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            **size,
        },
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64},
        "sentence_bert_config.json": {"max_seq_length": 64, "do_lower_case": False},
        "1_Pooling/config.json": {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True},
        "modules.json": [
            {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{name}"}
            for at, (path, name) in enumerate(modules)
        ],
    }


def _weights(words: int) -> dict[str, NDArray[np.float32]]:
    random, half = np.random.default_rng(7), np.repeat([1, -1], WIDTH // 2).astype(np.float32)
    zeros, ones = np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32)
    square = np.zeros((WIDTH, WIDTH), np.float32)
    weights = {
        "embeddings.word_embeddings.weight": np.stack([random.permutation(half) for _ in range(words)]),
        "embeddings.position_embeddings.weight": np.zeros((64, WIDTH), np.float32),
        "embeddings.token_type_embeddings.weight": np.zeros((2, WIDTH), np.float32),
        "embeddings.LayerNorm.weight": ones,
        "embeddings.LayerNorm.bias": zeros,
        "pooler.dense.weight": square,
        "pooler.dense.bias": zeros,
    }
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        for part in (*(f"attention.self.{x}" for x in ("query", "key", "value")), "attention.output.dense"):
            weights |= {f"{layer}.{part}.weight": square, f"{layer}.{part}.bias": zeros}
        for part in ("intermediate.dense", "output.dense"):
            weights |= {f"{layer}.{part}.weight": square, f"{layer}.{part}.bias": zeros}
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            weights |= {f"{layer}.{part}.weight": ones, f"{layer}.{part}.bias": zeros}
    return {name: np.ascontiguousarray(value.copy()) for name, value in weights.items()}


@dataclass
class WordEncoder:
    """An encoder of one's own: what is not in `table` is the sum of its words' rows.

    Attributes:
        table: texts and their vectors.
        seen: every text that was embedded, in order.
    """

    recipe: Recipe = field(default_factory=lambda: Recipe("frozen-words", "5" * 64, WIDTH, 64))
    table: Mapping[str, Sequence[float]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    @property
    def dimensions(self) -> int:
        return self.recipe.dimensions

    @property
    def max_tokens(self) -> int:
        return self.recipe.max_tokens

    def overhead(self, role: str = "document") -> int:
        return 2

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        spans = [[match.span() for match in re.finditer(r"\w+|[^\w\s]", text)] for text in texts]
        return [np.array(each, np.int32).reshape(-1, 2) for each in spans]

    def encode(self, texts: Sequence[str], role: str = "document", truncate: bool = False) -> NDArray[np.float32]:
        self.seen.extend(texts)
        rows = np.array([self._row(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def _row(self, text: str) -> NDArray[np.float64]:
        if text in self.table:
            return np.array(self.table[text])
        words = [*re.findall(r"\w+|[^\w\s]", text.casefold())[: self.max_tokens - 2], ""]
        return np.sum([self._word(word) for word in words], axis=0)

    def _word(self, word: str) -> NDArray[np.float64]:
        return np.random.default_rng(zlib.crc32(word.encode())).normal(size=self.dimensions)
