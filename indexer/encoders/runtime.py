"""How vectors are computed: library, precision and device. What they mean is the recipe's (recipe.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from indexer.encoders.hardware import Precision

RuntimeName = Literal["auto", "torch", "openvino"]

RUNTIME_NAMES: tuple[RuntimeName, ...] = "auto", "torch", "openvino"


@dataclass(frozen=True, slots=True)
class Runtime:
    """How an encoder is to compute. It is not stored in an index: vectors of two runtimes of one recipe mix.

    Attributes:
        precision: of the model's weights.
        device: a torch device such as `cpu` or `cuda`; `auto` is CUDA where there is one.
        trust_remote_code: whether Python code that comes with a model may run.
        name: the library that computes; `auto` is the one measured to be faster (fastest.py).
    """

    precision: Precision = "auto"
    device: str = "auto"
    trust_remote_code: bool = False
    name: RuntimeName = "auto"
