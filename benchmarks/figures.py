"""Plots of docs/measured.md, whose tables they read: `python -m benchmarks.figures` writes docs/figure-*.svg.

figure-languages: nDCG@10 by language and mode. figure-speed: texts per second by CPU and library. figure-size: seconds
of a question by the passages in the index.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from benchmarks.measured import PAGE, rows_of, tables_of

ACCENT, GREY, DARK = "#00838f", "#9aa5ab", "#37474f"
NAMES = {"ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "zh": "Chinese"}
LIBRARIES = {
    "likewise": "likewise, auto",
    "sentence-transformers": "sentence-transformers float32",
    "txtai": "txtai float32",
}
STYLE = {
    "font.size": 11,
    "font.family": "DejaVu Sans",
    "text.color": DARK,
    "axes.labelcolor": DARK,
    "xtick.color": DARK,
    "ytick.color": DARK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlepad": 16,
    "figure.facecolor": "white",
    "svg.hashsalt": "likewise",
}


def columns(section: str, benchmark: str) -> list[tuple[str, dict[str, dict[str, str]]]]:
    """Return for each table that a benchmark printed in a section its CPU, and its cells by row and column."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = []
    for table in tables_of(lines):
        if table.section == section and f"benchmarks.{benchmark}" in table.command:
            head, *rows = rows_of(table, lines)
            found.append((table.cpu, {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}))
    return found


def languages(axes: Any) -> None:
    """Draw nDCG@10 of each mode in each language."""
    (_, table), *_ = columns("languages", "peers")
    ways = {
        "likewise, words": ("words", GREY, "o"),
        "likewise, dense": ("meaning", DARK, "o"),
        "likewise, hybrid": ("both", ACCENT, "o"),
    }
    order = sorted(table, key=lambda name: float(table[name]["likewise, hybrid"]))
    for height, name in enumerate(order):
        values = [float(table[name][way]) for way in ways]
        axes.plot([min(values), max(values)], [height, height], color=GREY, linewidth=1, zorder=1)
        for value, (label, color, marker) in zip(values, ways.values(), strict=True):
            axes.plot(value, height, marker, color=color, markersize=9, zorder=2)
            if name == order[-1]:
                axes.annotate(label, (value, height), (0, 10), textcoords="offset points", ha="center", color=color)
    axes.set_yticks(range(len(order)), [NAMES[name.rpartition("-")[2]] for name in order])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("nDCG@10")
    best = sum(
        max(row, key=lambda way: float(row[way]) * (way in ways)) == "likewise, hybrid" for row in table.values()
    )
    axes.set_title(f"Words and meaning together are best in {best} of {len(table)} languages")


def speed(axes: Any) -> None:
    """Draw texts per second of each library on each CPU."""
    height, ratios = 0.0, []
    for cpu, table in columns("speed", "encode_speed"):
        if "texts/s" not in next(iter(table.values())):
            continue
        rates = {name: float(table[row]["texts/s"]) for name, row in LIBRARIES.items() if row in table}
        name, kind, _ = cpu.split(", ")
        ratios.append(f"{rates['likewise'] / rates['sentence-transformers']:.1f} times ({kind})")
        axes.text(0, height + 0.7, f"{name}, {kind}", fontsize=10)
        for library, rate in rates.items():
            axes.barh(height, rate, height=0.75, color=ACCENT if library == "likewise" else GREY)
            axes.annotate(f"{library}  {rate:.0f}", (rate, height), (5, 0), textcoords="offset points", va="center")
            height -= 1
        height -= 1.2
    axes.set_axis_off()
    axes.margins(x=0.3)
    axes.set_title(f"Texts per second, and to sentence-transformers: {' and '.join(ratios)}")


def size(axes: Any) -> None:
    """Draw seconds of a question by passages."""
    (_, table), *_ = columns("speed", "hybrid_speed")
    for name, row in table.items():
        sizes = [int(size.replace(",", "")) for size in row]
        values = [float(value) for value in row.values()]
        color = ACCENT if name.startswith("likewise") else GREY
        axes.plot(sizes, values, color=color, linewidth=2, marker="o", markersize=4)
        axes.annotate(name, (sizes[-1], values[-1]), (8, 0), textcoords="offset points", va="center", color=color)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("passages in the index")
    axes.set_title("Seconds of a question")


FIGURES = {"languages": (languages, (7.2, 3.6)), "speed": (speed, (7.2, 3.4)), "size": (size, (7.2, 3.8))}


def main() -> None:
    mpl.use("Agg")
    with mpl.rc_context(STYLE):
        for name, (draw, inches) in FIGURES.items():
            figure, axes = plt.subplots(figsize=inches, layout="constrained")
            draw(axes)
            figure.savefig(PAGE.with_name(f"figure-{name}.svg"), metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
