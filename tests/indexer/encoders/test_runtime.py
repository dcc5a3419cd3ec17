"""The runtime for many documents: measured once, kept, passed over where it cannot be used. All speeds are made up."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index
from indexer.embedding import Embedding
from indexer.encoders import choices, documents, fit_post, load_encoder, measurement, query_encoder, runtime, shared
from indexer.encoders.choices import saved_choice
from indexer.encoders.compiled import CompiledEncoder
from indexer.encoders.int8 import Int8Encoder
from indexer.encoders.torch_encoder import TorchEncoder
from indexer.errors import BadInput, ModelError, TextTooLong
from indexer.passages import PassageSettings
from search.explain import with_sentences
from search.hits import Hit
from search.pairs import embed

TEXTS = [f"dogs watch river number {number}" for number in range(64)]


@dataclass
class Measuring:
    """What a measurement will find, and how often there was one.

    Attributes:
        speeds: of torch and OpenVINO, in tokens per second.
        cosine: the lowest between their vectors.
        failure: why the model cannot be compiled.
        rows: how many texts went to OpenVINO, call by call.
    """

    file: Path
    speeds: tuple[float, float] = (100.0, 200.0)
    cosine: float = 0.9999
    failure: str = ""
    calls: int = 0
    rows: list[int] = field(default_factory=list)

    def choices(self) -> list[dict[str, Any]]:
        return json.loads(self.file.read_text())["choices"]


@pytest.fixture
def encoder(tiny: Callable[[str], Path]) -> TorchEncoder:
    """What the command line loads as well, whatever model it names."""
    loaded = load_encoder(f"{tiny('bert')}:mean")
    assert isinstance(loaded, TorchEncoder)
    return loaded


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measuring:
    """A user whose cache is empty, with a measurement and an OpenVINO that are made up."""
    monkeypatch.delenv("LIKEWISE_RUNTIME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Measuring(tmp_path / "cache" / "likewise" / "runtimes.json")

    def measure(torch_encoder: TorchEncoder, compiled: Any) -> tuple[dict[str, float], float]:
        found.calls += 1
        return dict(zip(("torch", "openvino"), found.speeds, strict=True)), found.cosine

    def compiled(torch_encoder: TorchEncoder, precision: str, threads: int) -> Any:
        if found.failure:
            raise ModelError(found.failure)

        def encode(texts: Sequence[str], role: str = "document", truncate: bool = False) -> np.ndarray:
            found.rows.append(len(texts))
            return np.eye(len(texts), torch_encoder.dimensions, dtype=np.float32)

        return SimpleNamespace(encode=encode)

    monkeypatch.setattr(measurement, "measure", measure)
    monkeypatch.setattr(runtime, "_compiled", compiled)
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
    with pytest.raises(BadInput, match="are no list but int"):
        encoder.encode(7)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="one string was given"):
        encoder.encode("a" * 100)


def test_searching_never_measures_and_never_switches(
    tiny: Callable[[str], Path], measuring: Measuring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even with an encoder that is shared with who indexes, and when OpenVINO was chosen for that."""
    monkeypatch.setattr(shared, "_loaded", {})
    encoder = load_encoder(tiny("bert"))
    hits = [Hit(f"h{n}", "", ". ".join(TEXTS[:32]) + ".", 0, 999, 1.0, 1.0) for n in range(3)]
    question = np.ones(encoder.dimensions, np.float32)

    def search() -> None:
        assert all(hit.why and hit.why["sentence"] for hit in with_sentences(hits, encoder, question))
        asked = query_encoder(encoder.recipe, tmp_path / "no graph", lambda: None)
        assert query_encoder(encoder.recipe, tmp_path / "no graph", lambda: None).encode(TEXTS).shape == (64, 48)
        assert asked.encode(TEXTS).shape == (64, 48)
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
    measuring.failure = "it cannot be compiled"
    wanted = load_encoder(tiny("bert"), runtime="torch").encode(TEXTS)
    for _ in range(2):
        assert np.array_equal(load_encoder(tiny("bert")).encode(TEXTS), wanted)
    (kept,) = measuring.choices()
    assert (kept["chosen"], kept["reason"], kept["tokens_per_second"]) == ("torch", "it cannot be compiled", {})
    measuring.file.unlink()
    measuring.failure, measuring.cosine = "", 0.9989
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
    assert len(list((tmp_path / "likewise" / "compiled").iterdir())) == 1
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
        index.add(many)
        unfitted = replace(index.recipe, post_sha256="") if index.recipe else None
    with Index.create(tmp_path / "stored", unfitted) as index:
        index.add(many)
    plain = load_encoder(f"{tiny('bert')}:mean")
    with Index.create(tmp_path / "given", plain) as index:
        assert Embedding(PassageSettings(64, 0)).sample(plain, many).shape == (128, 48)
    assert (measuring.calls, measuring.rows) == (0, [])


