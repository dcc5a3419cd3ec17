"""SciFact embedded through an endpoint, our own service, beside the same model in the process.

    python -m benchmarks.endpoint [DOCUMENTS]      default: all

With $LIKEWISE_EVAL_DATA. Both indexes cut the same passages; the lowest cosine of two vectors of a passage, and medians
of the time of both commands. The service runs on the same cores.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cache import index, lowest_cosine
from benchmarks.data import evaluation_data
from benchmarks.machine import machine
from benchmarks.quality import LIKEWISE

ROUNDS = 3


def main() -> None:
    records = (evaluation_data() / "scifact" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else len(records)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        corpus = folder / "corpus.jsonl"
        corpus.write_text("\n".join(records[:count]), encoding="utf-8")
        os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
        local, far = [], []
        index(folder / "0.index", corpus, "--no-cache")
        service = subprocess.Popen(
            [LIKEWISE, "serve", str(folder / "0.index"), "--port", "0", "--no-access-log"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert service.stderr is not None
        try:
            url = next(found[0] for line in service.stderr if (found := re.search(r"http://[^/\s]+", line)))
            endpoint = ("--model", f"{url}/v1#0", "--tokenizer", "all-MiniLM-L6-v2", "--max-tokens", "256")
            for number in range(1, ROUNDS + 1):
                local.append(index(folder / f"local{number}.index", corpus, "--no-cache"))
                far.append(index(folder / f"far{number}.index", corpus, "--no-cache", *endpoint))
        finally:
            service.kill()
            service.communicate()
        lowest = lowest_cosine(folder / "far1.index", folder / "local1.index")
    here, there = sorted(local)[ROUNDS // 2], sorted(far)[ROUNDS // 2]
    print(f"{machine()}, {count:,} documents\n\n| | |\n| --- | --- |")
    print(
        f"| in the process | {here:.1f} s |\n| through the service | {there:.1f} s, {here / there:.2f} of the speed |"
    )
    print(f"| lowest cosine of two vectors of a passage | {lowest:.6f} |")


if __name__ == "__main__":
    main()
