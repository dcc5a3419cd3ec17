"""The encoder with feed-forward layers in eight bits, quantised by the ranges of their inputs on a sample of texts.

The layers are in int8_layers.py; attention keeps its precision. The vectors are close to the model's own but not the
same, so the loss is measured on other texts of the sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from indexer.encoders.recipes.port import Role, Tokenizing
from indexer.encoders.recipes.probes import PROBES
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.encoders.torch.int8_layers import multiplies_int8, observing, quantise
from indexer.encoders.torch.native import Native
from indexer.errors import ModelError
from indexer.records import Vector

SAMPLE_TEXTS = 256
"""Number of texts for measuring the ranges and the loss, half for each. More texts change neither."""


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


class Int8Encoder(Tokenizing):
    """An `Encoder` whose feed-forward layers compute in eight bits.

    It is calibrated on a few built-in texts until `calibrate` is called with better ones.

    Attributes:
        exact: the encoder before quantisation.
        loss: measured by the last calibration.
    """

    def __init__(self, exact: TorchEncoder) -> None:
        """Raises ModelError if the transformer or this CPU cannot compute in eight bits."""
        if not (isinstance(exact.transformer, Native) and exact.transformer.has_int8):
            raise ModelError(
                f"model {exact.recipe.model!r} cannot run in int8: only BERT, RoBERTa, XLM-RoBERTa, MPNet and "
                "DistilBERT on a CPU can"
            )
        if not multiplies_int8():
            raise ModelError("this CPU has no products of 8-bit integers (VNNI or AMX): choose float32, or auto")
        self.exact = dataclasses.replace(exact, alternative=None)  # The loss must be measured against torch itself.
        self.recipe, self.tokenizer = exact.recipe, exact
        self.loss = self.calibrate(PROBES * 2)

    def encode(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> Vector:
        return self._quantised.encode(texts, role, truncate)

    def calibrate(self, texts: Sequence[str]) -> Loss:
        """Quantise again by the ranges on every second text, and measure the loss on the remaining texts."""
        sample = texts[:: -(-len(texts) // SAMPLE_TEXTS)]
        observed = observing(self.exact)
        observed.encode(sample[::2], truncate=True)
        assert isinstance(observed.transformer, Native)
        self._quantised = dataclasses.replace(self.exact, transformer=quantise(observed.transformer))
        expected, actual = (each.encode(sample[1::2], truncate=True) for each in (self.exact, self._quantised))
        cosines = (expected * actual).sum(axis=1)
        self.loss = Loss(float(cosines.mean()), float(cosines.min()), len(cosines))
        return self.loss
