"""Draws docs/parts.svg, the engine and the parts round it: `python -m docs.parts_picture`, or `make docs`.

Ceilings and arrows are read from tests/contracts/parts.toml. Only the places of the boxes are chosen here: a ring of
six rows and four columns round the engine. An arrow between neighbours of the ring is straight. Arrows to the part that
most parts import run together between the ring and the engine. All other arrows run outside of the ring.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).with_name("parts.svg")
_PARTS = Path(__file__).parents[1] / "tests" / "contracts" / "parts.toml"

COLUMNS, ROWS = 4, 6
RING = (
    *("adapters", "client", "endpoints", "postgres"),
    *("cache", "speed", "readers", "map"),
    *("service", "federation", "shell", "watch"),
    *("inspection", "evaluation", "migration", "workers"),
)
"""The parts clockwise, from the corner at the top left. Parts that import each other are neighbours if possible."""

_WIDTH, _HEIGHT, _GAP, _MARGIN = 88, 44, 20, 16
"""Pixels of a box of the ring, between two boxes, and at the edge of the picture. A telephone shows the picture 340
pixels wide. The picture is not much wider, so that its text can still be read there."""
_HEAD = 7
"""Length of the head of an arrow in pixels."""
_LINE = 17
"""Height of a line of the notes in pixels."""

_NOTES = (
    "An arrow means: imports. Every part may import the engine. The engine imports no part. It finds parts by name, "
    "through doors. Each number is a maximum in lines of code."
)
_HALVES = (("search", "questions in, hits out"), ("indexer", "documents in, index out"))

_STYLE = """\
svg { --paper: #fff; --ink: #1f2328; --soft: #4d5661; --edge: #8c959f; --part: #f6f8fa; --engine: #ddf4ff;
  --strong: #0969da; --arrow: #bc4c00 }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #f0f6fc; --soft: #b1bac4; --edge: #656c76;
  --part: #1c232c; --engine: #10294a; --strong: #4493f8; --arrow: #f0883e } }
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--soft);
  text-anchor: middle }
.name { font-size: 13.5px; font-weight: 600; fill: var(--ink) }
.paper { fill: var(--paper) }
.part { fill: var(--part); stroke: var(--edge) }
.engine { fill: var(--engine); stroke: var(--strong) }
.half { fill: var(--paper); stroke: var(--strong) }
.arrow { fill: none; stroke: var(--arrow); stroke-width: 1.5; stroke-linejoin: round }
.head { fill: var(--arrow) }"""
"""Colours of the picture on paper of its own, so that it can be read on any page."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, from its corner at the top left."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def wider(self, pixels: float) -> Box:
        """Return the rectangle with this many pixels more on each side."""
        return Box(self.x - pixels, self.y - pixels, self.width + 2 * pixels, self.height + 2 * pixels)

    def distance(self, point: Point) -> float:
        """Return the pixels clockwise along the edge from the top left to the place that is nearest to a point."""
        x, y = min(max(point[0], self.x), self.right), min(max(point[1], self.y), self.bottom)
        if y == self.y:
            return x - self.x
        if x == self.right:
            return self.width + y - self.y
        if y == self.bottom:
            return self.width + self.height + self.right - x
        return 2 * self.width + self.height + self.bottom - y

    def between(self, start: Point, end: Point) -> list[Point]:
        """Return the corners on the shorter way along the edge from one point to another."""
        around = 2 * (self.width + self.height)
        one, other = self.distance(start), self.distance(end)
        clockwise = (other - one) % around
        if clockwise > around / 2:
            return self.between(end, start)[::-1]
        corners = [(self.x, self.y), (self.right, self.y), (self.right, self.bottom), (self.x, self.bottom)]
        passed = [((self.distance(corner) - one) % around, corner) for corner in corners]
        return [corner for distance, corner in sorted(passed) if 0 < distance < clockwise]


ENGINE = Box(
    _MARGIN + _WIDTH + _GAP, _MARGIN + _HEIGHT + _GAP, 2 * _WIDTH + _GAP, (ROWS - 2) * _HEIGHT + (ROWS - 3) * _GAP
)
WHOLE = Box(_MARGIN, _MARGIN, COLUMNS * (_WIDTH + _GAP) - _GAP, ROWS * (_HEIGHT + _GAP) - _GAP)


def places() -> dict[str, Box]:
    """Return the box of each part."""
    top = [(column, 0) for column in range(COLUMNS)]
    right = [(COLUMNS - 1, row) for row in range(1, ROWS - 1)]
    bottom = [(column, ROWS - 1) for column in reversed(range(COLUMNS))]
    left = [(0, row) for row in reversed(range(1, ROWS - 1))]
    cells = [*top, *right, *bottom, *left]
    return {
        part: Box(_MARGIN + column * (_WIDTH + _GAP), _MARGIN + row * (_HEIGHT + _GAP), _WIDTH, _HEIGHT)
        for part, (column, row) in zip(RING, cells, strict=True)
    }


