"""The maps of the served indexes: places as bytes, colours by a field, titles of places, and areas as filters."""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import And, In, Where
from indexer.records import Document
from indexer.settings import MapRecord
from indexer.stores.port import FieldValues
from likewise.map.regions import nearest_middle
from likewise.service.http.problems import Problem
from likewise.service.served import ServedIndex
from search.hits.shown import shown_ranges
from search.searcher import Map

COLOURS = 11
"""Number of values of a field with their own colour. All other values share one colour."""
MAIN_REGIONS = 6
CENTRAL_DOCUMENTS = 3
"""Number of documents that stand for a region."""
MAX_CORNERS = 500
MAX_TITLES = 300
CARD_CHARACTERS = 200
"""Number of characters of a document's text that are shown beside its point."""
_MARGIN = 3e-5 * np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)])
"""Corners of a square around the place of a document, so that it is inside the area of its region."""
RANGES = 7
"""Number of ranges into which the numbers or dates of a field are divided."""

Area = Sequence[Sequence[float]]


@dataclass(frozen=True)
class _Drawn:
    record: MapRecord
    map: Map
    points: dict[str, int]  # by uri
    regions: list[dict[str, Any]]


class Maps:
    """Reads a map when it is first requested, and again when a new map was drawn."""

    def __init__(self) -> None:
        self._read: dict[str, _Drawn] = {}
        self._lock = threading.Lock()

    def describe(self, served: ServedIndex) -> dict[str, Any]:
        """Return the description of a map without its places."""
        drawn = self._drawn(served)
        documents, on_map = served.searcher.count(), len(drawn.points)
        outdated = 4 * abs(documents - on_map) >= on_map
        return {"documents": on_map, "outdated": outdated, "regions": drawn.regions}

    def main_regions(self, served: ServedIndex) -> dict[str, Any]:
        """Return the largest regions with the documents nearest to the middle of each; empty without a map."""
        try:
            drawn = self._drawn(served)
        except Problem:
            return {"regions": []}
        largest = sorted((each for each in drawn.regions if not each["level"]), key=lambda each: -each["documents"])
        regions = []
        for region in largest[:MAIN_REGIONS]:
            away = np.hypot(*(drawn.map.places - (region["x"], region["y"])).T)
            nearest = [drawn.map.uris[point] for point in np.argsort(away, kind="stable")[:CENTRAL_DOCUMENTS]]
            found = served.searcher.get_many(nearest)
            regions.append(region | {"name": " · ".join(region["terms"]), "central": [*map(_card, found)]})
        return {"regions": regions}

    def places(self, served: ServedIndex) -> bytes:
        """Return x and y of every point as little-endian float32."""
        return self._drawn(served).map.places.astype("<f4").tobytes()

    def colours(self, served: ServedIndex, field: str) -> dict[str, Any]:
        """Return the most frequent values of a field, or the ranges of its numbers or dates if there are many, and for
        each point the position of its value, or 255."""
        drawn = self._drawn(served)
        colours = np.full(len(drawn.map.uris), 255, np.uint8)
        found = served.searcher.values(field, COLOURS)
        scale = _ranges(found) if len(found.frequent) == COLOURS else []
        values: list[dict[str, Any]] = []
        shown: list[Any] = [*scale] or [value for value, _ in found.frequent]
        for value in shown:
            low, high = value if isinstance(value, tuple) else (None, None)
            uris = served.searcher.uris({field: value if low is None else {">=": low, "<=": high}})
            points = [drawn.points[uri] for uri in uris if uri in drawn.points]
            name = value if low is None else f"{low} to {high}"
            colours[points] = len(values)
            values.append({"value": name, "documents": len(uris), "from": low, "to": high})
        return {"field": field, "values": values, "scale": bool(scale), "colours": _encoded(colours)}

    def matching(self, served: ServedIndex, where: Where | None) -> dict[str, Any]:
        """Return 1 for each point whose document passes the filter, and 0 for the others."""
        drawn = self._drawn(served)
        matching = np.zeros(len(drawn.map.uris), np.uint8)
        matching[[drawn.points[uri] for uri in served.searcher.uris(where) if uri in drawn.points]] = 1
        return {"points": _encoded(matching)}

    def documents(self, served: ServedIndex, points: Sequence[int], uris: Sequence[str]) -> dict[str, Any]:
        """Return point, uri, title and beginning of documents, by their points or uris. Unknown ones are left out."""
        drawn = self._drawn(served)
        names = drawn.map.uris
        asked = [names[point] for point in points if point < len(names)] + list(uris)
        found = served.searcher.get_many(asked)
        return {"documents": [{"point": drawn.points.get(document.uri), **_card(document)} for document in found]}

    def within(self, served: ServedIndex, area: Area, where: Where | None) -> Where:
        """Return a filter for the documents inside a polygon on the map of the index that also pass `where`."""
        drawn = self._drawn(served).map
        inside = [drawn.uris[point] for point in np.flatnonzero(contains(np.array(area), drawn.places))]
        chosen = In("uri", tuple(inside))
        return chosen if where is None else And((chosen, where))

    def _drawn(self, served: ServedIndex) -> _Drawn:
        """Return the map of an index as it is now.

        Raises:
            Problem: 404, there is no map.
        """
        record = served.searcher.map_record  # may wait for a database, and so not under the lock
        with self._lock:
            read = self._read.pop(served.name, None)
            if record is None or read is None or read.record != record:
                drawn = served.searcher.map()
                if drawn is None or record is None:
                    raise Problem(404, "no-map", "there is no map of this index: its owner has to make one")
                points = {uri: point for point, uri in enumerate(drawn.uris)}
                read = _Drawn(record, drawn, points, _outlined(drawn))
            self._read[served.name] = read
            return read


