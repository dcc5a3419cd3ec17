"""The table of architectures: each gives the vectors of sentence-transformers, alone, in a batch and compiled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.architectures import ARCHITECTURES, make_folder
from indexer.encoders import load_encoder
from indexer.encoders.machine.hardware import choose_dtype
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.errors import TextTooLong
from likewise.speed.compilation.export import compile_encoder
from likewise.speed.compilation.graph import NotCompilable

QUICK = ("t5",)
"""Architectures of the default suite: an encoder of two."""

SLOW = ("bert", "roberta", "distilbert", "mpnet", "modernbert", "xlnet", "gemma3_text", "llama", "qwen3")
"""Those of the slow suite, of the kinds of models that are published most; all others are long."""

WINDOWS = ("gemma3_text", "mistral")
"""More architectures whose tokens attend to a window of their neighbours."""

NOT_COMPILED = {
    "convbert",
    "fnet",
    "funnel",
    "mobilebert",
    "mra",
    "nystromformer",
    "xlnet",
    "flaubert",
    "xlm",
    "longformer",
}
"""Architectures whose vectors depend on padding, or that OpenVINO's frontend does not read: torch answers."""


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow if name in SLOW else pytest.mark.long)
        for name in ARCHITECTURES
    ],
)
def test_every_architecture_gives_the_vectors_of_sentence_transformers(
    name: str, tmp_path: Path, sentences: list[str]
) -> None:
    folder = make_folder(name, tmp_path / name)
    prompts = {"query": "query: ", "document": "passage: "}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    # Special tokens in a text, a text at the limit, texts of one token and of many lengths.
    texts = [*sentences, "a [SEP] [PAD] [MASK] b", "word " * 124, "a", "\u00df \u6771\u4eac \U0001f600", "bank " * 60]
    encoder = load_encoder(folder, precision="float32", max_tokens=128)
    theirs = SentenceTransformer(str(folder), device="cpu")
    # transformers changes tokenizer.json for some architectures, such as qwen2, whose published tokenizer is another.
    theirs.tokenizer._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.max_seq_length, theirs.prompts = 128, prompts
    wanted = np.concatenate([theirs.encode_document([text], normalize_embeddings=True) for text in texts])
    together = encoder.encode(texts)
    assert np.abs(together - wanted).max() < 1e-4
    question = theirs.encode_query([texts[0]], normalize_embeddings=True)
    assert np.abs(encoder.encode([texts[0]], "query") - question).max() < 1e-4
    with pytest.raises(TextTooLong):
        encoder.encode(["word " * 125])
    assert np.abs(encoder.encode(["word " * 125], truncate=True) - wanted[7]).max() < 1e-4
    last = load_encoder(folder, pooling="last", precision="float32", max_tokens=128)
    alone = np.concatenate([last.encode([text]) for text in texts])  # without padding
    assert np.abs(last.encode(texts) - alone).max() < 1e-4
    try:
        compile_encoder(encoder, tmp_path / "compiled", "float32")
    except NotCompilable:  # Graphs of these may also be close enough to torch's, and are then used.
        assert name in NOT_COMPILED
        return
    assert np.abs(CompiledEncoder.open(tmp_path / "compiled").encode(texts) - wanted).max() < 1e-4


@pytest.mark.parametrize("name", ["modernbert", *(pytest.param(name, marks=pytest.mark.slow) for name in WINDOWS)])
def test_a_window_that_holds_only_padding_makes_nothing_of_a_text_not_a_number(name: str, tmp_path: Path) -> None:
    folder = make_folder(name, tmp_path / name, {**ARCHITECTURES[name][1], "max_position_embeddings": 4096})
    encoder = load_encoder(folder, pooling="last", precision="float32", max_tokens=3000)
    lengths = [1, 2, 15, 16, 17, 50, 150, 300, 2998]
    rows = encoder.encode(["word " * length for length in lengths])
    alone = np.concatenate([encoder.encode(["word " * length]) for length in lengths[:-1]])
    assert np.isfinite(rows).all()
    assert np.abs(rows[:-1] - alone).max() < 1e-4


def test_hidden_states_that_float16_does_not_hold_are_computed_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    wide = ("gemma", "gemma2", "gemma3", "gemma3_text", "qwen2", "qwen3", "llama", "mistral", "t5")
    assert {choose_dtype("auto", "cuda:0", name) for name in wide} == {torch.float32}
    assert choose_dtype("auto", "cuda:0", "bert") == torch.float16
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert {choose_dtype("auto", "cuda:0", name) for name in (*wide[:-1], "bert")} == {torch.bfloat16}
