"""The runtime of an encoder: library, precision and device. What its vectors mean is in recipe.py."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from indexer.encoders.machine.hardware import Precision
from indexer.errors import BadInput

RuntimeName = Literal["auto", "torch", "openvino"]

RUNTIME_NAMES: tuple[RuntimeName, ...] = "auto", "torch", "openvino"

RUNTIME_VARIABLE = "LIKEWISE_RUNTIME"
"""Environment variable that names the runtime for documents and overrides the rule."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The way an encoder computes. It is not stored in an index, which may mix vectors of several runtimes.

    Attributes:
        precision: of the model's weights.
        device: a torch device such as `cpu` or `cuda`; `auto` is CUDA where there is one.
        trust_remote_code: whether Python code that comes with a model may run.
        name: the library that computes; `auto` leaves it to the rule of the part `speed`. Without the part it is torch.
    """

    precision: Precision = "auto"
    device: str = "auto"
    trust_remote_code: bool = False
    name: RuntimeName = "auto"


def named_runtime() -> RuntimeName:
    """Return the runtime that LIKEWISE_RUNTIME names, or "auto".

    Raises:
        BadInput: it names something other than torch, openvino or auto.
    """
    word = os.environ.get(RUNTIME_VARIABLE) or "auto"
    for runtime in RUNTIME_NAMES:
        if word == runtime:
            return runtime
    raise BadInput(f"{RUNTIME_VARIABLE} is {word!r}: set it to {', '.join(RUNTIME_NAMES)}, or remove it")
