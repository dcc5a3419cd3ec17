"""Histograms of hidden states, drawn with matplotlib without a display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from indexer.errors import BadInput
from indexer.records import Vector

_BINS = 1024
"""Number of bins of one histogram."""


def draw_layers(path: Path, title: str, layers: Sequence[Sequence[Vector]]) -> None:
    """Draw one panel per layer, with mean and standard deviation; all panels have the same axes.

    Args:
        layers: the hidden states of each layer, in arrays of any shape.

    Raises:
        BadInput: the file cannot be written.
    """
    # Unlike pyplot, this needs no display and shares no state between threads.
    from matplotlib.figure import Figure

    across = min(4, len(layers))
    down = -(-len(layers) // across)
    figure = Figure(figsize=(3.2 * across, 2.4 * down + 0.6), layout="constrained")
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    values = [np.concatenate([np.ravel(part) for part in parts]).astype(np.float64) for parts in layers]
    reach = 1.05 * max(np.abs(each).max() for each in values)
    for number, (panel, each) in enumerate(zip(panels, values, strict=False)):
        panel.stairs(*np.histogram(each, _BINS, (-reach, reach), density=True), fill=True)
        panel.set_yscale("log")
        name = "embeddings" if number == 0 else f"layer {number}"
        panel.set_title(f"{name}: mean {each.mean():.3f}, sd {each.std():.3f}", fontsize=9)
    panels[0].set_xlim(-reach, reach)
    for panel in panels[len(layers) :]:
        panel.remove()
    # matplotlib would read a dollar sign in a name as the beginning of a formula.
    figure.suptitle(title.replace("$", r"\$"), fontsize=10)
    figure.supxlabel("value of a hidden unit", fontsize=9)
    figure.supylabel("density", fontsize=9)
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another picture") from error
