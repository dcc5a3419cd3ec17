"""The runtime for documents: the rule for every kind of CPU, and torch where OpenVINO fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opened import store_of

from indexer import Document, Index
from indexer.encoders import get_query_encoder, load_encoder, registry
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.openvino.kept import kept_folder
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import BadInput, ModelError, NothingKnown, TextTooLong
from indexer.listener import Collecting
from likewise.cache.compiled import keep
from likewise.evaluation.pairs import embed
from likewise.speed import documents, runtime_rule
from likewise.speed.compilation import export, graph
from likewise.speed.compilation.export import compile_encoder, compile_in_cache
from likewise.speed.compilation.graph import NotCompilable
from likewise.speed.runtime_rule import REPAYING_TEXTS, choose_runtime
from search.hits.explain import add_sentences
from search.hits.hits import Hit

TEXTS = [f"dogs watch river number {number}" for number in range(64)]

AMX, NO_AMX = "avx2 avx512f avx512_bf16 amx_bf16 amx_int8", "avx2 avx512f avx512_vnni avx512_bf16"


@dataclass
class MadeUp:
    """An OpenVINO that is made up, on a CPU without AMX.

    Attributes:
        failure: why the model cannot be compiled.
        broken: what OpenVINO raises for texts.
        tries: how often something tried to compile.
        compiled: the precisions that were compiled.
        rows: how many texts went to OpenVINO, call by call.
    """

    failure: Exception | None = None
    broken: Exception | None = None
    tries: int = 0
    compiled: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


@pytest.fixture
def encoder(tiny: Callable[[str], Path]) -> TorchEncoder:
    """A tiny BERT with mean pooling, on torch."""
    loaded = load_encoder(f"{tiny('bert')}:mean")
    assert isinstance(loaded, TorchEncoder)
    return loaded


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user with an empty cache and a CPU without AMX, to whom 64 texts repay compiling."""
    monkeypatch.delenv("LIKEWISE_RUNTIME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(runtime_rule, "cpu_features", lambda: NO_AMX)
    monkeypatch.setattr(documents, "REPAYING_TEXTS", 64)
    monkeypatch.setattr(documents, "_not_compilable", {})


@pytest.fixture
def openvino(user: None, monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    made_up = MadeUp()

    def compile_in_cache(torch_encoder: TorchEncoder, precision: str) -> Path:
        made_up.tries += 1
        if made_up.failure:
            raise made_up.failure
        made_up.compiled.append(precision)
        return Path(str(torch_encoder.dimensions))

    def opened(folder: Path, threads: int | None = None) -> Any:
        def encode(texts: Sequence[str], role: str = "document", truncate: bool = False) -> np.ndarray:
            made_up.rows.append(len(texts))
            if made_up.broken:
                raise made_up.broken
            return np.eye(len(texts), int(folder.name), dtype=np.float32)

        return SimpleNamespace(encode=encode)

    monkeypatch.setattr(export, "compile_in_cache", compile_in_cache)
    monkeypatch.setattr(CompiledEncoder, "open", opened)
    return made_up


@pytest.mark.parametrize(
    ("features", "named", "precision", "device", "chosen", "reason"),
    [
        (AMX, "", "auto", "cpu", "torch", "the rule for CPUs with AMX for bfloat16"),
        (
            NO_AMX,
            "",
            "auto",
            "cpu",
            "openvino",
            "the rule for CPUs with AVX512 for bfloat16; torch embeds a run's first 2,000",
        ),
        ("avx2 avx512f avx512_vnni", "auto", "auto", "cpu", "openvino", "the rule for CPUs with AVX512; torch embeds"),
        ("avx2 avx_vnni", "", "auto", "cpu", "openvino", "the rule for CPUs with AVX2 with VNNI; torch embeds"),
        ("avx2", "", "auto", "cpu", "torch", "the rule for CPUs with AVX2 alone"),
        ("asimd bf16 sve", "", "auto", "cpu", "openvino", "the rule for CPUs with ARM"),
        ("", "", "auto", "cpu", "openvino", "the rule for CPUs with ARM, or instructions that are not known"),
        (NO_AMX, "", "auto", "cuda:0", "torch", "the device is cuda:0"),
        (NO_AMX, "", "float32", "cpu", "torch", "the caller has named the precision float32"),
        (NO_AMX, "", "bfloat16", "cpu", "torch", "the caller has named the precision bfloat16"),
        (AMX, "openvino", "int8", "cpu", "torch", "OpenVINO does not compute in int8"),
        (NO_AMX, "torch", "auto", "cpu", "torch", "LIKEWISE_RUNTIME names it"),
        (AMX, "openvino", "float32", "cpu", "openvino", "LIKEWISE_RUNTIME names it"),
        (NO_AMX, "openvino", "auto", "cuda", "torch", "the device is cuda"),
    ],
)
def test_the_rule(
    monkeypatch: pytest.MonkeyPatch,
    features: str,
    named: str,
    precision: Any,
    device: str,
    chosen: str,
    reason: str,
) -> None:
    monkeypatch.setattr(runtime_rule, "cpu_features", lambda: features)
    monkeypatch.setenv("LIKEWISE_RUNTIME", named)
    choice = choose_runtime(precision, device)
    assert choice.name == chosen
    assert choice.reason.startswith(reason)


def test_openvino_embeds_from_the_text_on_that_repays_compiling(tiny: Callable[[str], Path], openvino: MadeUp) -> None:
    encoder = load_encoder(tiny("bert"))
    encoder.encode(TEXTS, role="query")
    encoder.encode(TEXTS[:40])
    encoder.encode(TEXTS[:23])
    assert (openvino.compiled, openvino.rows) == ([], [])
    encoder.encode(TEXTS[:1])
    encoder.encode(text for text in TEXTS[:2])  # type: ignore[arg-type]
    encoder.encode(TEXTS, role="query")
    assert (openvino.compiled, openvino.rows) == (["auto"], [1, 2])
    with pytest.raises(BadInput, match="are not a list but int"):
        encoder.encode(7)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="one string was given"):
        encoder.encode("a" * 100)


def test_a_model_that_is_already_compiled_is_used_after_fewer_texts(
    tiny: Callable[[str], Path], openvino: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "REPAYING_KEPT_TEXTS", 8)
    encoder = load_encoder(tiny("bert"))
    encoder.encode(TEXTS[:8])
    assert openvino.rows == []
    kept_folder(encoder.recipe, "auto").mkdir(parents=True)
    other = load_encoder(tiny("bert"))
    other.encode(TEXTS[:7])
    assert openvino.rows == []
    other.encode(TEXTS[:1])
    encoder.encode(TEXTS[:2])
    assert openvino.rows == [1, 2]


def test_many_texts_at_once_repay_compiling_at_once(
    tiny: Callable[[str], Path], openvino: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "REPAYING_TEXTS", REPAYING_TEXTS)
    load_encoder(tiny("bert")).encode(TEXTS[:1] * (REPAYING_TEXTS - 1))
    assert openvino.rows == []
    load_encoder(tiny("bert")).encode(TEXTS[:1] * REPAYING_TEXTS)
    assert openvino.rows == [2_000]


def test_amx_and_a_named_runtime_or_precision_stay_on_torch(
    tiny: Callable[[str], Path], openvino: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    plain = load_encoder(tiny("bert"), precision="float32")
    plain.encode(TEXTS)
    monkeypatch.setattr(runtime_rule, "cpu_features", lambda: AMX)
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (openvino.compiled, openvino.rows) == ([], [])


def test_searching_never_switches(
    tiny: Callable[[str], Path],
    openvino: MadeUp,
    monkeypatch: pytest.MonkeyPatch,
    register: Callable[..., None],
    tmp_path: Path,
) -> None:
    """Even with an encoder that is shared with who indexes, and when OpenVINO embeds its documents."""
    encoder = load_encoder(tiny("bert"))
    hits = [Hit(f"h{n}", "", ". ".join(TEXTS[:32]) + ".", 0, 999, 1.0, 1.0) for n in range(3)]
    question = np.ones(encoder.dimensions, np.float32)

    def search() -> None:
        assert [hit for hit in add_sentences(hits, encoder, question) if not (hit.why and hit.why["sentence"])] == []
        for _ in range(2):
            asked, notes = get_query_encoder(encoder.recipe, tmp_path / "no graph")
            assert (asked.encode(TEXTS).shape, notes) == ((64, 48), ())
        embed(TEXTS, encoder)

    register(encoder, alone=True)
    search()
    assert openvino.rows == []
    encoder.encode(TEXTS)
    assert openvino.rows == [64]
    search()
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    search()
    assert openvino.rows == [64]


def test_without_openvino_torch_embeds_and_only_who_named_openvino_gets_a_note(
    tiny: Callable[[str], Path],
    openvino: MadeUp,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    openvino.failure = ModuleNotFoundError("No module named 'openvino'")
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    assert np.array_equal(load_encoder(tiny("bert")).encode(TEXTS), wanted)
    assert caplog.messages == []
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    encoder = load_encoder(tiny("bert"))
    for _ in range(2):
        assert np.array_equal(encoder.encode(TEXTS), wanted)
    assert caplog.messages == [
        "OpenVINO, which LIKEWISE_RUNTIME asks for, failed (No module named 'openvino'): torch embeds documents"
    ]


def test_a_process_compiles_a_model_that_cannot_be_compiled_once_and_notes_it_for_each_encoder(
    tiny: Callable[[str], Path], openvino: MadeUp, caplog: pytest.LogCaptureFixture
) -> None:
    openvino.failure = NotCompilable("its vectors differ")
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    note = "OpenVINO, which this CPU calls for, failed (its vectors differ): torch embeds documents"
    for loaded in (1, 2):
        encoder = load_encoder(tiny("bert"))
        for _ in range(2):
            assert np.array_equal(encoder.encode(TEXTS), wanted)
        assert openvino.tries == 1
        assert caplog.messages == [note] * loaded
    load_encoder(f"{tiny('bert')}:max").encode(TEXTS)  # Another recipe.
    assert openvino.tries == 2


@pytest.mark.parametrize("failure", [OSError("No space left"), MemoryError("bad alloc"), RuntimeError("no threads")])
def test_openvino_that_cannot_be_opened_leaves_torch_and_one_line_in_the_log(
    tiny: Callable[[str], Path], openvino: MadeUp, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    openvino.failure = failure
    encoder = load_encoder(tiny("bert"))
    for _ in range(2):
        assert np.array_equal(encoder.encode(TEXTS), wanted)
    assert caplog.messages == [f"OpenVINO, which this CPU calls for, failed ({failure}): torch embeds documents"]
    assert openvino.rows == []


def test_threads_of_one_process_compile_once(tiny: Callable[[str], Path], openvino: MadeUp) -> None:
    encoder = load_encoder(tiny("bert"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: encoder.encode(TEXTS), range(8)))
    assert (openvino.compiled, openvino.rows) == (["auto"], [64] * 8)


def test_the_environment_overrides_the_rule(
    tiny: Callable[[str], Path], openvino: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(tiny("bert"), precision="float32")
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    encoder.encode(TEXTS[:2])
    encoder.encode(TEXTS[:2], role="query")
    assert (openvino.compiled, openvino.rows) == (["float32"], [2])
    monkeypatch.setenv("LIKEWISE_RUNTIME", "torch")
    encoder.encode(TEXTS)
    assert openvino.rows == [2]
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvion")
    with pytest.raises(BadInput, match="LIKEWISE_RUNTIME is 'openvion': set it to auto, torch, openvino"):
        load_encoder(tiny("bert"))


@pytest.mark.slow
def test_an_index_mixes_vectors_of_both_runtimes_and_doctor_says_which_one_is_used(
    encoder: TorchEncoder, user: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, likewise: Callable[..., Any]
) -> None:
    """With a real graph: the first 8 documents come from torch, the others from OpenVINO."""
    rows: list[int] = []
    plain = CompiledEncoder.encode

    def encode(self: Any, texts: Sequence[str], role: Any = "document", truncate: bool = False) -> Any:
        rows.append(len(texts))
        return plain(self, texts, role, truncate)

    monkeypatch.setattr(CompiledEncoder, "encode", encode)
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"t{number}", text) for number, text in enumerate(TEXTS[:8])])
        assert rows == []
        index.add([Document(f"o{number}", text) for number, text in enumerate(TEXTS)])
        with store_of(index).snapshot() as snapshot:
            stored = snapshot.sample(100).vectors
        assert index.encoder is encoder
    assert 64 in rows
    assert 8 not in rows
    torch_rows = load_encoder(encoder.recipe, runtime="torch").encode(TEXTS)
    assert (encoder.encode(TEXTS) * torch_rows).sum(axis=1).min() >= 0.999
    assert len(stored) == 72
    assert (stored @ torch_rows.T).max(axis=1).min() >= 0.999
    with pytest.raises(TextTooLong) as caught:
        encoder.encode([*TEXTS, "river " * 70])
    assert (caught.value.index, caught.value.limit) == (64, 64)
    assert caught.value.tokens > 64
    why = (
        "the rule for CPUs with AVX512 for bfloat16; torch embeds a run's first 2,000 texts, "
        "or 100 if the model is compiled"
    )
    assert f"runtime    openvino: {why}\n" in likewise("doctor", tmp_path / "x.index").out
    monkeypatch.setenv("LIKEWISE_RUNTIME", "torch")
    assert "runtime    torch: LIKEWISE_RUNTIME names it\n" in likewise("doctor", tmp_path / "x.index").out
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvion")
    assert "runtime    problem: LIKEWISE_RUNTIME is 'openvion'" in likewise("doctor", tmp_path / "x.index").out


def test_this_suite_and_the_processes_it_starts_embed_with_torch(
    tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(documents, "REPAYING_TEXTS", 64)
    load_encoder(tiny("bert")).encode(TEXTS)
    assert list(tmp_path.iterdir()) == []
    program = "import os; print(os.environ['LIKEWISE_RUNTIME'])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "torch\n"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError("bad"), ModelError),
        (RuntimeError("can't start new thread"), ModelError),
        (OSError(28, "No space left on device"), ModelError),
        (TypeError("no rule for this operation"), NotCompilable),
    ],
)
def test_only_what_belongs_to_the_model_is_said_of_the_model(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, kind: type
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(graph, "_transformer", fail)
    with pytest.raises(ModelError) as caught:
        compile_encoder(load_encoder(tiny("bert")), tmp_path / "graph")
    assert type(caught.value) is kind


@pytest.mark.parametrize("asked", ["auto", "openvino"])
def test_openvino_that_fails_while_encoding_leaves_torch_and_one_line_in_the_log(
    tiny: Callable[[str], Path],
    openvino: MadeUp,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    asked: str,
) -> None:
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    monkeypatch.setenv("LIKEWISE_RUNTIME", asked)
    encoder = load_encoder(tiny("bert"))
    for passing in (TextTooLong(3, 70, 64), BadInput("no list"), NothingKnown([3], "tiny")):
        openvino.broken = passing
        with pytest.raises(type(passing)):
            encoder.encode(TEXTS)
    openvino.broken = RuntimeError("Exception from\nsrc/inference")
    assert np.array_equal(encoder.encode(TEXTS), wanted)
    assert np.array_equal(encoder.encode(TEXTS), wanted)
    (logged,) = caplog.records
    assert (logged.name, logged.levelname) == ("likewise", "WARNING")
    assert logged.getMessage().endswith("failed (Exception from src/inference): torch embeds documents")


def test_a_caller_is_told_once_that_openvino_failed(
    tiny: Callable[[str], Path], openvino: MadeUp, caplog: pytest.LogCaptureFixture
) -> None:
    openvino.broken = RuntimeError("Exception from src/inference")
    encoder = load_encoder(tiny("bert"))
    listener = Collecting()
    for _ in range(2):
        documents.for_documents(encoder, listener=listener).encode(TEXTS)
    assert listener.texts == [
        "OpenVINO, which this CPU calls for, failed (Exception from src/inference): torch embeds documents",
    ]
    assert caplog.messages == []


def test_a_child_that_is_forked_while_another_thread_compiles_embeds_with_torch(
    tiny: Callable[[str], Path], openvino: MadeUp
) -> None:
    encoder = load_encoder(tiny("bert"))
    assert isinstance(encoder, TorchEncoder)
    assert isinstance(encoder.alternative, documents.OpenvinoForDocuments)
    held = encoder.alternative._lock
    with held, registry._lock:
        documents._after_fork()  # What a child runs: the locks are another thread's there, and stay so.
        registry._renew_lock()
        encoder.encode(TEXTS)
        assert registry._lock.acquire(blocking=False)
        registry._lock.release()
    assert openvino.rows == []


@pytest.mark.slow
def test_an_index_takes_a_copy_of_the_graph_that_embedded_its_documents_and_the_other_way_round(
    encoder: TorchEncoder, user: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, plain = [], export.write_graph

    def write(*arguments: Any, **more: Any) -> None:
        made.append(arguments)
        plain(*arguments, **more)

    monkeypatch.setattr(export, "write_graph", write)
    folder = tmp_path / "cache" / "likewise" / "compiled" / f"{encoder.recipe.identity}-auto"
    draft = folder.with_name(".killed-1234") / "encoder"
    draft.mkdir(parents=True)
    wanted = encoder.steady().encode(TEXTS)
    assert (encoder.encode(TEXTS) * wanted).sum(axis=1).min() > 0.999
    assert folder.is_dir()
    assert not draft.parent.exists()
    compile_encoder(encoder, tmp_path / "index")
    assert len(made) == 1
    assert (CompiledEncoder.open(tmp_path / "index").encode(TEXTS) * wanted).sum(axis=1).min() > 0.999
    shutil.rmtree(folder)
    keep(encoder.recipe, tmp_path / "index")  # As `likewise index` does, so that OpenVINO need not compile.
    assert compile_in_cache(encoder) == folder
    assert len(made) == 1
    with (folder / "encoder.bin").open("ab") as changed:
        changed.write(b"more")
    compile_encoder(encoder, tmp_path / "another")  # A graph that is damaged is not copied.
    assert len(made) == 2
