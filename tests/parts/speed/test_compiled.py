"""The compiled encoder: torch's vectors without torch, checked files, and a cache that may be damaged or missing."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openvino
import pytest
import torch
from hardware import BFLOAT16, FLOAT32
from opened import store_of
from openvino import opset15 as ops
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, StaticEmbedding
from tokenizers import Tokenizer

from indexer import Document, Index
from indexer.encoders import Encoder, load_encoder
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.openvino.files import mapped_text
from indexer.encoders.openvino.kept import kept_folder
from indexer.encoders.recipes.recipe import POOLINGS, Combine, Pooling
from indexer.encoders.torch.pooling import pool
from indexer.errors import ModelError, NothingKnown, TextTooLong
from likewise.cache.compiled import keep, take_kept
from likewise.speed.compilation import export, graph
from likewise.speed.compilation.export import compile_encoder


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled") / "encoder"
    compile_encoder(load_encoder("all-MiniLM-L6-v2"), folder)
    return folder


def test_its_vectors_are_torchs(compiled: Path, tmp_path: Path, sentences: list[str]) -> None:
    encoder = CompiledEncoder.open(compiled, tmp_path)
    exact = load_encoder("all-MiniLM-L6-v2", precision="float32")
    assert isinstance(encoder, Encoder)
    assert encoder.recipe == exact.recipe
    texts = [*sentences, "word " * 254]
    together = encoder.encode(texts)
    assert (together * exact.encode(texts)).sum(1).min() > 0.999
    for text, vector in zip(texts, together, strict=True):
        assert encoder.encode([text])[0] @ vector > 0.9995
    with pytest.raises(TextTooLong):
        encoder.encode(["word " * 255])
    assert encoder.encode([]).shape == (0, 384)


def test_a_query_needs_neither_torch_nor_a_network(compiled: Path, tmp_path: Path) -> None:
    program = f"""
