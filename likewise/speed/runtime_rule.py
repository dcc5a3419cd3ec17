"""The rule that chooses between torch and OpenVINO for documents. Imports neither of them.

documents.py follows the rule; `likewise doctor` prints the choice and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    if (named := named_runtime()) != "auto":
        return Choice(named, f"{RUNTIME_VARIABLE} names it")
    if precision != "auto":
        return Choice("torch", f"the caller has named the precision {precision}")
    if "amx_bf16" in cpu_features().split():
        return Choice("torch", "this CPU has AMX for bfloat16")
    first = f"{REPAYING_TEXTS:,} texts, or {REPAYING_KEPT_TEXTS} if the model is compiled"
    return Choice("openvino", f"this CPU has no AMX for bfloat16; torch embeds a run's first {first}")
