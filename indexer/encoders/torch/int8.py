"""Feed-forward layers in eight bits, quantised after training by the ranges of their inputs on a sample of texts.

A weight has one scale per row, an input has one scale. Before that, the channels of an input are evened out, as a few
channels of BERT are far larger than the others (Xiao et al., SmoothQuant, 2023). Attention keeps its precision.
The vectors are close to the model's own but not the same, so the loss is measured on other texts of the sample.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.port import Encoder, Role
from indexer.encoders.postprocessing import PostProcessed
from indexer.encoders.probes import PROBES
from indexer.encoders.recipe import Recipe
from indexer.encoders.torch.bert import Bert, FeedForward
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import ModelError
from indexer.records import Vector

if TYPE_CHECKING:
    import torch

SAMPLE_TEXTS = 256
"""Texts for measuring the ranges and the loss, half for each: more texts change neither."""

_ZERO = 128
"""The eight-bit number that stands for an input of 0."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Cosines between eight-bit vectors and the model's own.

    Attributes:
        mean, worst: the mean and the lowest cosine.
        texts: how many texts were compared.
    """

    mean: float
    worst: float
    texts: int


class Int8Encoder:
    """An `Encoder` whose feed-forward layers compute in eight bits.

    It is calibrated on a few built-in texts until `calibrate` is called with better ones.

    Attributes:
        exact: the encoder before quantisation.
        loss: measured by the last calibration.
    """

    def __init__(self, exact: TorchEncoder) -> None:
        """Raises ModelError if the transformer or this CPU cannot compute in eight bits."""
        if not isinstance(exact.transformer, Bert):
            raise ModelError(
                f"model {exact.recipe.model!r} cannot run in int8: only BERT, RoBERTa and XLM-RoBERTa on a CPU can"
            )
        if not _multiplies_int8():
            raise ModelError("this CPU has no products of 8-bit integers (VNNI or AMX): choose float32, or auto")
        self.exact = dataclasses.replace(exact, alternative=None)  # The loss must be measured against torch itself.
        self.loss = self.calibrate(PROBES * 2)

    @property
    def recipe(self) -> Recipe:
        return self.exact.recipe

    @property
    def dimensions(self) -> int:
        return self.exact.dimensions

    @property
    def max_tokens(self) -> int:
        return self.exact.max_tokens

    def overhead(self, role: Role = "document") -> int:
        return self.exact.overhead(role)

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return self.exact.offsets(texts)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        return self._quantised.encode(texts, role, truncate)

    def calibrate(self, texts: Sequence[str]) -> Loss:
        """Quantise again by the ranges on every other text, and measure the loss on the texts between."""
        sample = texts[:: -(-len(texts) // SAMPLE_TEXTS)]
        observed = _observing(self.exact)
        observed.encode(sample[::2], truncate=True)
        assert isinstance(observed.transformer, Bert)
        self._quantised = dataclasses.replace(self.exact, transformer=_quantise(observed.transformer))
        expected, actual = (each.encode(sample[1::2], truncate=True) for each in (self.exact, self._quantised))
        cosines = (expected * actual).sum(axis=1)
        self.loss = Loss(float(cosines.mean()), float(cosines.min()), len(cosines))
        return self.loss


def calibrate_int8(encoder: Encoder, texts: Sequence[str]) -> None:
    """Calibrate an encoder that computes in int8, with or without post-processing; other encoders are left alone.

    Args:
        texts: a sample of the documents. A single text is not enough, and changes nothing.
    """
    inner = encoder.inner if isinstance(encoder, PostProcessed) else encoder
    if isinstance(inner, Int8Encoder) and len(texts) > 1:
        inner.calibrate(texts)


def loss(encoder: Encoder) -> Loss | None:
    """Return the loss of an encoder that computes in int8, with or without post-processing; None for others."""
    inner = encoder.inner if isinstance(encoder, PostProcessed) else encoder
    return inner.loss if isinstance(inner, Int8Encoder) else None


def without_int8(encoder: Encoder) -> Encoder:
    """Return the encoder before quantisation; others are returned as they are."""
    if isinstance(encoder, PostProcessed):
        return dataclasses.replace(encoder, inner=without_int8(encoder.inner))
    return encoder.exact if isinstance(encoder, Int8Encoder) else encoder


def _multiplies_int8() -> bool:
    """Return whether this CPU multiplies 8-bit integers in hardware."""
    import torch

    probes = (getattr(torch.cpu, name, None) for name in ("_is_vnni_supported", "_is_amx_tile_supported"))
    return any(probe() for probe in probes if probe is not None)


def _observing(encoder: TorchEncoder) -> TorchEncoder:
    """Return the encoder with feed-forward layers that record the ranges of their inputs."""
    bert = copy.copy(encoder.transformer)
    assert isinstance(bert, Bert)
    bert.blocks = [copy.copy(block) for block in bert.blocks]
    for block in bert.blocks:
        assert isinstance(block.feed_forward, FeedForward)
        block.feed_forward = _Observed(block.feed_forward)
    return dataclasses.replace(encoder, transformer=bert)


def _quantise(observed: Bert) -> Bert:
    """Return a transformer in eight bits, made from one that has recorded ranges."""
    bert = copy.copy(observed)
    bert.blocks = [copy.copy(block) for block in bert.blocks]
    for block in bert.blocks:
        layer = block.feed_forward
        assert isinstance(layer, _Observed)
        # A recipe that pools lower layers never computes the layers above them, so that they have no ranges.
        block.feed_forward = layer.plain if layer.largest is None else _Quantised(layer)
    return bert


class _Observed:
    """A feed-forward layer that records the largest input of each channel, and the range after the activation."""

    def __init__(self, plain: FeedForward) -> None:
        self.plain = plain
        self.largest: torch.Tensor | None = None
        self.low, self.high = 0.0, 0.0
        self._lock = threading.Lock()  # Batches run in several threads.

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.plain.activated(x)
        largest = x.abs().amax(0).float()
        low, high = map(float, inner.aminmax())
        with self._lock:
            self.largest = largest if self.largest is None else self.largest.maximum(largest)
            self.low, self.high = min(self.low, low), max(self.high, high)
        return self.plain.down.plus(inner, x)


class _Quantised:
    """A feed-forward layer on 8-bit integers, with activation and residual fused into its products."""

    def __init__(self, observed: _Observed) -> None:
        assert observed.largest is not None
        plain = observed.plain
        up = plain.up.weight.float()
        # The root of a channel's size is moved from the inputs into the weights, so that both lose as much by rounding.
        smooth = (observed.largest / up.abs().amax(0).clamp(min=1e-5)).sqrt().clamp(min=1e-3)
        self._scale = float((observed.largest / smooth).max()) / 127
        self._inverse = (1 / (smooth * self._scale)).to(plain.up.bias.dtype)
        self._up = _Rows(up * smooth, plain.up.bias)
        self._down = _Rows(plain.down.weight.float(), plain.down.bias)
        self._inner_scale = max(observed.high - observed.low, 1e-6) / 255
        self._inner_zero = round(-observed.low / self._inner_scale)
        self._approximate = plain.approximate

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        import torch

        small = (x * self._inverse).add_(_ZERO).round_().clamp_(0, 255).to(torch.uint8)
        up, down = self._up, self._down
        inner = torch.ops.onednn.qlinear_pointwise(
            *(small, self._scale, _ZERO, up.weight, up.scales, up.zeros, up.bias),
            *(self._inner_scale, self._inner_zero, torch.uint8, "gelu", [], self._approximate),
        )
        out: torch.Tensor = torch.ops.onednn.qlinear_pointwise.binary(
            *(inner, self._inner_scale, self._inner_zero, down.weight, down.scales, down.zeros, x, down.bias),
            *(1.0, 0, x.dtype, 1.0, 0, "add", 1.0, "none", [], ""),
        )
        return out


class _Rows:
    """A weight (out, in) as 8-bit integers with one scale per row, laid out for the product."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        import torch

        self.scales = weight.abs().amax(1).clamp(min=1e-8) / 127
        whole = (weight / self.scales[:, None]).round().to(torch.int8)
        self.weight = torch.ops.onednn.qlinear_prepack(whole, None)
        self.zeros = torch.zeros(len(weight), dtype=torch.int32)
        self.bias = bias.float()
