"""Small randomly initialised models on disk, each with a real tokenizer for a few sentences."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = [
    "After stealing money from the bank vault, the bank robber was seen fishing on the river bank.",
    "A man is playing a large flute.",
    "Two dogs run through the snow while a third one watches them from the porch of the house.",
    "Vaccines train the immune system.",
    "short",
    "Why do some stars explode at the end of their lives, and others fade away slowly over time?",
]


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    return SENTENCES


@pytest.fixture(scope="session")
def evaluation_data() -> Path:
    """The folder of real data sets; tests that read it are skipped where it is not set."""
    if "LIKEWISE_EVAL_DATA" not in os.environ:
        pytest.skip("LIKEWISE_EVAL_DATA is not set")
    return Path(os.environ["LIKEWISE_EVAL_DATA"])


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model by architecture: bert, roberta, distilbert or mpnet."""
    made: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = _make(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return folder


@pytest.fixture(scope="session")
def static_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a static model, which a process loads without torch: a random row for each of its words."""
    folder = tmp_path_factory.mktemp("static")
    words = ["[PAD]", "[UNK]", *(f"word{number}" for number in range(300))]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    rows = np.random.default_rng(3).normal(size=(len(words), 24)).astype(np.float32)
    save_file({"embeddings": rows}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    kinds = {"": "StaticEmbedding", "1_Normalize": "Normalize"}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def _make(kind: str, folder: Path) -> Path:
    import torch
    import transformers

    tokenizer = _byte_pairs() if kind == "roberta" else _word_pieces()
    tokenizer.save(str(folder / "tokenizer.json"))
    size = {"vocab_size": tokenizer.get_vocab_size(), "pad_token_id": tokenizer.token_to_id("[PAD]") or 0}
    usual = size | {
        "hidden_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 96,
        "max_position_embeddings": 64,
    }
    torch.manual_seed(7)
    if kind == "bert":
        model = transformers.BertModel(transformers.BertConfig(**usual))
    elif kind == "roberta":
        usual |= {"pad_token_id": 1, "max_position_embeddings": 66, "type_vocab_size": 1}
        model = transformers.RobertaModel(transformers.RobertaConfig(**usual))
    elif kind == "mpnet":
        model = transformers.MPNetModel(transformers.MPNetConfig(**(usual | {"pad_token_id": 1})))
    else:
        names = {"dim": 48, "n_layers": 4, "n_heads": 4, "hidden_dim": 96, "max_position_embeddings": 64}
        model = transformers.DistilBertModel(transformers.DistilBertConfig(**size, **names))
    for parameter in model.parameters():  # larger than the usual start, so that layers and tokens differ
        torch.nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else None
    model.save_pretrained(folder)
    return folder


def _word_pieces() -> Tokenizer:
    """Return a tokenizer that knows the words and the letters of SENTENCES.

    It is not trained: WordPieceTrainer learns other pieces in every process, so that a model has other vectors, and one
    model in fifty was so sensitive to rounding that it could not be compiled.
    """
    words = sorted(set(re.findall(r"[a-z]+|[^a-z ]", " ".join(SENTENCES).lower())))
    letters = sorted(set("".join(words)))
    pieces = dict.fromkeys(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters), *words]
    )
    tokenizer = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.enable_truncation(8)  # as some published files do: it must not be obeyed silently
    tokenizer.enable_padding(length=8)
    return tokenizer


def _byte_pairs() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer
