"""The lines that `likewise index` shows of a new index, with their times, and its CPU time outside the encoder.

A folder (by default the PEPs 200 to 249 under $LIKEWISE_EVAL_DATA/data) is indexed twice without a cache of vectors:
by the command line, whose lines on standard error get the seconds since its start, and in this process, where the CPU
time of the encoder is taken apart.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.sources.files.extractor import EXTRACTOR
from likewise.shell import main as likewise


def main() -> None:
    os.environ["LIKEWISE_VECTOR_CACHE"] = "off"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(sys.argv[1]) if len(sys.argv) > 1 else peps(Path(folder) / "peps")
        print(f"{machine()}\n")
        show([sys.executable, "-m", "likewise", "index", f"{folder}/shown.index", str(source)])
        share(f"{folder}/measured.index", source)


def peps(folder: Path) -> Path:
    folder.mkdir()
    for file in (evaluation_data() / "peps").glob("pep-02[0-4]*.rst"):
        shutil.copy(file, folder)
    return folder


def show(command: list[str]) -> None:
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"{time.monotonic() - began:7.1f} s  {line.rstrip()}", flush=True)


def share(index: str, source: Path) -> None:
    encode, spent = TorchEncoder.encode, [0.0]

    def timed(encoder: TorchEncoder, *arguments: Any, **named: Any) -> Any:
        began = elsewhere()
        try:
            return encode(encoder, *arguments, **named)
        finally:
            spent[0] += elsewhere() - began

    def elsewhere() -> float:
        """CPU seconds of this process. If another thread embeds, what the run does beside it is left out."""
        run = threading.main_thread()
        clock = time.pthread_getcpuclockid(run.ident or 0)
        return time.process_time() - (0 if threading.current_thread() is run else time.clock_gettime(clock))

    TorchEncoder.encode = timed  # type: ignore[method-assign]
    began, before = time.process_time(), children()
    try:
        likewise(["index", index, str(source)])
    except SystemExit as ended:
        assert not ended.code
    EXTRACTOR.close()
    readers = children() - before
    total = time.process_time() - began + readers
    outside = total - spent[0]
    print(f"\n{total:.1f} s of CPU, {outside:.1f} s or {100 * outside / total:.1f} % of it outside the encoder")
    print(f"of these {readers:.1f} s in the process of the readers")


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
