"""Which runtime many documents are embedded with: measured at its first use per model and machine, then kept.

Questions never come here. The kept choices are in choices.py; how the candidates are timed is in measurement.py.
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
"""Documents encoded together from which on measuring, and opening a second runtime, can pay."""

MIN_COSINE = 0.999
"""Between the vectors of both runtimes: an index may hold vectors of either."""

MIN_TIME_SAVED = 0.03
"""Share of time that OpenVINO must save to be chosen: torch is loaded already, and a measurement varies."""


ROUNDS_PER_OUTLIER = 5
"""Rounds of a measurement, of which one may say otherwise than the others."""


class FastestRuntime:
    """Finds the encoder for many documents at once; part of a `TorchEncoder` and shared by threads.

    A process that measures has others go on with torch meanwhile; they look again at their next call.
    """

    def __init__(self, precision: Precision) -> None:
        """`precision` as the caller asked for it."""
        self._precision: Precision = precision
        self._lock = threading.Lock()
        self._found: dict[RuntimeName, Encoder | None] = {}  # by what the environment asks for
        self._conditions: Conditions | None = None
        _all.add(self)

    def encoder(self, torch_encoder: TorchEncoder, texts: int, measure: bool, *, note: Note) -> Encoder | None:
        """Return the encoder that this many documents should go to, or None for torch itself.

        Args:
            texts: how many documents are encoded together.
            measure: whether to measure now if nothing was measured before.
            note: is told, once, that OpenVINO was chosen, or asked for by LIKEWISE_RUNTIME, and cannot be used.
        """
        asked = override()
        if asked == "torch" or (asked == "auto" and texts < MIN_TEXTS):
            return None
        with self._lock:
            if asked not in self._found:
                # Another process is measuring, or this is not the time to: ask again at the next call.
                with suppress(_NotNow):
                    self._found[asked] = self._decide(torch_encoder, asked, measure, note)
            return self._found.get(asked)

    def failed(self, other: Encoder, error: Exception, *, note: Note) -> None:
        """Use torch from now on, as `other` raised this error, and drop the saved choice; `note` is told."""
        with self._lock:
            for asked, found in self._found.items():
                if found is other:  # or another thread was first
                    self._found[asked] = None
                    self._give_up(asked, error, note)

    def after_fork(self) -> None:
        """In the child: the lock may have been another thread's, and OpenVINO's threads are the parent's alone."""
        self._lock = threading.Lock()
        if "openvino" in sys.modules:
            self._found = dict.fromkeys(RUNTIME_NAMES)

    def _decide(self, torch_encoder: TorchEncoder, asked: RuntimeName, measure: bool, note: Note) -> Encoder | None:
        """Raises _NotNow."""
        import torch

        threads = torch.get_num_threads()
        try:
            self._conditions = Conditions.here(torch_encoder.recipe, self._precision, threads)
            if asked == "auto" and _chosen(torch_encoder, self._conditions, measure) == "torch":
                return None
            return _compiled(torch_encoder, self._precision, threads)
        except ImportError as error:  # also PackageNotFoundError: OpenVINO is not installed
            if asked == "openvino":
                note(
                    f"{RUNTIME_VARIABLE} asks for openvino, which cannot be imported ({error}): torch embeds documents"
                )
        except (LikewiseError, RuntimeError, OSError, MemoryError) as error:
            self._give_up(asked, error, note)
        return None

    def _give_up(self, asked: RuntimeName, error: Exception, note: Note) -> None:
        _opened.cache_clear()
        if asked == "auto" and self._conditions is not None:
            with suppress(OSError):
                drop_choice(choices_file(), self._conditions)
        why = "was chosen" if asked == "auto" else f"{RUNTIME_VARIABLE} asks for"
        reason = " ".join(str(error).split())[:300]
        note(f"OpenVINO, which {why}, failed ({reason}): torch embeds documents")


class _NotNow(Exception):
    """Another process is measuring, or this one is not to."""


