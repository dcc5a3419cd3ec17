"""Embedding documents with OpenVINO if the rule of runtime_rule.py says so; torch continues if OpenVINO fails."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from dataclasses import replace

from indexer.encoders.machine.hardware import Precision, cores
from indexer.encoders.machine.runtime import RUNTIME_VARIABLE, named_runtime
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.openvino.kept import kept_folder
from indexer.encoders.recipes.port import Encoder
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.fallback import SentenceTransformerEncoder
from indexer.errors import LikewiseError
from indexer.listener import Listener
from likewise.speed.runtime_rule import REPAYING_KEPT_TEXTS, REPAYING_TEXTS, choose_runtime

_not_compilable: dict[tuple[str, Precision], str] = {}
"""Reasons why models cannot be compiled, by recipe identity and precision. A process tries each of them once."""


class OpenvinoForDocuments:
    """The compiled encoder of a `TorchEncoder` for many documents, opened when it is first needed; threads share it."""

    def __init__(self, precision: Precision) -> None:
        """Take the precision that the caller asked for, which may be `auto`."""
        self._precision: Precision = precision
        self._lock = threading.Lock()
        self._texts = 0
        self._compiled: CompiledEncoder | None = None
        self._usable = True
        _all.add(self)

    def encoder(self, torch_encoder: TorchEncoder, texts: int, *, listener: Listener) -> Encoder | None:
        """Return the encoder that this many documents should go to, or None for torch itself.

        Args:
            texts: how many documents are encoded together.
            listener: receives one note if OpenVINO should be used and cannot be.
        """
        if choose_runtime(self._precision, torch_encoder.device).name == "torch":
            return None
        with self._lock:
            self._texts += texts
            if self._usable and self._compiled is None and self._repaid(torch_encoder):
                self._compiled = self._open(torch_encoder, listener)
            return self._compiled

    def _repaid(self, torch_encoder: TorchEncoder) -> bool:
        """Return whether enough texts came for OpenVINO to repay compiling the model, or opening it if it is kept."""
        if self._texts >= REPAYING_TEXTS or named_runtime() == "openvino":
            return True
        return self._texts >= REPAYING_KEPT_TEXTS and kept_folder(torch_encoder.recipe, self._precision).is_dir()

    def failed(self, error: Exception, *, listener: Listener) -> None:
        """Use torch from now on, because OpenVINO raised this error; the listener receives a note."""
        with self._lock:
            if self._compiled is not None:  # Otherwise another thread has already handled its failure.
                self._give_up(error, listener)

    def after_fork(self) -> None:
        """Prepare the child of a fork: another thread may have held the lock, and OpenVINO's threads are missing."""
        self._lock = threading.Lock()
        if "openvino" in sys.modules:
            self._compiled, self._usable = None, False

    def _open(self, torch_encoder: TorchEncoder, listener: Listener) -> CompiledEncoder | None:
        """Compile the model, unless the user's cache holds it, and open it; return None if that fails."""
        import torch

        from likewise.speed.compilation.graph import NotCompilable

        key = torch_encoder.recipe.identity, self._precision
        threads = torch.get_num_threads()
        try:
            if key in _not_compilable:
                raise NotCompilable(_not_compilable[key])
            from likewise.speed.compilation.export import compile_in_cache

            folder = compile_in_cache(torch_encoder, self._precision)
            # OpenVINO uses all cores unless it is limited; a caller who limits torch's threads means to limit both.
            return CompiledEncoder.open(folder, threads=threads if threads < cores() else None)
        except ImportError as error:
            self._usable = False
            if named_runtime() == "openvino":
                self._give_up(error, listener)
        except (LikewiseError, RuntimeError, OSError, MemoryError) as error:
            if isinstance(error, NotCompilable):
                _not_compilable[key] = str(error)
            self._give_up(error, listener)
        return None

    def _give_up(self, error: Exception, listener: Listener) -> None:
        self._compiled, self._usable = None, False
        why = f"{RUNTIME_VARIABLE} asks for" if named_runtime() == "openvino" else "this CPU calls for"
        reason = " ".join(str(error).split())[:300]
        listener.note(f"OpenVINO, which {why}, failed ({reason}): torch embeds documents")


_all: weakref.WeakSet[OpenvinoForDocuments] = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_all):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def for_documents(encoder: Encoder, *, listener: Listener) -> Encoder:
    """Return `encoder` for documents: the listener receives a note if OpenVINO should embed them and fails."""
    return replace(encoder, listener=listener) if isinstance(encoder, TorchEncoder) else encoder


def ignored_override(encoder: Encoder) -> str | None:
    """Return a sentence for people if LIKEWISE_RUNTIME asks for openvino and this encoder cannot use it; otherwise
    None."""
    stays_on_device = isinstance(encoder, TorchEncoder) and encoder.device != "cpu"
    if named_runtime() == "openvino" and (stays_on_device or isinstance(encoder, SentenceTransformerEncoder)):
        return f"{RUNTIME_VARIABLE} asks for openvino, which does not run {encoder.recipe} as it is: torch does"
    return None
