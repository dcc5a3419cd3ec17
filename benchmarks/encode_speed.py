"""Indexing throughput of the encoder beside sentence-transformers and, if it is installed, txtai, in one run.

    python -m benchmarks.encode_speed [--texts 512] [--repeats 5] [--profile] [--compile]
    python -m benchmarks.encode_speed --models [NAME ...] [--calls 32 6] [--cpu]
    python -m benchmarks.encode_speed --rule
    python -m benchmarks.encode_speed --pairs [NAME ...] [--calls 32 10] [--cpu]

Real text (SciFact titles and abstracts cut at 256 tokens, from $LIKEWISE_EVAL_DATA), the default model, the same
threads for everybody, repeats taken in turn, medians. Beside the ratio it prints the fraction reached of this
machine's matrix product in the precision of `auto`, measured in the same run, and with --profile where the time goes.
--compile prints only the CPU seconds of compiling the model for OpenVINO and of both runtimes, with one thread each,
for passages and for their titles, and the number of texts after which OpenVINO has repaid compiling. --models prints
the wall time of calls of 32 and of 6 passages (--calls) for the architectures of REAL_SIZES with random weights: both
runtimes of likewise beside sentence-transformers, and, for what likewise computes itself, the path through
transformers with the same batches. --pairs prints the pairs per second of cross-encoders: one question with as many
passages as a call has. --cpu prints CPU seconds with one thread: other programs disturb them less. --rule prints the
runtime that runtime_rule.py chooses on this kind of CPU, with how many times as fast OpenVINO is as torch, for texts of
each length, 6 and 512 in a call, each the best of seven rounds in turn. ATEN_CPU_CAPABILITY=avx2
ONEDNN_MAX_CPU_ISA=AVX2, which torch and OpenVINO obey, limit a larger CPU, and its figures are marked.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.architectures import REAL_SIZES, make_folder
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer.encoders import cross_encoder
from indexer.encoders.load import load_encoder
from indexer.encoders.machine.hardware import cpu_features
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.torch.automodel import AutoModel
from indexer.encoders.torch.cross_encoder import CrossEncoderScorer
from indexer.encoders.torch.encoder import TorchEncoder
from likewise.speed.compilation.export import compile_encoder, compile_in_cache
from likewise.speed.runtime_rule import choose_runtime, kind_of

LAYERS, HIDDEN, INNER = 6, 384, 1536
RULE_TOKENS, RULE_TEXTS = (20, 60, 120, 240), (6, 512)
CEILING = 2048  # rows, columns and depth of the matrix product


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--rule", action="store_true")
    parser.add_argument("--models", nargs="*", choices=REAL_SIZES, metavar="NAME")
    parser.add_argument("--pairs", nargs="*", choices=REAL_SIZES, metavar="NAME")
    parser.add_argument("--calls", nargs="+", type=int, metavar="TEXTS")
    parser.add_argument("--cpu", action="store_true")
    arguments = parser.parse_args()
    print(machine())
    if arguments.models is not None:
        models, calls = arguments.models or list(REAL_SIZES), arguments.calls or [32, 6]
        return _models(models, calls, arguments.repeats, cpu=arguments.cpu)
    if arguments.pairs is not None:
        models, calls = arguments.pairs or ["MiniLM (6 layers)", "BERT base"], arguments.calls or [32, 10]
        return _pairs(models, calls, arguments.repeats, cpu=arguments.cpu)
    if arguments.compile:
        return _compiling(arguments.texts, arguments.repeats)
    if arguments.rule:
        return _rule()
    texts = _texts(arguments.texts)
    fast = load_encoder(DEFAULT_MODEL, runtime="torch")
    assert isinstance(fast, TorchEncoder)
    contenders = _contenders(texts, fast)
    seconds = _in_turns(contenders, arguments.repeats)
    reference = "sentence-transformers float32"
    lengths = [len(row) for row in fast.tokenizer.ids(texts, truncate=True)]
    print(f"{len(texts)} texts, {statistics.mean(lengths):.0f} tokens each, {_threads()} threads\n")
    print("| | texts/s | tokens/s | ratio | of the product | lowest cosine |\n|" + " --- |" * 6)
    exact = load_encoder(DEFAULT_MODEL, runtime="torch", precision="float32").encode(texts, truncate=True)
    ceiling = 2 * CEILING**3 / seconds["product"]
    for name, run in contenders.items():
        if name == "product":
            continue
        cosine = float((exact * run()).sum(axis=1).min())
        reached = sum(map(operations, lengths)) / seconds[name] / ceiling
        rates = f"{len(texts) / seconds[name]:.1f} | {sum(lengths) / seconds[name]:,.0f}"
        print(f"| {name} | {rates} | {seconds[reference] / seconds[name]:.2f} | {reached:.0%} | {cosine:.4f} |")
    print(
        f"\nproduct of this machine in {dtype_name(fast)}: {ceiling / 1e12:.2f} TFLOP/s; "
        f"{_tokenising(fast, texts):.1%} of likewise's time is the tokenizer"
    )
    choice = choose_runtime("auto", fast.device)
    print(f"the rule chooses {choice.name}: {choice.reason}")
    if arguments.profile:
        _profile(fast, texts)


def _compiling(count: int, repeats: int) -> None:
    """Print the CPU seconds of compiling and of both runtimes, with one thread, and the texts that repay compiling."""
    import torch

    torch.set_num_threads(1)  # CPU seconds of several threads would also count the time in which they wait.
    fast = load_encoder(DEFAULT_MODEL, runtime="torch")
    with tempfile.TemporaryDirectory() as temporary:
        start = time.process_time()
        compile_encoder(fast, Path(temporary) / "encoder")
        compiled = CompiledEncoder.open(Path(temporary) / "encoder", threads=1)
        cost = time.process_time() - start
    print(f"compiling and opening: {cost:.1f} s of CPU")
    # A title has a tenth of the tokens of its passage.
    for kind, texts in {"passages": _texts(count), "titles": _titles(8 * count)}.items():
        contenders = {
            "torch": lambda texts=texts: fast.encode(texts, truncate=True),
            "OpenVINO": lambda texts=texts: compiled.encode(texts, truncate=True),
        }
        seconds = _in_turns(contenders, repeats, time.process_time)
        tokens = statistics.mean(len(row) for row in fast.tokenizer.ids(texts, truncate=True))
        runs = ", ".join(f"{name} {taken:.2f}" for name, taken in seconds.items())
        print(f"{len(texts)} {kind} of {tokens:.0f} tokens: {runs} s of CPU", end="; ")
        saved = (seconds["torch"] - seconds["OpenVINO"]) / len(texts)
        print(f"compiling is repaid after {cost / saved:,.0f}" if saved > 0 else "OpenVINO never repays compiling")


def _rule() -> None:
    """Print the runtime that the rule chooses for this kind of CPU, with how much OpenVINO gains."""
    fast = load_encoder(DEFAULT_MODEL, runtime="torch")
    assert isinstance(fast, TorchEncoder)
    compiled = CompiledEncoder.open(compile_in_cache(fast), threads=_threads())
    limited = os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2"
    own = kind_of("avx2" if limited else cpu_features())
    abstracts = [(text, ends) for text in _texts(1000) if len(ends := fast.offsets([text])[0]) >= max(RULE_TOKENS)]
    print(f"{_threads()} threads; how many times as fast OpenVINO is as torch\n")
    print(f"| CPUs with | the rule | texts | {' | '.join(f'{tokens} tokens' for tokens in RULE_TOKENS)} |")
    print("|" + " --- |" * (3 + len(RULE_TOKENS)))
    for count in RULE_TEXTS:
        calls = [[text[: ends[tokens - 3][1]] for text, ends in abstracts[:count]] for tokens in RULE_TOKENS]
        cells = [f"{_gained(fast, compiled, texts):.2f}" + limited * " (limited)" for texts in calls]
        print(f"| {own.name} | {own.runtime} | {count} | {' | '.join(cells)} |", flush=True)


def _gained(fast: Encoder, compiled: Encoder, texts: list[str]) -> float:
    """Return how many times as fast the compiled encoder is, by the best of seven rounds in turn."""
    seconds = _in_turns(
        {"torch": partial(fast.encode, texts), "OpenVINO": partial(compiled.encode, texts)}, 7, pick=min
    )
    return seconds["torch"] / seconds["OpenVINO"]


def _clock(*, cpu: bool) -> Callable[[], float]:
    """Return the clock: of CPU time, with one thread from now on, or of wall time."""
    import torch

    if cpu:
        torch.set_num_threads(1)
    return time.process_time if cpu else time.perf_counter


def _pairs(names: list[str], calls: list[int], repeats: int, *, cpu: bool) -> None:
    """Print the pairs per second of cross-encoders with random weights, and the ratio to float32 (in brackets)."""
    import torch
    from sentence_transformers import CrossEncoder

    clock = _clock(cpu=cpu)
    print(f"{_threads()} threads, pairs per second\n")
    print("| model | pairs a call | float32 | bfloat16 | likewise, float32 | likewise, bfloat16 |\n|" + " --- |" * 6)
    question = "Does vitamin D reduce the risk of respiratory infections?"
    for name in names:
        kind, settings = REAL_SIZES[name]
        with tempfile.TemporaryDirectory() as temporary:
            settings = {**settings, "num_labels": 1}
            folder = make_folder(kind, Path(temporary) / "model", settings, head="ForSequenceClassification")
            ways: dict[str, Callable[[str, list[str]], Any]] = {
                "float32": CrossEncoderScorer(CrossEncoder(str(folder), device="cpu")),
                "bfloat16": CrossEncoderScorer(CrossEncoder(str(folder), device="cpu").to(torch.bfloat16)),
                "likewise": cross_encoder(str(folder)),
                "likewise bfloat16": cross_encoder(str(folder), "bfloat16"),
            }
            for texts in map(_texts, calls):
                seconds = _in_turns({way: partial(run, question, texts) for way, run in ways.items()}, repeats, clock)
                base = seconds["float32"]
                cells = [f"{len(texts) / taken:.1f} ({base / taken:.2f})" for taken in seconds.values()]
                print(f"| {name} | {len(texts)} | {' | '.join(cells)} |", flush=True)


def _models(names: list[str], calls: list[int], repeats: int, *, cpu: bool) -> None:
    """Print how many times as fast as sentence-transformers in float32 (in brackets: bfloat16) each model is."""
    clock = _clock(cpu=cpu)
    choice = choose_runtime("auto", "cpu")
    print(f"{_threads()} threads; the rule chooses {choice.name}: {choice.reason}\n")
    print("| model | texts a call | seconds, float32 | torch | OpenVINO | torch to transformers |\n|" + " --- |" * 6)
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            folder = make_folder(REAL_SIZES[name][0], Path(temporary) / "model", REAL_SIZES[name][1])
            ways = _ways(folder)
            for texts in map(_texts, calls):
                seconds = _in_turns({way: partial(run, texts) for way, run in ways.items()}, repeats, clock)
                whole, half = seconds["float32"], seconds["bfloat16"]
                cells = [f"{whole / seconds[way]:.1f} ({half / seconds[way]:.1f})" for way in ("torch", "OpenVINO")]
                through = f"{seconds['transformers'] / seconds['torch']:.2f}" if "transformers" in seconds else ""
                print(f"| {name} | {len(texts)} | {whole:.2f} | {' | '.join(cells)} | {through} |", flush=True)


def _ways(folder: Path) -> dict[str, Callable[[list[str]], Any]]:
    """Return the ways of encoding texts with a model whose weights are random."""
    import torch
    from sentence_transformers import SentenceTransformer

    fast = load_encoder(folder, runtime="torch", max_tokens=256)
    assert isinstance(fast, TorchEncoder)
    compiled = CompiledEncoder.open(compile_in_cache(fast), threads=_threads())
    ways: dict[str, Callable[[list[str]], Any]] = {
        "float32": SentenceTransformer(str(folder), device="cpu").encode,
        "bfloat16": SentenceTransformer(str(folder), device="cpu").to(torch.bfloat16).encode,
        "torch": partial(fast.encode, truncate=True),
        "OpenVINO": partial(compiled.encode, truncate=True),
    }
    if not isinstance(fast.transformer, AutoModel):
        library = replace(fast, transformer=AutoModel(folder, fast.transformer.dtype, "cpu", False))
        ways["transformers"] = partial(library.encode, truncate=True)
    return ways


def _contenders(texts: list[str], fast: TorchEncoder) -> dict[str, Callable[[], Any]]:
    import torch
    from sentence_transformers import SentenceTransformer

    folder = str(find_model(DEFAULT_MODEL))
    square = torch.randn(CEILING, CEILING, dtype=fast.transformer.dtype)
    encoders = {
        "likewise, OpenVINO": load_encoder(DEFAULT_MODEL, runtime="openvino"),
        f"likewise, torch {dtype_name(fast)}": fast,
        "likewise, auto": load_encoder(DEFAULT_MODEL),
        "likewise, torch int8": load_encoder(DEFAULT_MODEL, precision="int8"),
    }
    plain: dict[str, Any] = {"sentence-transformers float32": SentenceTransformer(folder, device="cpu")}
    if square.dtype == torch.bfloat16:  # Without hardware for it, it takes far longer than float32.
        plain["sentence-transformers bfloat16"] = SentenceTransformer(folder, device="cpu").to(torch.bfloat16)
        encoders["likewise, torch float32"] = load_encoder(DEFAULT_MODEL, runtime="torch", precision="float32")
    ways: dict[str, Callable[[], Any]] = {name: partial(model.encode, texts) for name, model in plain.items()}
    if importlib.util.find_spec("txtai") is not None:
        from txtai import Embeddings  # type: ignore[import-not-found]  # installed for this benchmark alone

        ways["txtai float32"] = partial(Embeddings(path=folder, maxlength=fast.max_tokens).batchtransform, texts)
    ways |= {name: partial(encoder.encode, texts, truncate=True) for name, encoder in encoders.items()}
    return {**ways, "product": lambda: square @ square}


def _in_turns(
    contenders: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
    pick: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """Median seconds of each by a clock, or another pick of them, after one run to warm up."""
    for run in contenders.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            start = clock()
            run()
            taken[name].append(clock() - start)
    return {name: pick(times) for name, times in taken.items()}


def dtype_name(encoder: TorchEncoder) -> str:
    return str(encoder.transformer.dtype).removeprefix("torch.")


def operations(tokens: int) -> int:
    """Floating-point operations of one text: products of weights, and attention's two."""
    return LAYERS * (2 * tokens * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * INNER) + 4 * tokens * tokens * HIDDEN)


def _tokenising(fast: TorchEncoder, texts: list[str]) -> float:
    start = time.perf_counter()
    fast.tokenizer.ids(texts, truncate=True)
    middle = time.perf_counter()
    fast.encode(texts, truncate=True)
    return (middle - start) / (time.perf_counter() - middle)


def _profile(fast: TorchEncoder, texts: list[str]) -> None:
    """Time by operator; the products hold the activation and the residual, which are fused into them."""
    import torch

    torch.set_num_threads(1)  # all is then done in this thread, the one that is watched
    with torch.profiler.profile() as profile:
        fast.encode(texts, truncate=True)
    print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=10, max_name_column_width=60))


def _texts(count: int) -> list[str]:
    return [f"{row['title']} {row['text']}" for row in _rows(count)]


def _titles(count: int) -> list[str]:
    return [str(row["title"]) for row in _rows(count)]


def _rows(count: int) -> list[dict[str, Any]]:
    folder = evaluation_data() / "scifact"
    return list(map(json.loads, (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:count]))


def _threads() -> int:
    import torch

    return torch.get_num_threads()


if __name__ == "__main__":
    main()