_all: weakref.WeakSet[FastestRuntime] = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_all):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def _chosen(torch_encoder: TorchEncoder, conditions: Conditions, measure: bool) -> RuntimeName:
    """The saved choice, or a new one; torch, unsaved, where none can be made. Raises _NotNow, ImportError."""
    file = choices_file()
    known = find_choice(file, conditions)
    if known is not None and known.finished:
        return known.chosen
    if not measure:
        raise _NotNow
    try:
        with only_process(file):
            # Another process has just saved it, or was killed while it measured: for memory, perhaps.
            if (known := find_choice(file, conditions)) is not None:
                return known.chosen
            return _measured_and_kept(file, torch_encoder, conditions)
    except BlockingIOError as error:
        raise _NotNow from error
    except OSError:  # Without a cache every process would compile and measure again.
        return "torch"


def _measured_and_kept(file: Path, torch_encoder: TorchEncoder, conditions: Conditions) -> RuntimeName:
    """Raises OSError where the cache cannot be written, and ImportError without OpenVINO."""
    from indexer.encoders import measurement
    from indexer.encoders.openvino.export import has_graph, not_used

    unfinished = "a measurement began and did not end: it still runs, or was killed"
    save_choice(file, Choice.made(conditions, "torch", reason=unfinished, kept=SHORT_LIFETIME, finished=False))
    choice = None
    before = has_graph(torch_encoder, conditions.precision)
    try:
        choice = _measured(torch_encoder, conditions)
    finally:
        if choice is None:
            drop_choice(file, conditions)
        if choice is None or choice.chosen == "torch":
            _opened.cache_clear()  # The graph is not needed again.
        measurement.give_memory_back()  # The weights were loaded once more to compile them.
    if choice is None:
        return "torch"
    save_choice(file, choice)
    if choice.chosen == "torch" and not before:
        not_used(torch_encoder, conditions.precision)
    return choice.chosen


def _measured(torch_encoder: TorchEncoder, conditions: Conditions) -> Choice | None:
    """A new choice; None if something failed that need not fail again, such as memory. Raises ImportError."""
    from indexer.encoders import measurement
    from indexer.encoders.openvino.graph import NotCompilable

    precision: Precision = conditions.precision  # type: ignore[assignment]
    try:
        found = measurement.measure(torch_encoder, _compiled(torch_encoder, precision, conditions.threads))
    except NotCompilable as error:
        return Choice.made(conditions, "torch", reason=" ".join(str(error).split())[:300])
    except (LikewiseError, RuntimeError, OSError, MemoryError):
        return None
    if found.cosine < MIN_COSINE:
        reason = f"OpenVINO's vectors differ from torch's (cosine {found.cosine:.4f})"
        return Choice.made(conditions, "torch", reason=reason)
    return _choice(conditions, found)


def _choice(conditions: Conditions, found: Measurement) -> Choice:
    """OpenVINO if it was clearly faster in nearly every round; kept for long if nearly every round says the same."""
    faster = sum(share < 1 - MIN_TIME_SAVED for share in found.shares)
    slower, others = len(found.shares) - faster, len(found.shares) // ROUNDS_PER_OUTLIER
    chosen: RuntimeName = "openvino" if slower <= others else "torch"
    kept = CHOICE_LIFETIME if min(faster, slower) <= others else SHORT_LIFETIME
    return Choice.made(conditions, chosen, found.tokens_per_second, kept=kept)


def _compiled(torch_encoder: TorchEncoder, precision: Precision, threads: int) -> CompiledEncoder:
    from indexer.encoders.openvino.export import compile_in_cache

    # OpenVINO takes all cores unless told otherwise; a caller who gave torch fewer means both.
    return _opened(compile_in_cache(torch_encoder, precision), threads if threads < cores() else None)


@lru_cache(maxsize=4)  # Encoders of one recipe share a graph, as they share torch's weights.
def _opened(folder: Path, threads: int | None) -> CompiledEncoder:
    return CompiledEncoder.open(folder, threads=threads)
