"""Running `likewise index` again over files that have not changed: seconds, with nothing embedded.

`python -m benchmarks.unchanged [FILES]`; the default is 100,000 files of two words. Both runs are the shell's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE

MANY = 100_000
A_FOLDER = 1000


def main() -> None:
    many = int((sys.argv[1:] or [str(MANY)])[0])
    print(f"{machine()}\n\n| {many:,} files | seconds |\n| --- | --- |")
    with tempfile.TemporaryDirectory(prefix="likewise-unchanged-") as parent:
        texts, index = Path(parent) / "texts", str(Path(parent) / "bench.index")
        for number in range(many):
            folder = texts / str(number // A_FOLDER)
            if number % A_FOLDER == 0:
                folder.mkdir(parents=True)
            file = folder / f"{number}.txt"
            file.write_text(f"note {number}\n")
            os.utime(file, (1e9, 1e9))  # files just written are read again, as they may change within their time stamp
        for what in ("first run", "again", "again", "again"):
            begun = time.perf_counter()
            command = [LIKEWISE, "index", index, str(texts), "--json"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            counts = json.loads(done.stdout.splitlines()[-1])
            assert counts["indexed"] == (many if what == "first run" else 0), counts
            print(f"| {what} | {time.perf_counter() - begun:.2f} |", flush=True)
        shutil.rmtree(texts)


if __name__ == "__main__":
    main()
