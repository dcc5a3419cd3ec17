"""The real collections that benchmarks measure on; they are no part of the repository."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def evaluation_data(besides: str = "") -> Path:
    """$LIKEWISE_EVAL_DATA/data. Where it is not set this says so, and ends the program well: there is nothing to do."""
    if root := os.environ.get("LIKEWISE_EVAL_DATA"):
        return Path(root) / "data"
    print(f"LIKEWISE_EVAL_DATA is not set{besides}: nothing measured")
    sys.exit(0)


def folder_asked() -> Path:
    """The folder of collections named on the command line, or else the evaluation data."""
    return Path(sys.argv[1]) if len(sys.argv) > 1 else evaluation_data(" and no folder was given")
