"""Which runtime many documents are embedded with: measured at its first use per model and machine, then kept.

Questions never come here. The kept choices are in choices.py; how the candidates are timed is in measurement.py.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.encoders.choices import (
    Choice,
    Conditions,
    Runtime,
    choices_file,
    find_choice,
    only_process,
    override,
    save_choice,
)
from indexer.encoders.compiled import CompiledEncoder
from indexer.encoders.encoder import Encoder
from indexer.encoders.hardware import Precision, cores
from indexer.errors import LikewiseError

if TYPE_CHECKING:
    from indexer.encoders.torch_encoder import TorchEncoder

MIN_TEXTS = 64
"""Documents encoded together from which on measuring, and opening a second runtime, can pay."""

MIN_COSINE = 0.999
"""Between the vectors of both runtimes: an index may hold vectors of either."""

MARGIN = 0.03
"""Share of time that OpenVINO must save to be chosen: torch is loaded already, and a measurement varies."""


class FastestRuntime:
    """Finds the encoder for many documents at once; part of a `TorchEncoder` and shared by threads.

    A process that measures has others go on with torch meanwhile; they look again at their next call.
    """

    def __init__(self, precision: Precision) -> None:
        """`precision` as the caller asked for it."""
        self._precision: Precision = precision
        self._lock = threading.Lock()
        self._found: dict[Runtime, Encoder | None] = {}  # by what the environment asks for

    def encoder(self, torch_encoder: TorchEncoder, texts: int, measure: bool) -> Encoder | None:
        """The encoder that so many documents should go to, or None for torch itself; `measure` if nothing is known."""
        asked = override()
        if asked == "torch" or (asked == "auto" and texts < MIN_TEXTS):
            return None
        with self._lock:
            if asked not in self._found:
                # Another process is measuring, or this is not the time to: ask again at the next call.
                with suppress(BlockingIOError):
                    self._found[asked] = self._decide(torch_encoder, asked, measure)
            return self._found.get(asked)

    def _decide(self, torch_encoder: TorchEncoder, asked: Runtime, measure: bool) -> Encoder | None:
        import torch

        threads = torch.get_num_threads()
        if asked == "auto" and self._choice(torch_encoder, threads, measure).chosen == "torch":
            return None
        try:
            return _compiled(torch_encoder, self._precision, threads)
        except (LikewiseError, OSError):
            return None  # It was deleted and cannot be made again, or it was never possible.

    def _choice(self, torch_encoder: TorchEncoder, threads: int, measure: bool) -> Choice:
        """The saved choice, or a new one; BlockingIOError if another process is measuring or this one is not to."""
        file = choices_file()
        conditions = Conditions.here(torch_encoder.recipe, self._precision, threads)
        if (known := find_choice(file, conditions)) is not None:
            return known
        if not measure:
            raise BlockingIOError
        try:
            with only_process(file):
                if (known := find_choice(file, conditions)) is not None:  # The other process has just saved it.
                    return known
                choice = _measured(torch_encoder, conditions)
                save_choice(file, choice)
                if choice.chosen == "torch":
                    _opened.cache_clear()  # The graph is not needed again; those in use stay with their encoders.
                return choice
        except BlockingIOError:
            raise
        except OSError as error:  # Without a cache every process would compile and measure again.
            return _choose(conditions, {}, f"the cache folder cannot be written ({error})")


def _measured(torch_encoder: TorchEncoder, conditions: Conditions) -> Choice:
    from indexer.encoders.measurement import measure

    precision: Precision = conditions.precision  # type: ignore[assignment]
    try:
        compiled = _compiled(torch_encoder, precision, conditions.threads)
        speeds, cosine = measure(torch_encoder, compiled)
    except (LikewiseError, RuntimeError) as error:  # OpenVINO raises RuntimeError for what it cannot run.
        return _choose(conditions, {}, " ".join(str(error).split())[:300])
    if cosine < MIN_COSINE:
        return _choose(conditions, {}, f"OpenVINO's vectors differ from torch's (cosine {cosine:.4f})")
    return _choose(conditions, speeds, "")


def _choose(conditions: Conditions, speeds: dict[str, float], reason: str) -> Choice:
    faster = bool(speeds) and speeds["torch"] < speeds["openvino"] * (1 - MARGIN)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Choice(conditions, "openvino" if faster else "torch", speeds, reason, now)


def _compiled(torch_encoder: TorchEncoder, precision: Precision, threads: int) -> CompiledEncoder:
    from indexer.encoders.compiling import cached_graph

    # OpenVINO takes all cores unless told otherwise; a caller who gave torch fewer means both.
    return _opened(cached_graph(torch_encoder, precision), threads if threads < cores() else None)


@lru_cache(maxsize=4)  # Encoders of one recipe share a graph, as they share torch's weights.
def _opened(folder: Path, threads: int | None) -> CompiledEncoder:
    return CompiledEncoder.open(folder, threads=threads)
