"""Models that are not BERT: each gives what transformers or sentence-transformers makes of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hardware import FLOAT32
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router, StaticEmbedding
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from indexer.encoders import load_encoder
from indexer.encoders.tokens.tokenizer import Tokenizer as OurTokenizer
from indexer.encoders.torch.automodel import AutoModel
from indexer.encoders.torch.encoder import _run_halved
from indexer.errors import ModelError, TextTooLong
from indexer.passages.cut import PassageSettings, cut
from indexer.records import Document

SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.fixture
def made(tiny: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """A folder with a model of random weights beside the tokenizer of the tiny BERT."""

    def make(model: Any, config: Any) -> Path:
        folder = tmp_path / type(config).__name__
        torch.manual_seed(1)
        model(config).save_pretrained(folder)
        shutil.copy(tiny("bert") / "tokenizer.json", folder)
        return folder

    return make


def size(tiny: Callable[[str], Path]) -> int:
    return Tokenizer.from_file(str(tiny("bert") / "tokenizer.json")).get_vocab_size()


@pytest.mark.parametrize("kind", ["Albert", "BigBird"])
def test_the_pooler_of_models_that_keep_its_activation_beside_it(
    made: Callable[..., Path], tiny: Callable[[str], Path], sentences: list[str], kind: str
) -> None:
    config = getattr(transformers, f"{kind}Config")(
        **SMALL, vocab_size=size(tiny), embedding_size=16, attention_type="original_full"
    )
    folder = made(getattr(transformers, f"{kind}Model"), config)
    encoder = load_encoder(folder, pooling="pooler", precision="float32", max_tokens=64)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    for sentence, row in zip(sentences, encoder.encode(sentences), strict=True):
        ids = torch.tensor([encoder.tokenizer.ids([sentence])[0].tolist()])  # type: ignore[attr-defined]
        with torch.inference_mode():
            wanted = torch.nn.functional.normalize(model(input_ids=ids).pooler_output, dim=-1)[0].numpy()
        assert np.abs(row - wanted).max() < FLOAT32


def test_of_t5_the_encoder_alone_is_taken(
    made: Callable[..., Path], tiny: Callable[[str], Path], sentences: list[str]
) -> None:
    config = transformers.T5Config(
        vocab_size=size(tiny), d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    folder = made(transformers.T5ForConditionalGeneration, config)
    encoder = load_encoder(folder, pooling="mean", precision="float32", max_tokens=64)
    model = transformers.T5EncoderModel.from_pretrained(folder).eval()
    ids = torch.tensor([encoder.tokenizer.ids([sentences[0]])[0].tolist()])  # type: ignore[attr-defined]
    with torch.inference_mode():
        state = model(input_ids=ids).last_hidden_state.mean(1)
    wanted = torch.nn.functional.normalize(state, dim=-1)[0].numpy()
    assert np.abs(encoder.encode(sentences)[0] - wanted).max() < FLOAT32


def test_a_router_takes_questions_and_documents_their_own_way(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(tiny("bert") / "tokenizer.json"))
    tokenizer.no_padding()
    ways = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        ways.append(StaticEmbedding(tokenizer, embedding_dim=8))
    theirs = SentenceTransformer(
        modules=[Router.for_query_document(query_modules=[ways[0]], document_modules=[ways[1]])], device="cpu"
    )
    theirs.save(str(tmp_path / "router"))
    encoder = load_encoder(tmp_path / "router")
    for role, encode in (("query", theirs.encode_query), ("document", theirs.encode_document)):
        wanted = encode(["the river bank"], normalize_embeddings=True)
        assert np.abs(encoder.encode(["the river bank"], role=role) - wanted).max() < FLOAT32  # type: ignore[arg-type]
    before = encoder.recipe.fingerprint
    weights = next((tmp_path / "router").rglob("query*/*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    assert load_encoder(tmp_path / "router").recipe.fingerprint != before


@pytest.mark.parametrize("kind", ["byte-level", "metaspace", "words"])
def test_a_long_text_is_read_in_blocks_with_the_tokens_of_the_whole(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = Tokenizer(models.BPE())
    text = "".join(f"Sentence {n}: naïve  cats—sleep (東京タワー).\nLine {n}\t x_y  \n\n" for n in range(60))
    if kind == "byte-level":
        pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif kind == "metaspace":
        pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    else:
        pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.train_from_iterator([text], trainers.BpeTrainer(vocab_size=300, show_progress=False))
    tokenizer = OurTokenizer(pieces.to_str(), 64)
    (whole,) = tokenizer.offsets([text])
    monkeypatch.setattr("indexer.encoders.tokens.tokenizer._BLOCK_CHARACTERS", 30)
    blocks, empty = tokenizer.offsets([text, ""])
    assert blocks.tolist() == whole.tolist()
    assert empty.shape == (0, 2)
    monkeypatch.setattr("indexer.encoders.tokens.tokenizer._BLOCK_CHARACTERS", 8)
    assert [row.tolist() for row in tokenizer.ids(["cats"] * 5)] == [tokenizer.ids(["cats"])[0].tolist()] * 5
    with pytest.raises(TextTooLong) as raised:
        tokenizer.ids(["cats", "cats", text])
    assert raised.value.index == 2


@pytest.mark.parametrize("kind", ["byte-level", "metaspace"])
def test_passages_begin_with_a_word_where_tokens_hold_the_space_before_it(kind: str) -> None:
    pieces = Tokenizer(models.BPE())
    text = " ".join(f"Sentence number {number} says that the cat sleeps." for number in range(60))
    if kind == "byte-level":
        pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        pieces.pre_tokenizer, pieces.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    pieces.train_from_iterator([text], trainers.BpeTrainer(vocab_size=300, show_progress=False))
    tokenizer = OurTokenizer(pieces.to_str(), 64)

    class Encoder:
        max_tokens = 64

        def offsets(self, texts: list[str]) -> Any:
            return tokenizer.offsets(texts)

        def overhead(self, role: str = "document") -> int:
            return 0

    (spans,) = cut([Document("d", text)], Encoder(), PassageSettings(64, 0))  # type: ignore[arg-type]
    assert len(spans) > 5
    for span in spans:
        assert text[span.start : span.start + 8] == "Sentence"
        assert text[: span.end].endswith("sleeps.")
    covered = "".join(text[span.start : span.end] + " " for span in spans)
    assert covered.strip() == text


def test_a_batch_that_memory_does_not_hold_is_run_in_halves() -> None:
    done: list[int] = []

    def run(order: list[int]) -> None:
        if len(order) > 3:
            raise torch.OutOfMemoryError("too much")
        done.extend(order)

    _run_halved(run, list(range(10)))
    assert done == list(range(10))

    def never(order: list[int]) -> None:
        raise torch.OutOfMemoryError("too much")

    with pytest.raises(ModelError, match="does not hold one text: choose device cpu"):
        _run_halved(never, [1, 2])


def test_the_pooler_takes_what_lies_elsewhere_to_its_own_device(tiny: Callable[[str], Path]) -> None:
    model = AutoModel(tiny("mpnet"), torch.bfloat16, "cpu", trust_remote_code=False)
    pooled = model.pooler(torch.zeros(1, model.hidden, dtype=torch.float32))
    assert pooled is not None
    assert pooled.shape == (1, model.hidden)
    with pytest.raises(ModelError, match="device 'meta' is not usable"):
        load_encoder(tiny("mpnet"), pooling="pooler", device="meta")


def test_what_transformers_cannot_run_alone_is_one_clear_line(
    made: Callable[..., Path], tiny: Callable[[str], Path]
) -> None:
    config = transformers.BartConfig(
        vocab_size=size(tiny), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
    )  # fmt: skip
    folder = made(transformers.BartModel, config)
    assert json.loads((folder / "config.json").read_text())["is_encoder_decoder"]
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_encoder(folder, pooling="mean", max_tokens=32)
