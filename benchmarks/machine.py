"""The line that heads every table: what it was measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from indexer.encoders.machine.hardware import cpu_features
from likewise.speed.runtime_rule import kind_of


def machine() -> str:
    """Return the processor, and the Python that runs."""
    return f"{processor()}, Python {platform.python_version()}"


def processor() -> str:
    """Return the model of the CPU, its instructions for vectors, and the cores that this process may use."""
    return f"{_cpu()}, {kind_of(cpu_features()).name}, {_cores()} cores"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
