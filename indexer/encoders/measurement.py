"""The speed of both runtimes on texts as an index has them: warmed up, in turns, medians, about a second in all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from indexer.encoders.encoder import Encoder
from indexer.encoders.torch_encoder import CPU_BATCH, TorchEncoder, encode_shared
from indexer.records import Vector

ROUNDS = 3
RUN_SECONDS = 0.25
"""Aimed at for one run of one runtime."""

MAX_SECONDS = 2.0
"""After a round that ends later than this, no further one begins: for large models on small machines."""

MAX_TOKENS = 512
"""Of a text: some models read 8,192 tokens, and a single such text would take seconds."""

_MIN_BATCH = 256
_BATCHES_PER_THREAD = 3
"""Torch runs one batch per core; with fewer batches one core would wait for another at the end of a run."""

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


def measure(torch_encoder: TorchEncoder, compiled: Encoder) -> tuple[dict[str, float], float]:
    """Tokens per second of `torch` and `openvino`, and the lowest cosine between their vectors.

    Encodes English texts of its own. Raises what encoding raises.
    """
    batch = _batch_tokens(torch_encoder)
    texts = sample(torch_encoder, batch * _batches())
    runs: dict[str, Callable[[], Vector]] = {
        "torch": lambda: encode_shared([torch_encoder], texts, "document", True, batch)[0],
        "openvino": lambda: compiled.encode(texts, truncate=True),
    }
    first, second = (run() for run in runs.values())  # This also makes both ready for the lengths of the texts.
    tokens = sum(len(row) for row in torch_encoder.tokenizer.ids(texts, truncate=True))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    start = time.perf_counter()
    for _ in range(ROUNDS):
        for name, run in runs.items():
            seconds[name].append(_seconds(run))
        if time.perf_counter() - start > MAX_SECONDS:
            break
    speeds = {name: round(tokens / statistics.median(taken), 1) for name, taken in seconds.items()}
    return speeds, float((first * second).sum(axis=1).min())


def sample(encoder: TorchEncoder, tokens: int) -> list[str]:
    """Texts that have so many tokens together: three in five nearly fill a passage, the others are shorter."""
    longest = max(1, min(encoder.max_tokens, MAX_TOKENS) - encoder.overhead())
    text = _TEXT
    while len(spans := encoder.offsets([text])[0]) < longest:
        text += _TEXT
    random = np.random.default_rng(0)
    texts: list[str] = []
    total = 0
    while total < tokens:
        low, high = ((0.7, 1.0), (0.7, 1.0), (0.7, 1.0), (0.25, 0.7), (0.03, 0.25))[len(texts) % 5]
        length = max(1, round(longest * float(random.uniform(low, high))))
        texts.append(text[: spans[length - 1, 1]])
        total += length + encoder.overhead()
    return texts


def _batch_tokens(encoder: TorchEncoder) -> int:
    """Tokens of torch's batches: as when indexing, or fewer if the sample would take far longer than RUN_SECONDS."""
    few = sample(encoder, _MIN_BATCH)
    _seconds(lambda: encode_shared([encoder], few, "document", True))
    per_token = _seconds(lambda: encode_shared([encoder], few, "document", True)) / _MIN_BATCH
    return int(min(CPU_BATCH, max(_MIN_BATCH, RUN_SECONDS / per_token / _batches())))


def _batches() -> int:
    import torch

    return _BATCHES_PER_THREAD * torch.get_num_threads()


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
