"""The rule that chooses between torch and OpenVINO for documents. Imports neither of them.

documents.py follows the rule; `likewise doctor` prints the choice and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from indexer.encoders.machine.hardware import Precision, cpu_features
from indexer.encoders.machine.runtime import RUNTIME_VARIABLE, RuntimeName, named_runtime

REPAYING_TEXTS = 2_000
"""Number of texts after which OpenVINO has repaid compiling the model. torch embeds the first 2,000 texts of an
encoder, counted over its batches, unless more than 2,000 texts come at once.

Compiling and opening all-MiniLM-L6-v2 took 5.2 s of CPU on an EPYC with AVX512-BF16 and no AMX. 128 passages of 239
tokens then took 4.57 s of CPU instead of torch's 5.13, so that 1,180 such passages repay compiling (python -m
benchmarks.encode_speed --compile --texts 128 --repeats 3). Shorter passages repay it later, and titles never: 1,024
titles of 23 tokens took 3.97 s instead of 3.38. A model that is slower on torch, and a CPU without bfloat16, repay it
earlier.
"""

REPAYING_KEPT_TEXTS = 100
"""Number of texts after which OpenVINO has repaid opening a model that is already compiled in the user's cache folder,
as every index leaves it there. Opening takes 0.1 to 0.2 s of CPU, so 50 of the passages above repay it.
"""


class Kind(NamedTuple):
    """A kind of CPU, and the runtime that is the quickest there (python -m benchmarks.encode_speed --rule)."""

    name: str
    feature: str
    runtime: RuntimeName


KINDS = (
    Kind("AMX for bfloat16", "amx_bf16", "torch"),
    Kind("AVX512 for bfloat16", "avx512_bf16", "openvino"),
    Kind("AVX512", "avx512f", "openvino"),
    Kind("AVX2 with VNNI", "avx_vnni", "openvino"),
    Kind("AVX2 alone", "avx2", "torch"),
    Kind("ARM, or instructions that are not known", "", "openvino"),
)
"""The first kind whose feature a CPU has decides. docs/speed.md says which kinds have been measured."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The runtime that embeds documents, and the reason for the choice.

    Attributes:
        name: "torch" or "openvino".
        reason: a clause for people, which follows the name.
    """

    name: RuntimeName
    reason: str


def choose_runtime(precision: Precision, device: str) -> Choice:
    """Return the runtime that embeds many documents if the caller has named no runtime (load.py obeys a named runtime).

    Args:
        precision: the requested precision, which may be `auto`.
        device: torch's name of the device.

    Raises:
        BadInput: LIKEWISE_RUNTIME names no runtime.
    """
    if device != "cpu":
        return Choice("torch", f"the device is {device}, and OpenVINO is used only on CPUs")
    if precision == "int8":
        return Choice("torch", "OpenVINO does not compute in int8")
    if (named := named_runtime()) != "auto":
        return Choice(named, f"{RUNTIME_VARIABLE} names it")
    if precision != "auto":
        return Choice("torch", f"the caller has named the precision {precision}")
    kind = kind_of(cpu_features())
    reason = f"the rule for CPUs with {kind.name}"
    if kind.runtime == "openvino":
        reason += (
            f"; torch embeds a run's first {REPAYING_TEXTS:,} texts, or {REPAYING_KEPT_TEXTS} if the model is compiled"
        )
    return Choice(kind.runtime, reason)


def kind_of(features: str) -> Kind:
    """Return the kind of a CPU with these features, as `cpu_features` returns them."""
    return next(kind for kind in KINDS if kind.feature in ["", *features.split()])
