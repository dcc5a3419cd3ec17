"""Word embeddings: the vectors of sentence-transformers from numpy, for texts of every odd kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, WordEmbeddings, WordWeights
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

from indexer import Document, Index
from indexer.encoders import load, load_encoder
from indexer.encoders.registry import registered
from indexer.encoders.static.encoder import StaticEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.errors import ModelError, NothingKnown, TextTooLong

FLOAT32 = 5e-6
VOCABULARY = [
    "PADDING_TOKEN",
    "bread",
    "river",
    "Moon",
    "moon",
    "U.S.",
    "don't",
    "straße",
    "東京",
    "the",
    "stale",
    "C++",
    "-",
]
VOCABULARY += ["i̇stanbul", "москва", "", "river's"]
ODD = [
    "bread river",
    "  stale\t\tmoon\r\n bread\u00a0river\u3000moon  ",
    "(bread), \"river\"! -- 'Moon'... [stale]?",
    "BREAD River MOON moon Stale",
    "the U.S. don't U.S.! C++ c++ - -- the The (the)",
    "bread unknown river Unknown!",
    "Straße STRASSE straße 東京 東京。 İstanbul МОСКВА Москва,",
    "river's «bread» “bread” bread—river bread-river moon",
    "... --- !!! bread",
    "bread " * 300 + "moon",
    "stale moon \U0001f600 e\u0301 \u200bbread",
]
UNKNOWN = ["zzz", "the the", "東"]
MODES: list[Any] = [
    "mean",
    "max",
    "mean_sqrt_len_tokens",
    "weightedmean",
    "lasttoken",
    ["mean", "max"],
    ["lasttoken", "mean", "weightedmean"],
]


def made(
    folder: Path, mode: Any = "mean", weights: bool = False, lower: bool = False, **settings: Any
) -> SentenceTransformer:
    """Save a model of word embeddings in `folder`, and return it."""
    vectors = torch.randn(len(VOCABULARY), 16, generator=torch.Generator().manual_seed(3))
    tokenizer = WhitespaceTokenizer(VOCABULARY, stop_words=["the", "---"], do_lower_case=lower)
    modules: list[Any] = [WordEmbeddings(tokenizer, vectors, **settings)]
    if weights:
        modules.append(WordWeights(VOCABULARY, {"bread": 0.2, "moon": 3.5, "u.s.": 0.001}, 0.7))
    modules += [Pooling(16, mode), Normalize()]
    model = SentenceTransformer(modules=modules, prompts={"query": "moon: ", "document": "("}, device="cpu")
    model.save(str(folder))
    return model


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_words_have_the_vectors_of_sentence_transformers(mode: Any, weights: bool, lower: bool, tmp_path: Path) -> None:
    theirs = made(tmp_path, mode, weights, lower)
    encoder = load_encoder(tmp_path)
    assert isinstance(encoder, StaticEncoder)
    assert np.abs(encoder.encode(ODD) - theirs.encode_document(ODD)).max() < FLOAT32
    assert np.abs(encoder.encode(ODD, "query") - theirs.encode_query(ODD)).max() < FLOAT32
    shorter = load_encoder(tmp_path, dimensions=5).encode(ODD)
    assert np.abs(shorter - theirs.encode_document(ODD, truncate_dim=5, normalize_embeddings=True)).max() < FLOAT32


def test_the_words_of_random_texts_are_those_of_the_library(tmp_path: Path) -> None:
    made(tmp_path)
    library = WhitespaceTokenizer.load(str(tmp_path))
    tokenizer = load_encoder(tmp_path).tokenizer  # type: ignore[attr-defined]
    random = np.random.default_rng(5)
    pieces = [*VOCABULARY, *"\n\t .,'!-(\"", "THE", "---", "İ", "\u2028", "\x1c", "\u0301", "Bread", "zzz"]
    for _ in range(2000):
        text = "x" + "".join(random.choice(pieces, random.integers(1, 12)))
        assert tokenizer.ids([text], "query")[0].tolist() == library.tokenize("moon: " + text)


def test_the_limit_counts_known_words_and_stays_in_the_recipe(tmp_path: Path) -> None:
    theirs = made(tmp_path, max_seq_length=6)
    encoder = load_encoder(tmp_path)
    assert (encoder.max_tokens, encoder.overhead()) == (6, 1)
    known = "moon zzz river, zzz zzz! zzz the stale bread"
    long = f"{known} moon river bread"
    assert np.abs(encoder.encode([known]) - theirs.encode_document([known])).max() < FLOAT32
    with pytest.raises(TextTooLong) as caught:
        encoder.encode([known, long])
    assert (caught.value.index, caught.value.tokens, caught.value.limit) == (1, 7, 6)
    assert np.abs(encoder.encode([long], truncate=True) - theirs.encode_document([long])).max() < FLOAT32
    with pytest.raises(ModelError, match="reads at most 6 tokens, not 7"):
        load_encoder(tmp_path, max_tokens=7)


def test_a_text_without_known_words_is_named_as_by_the_library_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    encoder = load_encoder(tmp_path)
    monkeypatch.setattr(load, "_load_words", lambda *_: None)
    fallback = load_encoder(tmp_path)
    assert isinstance(fallback, SentenceTransformerEncoder)
    assert fallback.recipe == encoder.recipe
    texts = ["bread", *UNKNOWN, "moon"]
    for one in (encoder, fallback):
        with pytest.raises(NothingKnown) as caught:
            one.encode(texts)
        assert caught.value.texts == (1, 2, 3)
    for ours, before in zip(encoder.offsets(ODD), fallback.offsets(ODD), strict=True):
        assert ours.tolist() == before.tolist()


def test_an_index_of_the_library_itself_is_searched_and_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "model")
    texts = ["stale bread", "the moon over the river"]
    with monkeypatch.context() as patch:
        patch.setattr(load, "_load_words", lambda *_: None)
        with Index.create(tmp_path / "x.index", tmp_path / "model") as index:
            index.add([Document(text, text) for text in texts[:1]])
            recipe = index.recipe
    with registered(alone=True), Index.open(tmp_path / "x.index") as index:
        added = index.add([Document(text, text) for text in texts])
        assert index.recipe == recipe
        assert (added.added, added.unchanged) == ((texts[1],), (texts[0],))
    program = f"""
import sys
from search import Searcher
with Searcher({str(tmp_path / "x.index")!r}) as searcher:
    print([hit.uri for hit in searcher.search("Bread!", mode="dense")])
loaded = {{"torch", "transformers", "sentence_transformers", "openvino"}} & set(sys.modules)
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=120, capture_output=True, text=True)
    assert done.stdout == "['stale bread', 'the moon over the river']\n"


@pytest.mark.parametrize("change", [torch.Tensor.double, torch.Tensor.half, torch.Tensor.bfloat16, "bin"])
def test_every_type_of_weights_is_read(change: Any, tmp_path: Path) -> None:
    theirs = made(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    if change == "bin":
        (tmp_path / "model.safetensors").unlink()
        torch.save(weights, tmp_path / "pytorch_model.bin")
    else:
        from safetensors.torch import save_file

        save_file({name: change(part) for name, part in weights.items()}, tmp_path / "model.safetensors")
        theirs = SentenceTransformer(str(tmp_path), device="cpu")
    encoder = load_encoder(tmp_path)
    assert isinstance(encoder, StaticEncoder)
    assert np.abs(encoder.encode(ODD) - theirs.encode_document(ODD)).max() < FLOAT32
