"""docs/parts.svg is what its program draws: every part with its ceiling, and arrows that cross no box."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from drawn_parts import DRAWN, PARTS

from docs.parts_picture import ENGINE, PICTURE, Box, picture, places

SVG = "{http://www.w3.org/2000/svg}"
DRAWING = ElementTree.fromstring(PICTURE.read_text(encoding="utf-8"))

Point = tuple[float, float]


def ways() -> Iterator[tuple[str, list[Point]]]:
    """The arrows between parts by their titles, each with the corners of its line."""
    for group in DRAWING.iter(f"{SVG}g"):
        name, line = group.findtext(f"{SVG}title"), group.find(f"{SVG}polyline")
        assert name is not None
        assert line is not None
        corners = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        yield name, [(x, y) for x, y in corners]


def contains(box: Box, point: Point) -> bool:
    return box.x < point[0] < box.right and box.y < point[1] < box.bottom


def test_the_picture_is_drawn_from_the_table_of_parts() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run: make docs"


def test_every_part_has_its_name_its_ceiling_and_its_arrows() -> None:
    texts = [text.text for text in DRAWING.iter(f"{SVG}text")]
    for part, drawn in PARTS.items():
        assert texts[texts.index(part) + 1] == f"≤ {drawn['ceiling']:,}"
    assert f"≤ {DRAWN['engine']['ceiling']:,} lines" in texts
    arrows = [f"{part} imports {other}" for part, drawn in PARTS.items() for other in drawn["imports"]]
    assert sorted(name for name, _ in ways()) == sorted([*arrows, "search imports indexer"])


def test_arrows_are_straight_and_cross_neither_a_part_nor_the_engine() -> None:
    boxes = places()
    for name, corners in ways():
        for (x, y), (next_x, next_y) in pairwise(corners):
            assert x == next_x or y == next_y, name
            line = [(x + (next_x - x) * step / 100, y + (next_y - y) * step / 100) for step in range(101)]
            assert not any(contains(box, point) for box in boxes.values() for point in line), name
            assert name == "search imports indexer" or not any(contains(ENGINE, point) for point in line), name


def test_a_part_without_a_place_is_refused() -> None:
    drawn = {**DRAWN, "parts": {**PARTS, "another": PARTS["map"]}}
    with pytest.raises(ValueError, match=r"^another: RING of docs/parts_picture\.py"):
        picture(drawn)
