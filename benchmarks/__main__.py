"""Runs every benchmark of this folder, one after the other, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Returns 1 where a benchmark failed, after running the others."""
    modules = [path for path in sorted(Path(__file__).parent.glob("[!_]*.py")) if "def main(" in path.read_text()]
    failed = 0
    for path in modules:
        print(f"## {path.stem}\n", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"], check=False).returncode != 0
        print(flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
