"""How far bfloat16 turns the vectors of every architecture: the lowest cosine with float32 over PROBES.

python -m benchmarks.precision [ARCHITECTURE...]

FLOAT32_ARCHITECTURES of indexer/encoders/machine/hardware.py follows from it. The models have random weights.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.architectures import ARCHITECTURES, make_folder
from indexer.encoders import load_encoder
from indexer.encoders.recipes.probes import PROBES
from indexer.errors import ModelError


def lowest_cosine(folder: Path) -> float | None:
    """Return the lowest cosine of a text's vectors in both precisions; None if the model does not run in bfloat16."""
    texts = list(PROBES)
    exact = load_encoder(folder, precision="float32").encode(texts, truncate=True)
    try:
        rounded = load_encoder(folder, precision="bfloat16").encode(texts, truncate=True)
    except ModelError:
        return None
    return float((exact * rounded).sum(1).min())


if __name__ == "__main__":
    for name in sys.argv[1:] or ARCHITECTURES:
        with tempfile.TemporaryDirectory() as temporary:
            cosine = lowest_cosine(make_folder(name, Path(temporary) / name))
        print(f"{name:24} {'does not run' if cosine is None else f'{cosine:.5f}'}", flush=True)
