"""Assumptions of tests about the machine: tolerances, and marks for features that not every machine has.

The suite runs on the CPU alone, whatever else the machine has (`hide_gpus`), and must pass with one core or 64, with
or without AMX and AVX-512, on Linux and on macOS. A test compares results of a model within one of the
tolerances, unless both were computed in the same way from the same batch; it never asserts how long something takes.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

FLOAT32 = 1e-5
"""Between components of float32 unit vectors (or cosines) that were summed in another order.

The order changes with the shape of a batch, the number of threads and the instruction set. Seen on models of these
tests: up to 6e-7 on an Intel Xeon with AVX-512, 2.3e-6 on an AMD EPYC. A wrong token, layer or weight gives 1e-2.
"""

BFLOAT16 = 1e-3
"""Between components of unit vectors of 384 dimensions whose model computed in bfloat16, in batches of other shapes.

Weights keep 8 bits, so a component of about 0.05 is off by up to 2e-4 for each rounding that falls to the other side.
"""

LINUX = sys.platform.startswith("linux")

needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform == "darwin",
    reason="needs fork, which on macOS ends a process whose system libraries have threads",
)
needs_memory_limit = pytest.mark.skipif(not LINUX, reason="needs a limit on memory that the system enforces: Linux")
needs_any_file_name = pytest.mark.skipif(not LINUX, reason="needs file names that are any bytes: Linux")
needs_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which can become another user")
needs_setpriv = pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs util-linux's setpriv")
needs_no_root = pytest.mark.skipif(os.geteuid() == 0, reason="needs a user who may not read everything: not root")


def needs_bfloat16() -> pytest.MarkDecorator:
    """Skip where the CPU does not multiply bfloat16: emulating it over a collection takes longer than a test may."""
    from indexer.encoders.machine.hardware import multiplies_bfloat16

    return pytest.mark.skipif(
        not multiplies_bfloat16(), reason="needs a CPU that multiplies bfloat16: AVX512-BF16 or AMX"
    )


def hide_gpus() -> None:
    """Hide the GPU from this process and its children: `auto` would choose it, and its results differ more."""
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HIP_VISIBLE_DEVICES"] = ""


_MEMORY_FOLDER = Path("/dev/shm")
_MEMORY = 16 * 2**30
"""Bytes. A machine with less memory keeps the folders of tests on its disk."""
_FOLDERS_MEMORY = 4 * 2**30
"""Bytes that must be free in memory for the folders of tests, which have 1 GB at most."""


def keep_folders_in_memory() -> None:
    """Let pytest make its temporary folders in memory if there is room: every new index waits for a disk several times.

    `PYTEST_DEBUG_TEMPROOT` and `--basetemp` choose another place.
    """
    if not os.access(_MEMORY_FOLDER, os.W_OK) or _total_memory() < _MEMORY:
        return
    status = os.statvfs(_MEMORY_FOLDER)
    runs_programs = not status.f_flag & os.ST_NOEXEC  # some tests write a program and run it
    if runs_programs and status.f_bavail * status.f_frsize >= _FOLDERS_MEMORY:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY_FOLDER))


def _total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


_MOST_WORKERS = 8
_WORKER_MEMORY = 2 * 2**30
"""Bytes. A worker that has run the tests of encoders holds 1.3 GB: torch, transformers, and models."""


def share_out() -> int:
    """Return the number of processes that run the tests; 0 if a single process is best. It is called before they start.

    Three for two cores, because tests wait for half of their time, for processes and files; as many as there is memory
    for, and no more than are of use. Libraries are told to use no more threads than each process has cores, or all of
    them would wait for each other.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(cores + cores // 2, _MOST_WORKERS, _total_memory() // _WORKER_MEMORY)
    if workers < 2:
        return 0
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(name, str(max(1, cores // workers)))
    return workers


def is_running(process: int) -> bool:
    """Return whether a process exists and is not a zombie that waits for its parent."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