def _outlined(drawn: Map) -> list[dict[str, Any]]:
    """Return the regions, each with its area: the corners of a convex polygon around its documents and no others."""
    from scipy.spatial import ConvexHull

    outlined = []
    for level in sorted({region.level for region in drawn.regions}):
        regions = [region for region in drawn.regions if region.level == level]
        nearest = nearest_middle(drawn.places, np.array([(region.x, region.y) for region in regions], np.float32))
        for position in np.unique(nearest):  # Another version may have drawn empty regions.
            around = (drawn.places[nearest == position, None] + _MARGIN).reshape(-1, 2)
            area = around[ConvexHull(around).vertices].round(5).tolist()
            outlined.append(asdict(regions[position]) | {"area": area})
    return outlined


def _card(document: Document) -> dict[str, str]:
    beginning = document.text[: 4 * CARD_CHARACTERS]
    shown = shown_ranges(beginning, document.format, document.title or document.uri)
    text = " ".join("".join(beginning[start:end] for start, end in shown).split())[:CARD_CHARACTERS]
    return {"uri": document.uri, "title": document.title, "text": text}


def _encoded(points: NDArray[np.uint8]) -> str:
    return base64.b64encode(points.tobytes()).decode("ascii")


def _ranges(found: FieldValues) -> list[tuple[Any, Any]]:
    """Return the bounds of equal ranges between the smallest and the largest number or day of a field; or none."""
    if found.days is not None:
        first, last = (date.fromisoformat(str(day)[:10]).toordinal() for day in found.days)
        bounds: list[Any] = [date.fromordinal(round(each)).isoformat() for each in np.linspace(first, last, RANGES + 1)]
    elif found.numbers is not None:
        low, high = found.numbers
        known = (low, high, *(value for value, _ in found.frequent if isinstance(value, (int, float))))
        is_whole = high - low >= RANGES and all(float(number).is_integer() for number in known)
        digits = None if is_whole else 2 - math.floor(math.log10(high - low or 1))
        bounds = [round(each, digits) for each in np.linspace(low, high, RANGES + 1).tolist()]
        bounds[0], bounds[-1] = low, high
        if is_whole:
            return [(first, last - 1) for first, last in pairwise(bounds[:-1])] + [(bounds[-2], bounds[-1])]
    else:
        return []
    return list(pairwise(dict.fromkeys(bounds)))


def contains(area: NDArray[np.floating], places: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return for each place (n, 2) whether it is inside a polygon (corners, 2), by the even-odd rule."""
    inside = np.zeros(len(places), np.bool_)
    x, y = places[:, 0], places[:, 1]
    for (x1, y1), (x2, y2) in zip(area, np.roll(area, -1, axis=0), strict=True):
        if y1 == y2:
            continue
        crosses = (y1 > y) != (y2 > y)
        inside ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return inside
