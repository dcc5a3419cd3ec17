"""Measuring the speed of both runtimes on texts like those of an index: warmed up, in turns, in batches of its size."""

from __future__ import annotations

import ctypes
import functools
import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from indexer.encoders.port import Encoder
from indexer.encoders.torch.encoder import TorchEncoder, encode_shared
from indexer.records import Vector

MIN_SECONDS = 1.0
"""Rounds are measured until this much time has passed."""

MAX_SECONDS = 3.0
"""No round begins after this much time: the limit for large models on small machines."""

MIN_ROUNDS, ENOUGH_ROUNDS, MAX_ROUNDS = 2, 5, 15
"""Number of rounds: the fewest at all, the fewest if MAX_SECONDS allows, and the most."""

RUN_SECONDS = 0.1
"""Desired duration of one run of one runtime. A run has at least one batch per core, so a slow model takes longer."""

MAX_TEXT_TOKENS = 512
"""Most tokens of one text: some models read 8,192 tokens, and a single such text would take seconds."""

LENGTH_SHARES = 1.0, 0.85, 0.7, 0.95, 0.4
"""Lengths of the texts, round by round, as shares of the longest: most passages nearly fill what the model reads."""

_MAX_BATCHES_PER_CORE = 3
"""Most batches per core in one run."""

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The outcome of measuring both runtimes.

    Attributes:
        tokens_per_second: median speed of "torch" and of "openvino".
        shares: OpenVINO's time divided by torch's, round by round.
        cosine: the lowest cosine between the two vectors of a text.
    """

    tokens_per_second: dict[str, float]
    shares: tuple[float, ...]
    cosine: float


_TEXT = (
    "The harbour town grew where two rivers meet the sea, and its market still opens before sunrise. Fishermen sell "
    "mackerel and crabs; bakers carry warm loaves of rye past the old customs house, built in 1764. In the second "
    "paper, 48 patients received either 20 mg of the compound or a placebo for twelve weeks; blood pressure fell by "
    "9.3 mmHg on average (95% CI 6.1 to 12.5), while heart rate did not change. To configure the server, set the "
    "timeout to 30 seconds, restart the process, and check that no error appears in the log: the function returns "
    "None when a key is missing. Why do leaves turn red? As days shorten, chlorophyll breaks down and other pigments "
    "show. The tenant shall notify the landlord in writing within fourteen days of any defect, failing which the "
    "claim expires. She had never seen snow before, and laughed as the first flakes melted on her sleeve. "
)


def measure(torch_encoder: TorchEncoder, compiled: Encoder) -> Measurement:
    """Time both runtimes on built-in English texts. Raises what encoding raises."""
    one_batch = sample(torch_encoder, LENGTH_SHARES[0])
    batch_seconds = min(_seconds(lambda: _on_torch(torch_encoder, one_batch)) for _ in range(2))
    batches = int(min(_MAX_BATCHES_PER_CORE, max(1.0, RUN_SECONDS / max(batch_seconds, 1e-9))))
    speeds: dict[str, list[float]] = {"torch": [], "openvino": []}
    shares, cosines = [], []
    start = time.perf_counter()
    for number in range(MAX_ROUNDS):
        texts = sample(torch_encoder, LENGTH_SHARES[number % len(LENGTH_SHARES)], batches)
        runs: dict[str, Callable[[], Vector]] = {
            "torch": functools.partial(_on_torch, torch_encoder, texts),
            "openvino": functools.partial(compiled.encode, texts, truncate=True),
        }
        if number < len(LENGTH_SHARES):  # The first run on texts of a length is slower: it is compared, not timed.
            warm_up = time.perf_counter()
            first, second = (run() for run in runs.values())
            cosines.append(float((first * second).sum(axis=1).min()))
            start += time.perf_counter() - warm_up
        tokens = sum(len(row) for row in torch_encoder.tokenizer.ids(texts, truncate=True))
        order = list(runs) if number % 2 == 0 else list(runs)[::-1]  # Neither runtime is always the first.
        seconds = {name: _seconds(runs[name]) for name in order}
        for name, duration in seconds.items():
            speeds[name].append(tokens / duration)
        shares.append(seconds["openvino"] / seconds["torch"])
        elapsed = time.perf_counter() - start
        if len(shares) >= MIN_ROUNDS and elapsed > (MIN_SECONDS if len(shares) >= ENOUGH_ROUNDS else MAX_SECONDS):
            break
    medians = {name: round(statistics.median(speed), 1) for name, speed in speeds.items()}
    return Measurement(medians, tuple(shares), min(cosines))


def _on_torch(encoder: TorchEncoder, texts: list[str]) -> Vector:
    return encode_shared([encoder], texts, "document", True, per_core=True)[0]


def give_memory_back() -> None:
    """Free unused memory, including weights in reference cycles, and return it to the system if glibc keeps it."""
    gc.collect()
    if _TRIM is not None:
        _TRIM(0)


def sample(encoder: TorchEncoder, share: float, batches: int = 1) -> list[str]:
    """Return texts of one length that fill this many of torch's batches per core.

    Indexing sorts texts by length, so that the texts of its batches have similar lengths too. Equal batches keep one
    core from waiting for another.

    Args:
        share: length of the texts, as a share of the longest that the model reads, or of MAX_TEXT_TOKENS.
        batches: number of batches per core.
    """
    import torch

    longest = max(1, min(encoder.max_tokens, MAX_TEXT_TOKENS) - encoder.overhead())
    text = _TEXT
    while len(spans := encoder.offsets([text])[0]) < longest:
        text += _TEXT
    text = text[: spans[max(1, round(longest * share)) - 1, 1]]
    tokens = len(encoder.tokenizer.ids([text], truncate=True)[0])
    return [text] * (max(1, encoder.batch_tokens // tokens) * batches * torch.get_num_threads())


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
