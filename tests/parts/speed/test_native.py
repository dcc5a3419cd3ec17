"""The native forward pass: every architecture against transformers, and what it leaves to transformers."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from benchmarks.architectures import ARCHITECTURES, make_folder
from indexer.encoders import cross_encoder, load, load_encoder
from indexer.encoders.torch.automodel import AutoModel
from indexer.encoders.torch.pooling import Packed
from indexer.errors import ModelError
from likewise.speed.native import Native, _EightBitLinear, settings

NATIVE = ("roberta", "xlm-roberta", "mpnet", "distilbert", "modernbert", "nomic_bert", "gte")
QUICK = ("roberta", "distilbert", "modernbert")
"""Architectures of the default suite: learned positions with and without an offset, and rotary ones with windows."""


def folder_of(name: str, folder: Path, **changed: Any) -> Path:
    return make_folder(name, folder, {**ARCHITECTURES[name][1], "max_position_embeddings": 514, **changed})


def batch_of(lengths: list[int]) -> Packed:
    ids = torch.randint(999, 30_000, (sum(lengths),), generator=torch.Generator().manual_seed(1))
    return Packed(ids, [(len(list(same)), length) for length, same in groupby(lengths)])


def assert_same_states(folder: Path, batch: Packed) -> None:
    """Compare all layers with those of transformers in float32, and the last one in bfloat16 and int8."""
    native, library = Native(folder, torch.float32), AutoModel(folder, torch.float32, "cpu", False)
    assert (native.layers, native.hidden, native.positions) == (library.layers, library.hidden, library.positions)
    last = native.layers
    with torch.inference_mode():
        ours, theirs = (model.states(batch, range(last + 1)) for model in (native, library))
        half, eighth = (Native(folder, dtype).states(batch, [last])[last] for dtype in (torch.bfloat16, torch.int8))
    for layer, state in theirs.items():
        assert (ours[layer] - state).abs().max() < 1e-4
    assert torch.cosine_similarity(half.float(), theirs[last], dim=-1).min() > 0.999
    assert torch.cosine_similarity(eighth, theirs[last], dim=-1).min() > 0.99


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NATIVE]
)
def test_the_states_of_texts_of_all_lengths_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    """Lengths from 1 to 300, which is longer than ModernBERT's local window; several short texts share a window."""
    lengths = [300, 299, 150, 64, 33, 32, 31, 18, 17, 17, 16, 16, 16, 15, 9, 8, 8, 8, 8, 7, 5, 5, 3, 2, 2, 1, 1, 1]
    assert_same_states(folder_of(name, tmp_path / name), batch_of(lengths))


@pytest.mark.long
@pytest.mark.parametrize("name", NATIVE)
def test_the_states_of_each_length_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    assert_same_states(folder_of(name, tmp_path / name), batch_of(list(range(300, 0, -1))))


def test_a_table_of_words_in_16_bits_stays_in_its_mapped_file(tmp_path: Path) -> None:
    folder = folder_of("bert", tmp_path / "bert")
    weights = {name: weight.half() for name, weight in load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()  # mapped
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert_same_states(folder, batch_of([20, 9, 9, 4]))
    for dtype in (torch.float32, torch.bfloat16):
        table = Native(folder, dtype)._words
        assert table.dtype == torch.float16
        maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line]
        spans = [range(*(int(end, 16) for end in places.split("-"))) for places, *_ in maps]
        assert any(table.data_ptr() in span for span in spans)


