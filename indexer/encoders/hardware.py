"""Which device and precision a model should run in, by what the hardware really has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from indexer.errors import ModelError

if TYPE_CHECKING:
    import torch

_AMPERE = 8
"""The first of NVIDIA's architectures with bfloat16 in hardware."""

Precision = Literal["auto", "float32", "bfloat16", "int8"]


def choose_device(device: str) -> str:
    """A torch device by name: `auto` is CUDA where there is one, and Apple's `mps` has to be named.

    Raises:
        ModelError: it is not to be had here.
    """
    import torch

    device = str(device)  # a torch.device will do
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if torch.empty(0, device=device).is_meta:
            raise RuntimeError("it computes nothing")
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {device!r} is not usable here: choose cpu, or auto") from error
    return device


def choose_dtype(precision: Precision, device: str) -> torch.dtype:
    """The dtype of weights: bfloat16 where the hardware has it, as emulation is slower than float32.

    It is also that of what int8 leaves as it is.
    """
    import torch

    if precision not in get_args(Precision):
        raise ModelError(f"precision {precision!r} is none of {', '.join(get_args(Precision))}")
    if precision == "float32":
        return torch.float32
    if device.startswith("cuda"):
        # Asked of the card itself: torch also counts those that emulate bfloat16, far slower than float16.
        new = torch.version.hip or torch.cuda.get_device_capability(device)[0] >= _AMPERE
        return torch.bfloat16 if new else torch.float16
    return torch.bfloat16 if precision == "bfloat16" or multiplies_bfloat16() else torch.float32


def multiplies_bfloat16() -> bool:
    """Whether this CPU has bfloat16 products in hardware: AMX tiles or AVX512-BF16."""
    import torch

    # Asked of torch's own probe of the CPU; the names are private, so a torch without them means float32.
    probes = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return any(probe() for probe in probes if probe is not None)
