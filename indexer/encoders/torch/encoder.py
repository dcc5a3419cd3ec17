"""The encoder on torch: it batches texts, runs the transformer once, and computes the vectors of each recipe.

The transformer is in native.py or automodel.py; layers, pooling and dense modules are in pooling_head.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from indexer.encoders.recipes.port import Encoder, Role, Tokenizing
from indexer.encoders.recipes.recipe import Recipe
from indexer.encoders.tokens.batching import batches, unit, unknown_token
from indexer.encoders.tokens.tokenizer import Ids, Tokenizer
from indexer.encoders.torch.pooling import Packed
from indexer.encoders.torch.pooling_head import Head
from indexer.errors import ModelError, NothingKnown
from indexer.listener import Listener
from indexer.records import Vector

if TYPE_CHECKING:
    import torch

CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 65536
"""Maximum tokens of one forward pass."""
_WORKER_TOKENS = 512
"""Minimum tokens for each core if the texts of a call are shared out. Fewer are not worth starting threads."""


class Transformer(Protocol):
    """A loaded model that computes the hidden states of packed batches.

    Attributes:
        layers: number of layers; the embedding layer, number 0, is not counted.
        hidden: width of a hidden state.
        positions: most tokens of one text.
        dtype: of weights and hidden states.
    """

    layers: int
    hidden: int
    positions: int
    dtype: torch.dtype

    def states(self, batch: Packed, wanted: Sequence[int]) -> dict[int, torch.Tensor]:
        """Return the hidden states (tokens, hidden) of each wanted layer, packed like the batch."""

    def pooler(self, first: torch.Tensor) -> torch.Tensor | None:
        """Apply the model's pooler to the last layer's first tokens (texts, hidden); None if it has no pooler."""


class Alternative(Protocol):
    """The other runtime for many documents, if there is one (documents.py)."""

    def encoder(self, torch_encoder: TorchEncoder, texts: int, *, listener: Listener) -> Encoder | None:
        """Return the encoder that this many documents should go to, or None for torch itself.

        Args:
            texts: how many documents are encoded together.
            listener: receives a note if the other runtime should be used and cannot be.
        """

    def failed(self, error: Exception, *, listener: Listener) -> None:
        """Use torch from now on, because the encoder from `encoder` raised this error. The listener receives a note."""


class _Log(Listener):
    """Logs each note as a warning of the logger `likewise`."""

    def note(self, text: str) -> None:
        logging.getLogger("likewise").warning("%s", text)


_LOG = _Log()


@dataclass(frozen=True, slots=True)
class TorchEncoder(Tokenizing):
    """An `Encoder` on torch. Encoders of several recipes may share one transformer.

    Attributes:
        head: the steps from hidden states to vectors.
        folder: the files of the transformer.
        device: torch's name of the device.
        trust_remote_code: whether Python code that comes with the model may run.
        alternative: finds the runtime for many documents; with None, torch encodes everything.
        listener: receives a note if another runtime should be used but fails. The default listener logs the note.
    """

    recipe: Recipe
    tokenizer: Tokenizer
    transformer: Transformer
    head: Head
    folder: Path
    device: str = "cpu"
    trust_remote_code: bool = False
    alternative: Alternative | None = field(default=None, compare=False)
    listener: Listener = field(default=_LOG, compare=False, repr=False)

    @property
    def batch_tokens(self) -> int:
        """Maximum tokens of one forward pass on this device."""
        return CPU_BATCH_TOKENS if self.device == "cpu" else GPU_BATCH_TOKENS

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        if self.alternative is not None and role == "document" and not isinstance(texts, str):
            if isinstance(texts, Iterable) and not isinstance(texts, Sized):
                texts = list(texts)
            if isinstance(texts, Sized):
                other = self.alternative.encoder(self, len(texts), listener=self.listener)
                if other is not None:
                    try:
                        return other.encode(texts, role, truncate)
                    except NothingKnown:  # The texts are the reason, not the runtime.
                        raise
                    except (ModelError, RuntimeError) as error:
                        self.alternative.failed(error, listener=self.listener)
        return encode_shared([self], texts, role, truncate)[0]

    def steady(self) -> TorchEncoder:
        """Return the same encoder, which then always uses torch."""
        return replace(self, alternative=None)


def encode_shared(encoders: Sequence[TorchEncoder], texts: Sequence[str], role: Role, truncate: bool) -> list[Vector]:
    """Encode texts on torch with several encoders that share a transformer, in one forward pass per batch.

    All texts are tokenised first, on all cores: their lengths are needed for sorting, and TextTooLong is raised before
    any other work. Tokenising during the forward passes would not help on a CPU, because they leave no core idle.

    Args:
        encoders: of one tokenizer and transformer.

    Returns:
        Unit rows (texts, dimensions) of each encoder.

    Raises:
        TextTooLong: a text is over the limit and `truncate` is False.
    """
    rows = encoders[0].tokenizer.ids(texts, role, truncate)
    outputs = [np.empty((len(rows), encoder.dimensions), np.float32) for encoder in encoders]

    def run(order: list[int]) -> None:
        batch = packed([rows[index] for index in order])
        for encoder, out, vectors in zip(encoders, outputs, _forward(encoders, batch), strict=True):
            out[order] = unit(vectors, order, encoder.recipe.model)

    run_in_batches(run, rows, encoders[0].batch_tokens, encoders[0].device)
    return outputs


def _forward(encoders: Sequence[TorchEncoder], batch: Packed) -> list[Vector]:
    """Return the vectors (texts, dimensions) of each encoder from one forward pass, not yet of unit length."""
    import torch

    transformer = encoders[0].transformer
    wanted = sorted({layer for encoder in encoders for layer in encoder.head.layers})
    outputs = []
    with torch.inference_mode():
        try:
            states = transformer.states(batch, wanted)
        except IndexError as error:
            raise unknown_token(encoders[0].recipe.model) from error
        for encoder in encoders:
            vectors = encoder.head.vectors(states, batch.runs)
            if "pooler" in encoder.head.poolings:
                vectors = _pooled(transformer, vectors, encoder.recipe)
            outputs.append(vectors[:, : encoder.dimensions].cpu().numpy())
    return outputs


def run_in_batches(run: Callable[[list[int]], None], rows: Sequence[Sized], tokens: int, device: str) -> None:
    """Run every batch; on a CPU with enough batches, in one single-threaded worker per core.

    The cores then need not wait for each other after each operator. This gives 10 % more texts per second on two idle
    cores, and far more if other programs use the cores too.

    Args:
        run: takes the positions of a batch's texts in `rows`, sorted by length.
        rows: the tokens of each text, of which only the number is read.
        tokens: maximum tokens of one batch.
    """
    import torch

    workers = torch.get_num_threads()
    orders = list(batches(rows, tokens))
    if device == "cpu":
        orders = _shared_out(orders, rows)
    if device != "cpu" or workers == 1 or len(orders) < workers:
        for order in orders:
            _run_halved(run, order)
        return
    libraries = _libraries()

    def use_one_thread() -> None:
        # torch sets a thread's number of threads when it is first used there, which would undo the limit below.
        torch.get_num_threads()
        libraries.limit(limits=1, user_api="openmp")

    with ThreadPoolExecutor(workers, "encode", initializer=use_one_thread) as pool:
        try:
            for future in [pool.submit(copy_context().run, run, order) for order in orders]:
                future.result()
        finally:  # After an error or an interrupt, batches that have not begun are dropped.
            pool.shutdown(cancel_futures=True)


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """Return the control of the threads of loaded libraries. Looking for the libraries takes some milliseconds."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _shared_out(orders: list[list[int]], rows: Sequence[Sized]) -> list[list[int]]:
    """Return batches that keep all cores busy to the end if there are only a few, each with as many tokens."""
    import torch

    workers = torch.get_num_threads()
    order = [index for batch in orders for index in batch]
    ends = np.cumsum([len(rows[index]) for index in order])
    if not order or ends[-1] < workers * _WORKER_TOKENS or len(orders) >= 4 * workers:
        return orders
    parts = -(-len(orders) // workers) * workers
    cuts = [0, *(np.searchsorted(ends, ends[-1] * np.arange(1, parts) / parts) + 1).tolist(), len(order)]
    return [order[start:end] for start, end in pairwise(cuts) if start < end]


def _run_halved(run: Callable[[list[int]], None], order: list[int]) -> None:
    """Run a batch; if it does not fit into a GPU's memory, run it in halves."""
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
    """Return the transformer's pooler output in float32. Raises ModelError if it has no pooler."""
    pooled = transformer.pooler(first)
    if pooled is None:
        raise ModelError(f"model {recipe.model!r} has no trained pooler: use cls or mean pooling")
    return pooled.float()


def packed(rows: Sequence[Ids], segments: Sequence[Ids] | None = None) -> Packed:
    """Return rows that are sorted by length as one batch, with the segments of their tokens if some are not 0."""
    import torch

    runs = [(len(list(same)), length) for length, same in groupby(rows, key=len)]
    ids, kinds = (torch.from_numpy(np.concatenate(part)).long() for part in (rows, segments or [np.zeros(1, int)]))
    return Packed(ids, runs, kinds if kinds.any() else None)
