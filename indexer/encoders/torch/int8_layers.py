"""BERT's feed-forward layers in eight bits: recording the ranges of their inputs, and quantising by them.

A weight has one scale per row, an input has one scale. Before quantising, the channels of an input are evened out,
because a few channels of BERT are far larger than the others (Xiao et al., SmoothQuant, 2023).
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from typing import TYPE_CHECKING

from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.native import FeedForward, Native

if TYPE_CHECKING:
    import torch

_ZERO = 128
"""The eight-bit number that stands for an input of 0."""


def multiplies_int8() -> bool:
    """Return whether this CPU multiplies 8-bit integers in hardware."""
    import torch

    probes = (getattr(torch.cpu, name, None) for name in ("_is_vnni_supported", "_is_amx_tile_supported"))
    return any(probe() for probe in probes if probe is not None)


def observing(encoder: TorchEncoder) -> TorchEncoder:
    """Return the encoder with feed-forward layers that record the ranges of their inputs."""
    copied = copy.copy(encoder.transformer)
    assert isinstance(copied, Native)
    copied.blocks = [copy.copy(block) for block in copied.blocks]
    for block in copied.blocks:
        assert isinstance(block.feed_forward, FeedForward)
        block.feed_forward = _Observed(block.feed_forward)
    return dataclasses.replace(encoder, transformer=copied)


def quantise(observed: Native) -> Native:
    """Return a transformer in eight bits, made from a transformer that has recorded ranges."""
    copied = copy.copy(observed)
    copied.blocks = [copy.copy(block) for block in copied.blocks]
    for block in copied.blocks:
        layer = block.feed_forward
        assert isinstance(layer, _Observed)
        # A recipe that pools lower layers never computes the layers above them, so that they have no ranges.
        block.feed_forward = layer.plain if layer.largest is None else _Quantised(layer)
    return copied


class _Observed:
    """A feed-forward layer that records the largest input of each channel, and the range after the activation."""

    def __init__(self, plain: FeedForward) -> None:
        self.plain = plain
        self.largest: torch.Tensor | None = None
        self.low, self.high = 0.0, 0.0
        self._lock = threading.Lock()  # Batches run in several threads.

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        inner = self.plain.activated(x)
        largest = x.abs().amax(0).float()
        low, high = map(float, inner.aminmax())
        with self._lock:
            self.largest = largest if self.largest is None else self.largest.maximum(largest)
            self.low, self.high = min(self.low, low), max(self.high, high)
        return self.plain.down.plus(inner, residual)


class _Quantised:
    """A feed-forward layer on 8-bit integers, with activation and residual fused into its products."""

    def __init__(self, observed: _Observed) -> None:
        assert observed.largest is not None
        plain = observed.plain
        up = plain.up.weight.float()
        # The root of a channel's size is moved from the inputs into the weights, so that both lose as much by rounding.
        smooth = (observed.largest / up.abs().amax(0).clamp(min=1e-5)).sqrt().clamp(min=1e-3)
        self._scale = float((observed.largest / smooth).max()) / 127
        self._inverse = (1 / (smooth * self._scale)).to(plain.up.weight.dtype)
        self._up = _Rows(up * smooth, plain.up.bias)
        self._down = _Rows(plain.down.weight.float(), plain.down.bias)
        self._inner_scale = max(observed.high - observed.low, 1e-6) / 255
        self._inner_zero = round(-observed.low / self._inner_scale)
        self._activation = plain.activation

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        import torch

        small = (x * self._inverse).add_(_ZERO).round_().clamp_(0, 255).to(torch.uint8)
        up, down = self._up, self._down
        inner = torch.ops.onednn.qlinear_pointwise(
            *(small, self._scale, _ZERO, up.weight, up.scales, up.zeros, up.bias),
            *(self._inner_scale, self._inner_zero, torch.uint8, self._activation[0], [], self._activation[1]),
        )
        out: torch.Tensor = torch.ops.onednn.qlinear_pointwise.binary(
            *(inner, self._inner_scale, self._inner_zero, down.weight, down.scales, down.zeros, residual, down.bias),
            *(1.0, 0, x.dtype, 1.0, 0, "add", 1.0, "none", [], ""),
        )
        return out


class _Rows:
    """A weight (out, in) as 8-bit integers with one scale per row, laid out for the product."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        import torch

        self.scales = weight.abs().amax(1).clamp(min=1e-8) / 127
        whole = (weight / self.scales[:, None]).round().to(torch.int8)
        self.weight = torch.ops.onednn.qlinear_prepack(whole, None)
        self.zeros = torch.zeros(len(weight), dtype=torch.int32)
        self.bias = None if bias is None else bias.float()
