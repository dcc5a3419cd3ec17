"""The runtime for many documents: measured once, kept, passed over where it cannot be used. All speeds are made up."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from opened import store_of

from indexer import Document, Index
from indexer.embedding import Embedding
from indexer.encoders import (
    choices,
    documents,
    fastest,
    fit_post,
    get_query_encoder,
    load_encoder,
    measurement,
    registry,
)
from indexer.encoders.batching import batches
from indexer.encoders.choices import saved_choice
from indexer.encoders.measurement import Measurement
from indexer.encoders.openvino import export, graph
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.openvino.export import compile_encoder
from indexer.encoders.openvino.graph import NotCompilable
from indexer.encoders.runtime_in_use import runtime_in_use
from indexer.encoders.torch.encoder import CPU_BATCH_TOKENS, TorchEncoder
from indexer.encoders.torch.int8 import Int8Encoder
from indexer.errors import BadInput, ModelError, NothingKnown, TextTooLong
from indexer.passages import PassageSettings
from search.explain import add_sentences
from search.hits import Hit
from search.pairs import embed

TEXTS = [f"dogs watch river number {number}" for number in range(64)]


@dataclass
class Measuring:
    """The results that a measurement will have, and how often the runtimes were measured.

    Attributes:
        file: of the saved choices.
        speeds: of torch and OpenVINO, in tokens per second.
        cosine: the lowest between their vectors.
        shares: OpenVINO's time over torch's round by round; empty: as the speeds say.
        failure: why the model cannot be compiled, or its graph not be opened.
        interrupt: what ends measuring.
        broken: what OpenVINO raises for texts.
        rows: how many texts went to OpenVINO, call by call.
    """

    file: Path
    speeds: tuple[float, float] = (100.0, 200.0)
    cosine: float = 0.9999
    shares: tuple[float, ...] = ()
    failure: Exception | None = None
    interrupt: BaseException | None = None
    broken: Exception | None = None
    calls: int = 0
    rows: list[int] = field(default_factory=list)

    def choices(self) -> list[dict[str, Any]]:
        return json.loads(self.file.read_text())["choices"]


@pytest.fixture
def encoder(tiny: Callable[[str], Path]) -> TorchEncoder:
    """A tiny BERT with mean pooling, on torch."""
    loaded = load_encoder(f"{tiny('bert')}:mean")
    assert isinstance(loaded, TorchEncoder)
    return loaded


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measuring:
    """A user whose cache is empty, with a measurement and an OpenVINO that are made up."""
    monkeypatch.delenv("LIKEWISE_RUNTIME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Measuring(tmp_path / "cache" / "likewise" / "runtimes.json")

    def measure(torch_encoder: TorchEncoder, compiled: Any) -> Measurement:
        found.calls += 1
        if found.interrupt:
            raise found.interrupt
        shares = found.shares or (found.speeds[0] / found.speeds[1],) * 5
        return Measurement(dict(zip(("torch", "openvino"), found.speeds, strict=True)), shares, found.cosine)

    def compiled(torch_encoder: TorchEncoder, precision: str, threads: int) -> Any:
        if found.failure:
            raise found.failure

        def encode(texts: Sequence[str], role: str = "document", truncate: bool = False) -> np.ndarray:
            found.rows.append(len(texts))
            if found.broken:
                raise found.broken
            return np.eye(len(texts), torch_encoder.dimensions, dtype=np.float32)

        return SimpleNamespace(encode=encode)

    monkeypatch.setattr(measurement, "measure", measure)
    monkeypatch.setattr(fastest, "_open_compiled", compiled)
    return found


def test_the_faster_runtime_is_measured_once_and_kept_for_later_processes(
    tiny: Callable[[str], Path], measuring: Measuring
) -> None:
    first = load_encoder(tiny("bert"))
    first.encode(TEXTS)
    first.encode(TEXTS[:10] * 10)
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (1, [64, 100, 64])
    (kept,) = measuring.choices()
    assert (kept["chosen"], kept["tokens_per_second"]) == ("openvino", {"torch": 100.0, "openvino": 200.0})
    assert kept["conditions"]["cpu"]
    assert kept["conditions"]["precision"] == "auto"
    choice = saved_choice(first.recipe)
    assert choice is not None and choice.chosen == "openvino"
    assert {file.name for file in measuring.file.parent.iterdir()} == {"runtimes.json", "runtimes.lock"}


@pytest.mark.parametrize(("openvino", "chosen"), [(90.0, "torch"), (102.0, "torch"), (104.0, "openvino")])
def test_torch_stays_unless_openvino_is_clearly_faster(
    tiny: Callable[[str], Path], measuring: Measuring, openvino: float, chosen: str
) -> None:
    measuring.speeds = 100.0, openvino
    load_encoder(tiny("bert")).encode(TEXTS)
    assert measuring.choices()[0]["chosen"] == chosen
    assert len(measuring.rows) == (chosen == "openvino")


def test_questions_few_texts_and_named_runtimes_never_measure(
    tiny: Callable[[str], Path], measuring: Measuring
) -> None:
    encoder = load_encoder(tiny("bert"))
    encoder.encode(TEXTS, role="query")
    encoder.encode(TEXTS[:63])
    load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    assert not measuring.file.exists()
    encoder.encode(text for text in TEXTS)  # type: ignore[arg-type]
    assert measuring.rows == [64]
    with pytest.raises(BadInput, match="are not a list but int"):
        encoder.encode(7)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="one string was given"):
        encoder.encode("a" * 100)


def test_searching_never_measures_and_never_switches(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even with an encoder that is shared with who indexes, and when OpenVINO was chosen for that."""
    monkeypatch.setattr(registry, "_loaded", {})
    encoder = load_encoder(tiny("bert"))
    hits = [Hit(f"h{n}", "", ". ".join(TEXTS[:32]) + ".", 0, 999, 1.0, 1.0) for n in range(3)]
    question = np.ones(encoder.dimensions, np.float32)

    def search() -> None:
        assert all(hit.why and hit.why["sentence"] for hit in add_sentences(hits, encoder, question))
        for _ in range(2):
            asked, notes = get_query_encoder(encoder.recipe, tmp_path / "no graph", lambda: None)
            assert (asked.encode(TEXTS).shape, notes) == ((64, 48), ())
        embed(TEXTS, encoder, encoder.recipe)

    search()
    assert (measuring.calls, measuring.rows, measuring.file.exists()) == (0, [], False)
    encoder.encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (1, [64])
    search()
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    search()
    assert (measuring.calls, measuring.rows) == (1, [64])