import socket, sys
from pathlib import Path
def refuse(*_): raise AssertionError("a connection was opened")
socket.socket.connect = socket.getaddrinfo = refuse
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.openvino.files import mapped_text
from indexer.encoders.openvino.kept import kept_folder
encoder = CompiledEncoder.open(Path({str(compiled)!r}), Path({str(tmp_path)!r}))
assert encoder.encode(["how do vaccines work"], role="query").shape == (1, 384)
loaded = {{"torch", "transformers", "sentence_transformers", "huggingface_hub"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=110)


def test_processes_that_share_the_cores_do_not_bind_their_threads_to_the_same_ones(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.encoders.openvino.encoder.cores", lambda: 2)
    model = CompiledEncoder.open(compiled, tmp_path, threads=1)._model
    assert model.get_property("INFERENCE_NUM_THREADS") == 1
    assert not model.get_property("ENABLE_CPU_PINNING")


@pytest.mark.slow
def test_threads_get_the_vectors_of_one(compiled: Path, tmp_path: Path) -> None:
    encoder = CompiledEncoder.open(compiled, tmp_path)
    texts = [f"question number {number} of several" for number in range(40)]
    alone = [encoder.encode([text]) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        for one, other in zip(alone, threads.map(lambda text: encoder.encode([text]), texts), strict=True):
            assert np.abs(one - other).max() < BFLOAT16


@pytest.mark.slow
def test_the_cache_is_shared_by_copies_and_survives_damage(compiled: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    wanted = CompiledEncoder.open(compiled, cache).encode(["a bank"])
    moved = shutil.copytree(compiled, tmp_path / "moved")
    CompiledEncoder.open(moved, cache)
    blobs = list(cache.rglob("*.blob"))
    assert len(blobs) == 1
    blobs[0].chmod(0o600)
    blobs[0].write_bytes(blobs[0].read_bytes()[:100_000])
    assert np.abs(CompiledEncoder.open(moved, cache).encode(["a bank"]) - wanted).max() < BFLOAT16
    (copied,) = cache.rglob("encoder.bin")
    for file in (copied, blobs[0]):  # as programs do that remove old files
        file.unlink()
    assert np.abs(CompiledEncoder.open(moved, cache).encode(["a bank"]) - wanted).max() < BFLOAT16
    assert copied.exists()
    (tmp_path / "file").touch()
    assert np.abs(CompiledEncoder.open(moved, tmp_path / "file").encode(["a bank"]) - wanted).max() < BFLOAT16


@pytest.mark.parametrize("name", ["tokenizer.json", "recipe.json", "encoder.bin", "encoder.xml"])
def test_a_changed_file_is_refused(compiled: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(compiled, tmp_path / "copy")
    with (folder / name).open("r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ModelError, match=r"not the file that was written"):
        CompiledEncoder.open(folder, tmp_path / "cache")
    (folder / name).unlink()
    with pytest.raises(ModelError, match="compile"):
        CompiledEncoder.open(folder, tmp_path / "cache")


def test_a_text_is_read_from_a_removed_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ä")
    sha256 = hashlib.sha256("ä".encode()).hexdigest()
    right, wrong = (mapped_text(tmp_path, "a", {"a": sum_}) for sum_ in (sha256, "0"))
    (tmp_path / "a").unlink()
    assert right() == "ä"
    with pytest.raises(ModelError, match=r"not the file that was written"):
        wrong()
    with pytest.raises(ModelError, match="compile it again"):
        mapped_text(tmp_path, "a", {})


@pytest.mark.slow
def test_a_kept_encoder_whose_recipe_cannot_be_read_is_replaced(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    recipe = CompiledEncoder.open(compiled, tmp_path / "blobs").recipe
    kept = shutil.copytree(compiled, kept_folder(recipe))
    foreign = json.dumps(json.loads(recipe.to_json()) | {"colour": "blue"})
    (kept / "recipe.json").write_text(foreign)
    manifest = json.loads((kept / "manifest.json").read_text())
    manifest["sha256"]["recipe.json"] = hashlib.sha256(foreign.encode()).hexdigest()
    (kept / "manifest.json").write_text(json.dumps(manifest))
    assert not take_kept(recipe, tmp_path / "encoder")
    keep(recipe, compiled)
    assert take_kept(recipe, tmp_path / "encoder")
    assert CompiledEncoder.open(tmp_path / "encoder", tmp_path / "blobs").recipe == recipe


def test_questions_to_an_index_in_int8_are_compiled_in_float32(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", f"{tiny('bert')}:mean", precision="int8") as index:
        index.add([Document("a", "a bank")])
        index.compile()
        compiled = CompiledEncoder.open(Path(store_of(index).address) / "encoder")
    exact = load_encoder(f"{tiny('bert')}:mean", precision="float32")
    assert (compiled.encode(["a bank"], "query") @ exact.encode(["a bank"], "query").T).item() > 0.9995


@pytest.mark.slow
def test_check_reports_a_damaged_encoder_and_repair_compiles_it_again(
    tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    with Index.create(tmp_path / "x.index", f"{tiny('bert')}:mean", precision="float32") as index:
        index.add([Document("a", "a bank")])
        index.compile()
        assert index.check().ok
        graph = Path(store_of(index).address) / "encoder" / "encoder.bin"
        content = graph.read_bytes()
        graph.write_bytes(content[:-1])
        assert [problem.count("encoder.bin") for problem in index.check().problems] == [1]
        assert index.check(repair=True).notes[0] == "compiled the encoder again"
        assert (index.check().ok, graph.stat().st_size) == (True, len(content))


@pytest.mark.parametrize(
    "count", [16, pytest.param(40, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.long)]
)
def test_a_damaged_encoder_is_refused_or_is_the_same(
    tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str], count: int
) -> None:
    sound = tmp_path / "sound"
    # Between two roundings to bfloat16, vectors of this tiny random model differ by more than a graph may.
    compile_encoder(load_encoder(f"{tiny('bert')}:mean", precision="float32"), sound)
    expected = CompiledEncoder.open(sound, tmp_path / "warm").encode(sentences)
    names, refused = sorted(file.name for file in sound.iterdir()), 0
    for number in range(count):
        chance = random.Random(number)
        folder = tmp_path / "damaged"
        shutil.copytree(sound, folder)
        file = folder / names[number % len(names)]
        data = bytearray(file.read_bytes())
        at = chance.randrange(len(data))
        match number // len(names) % 4:
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                del data[at:]
            case 2:
                data[at : at + 512] = bytes(len(data[at : at + 512]))
            case _:
                data[at : at + 64] = data[:64]
        file.write_bytes(data)
        try:
            found = CompiledEncoder.open(folder, tmp_path / ("warm" if number % 2 else f"{number}")).encode(sentences)
            assert np.abs(found - expected).max() < FLOAT32, file
        except ModelError:
            refused += 1
        shutil.rmtree(folder)
    assert refused > count // 2


@pytest.mark.parametrize("pooling", [each for each in POOLINGS if each != "pooler"])
def test_padded_pooling_is_packed_pooling(pooling: Pooling) -> None:
    states = torch.randn(2 * 5 + 3, 8)
    mask = torch.tensor([[1] * 5, [1] * 5, [1, 1, 1, 0, 0]])
    padded = torch.full((3, 5, 8), 1e3)
    padded[mask.bool()] = states
    wanted = pool(states, [(2, 5), (1, 3)], pooling)
    tokens, ones = ops.parameter([-1, -1, 8], np.float32), ops.parameter([-1, -1], np.int64)
    model = openvino.Model([graph.pooled(tokens, ones, pooling)], [tokens, ones])
    # In bfloat16, whole numbers above 256 are rounded: positions are counted as integers.
    assert {str(each.get_element_type()) for each in model.get_ops() if each.get_type_name() == "CumSum"} <= {
        "<Type: 'int64_t'>"
    }
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert np.abs(compiled([padded.numpy(), mask.numpy()])[0] - wanted.numpy()).max() < FLOAT32


@pytest.mark.parametrize(
    ("kind", "pooling", "layers", "combine"),
    [
        ("bert", "weighted_mean", (-2, -1), "concat"),
        pytest.param("bert", "pooler", -1, "mean", marks=pytest.mark.slow),
        pytest.param("roberta", "mean", (0, 2), "sum", marks=pytest.mark.slow),
        pytest.param("distilbert", "weighted_mean", (0, 2), "mean", marks=pytest.mark.slow),
        pytest.param("mpnet", "last", -1, "mean", marks=pytest.mark.slow),
    ],
)
def test_every_architecture_compiles(
    tiny: Callable[[str], Path],
    tmp_path: Path,
    sentences: list[str],
    kind: str,
    pooling: Pooling,
    layers: int | tuple[int, ...],
    combine: Combine,
) -> None:
    encoder = load_encoder(tiny(kind), pooling=pooling, layers=layers, combine=combine, precision="float32")
    compile_encoder(encoder, tmp_path / "encoder", "float32")
    vectors = CompiledEncoder.open(tmp_path / "encoder").encode(sentences)
    assert (vectors * encoder.encode(sentences)).sum(1).min() > 0.9999


def test_a_static_model_is_compiled(tmp_path: Path, evaluation_data: Path, sentences: list[str]) -> None:
    encoder = load_encoder(evaluation_data / "models/potion-base-4m-fp32", dimensions=96)
    compile_encoder(encoder, tmp_path / "encoder")
    opened = CompiledEncoder.open(tmp_path / "encoder")
    assert (opened.recipe, opened.overhead()) == (encoder.recipe, 0)
    assert (opened.encode(sentences) * encoder.encode(sentences)).sum(1).min() > 0.9999
    with pytest.raises(NothingKnown) as caught:
        opened.encode(["a river", "a"])
    assert caught.value.texts == (1,)


@pytest.mark.slow
def test_what_cannot_be_compiled_or_trusted_leaves_nothing_behind(
    tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = Tokenizer.from_file(str(tiny("bert") / "tokenizer.json"))
    bag = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=24), Dense(24, 8)], device="cpu")
    bag.save(str(tmp_path / "bag"))
    with pytest.raises(ModelError, match="only torch can run it"):
        compile_encoder(load_encoder(tmp_path / "bag"), tmp_path / "encoder")
    shutil.rmtree(tmp_path / "bag")
    monkeypatch.setattr(graph, "pooled", lambda tokens, mask, pooling: ops.reduce_min(tokens, np.array([1])))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ModelError, match="differs from torch's"):
        compile_encoder(load_encoder(tiny("bert"), pooling="mean", precision="float32"), tmp_path / "encoder")
    assert [file for file in tmp_path.rglob("*") if not file.is_dir()] == []
    assert list(tmp_path.iterdir()) == [tmp_path / "cache"]


@pytest.mark.slow
def test_the_openvino_runtime_compiles_once(
    tiny: Callable[[str], Path], tmp_path: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = load_encoder(tiny("bert"), runtime="openvino", precision="float32")
    monkeypatch.setattr(export, "compile_encoder", None)
    second = load_encoder(tiny("bert"), runtime="openvino", precision="float32")
    assert isinstance(second, CompiledEncoder)
    assert np.abs(first.encode(sentences) - second.encode(sentences)).max() < FLOAT32
    exact = load_encoder(tiny("bert"), precision="float32").encode(sentences)
    assert np.abs(first.encode(sentences) - exact).max() < FLOAT32


@pytest.mark.slow
def test_each_text_of_a_batch_is_padded_to_the_width_that_it_has_alone(compiled: Path, tmp_path: Path) -> None:
    encoder = CompiledEncoder.open(compiled, tmp_path)
    most = encoder.max_tokens
    lengths = [3, 17, most, 16, 3, 33]
    batches = list(encoder._batches([np.zeros(length, np.int32) for length in lengths]))
    assert batches == [([2], most), ([5], 48), ([1], 32), ([0, 3, 4], 16)]
    texts = ["cat", "a cat sat on the mat " * 3, "the dog", "the dog barks at the moon " * 6]
    single = np.concatenate([encoder.encode([text], truncate=True) for text in texts])
    assert (encoder.encode(texts, truncate=True) * single).sum(1).min() > 0.9999
