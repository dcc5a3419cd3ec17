"""Choosing the runtime that embeds many documents: measured once per model and machine, and saved.

Questions are never measured. The saved choices are in choices.py, the timing of both runtimes is in measurement.py.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.encoders.choices import (
    CHOICE_LIFETIME,
    RUNTIME_VARIABLE,
    SHORT_LIFETIME,
    Choice,
    Conditions,
    choices_file,
    drop_choice,
    find_choice,
    only_process,
    override,
    save_choice,
)
from indexer.encoders.hardware import Precision, cores
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.port import Encoder
from indexer.encoders.runtime import RUNTIME_NAMES, RuntimeName
from indexer.errors import LikewiseError
from indexer.notes import Note

if TYPE_CHECKING:
    from indexer.encoders.measurement import Measurement
    from indexer.encoders.torch.encoder import TorchEncoder

MIN_TEXTS = 64
"""Number of documents encoded together from which measuring, and opening a second runtime, can pay off."""

MIN_COSINE = 0.999
"""Lowest cosine allowed between the vectors of both runtimes: an index may hold vectors of either."""

MIN_TIME_SAVED = 0.03
"""Share of time that OpenVINO must save to be chosen: torch is loaded already, and measurements vary."""

ROUNDS_PER_OUTLIER = 5
"""One round in this many may disagree with the others without making a measurement unclear."""


class FastestRuntime:
    """Finds the encoder for many documents at once; part of a `TorchEncoder` and shared by threads.

    While one process measures, others use torch, and look for the saved choice again at their next call.
    """

    def __init__(self, precision: Precision) -> None:
        """Take the precision that the caller asked for, which may be `auto`."""
        self._precision: Precision = precision
        self._lock = threading.Lock()
        # By the runtime that LIKEWISE_RUNTIME names; None means torch.
        self._encoders: dict[RuntimeName, Encoder | None] = {}
        self._conditions: Conditions | None = None
        _all.add(self)

    def encoder(self, torch_encoder: TorchEncoder, texts: int, measure: bool, *, note: Note) -> Encoder | None:
        """Return the encoder that this many documents should go to, or None for torch itself.

        Args:
            texts: how many documents are encoded together.
            measure: whether to measure now if nothing was measured before.
            note: is told, once, that OpenVINO was chosen, or asked for by LIKEWISE_RUNTIME, and cannot be used.
        """
        named = override()
        if named == "torch" or (named == "auto" and texts < MIN_TEXTS):
            return None
        with self._lock:
            if named not in self._encoders:
                # Without a choice, torch is used now and the question is asked again at the next call.
                with suppress(_NotNow):
                    self._encoders[named] = self._decide(torch_encoder, named, measure, note)
            return self._encoders.get(named)

    def failed(self, other: Encoder, error: Exception, *, note: Note) -> None:
        """Use torch from now on, as `other` raised this error, and drop the saved choice; `note` is told."""
        with self._lock:
            for named, encoder in self._encoders.items():
                if encoder is other:  # Otherwise another thread has already handled its failure.
                    self._encoders[named] = None
                    self._give_up(named, error, note)

    def after_fork(self) -> None:
        """Prepare the child of a fork: another thread may have held the lock, and OpenVINO's threads are missing."""
        self._lock = threading.Lock()
        if "openvino" in sys.modules:
            self._encoders = dict.fromkeys(RUNTIME_NAMES)

    def _decide(self, torch_encoder: TorchEncoder, named: RuntimeName, measure: bool, note: Note) -> Encoder | None:
        """Return the encoder to use, or None for torch. Raises _NotNow if nothing can be decided yet."""
        import torch

        threads = torch.get_num_threads()
        try:
            self._conditions = Conditions.here(torch_encoder.recipe, self._precision, threads)
            if named == "auto" and _choose(torch_encoder, self._conditions, measure) == "torch":
                return None
            return _open_compiled(torch_encoder, self._precision, threads)
        except ImportError as error:  # Also a PackageNotFoundError: OpenVINO is not installed.
            if named == "openvino":
                note(
                    f"{RUNTIME_VARIABLE} asks for openvino, which cannot be imported ({error}): torch embeds documents"
                )
        except (LikewiseError, RuntimeError, OSError, MemoryError) as error:
            self._give_up(named, error, note)
        return None

    def _give_up(self, named: RuntimeName, error: Exception, note: Note) -> None:
        _open.cache_clear()
        if named == "auto" and self._conditions is not None:
            with suppress(OSError):
                drop_choice(choices_file(), self._conditions)
        why = "was chosen" if named == "auto" else f"{RUNTIME_VARIABLE} asks for"
        reason = " ".join(str(error).split())[:300]
        note(f"OpenVINO, which {why}, failed ({reason}): torch embeds documents")