def test_indexing_measures_from_a_batch_on_that_pays_it_back(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few = [Document(f"f{number}", text) for number, text in enumerate(TEXTS)]
    tokens = sum(len(row) for row in load_encoder(tiny("bert")).offsets(TEXTS)) + 2 * len(TEXTS)
    monkeypatch.setattr(documents, "MIN_TOKENS", tokens + 1)
    with Index.create(tmp_path / "few", tiny("bert")) as index:
        index.add(few)
    assert (measuring.calls, measuring.rows) == (0, [])
    monkeypatch.setattr(documents, "MIN_TOKENS", tokens)
    with Index.create(tmp_path / "many", tiny("bert")) as index:
        index.add(few)
    assert (measuring.calls, measuring.rows) == (1, [64])
    monkeypatch.setattr(documents, "MIN_TOKENS", tokens + 1)
    with Index.create(tmp_path / "again", tiny("bert")) as index:  # What was measured is used for small ones, too.
        index.add(few)
    assert (measuring.calls, measuring.rows) == (1, [64, 64])


def test_a_precision_is_measured_by_itself_and_int8_not_at_all(
    tiny: Callable[[str], Path], measuring: Measuring
) -> None:
    load_encoder(tiny("bert")).encode(TEXTS)
    plain = load_encoder(tiny("bert"), precision="float32")
    plain.encode(TEXTS)
    assert sorted(each["conditions"]["precision"] for each in measuring.choices()) == ["auto", "float32"]
    assert isinstance(plain, TorchEncoder)
    del measuring.rows[:]
    Int8Encoder(plain).encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (2, [])


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"version": 0, "choices": []}', '{"version": 1, "choices": [{"chosen": "abacus"}]}', "\0"],
)
def test_a_file_that_cannot_be_used_is_measured_again(
    tiny: Callable[[str], Path], measuring: Measuring, content: str
) -> None:
    measuring.file.parent.mkdir(parents=True)
    measuring.file.write_text(content)
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, len(measuring.choices())) == (1, 1)


