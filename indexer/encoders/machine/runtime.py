"""The runtime of an encoder: library, precision and device. What its vectors mean is in recipe.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from indexer.encoders.machine.hardware import Precision

RuntimeName = Literal["auto", "torch", "openvino"]

RUNTIME_NAMES: tuple[RuntimeName, ...] = "auto", "torch", "openvino"


@dataclass(frozen=True, slots=True)
class Runtime:
    """The way an encoder computes. It is not stored in an index, which may mix vectors of several runtimes.

    Attributes:
        precision: of the model's weights.
        device: a torch device such as `cpu` or `cuda`; `auto` is CUDA where there is one.
        trust_remote_code: whether Python code that comes with a model may run.
        name: the library that computes; `auto` leaves it to the rule of runtime_rule.py.
    """

    precision: Precision = "auto"
    device: str = "auto"
    trust_remote_code: bool = False
    name: RuntimeName = "auto"
