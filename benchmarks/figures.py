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
MODES = {"words": ("by words", GREY), "dense": ("by meaning", DARK), "hybrid": ("by both", ACCENT)}
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
    "figure.titlesize": 13,
    "figure.titleweight": "bold",
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


def titled(axes: Any, title: str) -> None:
    axes.figure.suptitle(title, x=0.01, ha="left")


def languages(axes: Any) -> None:
    """Draw nDCG@10 of each mode in each language."""
    (_, table), *_ = columns("languages", "peers")
    order = sorted(table, key=lambda name: float(table[name]["likewise, hybrid"]))
    for height, name in enumerate(order):
        values = [float(table[name][f"likewise, {mode}"]) for mode in MODES]
        axes.plot([min(values), max(values)], [height, height], color=GREY, linewidth=1.5, zorder=1)
        for value, (_, color) in zip(values, MODES.values(), strict=True):
            axes.plot(value, height, "o", color=color, markersize=10, markeredgecolor="white", zorder=2)
    for place, (label, color) in zip((0.0, 0.2, 0.44), MODES.values(), strict=True):
        axes.text(place, 1.05, f"\u25cf {label}", color=color, transform=axes.transAxes)
    axes.set_yticks(range(len(order)), [NAMES[name.rpartition("-")[2]] for name in order])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("nDCG@10")
    best = [max(MODES, key=lambda mode: float(row[f"likewise, {mode}"])) for row in table.values()].count("hybrid")
    titled(axes, f"Words and meaning together are best in {best} of {len(table)} languages")


def speed(axes: Any) -> None:
    """Draw texts per second of each library on each CPU."""
    height, ratios, ticks = 0.0, [], {}
    for cpu, table in columns("speed", "encode_speed"):
        if "texts/s" not in next(iter(table.values())):
            continue
        rates = {name: float(table[row]["texts/s"]) for name, row in LIBRARIES.items() if row in table}
        name, kind, _ = cpu.split(", ")
        ratio = rates["likewise"] / rates["sentence-transformers"]
        ratios.append(f"{ratio:.1f}{' times as fast' * (not ratios)} with {kind.split()[0]}")
        axes.text(0, height + 0.65, f"{name}, {kind}: texts per second", fontweight="bold")
        for library, rate in rates.items():
            axes.barh(height, rate, height=0.75, color=ACCENT if library == "likewise" else GREY)
            axes.annotate(f"{rate:.1f}", (rate, height), (6, 0), textcoords="offset points", va="center")
            ticks[height] = library
            height -= 1
        height -= 1
    axes.set_yticks(list(ticks), ticks.values())
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_visible(False)
    axes.spines[["left", "bottom"]].set_visible(False)
    titled(axes, f"likewise embeds {', '.join(ratios)}")


def size(axes: Any) -> None:
    """Draw milliseconds of a question by passages."""
    (_, table), *_ = columns("speed", "hybrid_speed")
    sizes = [int(size.replace(",", "")) for size in next(iter(table.values()))]
    last = {name: 1e3 * float(list(row.values())[-1]) for name, row in table.items()}
    label = 0.0
    for name in sorted(table, key=lambda name: last[name]):
        color = ACCENT if name.startswith("likewise") else GREY
        values = [1e3 * float(value) for value in table[name].values()]
        axes.plot(sizes, values, color=color, linewidth=2, marker="o", markersize=4)
        label = max(last[name], 1.35 * label)  # Names that would lie on one another are moved apart.
        axes.annotate(name, (1.25 * sizes[-1], label), va="center", color=color, annotation_clip=False)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ticks = [10**power for power in range(4) if 10**power < 2 * max(last.values())]
    axes.set_yticks(ticks, [f"{tick:,} ms" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("passages in the index")
    dense, hybrid = last["likewise, dense"], last["likewise, hybrid"]
    titled(axes, f"A question to {sizes[-1]:,} passages takes {dense:.0f} ms, with words too {hybrid:.0f} ms")


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