def test_another_machine_or_library_is_measured_again(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_encoder(tiny("bert")).encode(TEXTS)
    monkeypatch.setattr(choices, "cpu_name", lambda: "Another CPU")
    load_encoder(tiny("bert")).encode(TEXTS)
    monkeypatch.setattr(choices, "version", lambda package: "99")
    load_encoder(tiny("bert")).encode(TEXTS)
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, len(measuring.choices())) == (3, 3)


def test_a_model_that_openvino_cannot_run_stays_on_torch_and_the_reason_is_kept(
    tiny: Callable[[str], Path], measuring: Measuring
) -> None:
    measuring.failure = NotCompilable("it cannot be compiled")
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    for _ in range(2):
        assert np.array_equal(load_encoder(tiny("bert")).encode(TEXTS), wanted)
    (kept,) = measuring.choices()
    assert (kept["chosen"], kept["reason"], kept["tokens_per_second"]) == ("torch", "it cannot be compiled", {})
    measuring.file.unlink()
    measuring.failure, measuring.cosine = None, 0.9989
    assert np.array_equal(load_encoder(tiny("bert")).encode(TEXTS), wanted)
    assert measuring.choices()[0]["reason"] == "OpenVINO's vectors differ from torch's (cosine 0.9989)"


def test_while_another_process_measures_torch_goes_on(tiny: Callable[[str], Path], measuring: Measuring) -> None:
    encoder = load_encoder(tiny("bert"))
    measuring.file.parent.mkdir(parents=True)
    with measuring.file.with_suffix(".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        encoder.encode(TEXTS)
        assert (measuring.calls, measuring.rows) == (0, [])
    encoder.encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (1, [64])


def test_threads_of_one_process_measure_once(tiny: Callable[[str], Path], measuring: Measuring) -> None:
    encoder = load_encoder(tiny("bert"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: encoder.encode(TEXTS), range(8)))
    assert (measuring.calls, measuring.rows) == (1, [64] * 8)


def test_without_a_cache_folder_nothing_is_measured(
    tiny: Callable[[str], Path], measuring: Measuring, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (0, [])


def test_the_environment_overrides_what_was_measured(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(tiny("bert"))
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    encoder.encode(TEXTS[:2])
    encoder.encode(TEXTS[:2], role="query")
    assert measuring.rows == [2]
    monkeypatch.setenv("LIKEWISE_RUNTIME", "torch")
    encoder.encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (0, [2])
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvion")
    with pytest.raises(BadInput, match="LIKEWISE_RUNTIME is 'openvion': set it to auto, torch, openvino"):
        load_encoder(tiny("bert"))


def test_a_graph_that_the_environment_asks_for_is_made_and_compared_with_torch(
    encoder: TorchEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    wanted = encoder.encode(TEXTS[:3])
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    found = encoder.encode(TEXTS[:3])
    assert len([one for one in (tmp_path / "likewise" / "compiled").iterdir() if one.is_dir()]) == 1
    assert (found * wanted).sum(axis=1).min() >= 0.999
    assert not (tmp_path / "likewise" / "runtimes.json").exists()


def test_post_processed_vectors_are_all_of_one_runtime(tiny: Callable[[str], Path], measuring: Measuring) -> None:
    encoder = load_encoder(tiny("bert"))
    rows = np.random.default_rng(0).normal(size=(200, 48)).astype(np.float32)
    fit_post(encoder, rows, "center").encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (0, [])


@pytest.mark.parametrize("asked", ["auto", "openvino"])
def test_what_is_fitted_is_fitted_to_the_runtime_that_it_is_applied_to(
    tiny: Callable[[str], Path],
    measuring: Measuring,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    asked: str,
) -> None:
    monkeypatch.setattr(documents, "MIN_TOKENS", 0)
    monkeypatch.setenv("LIKEWISE_RUNTIME", asked)
    many = [Document(f"d{n}", "dogs " * (n % 7) + "river " * (n % 5) + "bank " * (1 + n % 3)) for n in range(128)]
    with Index.create(tmp_path / "named", f"{tiny('bert')}:mean+center") as index:
        notes = index.add(many).notes
        assert [("which does not run" in note) for note in notes] == [True] * (asked == "openvino")
        assert index.add([Document("more", "dogs watch")]).notes == ()
        unfitted = replace(index.recipe, post_sha256="") if index.recipe else None
    with Index.create(tmp_path / "stored", unfitted) as index:
        assert index.add(many).notes == notes  # Each index tells its own caller.
    plain = load_encoder(f"{tiny('bert')}:mean")
    with Index.create(tmp_path / "given", plain) as index:
        assert Embedding(PassageSettings(64, 0)).sample(plain, many).shape == (128, 48)
    assert (measuring.calls, measuring.rows) == (0, [])


@pytest.mark.parametrize("share", measurement.LENGTH_SHARES)
def test_the_sample_is_batches_as_when_indexing_one_as_full_as_the_other(
    tiny: Callable[[str], Path], share: float
) -> None:
    encoder = load_encoder(tiny("bert"))
    assert isinstance(encoder, TorchEncoder)
    rows = encoder.tokenizer.ids(measurement.sample(encoder, share, 2))
    found = [sum(len(rows[at]) for at in batch) for batch in batches(rows, CPU_BATCH_TOKENS)]
    assert len(found) == 2 * torch.get_num_threads()
    assert min(found) == max(found) > CPU_BATCH_TOKENS - 64
    assert len(rows[0]) == pytest.approx(64 * share, abs=2)


def test_candidates_are_timed_in_turns_by_their_medians(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only the two runs move: OpenVINO once takes far longer than otherwise."""
    encoder = load_encoder(tiny("bert"), runtime="torch")
    assert isinstance(encoder, TorchEncoder)
    clock, order, lengths = [0.0], [], []
    plain = measurement.encode_shared

    def torch_run(encoders: Any, texts: Sequence[str], *arguments: Any, **more: Any) -> Any:
        clock[0] += 0.2
        order.append("torch")
        rows = encoder.tokenizer.ids(texts, truncate=True)
        lengths.append([sum(len(rows[at]) for at in batch) for batch in batches(rows, CPU_BATCH_TOKENS)])
        return plain(encoders, texts, *arguments, **more)

    durations = iter((9.0, 0.1, 9.0, 0.8, 9.0, 0.1, 9.0, 0.1, 9.0, 0.1))  # each length first as a warm-up

    def openvino_run(texts: Sequence[str], truncate: bool) -> Any:
        clock[0] += next(durations)
        order.append("openvino")
        return encoder.encode(texts, truncate=truncate)

    monkeypatch.setattr(measurement, "encode_shared", torch_run)
    monkeypatch.setattr(measurement.time, "perf_counter", lambda: clock[0])
    found = measurement.measure(encoder, SimpleNamespace(encode=openvino_run))  # type: ignore[arg-type]
    both = ["torch", "openvino"]
    assert order == ["torch"] * 2 + [*both, *both, *both, *both[::-1]] * 2 + [*both, *both]
    assert found.tokens_per_second["openvino"] == pytest.approx(2 * found.tokens_per_second["torch"], rel=0.03)
    assert found.shares == pytest.approx((0.5, 4.0, 0.5, 0.5, 0.5))
    assert found.cosine > 0.99999
    assert {len(batch) for batch in lengths} == {torch.get_num_threads()}  # one a core, as this model is slow
    assert min(map(min, lengths)) > CPU_BATCH_TOKENS - 64


def test_a_slow_model_takes_fewer_rounds(tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(tiny("bert"), runtime="torch")
    assert isinstance(encoder, TorchEncoder)
    clock, runs = [0.0], [0]
    vectors = np.ones((2, 48), np.float32)

    def run(*_: Any, **__: Any) -> Any:
        clock[0] += 2.0
        runs[0] += 1
        return [vectors]

    monkeypatch.setattr(measurement, "encode_shared", run)
    monkeypatch.setattr(measurement.time, "perf_counter", lambda: clock[0])
    found = measurement.measure(encoder, SimpleNamespace(encode=lambda *_, **__: run()[0]))  # type: ignore[arg-type]
    assert (len(found.shares), runs) == (2, [10])


def test_an_index_mixes_vectors_of_both_runtimes_and_info_says_which_was_chosen(
    encoder: TorchEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, likewise: Callable[..., Any]
) -> None:
    """With a real graph: the first 64 documents come from OpenVINO, the others from torch."""
    found = Measurement({"torch": 100.0, "openvino": 250.0}, (0.4,) * 5, 1.0)
    monkeypatch.setattr(documents, "MIN_TOKENS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_RUNTIME")
    monkeypatch.setattr(measurement, "measure", lambda *_: found)
    rows: list[int] = []
    plain = CompiledEncoder.encode

    def encode(self: Any, texts: Sequence[str], role: Any = "document", truncate: bool = False) -> Any:
        rows.append(len(texts))
        return plain(self, texts, role, truncate)

    monkeypatch.setattr(CompiledEncoder, "encode", encode)
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"o{number}", text) for number, text in enumerate(TEXTS)])
        index.add([Document(f"t{number}", text) for number, text in enumerate(TEXTS[:8])])
        with store_of(index).snapshot() as snapshot:
            stored = snapshot.sample(100).vectors
        assert index.encoder is encoder
    assert 64 in rows and 8 not in rows
    torch_rows = load_encoder(encoder.recipe, runtime="torch").encode(TEXTS)
    assert (encoder.encode(TEXTS) * torch_rows).sum(axis=1).min() >= 0.999
    assert len(stored) == 72
    assert (stored @ torch_rows.T).max(axis=1).min() >= 0.999
    with pytest.raises(TextTooLong) as caught:
        encoder.encode([*TEXTS, "river " * 70])
    assert (caught.value.index, caught.value.limit) == (64, 64)
    assert caught.value.tokens > 64
    said = likewise("info", tmp_path / "x.index", "--json").json["runtime"]
    assert (said["chosen"], said["decided_by"]) == ("openvino", "measurement")
    assert said["tokens_per_second"] == {"torch": 100.0, "openvino": 250.0}
    assert said["cpu"]
    line = next(line for line in likewise("info", tmp_path / "x.index").out.splitlines() if line.startswith("runtime"))
    speeds = "torch 100, openvino 250"
    assert line == f"runtime    openvino; tokens per second measured here: {speeds}; LIKEWISE_RUNTIME sets another"
    monkeypatch.setenv("LIKEWISE_RUNTIME", "torch")
    assert "runtime    torch, as LIKEWISE_RUNTIME says\n" in likewise("info", tmp_path / "x.index").out


def test_this_suite_and_the_processes_it_starts_never_measure(
    tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_encoder(tiny("bert")).encode(TEXTS)
    assert list(tmp_path.iterdir()) == []
    program = "import os; print(os.environ['LIKEWISE_RUNTIME'])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "torch\n"


@pytest.mark.parametrize(
    ("shares", "chosen", "days"),
    [
        ((0.8, 0.8, 0.8, 0.8, 0.8), "openvino", 30),
        ((0.8, 0.8, 1.2, 0.8, 0.8), "openvino", 30),
        ((0.8, 0.98, 1.2, 0.8, 0.8), "torch", 1),
        ((1.2, 1.2, 0.5, 1.2, 1.2), "torch", 30),
        ((0.8, 1.1), "torch", 1),
    ],
)
def test_openvino_wins_by_nearly_every_round_and_what_was_not_clear_is_soon_measured_again(
    tiny: Callable[[str], Path],
    measuring: Measuring,
    monkeypatch: pytest.MonkeyPatch,
    shares: tuple[float, ...],
    chosen: str,
    days: int,
) -> None:
    measuring.shares = shares
    begun = choices.now()
    load_encoder(tiny("bert")).encode(TEXTS)
    (kept,) = measuring.choices()
    assert kept["chosen"] == chosen
    monkeypatch.setattr(choices, "now", lambda: begun + timedelta(days=days) - timedelta(minutes=1))
    load_encoder(tiny("bert")).encode(TEXTS)
    assert measuring.calls == 1
    monkeypatch.setattr(choices, "now", lambda: begun + timedelta(days=days, minutes=10))
    assert saved_choice(load_encoder(tiny("bert")).recipe) is None
    load_encoder(tiny("bert")).encode(TEXTS)
    assert measuring.calls == 2


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), MemoryError(), RuntimeError("bad alloc")])
def test_what_need_not_fail_again_is_torch_for_this_process_alone(
    tiny: Callable[[str], Path], measuring: Measuring, failure: Exception
) -> None:
    measuring.failure = failure
    encoder = load_encoder(tiny("bert"))
    encoder.encode(TEXTS)
    measuring.failure = None
    encoder.encode(TEXTS)
    assert (measuring.calls, measuring.rows, measuring.choices()) == (0, [], [])
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (1, [64])


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
    measuring: Measuring,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    asked: str,
) -> None:
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    load_encoder(tiny("bert")).encode(TEXTS)
    monkeypatch.setenv("LIKEWISE_RUNTIME", asked)
    encoder = load_encoder(tiny("bert"))
    for passing in (TextTooLong(3, 70, 64), BadInput("no list"), NothingKnown([3], "tiny")):
        measuring.broken = passing
        with pytest.raises(type(passing)):
            encoder.encode(TEXTS)
    measuring.broken = RuntimeError("Exception from\nsrc/inference")
    assert np.array_equal(encoder.encode(TEXTS), wanted)
    assert np.array_equal(encoder.encode(TEXTS), wanted)
    (logged,) = caplog.records
    assert (logged.name, logged.levelname) == ("likewise", "WARNING")
    assert logged.getMessage().endswith("failed (Exception from src/inference): torch embeds documents")
    assert len(measuring.choices()) == (asked == "openvino")


def test_a_caller_is_told_once_that_openvino_failed(
    tiny: Callable[[str], Path], measuring: Measuring, caplog: pytest.LogCaptureFixture
) -> None:
    load_encoder(tiny("bert")).encode(TEXTS)
    measuring.broken = RuntimeError("Exception from src/inference")
    encoder = load_encoder(tiny("bert"))
    notes: list[str] = []
    for _ in range(2):
        documents.for_documents(encoder, documents.MIN_TOKENS, note=notes.append).encode(TEXTS)
    assert notes == [
        "OpenVINO, which was chosen, failed (Exception from src/inference): torch embeds documents",
    ]
    assert caplog.messages == []


def test_openvino_that_cannot_be_opened_again_leaves_torch_and_one_line_in_the_log(
    tiny: Callable[[str], Path], measuring: Measuring, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    load_encoder(tiny("bert")).encode(TEXTS)
    measuring.failure = ModelError("it does not run on this machine's CPU")
    encoder = load_encoder(tiny("bert"))
    assert np.array_equal(encoder.encode(TEXTS), wanted)
    assert np.array_equal(encoder.encode(TEXTS), wanted)
    (logged,) = caplog.messages
    assert logged.startswith("OpenVINO, which was chosen, failed (it does not run on this machine's CPU): torch")
    assert measuring.choices() == []


def test_a_measurement_that_was_killed_leaves_torch_for_a_day(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = choices.now()
    kept: list[str] = []
    plain = measurement.measure

    def measure(*arguments: Any) -> Any:
        kept.append(measuring.file.read_text())
        return plain(*arguments)

    monkeypatch.setattr(measurement, "measure", measure)
    load_encoder(tiny("bert")).encode(TEXTS)
    measuring.file.write_text(kept[0])  # as the kill would have left it
    recipe = load_encoder(tiny("bert")).recipe
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (1, [64])
    choice = saved_choice(recipe)
    assert choice is not None and (choice.chosen, choice.finished) == ("torch", False)
    monkeypatch.setattr(choices, "now", lambda: begun + timedelta(days=1, minutes=10))
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, measuring.rows) == (2, [64, 64])


def test_a_measurement_that_is_interrupted_leaves_nothing(tiny: Callable[[str], Path], measuring: Measuring) -> None:
    measuring.interrupt = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        load_encoder(tiny("bert")).encode(TEXTS)
    assert measuring.choices() == []


def test_what_lost_is_given_back(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(measurement.gc, "collect", lambda: done.append("collected"))
    monkeypatch.setattr(measurement, "_TRIM", lambda _: done.append("trimmed"))
    measuring.speeds = 200.0, 100.0
    load_encoder(tiny("bert")).encode(TEXTS)
    assert done == ["collected", "trimmed"]


def test_without_openvino_torch_embeds_silently(
    tiny: Callable[[str], Path],
    measuring: Measuring,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    with monkeypatch.context() as patched:
        patched.setattr(choices, "version", missing)
        encoder = load_encoder(tiny("bert"))
        encoder.encode(TEXTS)
        assert saved_choice(encoder.recipe) is None
    measuring.failure = ModuleNotFoundError("No module named 'openvino'")
    load_encoder(tiny("bert")).encode(TEXTS)
    assert (measuring.calls, measuring.rows, measuring.choices()) == (0, [], [])
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    encoder = load_encoder(tiny("bert"))
    assert caplog.messages == []
    encoder.encode(TEXTS)
    encoder.encode(TEXTS)
    (logged,) = caplog.messages
    assert logged.startswith("LIKEWISE_RUNTIME asks for openvino, which cannot be imported (No module named")


def test_a_child_that_is_forked_while_another_thread_measures_embeds_with_torch(
    tiny: Callable[[str], Path], measuring: Measuring
) -> None:
    encoder = load_encoder(tiny("bert"))
    assert isinstance(encoder, TorchEncoder) and isinstance(encoder.alternative, fastest.FastestRuntime)
    held = encoder.alternative._lock
    with held, registry._lock:
        fastest._after_fork()  # What a child runs: the locks are another thread's there, and stay so.
        registry._renew_lock()
        encoder.encode(TEXTS)
        assert registry._lock.acquire(blocking=False)
        registry._lock.release()
    assert measuring.rows == []


def test_the_lock_is_open_again_although_a_child_has_inherited_it(measuring: Measuring) -> None:
    with choices.only_process(measuring.file):
        inherited = [os.dup(int(each.name)) for each in Path("/proc/self/fd").iterdir() if _is_lock(each)]
        assert inherited
    with choices.only_process(measuring.file):
        pass
    for each in inherited:
        os.close(each)


def _is_lock(descriptor: Path) -> bool:
    try:
        return descriptor.readlink().name == "runtimes.lock"
    except OSError:
        return False


def test_a_draft_that_cannot_be_written_is_removed(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    measuring.file.parent.mkdir(parents=True)
    monkeypatch.setattr(Path, "write_text", full)
    load_encoder(tiny("bert")).encode(TEXTS)
    assert [file.name for file in measuring.file.parent.iterdir()] == ["runtimes.lock"]
    assert measuring.calls == 0


@pytest.mark.parametrize("broken", ["NaN", "1e999", "-1", '"fast"', "null", "[" * 50 + "]" * 50])
def test_speeds_that_are_none_are_measured_again(
    tiny: Callable[[str], Path], measuring: Measuring, broken: str
) -> None:
    load_encoder(tiny("bert")).encode(TEXTS)
    text = measuring.file.read_text()
    measuring.file.write_text(text.replace('"openvino": 200.0', f'"openvino": {broken}'))
    assert measuring.file.read_text() != text
    load_encoder(tiny("bert")).encode(TEXTS)
    measuring.file.write_text(text.replace(',\n     "openvino": 200.0', "").replace('"openvino": 200.0', ""))
    load_encoder(tiny("bert")).encode(TEXTS)
    measuring.file.write_text('{"version": 2, "choices": ' + "[" * 100_000)
    assert saved_choice(load_encoder(tiny("bert")).recipe) is None
    load_encoder(tiny("bert")).encode(TEXTS)
    assert measuring.calls == 4


def test_info_says_nothing_of_a_runtime_that_is_not_used(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    encoder = load_encoder(f"{tiny('bert')}:mean")
    encoder.encode(TEXTS)
    centred = replace(encoder.recipe, post="center", post_sha256="0" * 64)
    unusual = replace(encoder.recipe, model=str(tmp_path), pooling=None, layers=())
    kinds = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}]
    (tmp_path / "modules.json").write_text(json.dumps(kinds))
    assert runtime_in_use(encoder.recipe) is not None
    assert runtime_in_use(centred) is None
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    assert (said := runtime_in_use(encoder.recipe)) is not None and said.chosen == "openvino"
    assert runtime_in_use(centred) is None
    assert runtime_in_use(unusual) is None
    monkeypatch.setenv("LIKEWISE_RUNTIME", "torch")
    assert (said := runtime_in_use(unusual)) is not None and said.chosen == "torch"


@pytest.mark.parametrize("chosen", ["torch", "openvino"])
def test_an_index_takes_a_copy_of_the_graph_that_was_measured(
    encoder: TorchEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    """It is made once; if torch won, the index's is the only one that is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_RUNTIME")
    found = Measurement({"torch": 1.0, "openvino": 2.0}, ((0.5 if chosen == "openvino" else 2.0),) * 5, 1.0)
    monkeypatch.setattr(measurement, "measure", lambda *_: found)
    made, plain = [], export.write_graph

    def write(*arguments: Any, **more: Any) -> None:
        made.append(arguments)
        plain(*arguments, **more)

    monkeypatch.setattr(export, "write_graph", write)
    folder = tmp_path / "cache" / "likewise" / "compiled" / f"{encoder.recipe.identity}-auto"
    draft = folder.with_name(".killed-1234") / "encoder"
    draft.mkdir(parents=True)
    wanted = encoder.steady().encode(TEXTS)
    encoder.encode(TEXTS)
    assert folder.is_dir() and not draft.parent.exists()
    compile_encoder(encoder, tmp_path / "index")
    assert len(made) == 1
    assert folder.is_dir() == (chosen == "openvino")
    assert (CompiledEncoder.open(tmp_path / "index").encode(TEXTS) * wanted).sum(axis=1).min() > 0.999
    if chosen == "openvino":  # A graph that is damaged is not copied.
        with (folder / "encoder.bin").open("ab") as graph:
            graph.write(b"more")
        compile_encoder(encoder, tmp_path / "another")
        assert len(made) == 2
