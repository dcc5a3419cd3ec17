"""Histograms of hidden states, drawn with matplotlib without a display."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput

ENDINGS = (".png", ".svg", ".pdf")
_BINS = 1024
"""Number of bins of one histogram."""


class LayerHistogram:
    """One histogram per layer of the values in its hidden states. The memory does not grow with the number of
    values."""

    def __init__(self, layers: int) -> None:
        self._layers = [_Counts() for _ in range(layers)]

    def add(self, layer: int, values: NDArray[np.float32]) -> None:
        """Count values of any shape."""
        self._layers[layer].add(values.ravel())

    def save(self, path: Path, title: str) -> None:
        """Draw one panel per layer, with mean and standard deviation; all panels have the same axes.

        Raises:
            BadInput: the file cannot be written.
        """
        # Unlike pyplot, this needs no display and shares no state between threads.
        from matplotlib.figure import Figure

        across = min(4, len(self._layers))
        down = -(-len(self._layers) // across)
        figure = Figure(figsize=(3.2 * across, 2.4 * down + 0.6), layout="constrained")
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
        for number, (panel, counts) in enumerate(zip(panels, self._layers, strict=False)):
            panel.stairs(counts.counts / counts.total / counts.width, counts.edges, fill=True)
            panel.set_yscale("log")
            name = "embeddings" if number == 0 else f"layer {number}"
            panel.set_title(f"{name}: mean {counts.mean:.3f}, sd {counts.deviation:.3f}", fontsize=9)
        reach = 1.05 * max(counts.greatest for counts in self._layers)
        panels[0].set_xlim(-reach, reach)
        for panel in panels[len(self._layers) :]:
            panel.remove()
        # matplotlib would read a dollar sign in a name as the beginning of a formula.
        figure.suptitle(title.replace("$", r"\$"), fontsize=10)
        figure.supxlabel("value of a hidden unit", fontsize=9)
        figure.supylabel("density", fontsize=9)
        try:
            figure.savefig(path, dpi=120)
        except OSError as error:
            raise BadInput(f"{path} cannot be written ({error.strerror}): name another picture") from error


class _Counts:
    """The histogram of one layer, in bins from -end to end. For a larger value, pairs of bins are merged into one."""

    def __init__(self) -> None:
        self.total, self._sum, self._squares = 0, 0.0, 0.0
        self.greatest, self._end = 0.0, 1.0
        self.counts: NDArray[np.int64] = np.zeros(_BINS, np.int64)

    def add(self, values: NDArray[np.float32]) -> None:
        self.greatest = max(self.greatest, float(np.abs(values).max()))
        while self._end < self.greatest:
            self._end *= 2
            self.counts = np.pad(self.counts.reshape(-1, 2).sum(1), _BINS // 4)
        self.counts += np.histogram(values.astype(np.float64), self.edges)[0]
        self.total += values.size
        self._sum += float(values.sum(dtype=np.float64))
        self._squares += float(np.square(values, dtype=np.float64).sum())

    @property
    def edges(self) -> NDArray[np.float64]:
        return np.linspace(-self._end, self._end, _BINS + 1)

    @property
    def width(self) -> float:
        return 2 * self._end / _BINS

    @property
    def mean(self) -> float:
        return self._sum / self.total

    @property
    def deviation(self) -> float:
        return float(np.sqrt(max(0.0, self._squares / self.total - self.mean**2)))


def picture(path: Path) -> Path:
    """Return a path that a picture can be written to.

    Raises:
        BadInput: the ending is unknown or the folder is missing.
        ModuleNotFoundError: matplotlib is not installed.
    """
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{path} is not a picture that likewise can draw: end it in {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {path.parent}")
    import_module("matplotlib")  # the caller hears of its absence before it has computed anything
    return path