def _way(part: str, other: str, hub: str, boxes: Mapping[str, Box]) -> list[Point]:
    """Return the corners of the arrow from a part to another part that it imports."""
    start, end = boxes[part], boxes[other]
    if abs(RING.index(part) - RING.index(other)) in (1, len(RING) - 1):
        return [_edge(start, end.middle), _edge(end, start.middle)]
    lane = (ENGINE if other == hub else WHOLE).wider(_GAP / 2)
    leave, enter = _onto(start, lane), _onto(end, lane)
    return [_edge(start, leave), leave, *lane.between(leave, enter), enter, _edge(end, enter)]


def _onto(box: Box, lane: Box) -> Point:
    """Return where a box of the ring meets a lane inside or outside of the ring."""
    x, y = box.middle
    inside = lane.x > WHOLE.x
    if box.right < ENGINE.x or box.x > ENGINE.right:  # a column at a side
        if inside and not ENGINE.y < y < ENGINE.bottom:  # a corner: half-way between its middle and the engine
            return (x + (_WIDTH / 4 if x < ENGINE.x else -_WIDTH / 4), lane.y if y < ENGINE.y else lane.bottom)
        return (lane.x if (x < ENGINE.x) else lane.right, y)
    return (x, lane.y if y < ENGINE.y else lane.bottom)


def _edge(box: Box, point: Point) -> Point:
    """Return the point of the edge of a box that is nearest to a point above, below or beside it."""
    x, y = point
    if box.x <= x <= box.right:
        return (x, box.y if y < box.y else box.bottom)
    return (box.x if x < box.x else box.right, min(max(y, box.y), box.bottom))


def _arrow(way: Sequence[Point], name: str) -> Iterator[str]:
    (before_x, before_y), (x, y) = way[-2], way[-1]
    along_x, along_y = (x > before_x) - (x < before_x), (y > before_y) - (y < before_y)
    neck = (x - along_x * _HEAD, y - along_y * _HEAD)
    line = " ".join(f"{a:g},{b:g}" for a, b in (*way[:-1], neck))
    half = _HEAD * 0.6
    sides = [(neck[0] + sign * along_y * half, neck[1] + sign * along_x * half) for sign in (1, -1)]
    head = " ".join(f"{a:g},{b:g}" for a, b in ((x, y), *sides))
    shapes = f'<polyline class="arrow" points="{line}"/><polygon class="head" points="{head}"/>'
    yield f"<g><title>{name}</title>{shapes}</g>"


def _rectangle(kind: str, box: Box) -> str:
    return f'<rect class="{kind}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="6"/>'


def _texts(box: Box, name: str, *lines: str, top: float) -> Iterator[str]:
    x = box.middle[0]
    yield f'<text class="name" x="{x:g}" y="{box.y + top:g}">{name}</text>'
    yield from (f'<text x="{x:g}" y="{box.y + top + _LINE * (n + 1):g}">{line}</text>' for n, line in enumerate(lines))


def _engine(ceiling: int) -> Iterator[str]:
    yield _rectangle("engine", ENGINE)
    yield from _texts(ENGINE, "the engine", f"≤ {ceiling:,} lines", top=21)
    height, beside = 74, 10
    upper, lower = (
        Box(ENGINE.x + beside, ENGINE.bottom - bottom, ENGINE.width - 2 * beside, height)
        for bottom in (2 * height + beside + _GAP, height + beside)
    )
    for half, (name, what) in zip((upper, lower), _HALVES, strict=True):
        yield _rectangle("half", half)
        yield from _texts(half, name, what, top=33)
    middle = upper.middle[0]
    yield from _arrow([(middle, upper.bottom), (middle, lower.y)], "search imports indexer")


def picture(drawn: Mapping[str, Any] | None = None) -> str:
    """Return the picture of the parts as parts.toml, or a mapping of its form, names them."""
    drawn = tomllib.loads(_PARTS.read_text(encoding="utf-8")) if drawn is None else drawn
    parts, boxes = drawn["parts"], places()
    if unknown := sorted(parts.keys() ^ boxes.keys()):
        raise ValueError(f"{', '.join(unknown)}: RING of docs/parts_picture.py and parts.toml name different parts")
    imports = [(part, other) for part in RING for other in parts[part]["imports"]]
    hub = Counter(other for _, other in imports).most_common(1)[0][0]
    notes = textwrap.wrap(_NOTES, 60)
    width, height = WHOLE.right + _MARGIN, WHOLE.bottom + _MARGIN + _LINE * len(notes) + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{1.5 * width:g}" '
        f'height="{1.5 * height:g}" role="img" aria-label="The engine and the parts round it">',
        f"<style>\n{_STYLE}\n</style>",
        f'<rect class="paper" width="{width:g}" height="{height:g}" rx="10"/>',
        *_engine(drawn["engine"]["ceiling"]),
    ]
    for part, other in imports:
        lines += _arrow(_way(part, other, hub, boxes), f"{part} imports {other}")
    for part, box in boxes.items():
        lines += [_rectangle("part", box), *_texts(box, part, f"≤ {parts[part]['ceiling']:,}", top=19)]
    for number, note in enumerate(notes):
        lines.append(f'<text x="{width / 2:g}" y="{WHOLE.bottom + _MARGIN + _LINE * (number + 0.8):g}">{note}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
