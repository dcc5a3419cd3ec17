"""The encoder on torch: sorts and batches texts, runs the transformer once, and makes each recipe's vectors.

The transformer itself is bert.py or automodel.py; what follows it is pooling_head.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.batching import batches, unit
from indexer.encoders.port import Encoder, Role
from indexer.encoders.recipe import Recipe
from indexer.encoders.tokenizer import Ids, Tokenizer
from indexer.encoders.torch.pooling import Packed
from indexer.encoders.torch.pooling_head import Head
from indexer.errors import ModelError, NothingKnown
from indexer.notes import Note, log_note
from indexer.records import Vector

if TYPE_CHECKING:
    import torch

CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 65536
"""Tokens of one forward pass."""


class Transformer(Protocol):
    """A loaded model: hidden states of packed batches."""

    layers: int
    hidden: int
    positions: int
    dtype: torch.dtype

    def states(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]: ...

    def pooler(self, first: torch.Tensor) -> torch.Tensor | None: ...


class Alternative(Protocol):
    """Knows whether another runtime embeds many documents faster (runtime.py)."""

    def encoder(self, torch_encoder: TorchEncoder, texts: int, measure: bool, *, note: Note) -> Encoder | None:
        """The encoder that so many documents should go to, or None for torch itself; `measure` if nothing is known."""

    def failed(self, other: Encoder, error: Exception, *, note: Note) -> None:
        """What `encoder` gave has raised this, and torch stands in from now on."""


@dataclass(frozen=True, slots=True)
class TorchEncoder:
    """An `Encoder` on a transformer that others may share.

    Attributes:
        alternative: finds the runtime for many documents; None: torch encodes everything.
        measures: whether that may be measured now; otherwise only what was measured before counts.
        note: is told that another runtime cannot be used; without a caller who can be told, it is logged.
    """

    recipe: Recipe
    tokenizer: Tokenizer
    transformer: Transformer
    head: Head
    device: str = "cpu"
    alternative: Alternative | None = field(default=None, compare=False)
    measures: bool = field(default=True, compare=False)
    note: Note = field(default=log_note, compare=False, repr=False)

    @property
    def batch_tokens(self) -> int:
        return CPU_BATCH_TOKENS if self.device == "cpu" else GPU_BATCH_TOKENS

    @property
    def dimensions(self) -> int:
        return self.recipe.dimensions

    @property
    def max_tokens(self) -> int:
        return self.recipe.max_tokens

    def overhead(self, role: Role = "document") -> int:
        return self.tokenizer.overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return self.tokenizer.offsets(texts)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        if self.alternative is not None and role == "document" and not isinstance(texts, str):
            if isinstance(texts, Iterable) and not isinstance(texts, Sized):
                texts = list(texts)
            if isinstance(texts, Sized):
                other = self.alternative.encoder(self, len(texts), self.measures, note=self.note)
                if other is not None:
                    try:
                        return other.encode(texts, role, truncate)
                    except NothingKnown:  # It says something of the texts, as TextTooLong and BadInput do.
                        raise
                    except (ModelError, RuntimeError) as error:
                        self.alternative.failed(other, error, note=self.note)
        return encode_shared([self], texts, role, truncate)[0]

    def steady(self) -> TorchEncoder:
        return replace(self, alternative=None)


def encode_shared(
    encoders: Sequence[TorchEncoder], texts: Sequence[str], role: Role, truncate: bool, *, per_core: bool = False
) -> list[Vector]:
    """Vectors of several encoders with one tokenizer and transformer, from one forward pass a batch; always on torch.

    Everything is tokenised first, on all cores: lengths are needed for sorting, and TextTooLong is raised before any
    work. On a CPU nothing would be won by overlapping it, as the products leave no core idle. `per_core` computes one
    batch a core, as for many texts, however few batches there are.
    """
    rows = encoders[0].tokenizer.ids(texts, role, truncate)
    found = [np.empty((len(rows), encoder.dimensions), np.float32) for encoder in encoders]

    def run(order: list[int]) -> None:
        batch = _packed([rows[index] for index in order])
        for encoder, out, vectors in zip(encoders, found, _forward(encoders, batch), strict=True):
            out[order] = unit(vectors, order, encoder.recipe.model)

    _run_all(run, list(batches(rows, encoders[0].batch_tokens)), encoders[0].device, per_core)
    return found


def _forward(encoders: Sequence[TorchEncoder], batch: Packed) -> list[Vector]:
    """One forward pass: each encoder's vectors (texts, dimensions), not yet of unit length."""
    import torch

    transformer = encoders[0].transformer
    wanted = sorted({layer for encoder in encoders for layer in encoder.head.layers})
    found = []
    with torch.inference_mode():
        states = transformer.states(batch, wanted)
        for encoder in encoders:
            vectors = encoder.head.vectors(states, batch.runs)
            if "pooler" in encoder.head.poolings:
                vectors = _pooled(transformer, vectors, encoder.recipe)
            found.append(vectors[:, : encoder.dimensions].cpu().numpy())
    return found


def _run_all(run: Callable[[list[int]], None], orders: list[list[int]], device: str, per_core: bool) -> None:
    """Run every batch. On a CPU with batches enough, one single-threaded batch a core.

    That spares the cores waiting for each other after every operator: 10 % more texts a second on two idle
    cores, and far more where other programs want the cores as well.
    """
    import torch

    workers = torch.get_num_threads()
    if device != "cpu" or workers == 1 or (len(orders) < 2 * workers and not per_core):
        for order in orders:
            _run_halved(run, order)
        return
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    libraries = ThreadpoolController()

    def alone() -> None:
        torch.get_num_threads()  # torch sets a thread's own number at its first use there: before ours
        libraries.limit(limits=1, user_api="openmp")

    with ThreadPoolExecutor(workers, "encode", initializer=alone) as pool:
        try:
            for done in [pool.submit(run, order) for order in orders]:
                done.result()
        finally:  # an error or an interrupt does not wait for the batches that have not begun
            pool.shutdown(cancel_futures=True)


def _run_halved(run: Callable[[list[int]], None], order: list[int]) -> None:
    """Run a batch, in halves where a GPU's memory does not hold it."""
    import torch

    try:
        return run(order)
    except torch.OutOfMemoryError as error:
        if len(order) == 1:
            raise ModelError("the device's memory does not hold one text: choose device cpu") from error
    half = len(order) // 2
    for part in (order[:half], order[half:]):
        _run_halved(run, part)


def _pooled(transformer: Transformer, first: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    pooled = transformer.pooler(first)
    if pooled is None:
        raise ModelError(f"model {recipe.model!r} has no trained pooler: use cls or mean pooling")
    return pooled.float()


def _packed(rows: Sequence[Ids]) -> Packed:
    """Rows sorted by length as one batch."""
    import torch

    runs = [(len(list(same)), length) for length, same in groupby(rows, key=len)]
    return Packed(torch.from_numpy(np.concatenate(rows)).long(), runs)
