"""The parts as tests/contracts/parts.toml draws them, and copies of the tree without some of them."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from source_imports import ROOT

DRAWN = tomllib.loads((ROOT / "tests" / "contracts" / "parts.toml").read_text(encoding="utf-8"))
PARTS: Mapping[str, Mapping[str, Any]] = DRAWN["parts"]
ENGINE = "engine"
PUBLIC_PATHS: Mapping[str, str] = DRAWN["public_paths"]

OWNERS = {f"likewise.{part}": part for part in PARTS}


def part_of(module: str) -> str:
    """Return the part of a module: that of its nearest package which a part names."""
    while module and module not in OWNERS:
        module = module.rpartition(".")[0]
    return OWNERS.get(module, ENGINE)


def copy_without(folder: Path, parts: Collection[str]) -> None:
    """Copy the three packages into a folder, without the modules of these parts."""
    for room in ("indexer", "likewise", "search"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    for module, part in OWNERS.items():
        if part in parts:
            place = folder / module.replace(".", "/")
            shutil.rmtree(place, ignore_errors=True)
            place.with_suffix(".py").unlink(missing_ok=True)