def test_products_in_int8_are_those_of_whole_numbers() -> None:
    """The largest products of all, which saturate 16 bits if weights have 8 bits; rows of zeros; and usual ones."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(40, 384, generator=generator)
    weight, bias = torch.randn(32, 384, generator=generator), torch.randn(32, generator=generator)
    rows[0], rows[1], rows[2], weight[0], weight[1], weight[2] = 3.0, -3.0, 0.0, 0.5, -0.5, 0.0
    layer = _EightBitLinear(weight, bias)
    most, scales = rows.abs().amax(1, True), weight.abs().amax(1) / 63
    eight = ((rows * torch.nan_to_num(127 / most, posinf=0)) + 128.5).floor() - 128
    seven = torch.nan_to_num(weight / scales[:, None]).round()
    exact = (eight.double() @ seven.double().T) * (most / 127) * scales + bias
    torch.testing.assert_close(layer(rows), exact.float(), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(layer(rows)[7:8], layer(rows[7:8]), rtol=0, atol=0)
    torch.testing.assert_close(layer(rows)[:2, :2] - bias[:2], torch.tensor([[576.0, -576], [-576, 576]]))


def test_int8_is_refused_where_nothing_computes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"does not compute model .* on cpu in int8: leave precision out"):
        load_encoder(f"{folder_of('albert', tmp_path / 'albert')}:mean", precision="int8")
    with pytest.raises(ModelError, match="OpenVINO does not compute in int8: name the runtime torch"):
        load_encoder(f"{folder_of('bert', tmp_path / 'bert')}:mean", precision="int8", runtime="openvino")
    monkeypatch.setattr(load, "choose_device", lambda device: "cuda:0")
    with pytest.raises(ModelError, match=r"does not compute model .* on cuda:0 in int8: leave precision out"):
        load_encoder(f"{folder_of('bert', tmp_path / 'other')}:mean", precision="int8")
    with pytest.raises(ModelError, match="a reranker does not compute in int8"):
        cross_encoder("some-model", "int8")


@pytest.mark.parametrize("name", ["bert", "nomic_bert", "albert", "mobilebert"])
def test_tokens_of_pairs_have_segments(name: str, tmp_path: Path) -> None:
    """mobilebert reads padding, so that its texts are computed apart; the last two have no native pass."""
    folder, plain = folder_of(name, tmp_path / name), batch_of([20, 9, 9, 4])
    batch = Packed(plain.ids, plain.runs, (torch.arange(42) % 9 > 4).long())
    assert batch.segments is not None
    library = AutoModel(folder, torch.float32, "cpu", False)
    models = [library, Native(folder, torch.float32)] if settings(folder) else [library]
    with torch.inference_mode():
        parts = zip(*(torch.split(part[None], [20, 9, 9, 4], 1) for part in (batch.ids, batch.segments)), strict=True)
        texts = [library._model(ids, token_type_ids=kinds).last_hidden_state[0] for ids, kinds in parts]
        for model in models:
            states = model.states(batch, [library.layers])[library.layers]
            assert (states - torch.cat(texts)).abs().max() < 1e-4
            assert (states - model.states(plain, [library.layers])[library.layers]).abs().max() > 0.01


@pytest.mark.parametrize("name", ["roberta", "mpnet"])
def test_padding_that_stands_in_a_text_has_no_position(name: str, tmp_path: Path) -> None:
    batch = batch_of([20, 6, 6, 6, 1])
    for place in (3, 4, 20, 27):
        batch.ids[place] = 1
    assert_same_states(folder_of(name, tmp_path / name), batch)


def test_settings_of_modernbert_that_were_written_before_transformers_5(tmp_path: Path) -> None:
    folder = folder_of("modernbert", tmp_path / "model", num_hidden_layers=4)
    config = json.loads((folder / "config.json").read_text())
    new = settings(folder)
    del config["rope_parameters"], config["layer_types"]
    old = {"global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0, "global_attn_every_n_layers": 3}
    (folder / "config.json").write_text(json.dumps({**config, **old}))
    assert new is not None
    assert settings(folder)["reaches"] == new["reaches"]  # type: ignore[index]
    assert [reach.tokens for reach in new["reaches"]] == [None, 8, 8, None]
    assert_same_states(folder, batch_of([60, 20, 9]))


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("bert", {"position_embedding_type": "relative_key"}),
        ("bert", {"is_decoder": True}),
        ("mpnet", {"pad_token_id": 0}),
        ("distilbert", {"activation": "relu"}),
        ("modernbert", {"hidden_activation": "quick_gelu"}),
        ("modernbert", {"attention_bias": True}),
        ("modernbert", {"layer_types": ["full_attention", "chunked_attention", "full_attention"]}),
        ("modernbert", {"num_hidden_layers": 5}),
        ("nomic_bert", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1000.0}}),
        ("nomic_bert", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e3, "partial_rotary_factor": 0.5}}),
        ("nomic_bert", {"head_dim": 16}),
        ("gte", {"rope_scaling": {"type": "ntk", "factor": 8.0}}),
        ("gte", {"quantization_config": {"bits": 4}}),
        ("modernbert", {"mlp_bias": True}),
        ("gte", {"auto_map": {"AutoModel": "own.Own"}}),
        ("eurobert", {}),
        ("albert", {}),
    ],
)
def test_settings_that_are_not_known_are_left_to_transformers(
    name: str, changed: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "model.safetensors").touch()
    kind, small = ARCHITECTURES[name]
    config = getattr(transformers, f"{kind}Config")(**{**small, "pad_token_id": 1}).to_dict()
    for given, known in ((config, name not in ("albert", "eurobert")), ({**config, **changed}, False)):
        (tmp_path / "config.json").write_text(json.dumps(given))
        assert (settings(tmp_path) is not None) == known


@pytest.mark.parametrize(
    ("name", "written", "is_native"),
    [
        ("bert", {"norm_eps": 0.5, "n_heads": 2, "activation": "silu", "dim": 16}, True),
        ("roberta", {"rms_norm_eps": 0.5, "hidden_activation": "silu"}, True),
        ("nomic_bert", {"norm_eps": 0.5, "activation": "gelu"}, True),
        ("modernbert", {"layer_norm_eps": 0.5}, False),
        ("modernbert", {"hidden_act": "silu"}, False),
        ("modernbert", {"sliding_window": 3}, False),
        ("nomic_bert", {"max_position_embeddings": 0}, False),
        ("distilbert", {"num_attention_heads": 2}, False),
    ],
)
def test_members_of_other_architectures_change_nothing(
    name: str, written: dict[str, Any], is_native: bool, tmp_path: Path
) -> None:
    folder, batch = make_folder(name, tmp_path / "model"), batch_of([60, 20, 9, 9])
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **written}))
    library = AutoModel(folder, torch.float32, "cpu", False)
    assert (settings(folder) is not None) == is_native
    native = Native(folder, torch.float32) if is_native else library
    with torch.inference_mode():
        ours, theirs = (model.states(batch, [library.layers])[library.layers] for model in (native, library))
    assert native.positions == library.positions
    assert (ours - theirs).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("gte", {"num_attention_heads": 32}),
        ("modernbert", {"global_attn_every_n_layers": None, "layer_types": None}),
        ("modernbert", {"global_attn_every_n_layers": 0, "layer_types": None}),
        ("bert", {"num_hidden_layers": "2"}),
        ("roberta", {"add_cross_attention": True}),
        ("gte", {"max_position_embeddings": None}),
        ("nomic_bert", {"max_position_embeddings": -1}),
        ("nomic_bert", {"type_vocab_size": 0}),
        ("modernbert", {"attention_bias": None}),
        ("modernbert", {"norm_bias": None}),
        ("bert", {"layer_norm_eps": None}),
    ],
)
def test_settings_that_cannot_be_are_left_to_transformers(name: str, written: dict[str, Any], tmp_path: Path) -> None:
    folder = make_folder(name, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    assert settings(folder) is not None
    (folder / "config.json").write_text(json.dumps({**config, **written}))
    assert settings(folder) is None
    if written not in ({"num_attention_heads": 32}, {"add_cross_attention": True}):
        with pytest.raises(ModelError, match=r"^model \S+ cannot be loaded: .*[^\n]$"):
            load_encoder(folder, pooling="mean")


def test_heads_that_do_not_share_dimensions_evenly(tmp_path: Path) -> None:
    folder = make_folder("bert", tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_attention_heads": 3}))
    with pytest.raises(ModelError, match=r"2 layers, and 3 heads for 32 dimensions, which cannot be"):
        load_encoder(folder, pooling="mean")


def test_dimensions_that_differ_from_the_weights(tmp_path: Path) -> None:
    folder = make_folder("bert", tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 64}))
    with pytest.raises(ModelError, match="weights of other sizes"):
        Native(folder, torch.float32)


@pytest.mark.parametrize("name", ["nomic_bert", "gte"])
def test_weights_that_transformers_renamed_are_left_to_it(name: str, tmp_path: Path) -> None:
    folder = make_folder(name, tmp_path / "model")
    assert settings(folder) is not None
    model = transformers.AutoModel.from_pretrained(folder)
    expected = load_encoder(folder, pooling="mean", precision="float32").encode(["a river bank"])
    model.save_pretrained(folder, save_original_format=False)
    assert settings(folder) is None
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert settings(folder) is None
    ours = load_encoder(folder, pooling="mean", precision="float32").encode(["a river bank"])
    assert np.abs(ours - expected).max() < 1e-5


@pytest.mark.parametrize("name", ["nomic_bert", "modernbert"])
def test_long_texts_need_no_mask_of_all_pairs(name: str, tmp_path: Path) -> None:
    batch = batch_of([601, 17])
    folder = folder_of(name, tmp_path / "model", max_position_embeddings=1024)
    assert_same_states(folder, batch)
    native = Native(folder, torch.float32)
    assert [mask is None for _, _, mask in native._windows(batch, None)] == [True, False]
