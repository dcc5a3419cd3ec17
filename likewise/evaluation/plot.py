"""The picture of a comparison: quality against speed, and the distribution of each recipe's cosines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.errors import BadInput

if TYPE_CHECKING:
    from likewise.evaluation.compare import Comparison, RecipeResult

_RANDOM, _RELATED = "#9a9a9a", "#1b6ca8"


def plot(comparison: Comparison, path: Path) -> None:
    """Write the picture in the format of the file's ending.

    Raises:
        BadInput: matplotlib does not know the format, or the file cannot be written.
    """
    from matplotlib.figure import Figure  # not pyplot: no window, no state

    rows = comparison.rows
    figure = Figure(figsize=(12, max(4.0, 1.5 + 0.4 * len(rows))), dpi=80, layout="constrained")
    left, right = figure.subplots(1, 2)
    _quality(left, rows)
    _cosines(right, rows)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: the picture cannot be written ({error}): name a file such as picture.png") from error


def _quality(axes: Any, rows: tuple[RecipeResult, ...]) -> None:
    """Draw every recipe as a point: texts per second, and the first measure with its interval."""
    from matplotlib.ticker import LogLocator, NullFormatter

    measure = next(iter(rows[0].measures))
    for number, row in enumerate(rows, 1):
        estimate = row.measures[measure]
        interval = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
        axes.errorbar(row.speed, estimate.value, yerr=interval, fmt="o", color=_RELATED, ecolor=_RANDOM, capsize=3)
        axes.annotate(str(number), (row.speed, estimate.value), (5, 5), textcoords="offset points")
    axes.set(xscale="log", xlabel="texts per second", ylabel=measure, title="Quality against speed")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _cosines(axes: Any, rows: tuple[RecipeResult, ...]) -> None:
    """Draw two boxes per recipe: quartiles and 5 to 95 % of the cosines of random and of related pairs."""
    for shift, color, kind in ((0.18, _RANDOM, "random"), (-0.18, _RELATED, "related")):
        boxes = axes.boxplot(
            [getattr(row.cosines, kind) for row in rows],
            positions=[len(rows) - index + shift for index in range(len(rows))],
            orientation="horizontal",
            widths=0.3,
            whis=(5, 95),
            showfliers=False,
            patch_artist=True,
            medianprops={"color": "black"},
        )
        for box in boxes["boxes"]:
            box.set_facecolor(color)
        axes.plot([], [], color=color, linewidth=6, label=f"{kind} pairs")
    names = [f"{row.recipe}  {number}" for number, row in enumerate(rows, 1)]
    axes.set_yticks([len(rows) - index for index in range(len(rows))], names, fontsize=8)
    axes.set(xlabel="cosine", title="Cosines of random and related pairs")
    axes.figure.legend(loc="outside lower right", ncols=2, fontsize=8)
