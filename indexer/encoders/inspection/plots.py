"""Pictures, drawn with matplotlib without a display. What is drawn is computed elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.errors import BadInput

ENDINGS = (".png", ".svg", ".pdf")
_BINS = 1024


class LayerHistogram:
    """How often each value occurs in the hidden states of each layer. Memory does not grow with the values."""

    def __init__(self, layers: int) -> None:
        self._layers = [_Counts() for _ in range(layers)]

    def add(self, layer: int, values: NDArray[np.float32]) -> None:
        self._layers[layer].add(values.ravel())

    def save(self, path: Path, title: str) -> None:
        """Draw a panel a layer, with mean and standard deviation; all have the same axes.

        Raises:
            BadInput: the file cannot be written.
        """
        from matplotlib.figure import Figure  # not pyplot: no display, no state shared by threads

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
        # A name may hold a dollar sign, which matplotlib would read as mathematics.
        figure.suptitle(title.replace("$", r"\$"), fontsize=10)
        figure.supxlabel("value of a hidden unit", fontsize=9)
        figure.supylabel("density", fontsize=9)
        try:
            figure.savefig(path, dpi=120)
        except OSError as error:
            raise BadInput(f"{path} cannot be written ({error.strerror}): name another picture") from error


class _Counts:
    """Counts of one layer's values in bins from -end to end, which grow with the values: two become one."""

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
    """A path that can become a picture. Raises BadInput for an ending of no known kind, or where no folder is."""
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{path} is no picture that likewise draws: end it in {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {path.parent}")
    return path
