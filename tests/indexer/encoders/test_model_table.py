"""The table of architectures: each gives the vectors of sentence-transformers, alone, in a batch and compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tokenizers
from sentence_transformers import SentenceTransformer

from benchmarks.architectures import ARCHITECTURES, make_folder
from indexer.encoders import load_encoder
from indexer.encoders.compilation.export import compile_encoder
from indexer.encoders.compilation.graph import NotCompilable
from indexer.encoders.openvino.encoder import CompiledEncoder

QUICK = ("modernbert", "t5", "gemma3_text")
"""Architectures of the default suite: windows of padding, an encoder of two, masks that were not traced."""

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
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)
def test_every_architecture_gives_the_vectors_of_sentence_transformers(
    name: str, tmp_path: Path, sentences: list[str]
) -> None:
    folder = make_folder(name, tmp_path / name)
    # Special tokens in a text, a text at the limit, texts of one token and of many lengths.
    texts = [*sentences, "a [SEP] [PAD] [MASK] b", "word " * 126, "a", "\u00df \u6771\u4eac \U0001f600", "bank " * 60]
    encoder = load_encoder(folder, precision="float32", max_tokens=128)
    theirs = SentenceTransformer(str(folder), device="cpu")
    # transformers changes tokenizer.json for some architectures, such as qwen2, whose published tokenizer is another.
    theirs.tokenizer._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.max_seq_length = 128
    wanted = np.concatenate([theirs.encode([text], normalize_embeddings=True) for text in texts])
    together = encoder.encode(texts)
    assert np.abs(together - wanted).max() < 1e-4
    assert np.abs(encoder.encode(["word " * 127], truncate=True) - wanted[7]).max() < 1e-4
    try:
        compile_encoder(encoder, tmp_path / "compiled", "float32")
    except NotCompilable:  # Graphs of these may also be close enough to torch's, and are then used.
        assert name in NOT_COMPILED
        return
    assert np.abs(CompiledEncoder.open(tmp_path / "compiled", None).encode(texts) - wanted).max() < 1e-4
