"""The device and the precision that a model should run in, according to the hardware."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

_AMPERE = 8
"""Major version of the first NVIDIA architecture with bfloat16 in hardware."""

_FEATURES = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "bf16",
    "sve",
)
"""Linux's names of the instructions that decide how fast a model runs. Machines with the same CPU name may differ in
them."""

FLOAT32_ARCHITECTURES = frozenset(
    {"t5", "mt5", "umt5", "longt5", "switch_transformers", "deberta", "fnet", "mra", "xlnet"}
)
"""Architectures that `auto` runs in float32 on every machine. bfloat16 turns the vectors of T5 too far, and deberta,
fnet, mra and xlnet do not run in it. python -m benchmarks.precision measures this for every architecture."""

_OVERFLOWING = frozenset({"gemma", "gemma2", "gemma3_text", "gemma3", "qwen2", "qwen3", "llama", "mistral"})
"""Architectures whose hidden states may exceed 65,504, the largest float16, on GPUs without bfloat16."""

Precision = Literal["auto", "float32", "bfloat16", "int8"]


def choose_device(device: str) -> str:
    """Return the name of a torch device: `auto` is CUDA where there is one; Apple's `mps` has to be named.

    Raises:
        ModelError: this machine does not have the device.
    """
    import torch

    device = str(device)  # A caller may also pass a torch.device.
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if torch.empty(0, device=device).is_meta:
            raise RuntimeError("it computes nothing")
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {device!r} is not usable here: choose cpu, or auto") from error
    return device


def gpus() -> list[str]:
    """Return the names of the NVIDIA and AMD GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    if not any(Path(driver).exists() for driver in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")):
        return []
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def choose_dtype(precision: Precision, device: str, architecture: str = "") -> torch.dtype:
    """Return the dtype of the weights: for `auto`, bfloat16 where the hardware has it, as emulation is slower.

    With int8, products are of 8-bit integers and hidden states float32.

    Args:
        architecture: the `model_type` of a transformer, for which `auto` may need float32 (FLOAT32_ARCHITECTURES).

    Raises:
        ModelError: `precision` is not one of `Precision`.
    """
    import torch

    if precision not in get_args(Precision):
        raise ModelError(f"precision {precision!r} is not one of {', '.join(get_args(Precision))}")
    if precision == "float32" or (precision == "auto" and architecture in FLOAT32_ARCHITECTURES):
        return torch.float32
    if precision == "int8":
        return torch.int8
    if device.startswith("cuda"):
        # torch.cuda.is_bf16_supported also says yes for cards that emulate bfloat16, which is far slower than float16.
        new = torch.version.hip or torch.cuda.get_device_capability(device)[0] >= _AMPERE
        old = torch.float32 if architecture in _OVERFLOWING else torch.float16
        return torch.bfloat16 if new else old
    return torch.bfloat16 if precision == "bfloat16" or multiplies_bfloat16() else torch.float32


def multiplies_bfloat16() -> bool:
    """Return whether this CPU multiplies bfloat16 in hardware, with AMX tiles or AVX512-BF16."""
    import torch

    # These probes of torch are private: with a torch that lacks them, the precision is float32.
    probes = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return any(probe() for probe in probes if probe is not None)


def cpu_name() -> str:
    """Return the name of the CPU, or else its architecture."""
    if platform.system() == "Darwin":
        return _mac_cpu()
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def cpu_features() -> str:
    """Return the `_FEATURES` that the CPU has, in that order and separated by spaces; empty if they are unknown."""
    info = _cpuinfo()
    flags = (info.get("flags") or info.get("Features") or "").split()
    return " ".join(name for name in _FEATURES if name in flags)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def named_threads() -> int | None:
    """Return how many threads OMP_NUM_THREADS names, which torch and FAISS obey by themselves; None without it."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return int(threads) if threads.isdecimal() and int(threads) else None


@lru_cache(maxsize=1)
def _cpuinfo() -> dict[str, str]:
    """Return the fields that Linux gives for the first core; empty on other systems."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


@lru_cache(maxsize=1)
def _mac_cpu() -> str:
    import subprocess

    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        name = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        name = ""
    return name or platform.machine()