class _NotNow(Exception):
    """Another process is measuring, or the caller does not want to measure now."""


_all: weakref.WeakSet[FastestRuntime] = weakref.WeakSet()


def _after_fork() -> None:
    for fastest in list(_all):
        fastest.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def _choose(torch_encoder: TorchEncoder, conditions: Conditions, measure: bool) -> RuntimeName:
    """Return the saved choice, or make one; torch if the cache cannot be written. Raises _NotNow, ImportError."""
    file = choices_file()
    saved = find_choice(file, conditions)
    if saved is not None and saved.finished:
        return saved.chosen
    if not measure:
        raise _NotNow
    try:
        with only_process(file):
            # Another process has just saved it, or was killed while it measured, perhaps for lack of memory.
            if (saved := find_choice(file, conditions)) is not None:
                return saved.chosen
            return _measure_and_save(file, torch_encoder, conditions)
    except BlockingIOError as error:
        raise _NotNow from error
    except OSError:  # Without a cache, every process would have to compile and measure again.
        return "torch"


def _measure_and_save(file: Path, torch_encoder: TorchEncoder, conditions: Conditions) -> RuntimeName:
    """Measure and return the choice. Raises OSError if the cache cannot be written, ImportError without OpenVINO."""
    from indexer.encoders import measurement
    from indexer.encoders.openvino.export import has_graph, mark_unused

    unfinished = "a measurement began and did not end: it still runs, or was killed"
    save_choice(file, Choice.made(conditions, "torch", reason=unfinished, kept=SHORT_LIFETIME, finished=False))
    choice = None
    had_graph = has_graph(torch_encoder, conditions.precision)
    try:
        choice = _measure(torch_encoder, conditions)
    finally:
        if choice is None:
            drop_choice(file, conditions)
        if choice is None or choice.chosen == "torch":
            _open.cache_clear()  # The graph is not needed again.
        measurement.give_memory_back()  # The weights were loaded once more to compile them.
    if choice is None:
        return "torch"
    save_choice(file, choice)
    if choice.chosen == "torch" and not had_graph:
        mark_unused(torch_encoder, conditions.precision)
    return choice.chosen


def _measure(torch_encoder: TorchEncoder, conditions: Conditions) -> Choice | None:
    """Return a new choice; None after an error that may not occur again, such as lack of memory. Raises ImportError."""
    from indexer.encoders import measurement
    from indexer.encoders.openvino.graph import NotCompilable

    precision: Precision = conditions.precision  # type: ignore[assignment]
    try:
        measured = measurement.measure(torch_encoder, _open_compiled(torch_encoder, precision, conditions.threads))
    except NotCompilable as error:
        return Choice.made(conditions, "torch", reason=" ".join(str(error).split())[:300])
    except (LikewiseError, RuntimeError, OSError, MemoryError):
        return None
    if measured.cosine < MIN_COSINE:
        reason = f"OpenVINO's vectors differ from torch's (cosine {measured.cosine:.4f})"
        return Choice.made(conditions, "torch", reason=reason)
    return _choice_by_speed(conditions, measured)


def _choice_by_speed(conditions: Conditions, measured: Measurement) -> Choice:
    """Choose OpenVINO if it was clearly faster in nearly every round; use the choice for long if the rounds agree."""
    faster = sum(share < 1 - MIN_TIME_SAVED for share in measured.shares)
    slower, outliers = len(measured.shares) - faster, len(measured.shares) // ROUNDS_PER_OUTLIER
    chosen: RuntimeName = "openvino" if slower <= outliers else "torch"
    kept = CHOICE_LIFETIME if min(faster, slower) <= outliers else SHORT_LIFETIME
    return Choice.made(conditions, chosen, measured.tokens_per_second, kept=kept)


def _open_compiled(torch_encoder: TorchEncoder, precision: Precision, threads: int) -> CompiledEncoder:
    from indexer.encoders.openvino.export import compile_in_cache

    # OpenVINO uses all cores unless it is limited; a caller who limits torch's threads means to limit both.
    return _open(compile_in_cache(torch_encoder, precision), threads if threads < cores() else None)


@lru_cache(maxsize=4)  # Encoders of one recipe share a graph, as they share torch's weights.
def _open(folder: Path, threads: int | None) -> CompiledEncoder:
    return CompiledEncoder.open(folder, threads=threads)
