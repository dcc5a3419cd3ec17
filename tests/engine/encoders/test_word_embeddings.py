"""Word embeddings: sentence-transformers encodes with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, WordEmbeddings, WordWeights
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

from indexer import Document, Index
from indexer.encoders import load_encoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.errors import ModelError, NothingKnown, TextTooLong
from search import Searcher

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
]
ODD = [
    "bread river",
    "  stale\t\tmoon\r\n bread\u00a0river\u3000moon  ",
    "(bread), \"river\"! -- 'Moon'... [stale]?",
    "BREAD River MOON moon Stale",
    "the U.S. don't U.S.! C++ c++ - -- the The (the)",
    "bread unknown river Unknown!",
    "Straße STRASSE straße 東京 東京。",
    "bread " * 300 + "moon",
]
UNKNOWN = ["zzz", "the the", "東"]


def made(folder: Path, mode: Any = "mean", weights: bool = False, **settings: Any) -> SentenceTransformer:
    """Save a model of word embeddings in `folder`, and return it."""
    vectors = torch.randn(len(VOCABULARY), 16, generator=torch.Generator().manual_seed(3))
    modules: list[Any] = [WordEmbeddings(WhitespaceTokenizer(VOCABULARY, stop_words=["the"]), vectors, **settings)]
    if weights:
        modules.append(WordWeights(VOCABULARY, {"bread": 0.2, "moon": 3.5, "u.s.": 0.001}, 0.7))
    modules += [Pooling(16, mode), Normalize()]
    model = SentenceTransformer(modules=modules, prompts={"query": "moon: ", "document": "("}, device="cpu")
    model.save(str(folder))
    return model


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("mode", ["mean", "max", ["lasttoken", "mean", "weightedmean"]], ids=str)
def test_vectors_are_those_of_sentence_transformers(mode: Any, weights: bool, tmp_path: Path) -> None:
    theirs = made(tmp_path, mode, weights)
    encoder = load_encoder(tmp_path)
    assert isinstance(encoder, SentenceTransformerEncoder)
    assert np.abs(encoder.encode(ODD, truncate=True) - theirs.encode_document(ODD)).max() < FLOAT32
    assert np.abs(encoder.encode(ODD, "query", truncate=True) - theirs.encode_query(ODD)).max() < FLOAT32
    shorter = load_encoder(tmp_path, dimensions=5).encode(ODD)
    assert np.abs(shorter - theirs.encode_document(ODD, truncate_dim=5, normalize_embeddings=True)).max() < FLOAT32


def test_words_and_signs_are_counted_up_to_the_limit_of_the_model(tmp_path: Path) -> None:
    theirs = made(tmp_path, max_seq_length=6)
    encoder = load_encoder(tmp_path)
    assert (encoder.max_tokens, encoder.overhead()) == (6, 1)
    assert [len(spans) for spans in encoder.offsets(["bread, river", "東京 moon"])] == [3, 2]
    known, long = "moon river stale bread zzz", "moon river, stale bread moon"
    assert np.abs(encoder.encode([known]) - theirs.encode_document([known])).max() < FLOAT32
    with pytest.raises(TextTooLong) as caught:
        encoder.encode([known, long])
    assert (caught.value.index, caught.value.tokens, caught.value.limit) == (1, 7, 6)
    with pytest.raises(ModelError, match="reads at most 6 tokens, not 7"):
        load_encoder(tmp_path, max_tokens=7)


def test_a_text_without_known_words_is_named(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(NothingKnown) as caught:
        load_encoder(tmp_path).encode(["bread", *UNKNOWN, "moon"])
    assert caught.value.texts == (1, 2, 3)


def test_an_index_is_searched_and_updated(tmp_path: Path, register: Callable[..., None]) -> None:
    made(tmp_path / "model")
    texts = ["stale bread", "the moon over the river"]
    with Index.create(tmp_path / "x.index", tmp_path / "model") as index:
        index.add([Document(texts[0], texts[0])])
    register(alone=True)
    with Index.open(tmp_path / "x.index") as index:
        added = index.add([Document(text, text) for text in texts])
        assert (added.added, added.unchanged) == ((texts[1],), (texts[0],))
    register(alone=True)
    with Searcher(tmp_path / "x.index") as searcher:
        assert [hit.uri for hit in searcher.search("Bread!", mode="dense")] == texts