def test_the_sample_has_long_and_short_texts_that_the_model_reads_whole(tiny: Callable[[str], Path]) -> None:
    encoder = load_encoder(tiny("bert"))
    assert isinstance(encoder, TorchEncoder)
    lengths = [len(row) for row in encoder.tokenizer.ids(measurement.sample(encoder, 3000))]
    assert 3000 <= sum(lengths) < 3000 + 64
    assert max(lengths) <= 64
    assert sum(length >= 45 for length in lengths) / len(lengths) == pytest.approx(0.6, abs=0.05)
    assert min(lengths) < 16


def test_candidates_are_timed_in_turns_by_their_medians(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only the two runs move: OpenVINO once takes far longer than otherwise."""
    encoder = load_encoder(tiny("bert"), runtime="torch")
    assert isinstance(encoder, TorchEncoder)
    clock, order = [0.0], []
    plain = measurement.encode_shared

    def torch_run(*arguments: Any) -> Any:
        clock[0] += 0.2
        order.append("torch")
        return plain(*arguments)

    durations = iter((9.0, 0.1, 0.8, 0.1))

    def openvino_run(texts: Sequence[str], truncate: bool) -> Any:
        clock[0] += next(durations)
        order.append("openvino")
        return encoder.encode(texts, truncate=truncate)

    monkeypatch.setattr(measurement, "encode_shared", torch_run)
    monkeypatch.setattr(measurement.time, "perf_counter", lambda: clock[0])
    speeds, cosine = measurement.measure(encoder, SimpleNamespace(encode=openvino_run))  # type: ignore[arg-type]
    assert order == ["torch", "torch", *["torch", "openvino"] * 4]
    assert speeds["openvino"] == pytest.approx(2 * speeds["torch"], rel=1e-4)
    assert cosine > 0.99999


def test_an_index_mixes_vectors_of_both_runtimes_and_info_says_which_was_chosen(
    encoder: TorchEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, likewise: Callable[..., Any]
) -> None:
    """With a real graph: the first 64 documents come from OpenVINO, the others from torch."""
    monkeypatch.setattr(documents, "MIN_TOKENS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_RUNTIME")
    monkeypatch.setattr(measurement, "measure", lambda *_: ({"torch": 100.0, "openvino": 250.0}, 1.0))
    rows: list[int] = []
    plain = CompiledEncoder.encode

    def encode(self: Any, texts: Sequence[str], role: Any = "document", truncate: bool = False) -> Any:
        rows.append(len(texts))
        return plain(self, texts, role, truncate)

    monkeypatch.setattr(CompiledEncoder, "encode", encode)
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"o{number}", text) for number, text in enumerate(TEXTS)])
        index.add([Document(f"t{number}", text) for number, text in enumerate(TEXTS[:8])])
        with index.store.snapshot() as snapshot:
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
    assert line.startswith("runtime    openvino, by tokens a second: torch 100, openvino 250 (measured on ")
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
