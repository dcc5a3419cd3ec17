"""The map over HTTP: places, regions, colours, titles, and an area as a filter."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parts.map.drawn_maps import keep
from starlette.testclient import TestClient

from indexer import Document, Index
from indexer.stores.port import FieldValues
from likewise.map.file import NAME, Map
from likewise.map.regions import Region, nearest_middle
from likewise.service.http.maps import _outlined, _ranges, contains
from likewise.service.served import without_folders

MAP = "/v1/indexes/papers/map"
PLACES = np.array([[0, 0], [1, 0], [0, 1], [0.25, 0.75]], np.float32)
URIS = ("moon", "sun", "erde", "bread")


@pytest.fixture
def mapped(papers: Path) -> Path:
    keep(papers, Map(URIS, PLACES, (Region(0.5, 0.5, 0, 4, ("sky", "bread")),)))
    return papers


@pytest.fixture
def client(open_client: Callable[..., TestClient], mapped: Path) -> TestClient:
    return open_client({"papers": mapped})


def test_places_regions_and_titles(client: TestClient) -> None:
    answered = client.get(MAP).json()
    area = answered["regions"][0].pop("area")
    assert answered == {
        "documents": 4,
        "outdated": False,
        "regions": [{"x": 0.5, "y": 0.5, "level": 0, "documents": 4, "terms": ["sky", "bread"]}],
    }
    np.testing.assert_allclose(sorted(set(map(tuple, np.abs(np.round(area, 3))))), [(0, 0), (0, 1), (1, 0)])
    places = client.get(f"{MAP}/places")
    assert places.headers["content-type"] == "application/octet-stream"
    np.testing.assert_array_equal(np.frombuffer(places.content, "<f4").reshape(-1, 2), PLACES)
    named = client.post(f"{MAP}/documents", json={"points": [3, 0, 99], "uris": ["erde", "mars"]}).json()["documents"]
    assert [(each["point"], each["uri"], each["title"], each["text"]) for each in named] == [
        (3, "bread", "Bread", "Bread is baked in an oven."),
        (0, "moon", "Moon", "The moon orbits the earth. It is full once a month."),
        (2, "erde", "Erde", "Die Erde kreist um die Sonne."),
    ]


def test_the_area_of_a_region_holds_its_documents_and_no_others() -> None:
    places = np.random.default_rng(0).random((200, 2), np.float32)
    places[:3] = 0.5  # several documents at one place
    middles = np.array([(0.2, 0.2), (0.8, 0.3), (0.5, 0.8)], np.float32)
    regions = [Region(float(x), float(y), 0, 1, ()) for x, y in middles] + [Region(0.5, 0.5, 1, 200, ())]
    regions.append(Region(9, 9, 1, 1, ()))  # without documents
    outlined = _outlined(Map(tuple(map(str, range(200))), places, tuple(regions)))
    inside = [contains(np.array(region["area"]), places) for region in outlined]
    nearest = nearest_middle(places, middles)
    np.testing.assert_array_equal(inside, [nearest == 0, nearest == 1, nearest == 2, nearest >= 0])


def test_colours_are_the_frequent_values_of_a_field(client: TestClient) -> None:
    answered = client.get(f"{MAP}/colours", params={"field": "lang"}).json()
    assert [(each["value"], each["documents"]) for each in answered["values"]] == [("en", 3), ("de", 1)]
    assert answered["scale"] is False
    assert list(b64decode(answered["colours"])) == [0, 0, 1, 0]
    assert list(b64decode(client.get(f"{MAP}/colours", params={"field": "tags"}).json()["colours"])).count(255) == 3
    unknown = client.get(f"{MAP}/colours", params={"field": "lnag"})
    assert (unknown.status_code, unknown.json()["slug"]) == (400, "unknown-field")


@pytest.mark.parametrize(("low", "high"), [(52.3001, 52.3089), (1000.5, 1001.2), (0.0, 1e-9), (-3.5, 1e6), (0, 28)])
def test_ranges_of_numbers_ascend_however_narrow_they_are(low: float, high: float) -> None:
    ranges = _ranges(FieldValues(documents=12, numbers=(low, high)))
    assert (ranges[0][0], ranges[-1][1], len(ranges)) == (low, high, 7)
    assert [first for first, _ in ranges] == sorted(first for first, _ in ranges)
    assert all(first <= last for first, last in ranges)


def test_ranges_of_fractions_have_no_gaps() -> None:
    """A range that ended at 5 and one that began at 6 would leave 5.5 without a colour."""
    for frequent in ((0.5, 2), (5.5, 1)), ((0, 9), (5.5, 1)):
        ranges = _ranges(FieldValues(documents=12, frequent=frequent, numbers=(0, 28)))
        assert all(last == first for (_, last), (first, _) in pairwise(ranges))
    assert _ranges(FieldValues(documents=12, frequent=((0, 9),), numbers=(0, 28)))[:2] == [(0, 3), (4, 7)]


def test_many_numbers_or_days_are_coloured_by_ranges(
    open_client: Callable[..., TestClient], tmp_path: Path, encoder: Any
) -> None:
    folder = tmp_path / "papers.index"
    with Index.create(folder, model=encoder) as index:
        index.add([Document(f"d{n}", "moon", metadata={"n": n, "day": f"2024-01-{n + 1:02}"}) for n in range(29)])
    keep(folder, Map(tuple(f"d{n}" for n in range(29)), np.zeros((29, 2), np.float32), ()))
    client = open_client({"papers": folder})
    answered = client.get(f"{MAP}/colours", params={"field": "n"}).json()
    assert answered["scale"] is True
    ranges = [(each["from"], each["to"], each["documents"]) for each in answered["values"]]
    assert ranges == [(n, n + 3 + (n == 24), 4 + (n == 24)) for n in range(0, 28, 4)]
    assert list(b64decode(answered["colours"])) == [min(n // 4, 6) for n in range(29)]
    days = client.get(f"{MAP}/colours", params={"field": "day"}).json()
    assert [days["values"][at]["value"] for at in (0, 6)] == ["2024-01-01 to 2024-01-05", "2024-01-25 to 2024-01-29"]
    assert sorted(set(b64decode(days["colours"]))) == list(range(7))


def test_points_that_pass_a_filter_are_told(client: TestClient) -> None:
    def matching(**body: Any) -> list[int]:
        return list(b64decode(client.post(f"{MAP}/matching", json=body).json()["points"]))

    left = [[-0.5, -0.5], [0.5, -0.5], [0.5, 1.5], [-0.5, 1.5]]
    assert matching(where='lang = "en"') == [1, 1, 0, 1]
    assert matching(area=left) == [1, 0, 1, 1]
    assert matching(where='lang = "en"', area=left) == [1, 0, 0, 1]
    assert client.post(f"{MAP}/matching", json={"where": "lang ="}).status_code == 400


def test_models_are_named_without_folders_of_this_machine() -> None:
    names = ("/srv/models/old", "./old", "~/old", "maker/old", "old")
    assert [without_folders(name) for name in names] == ["old", "old", "old", "maker/old", "old"]


def test_an_area_is_a_filter(client: TestClient) -> None:
    left = [[-0.5, -0.5], [0.5, -0.5], [0.5, 1.5], [-0.5, 1.5]]

    def found(**asked: Any) -> list[str]:
        answer = client.post("/v1/indexes/papers/search", json={"query": "sun", "mode": "dense", **asked})
        return sorted(hit["uri"] for hit in answer.json()["hits"])

    assert found(area=left) == ["bread", "erde", "moon"]
    assert found(area=left, where='lang = "en"') == ["bread", "moon"]
    assert found(area=[[2, 2], [3, 2], [3, 3]]) == []
    for wrong in ([[0, 0], [1, 1]], [[0, 0, 0]] * 3, [["a", 0]] * 3):
        assert client.post("/v1/indexes/papers/search", json={"query": "sun", "area": wrong}).status_code == 400


def test_without_a_map_the_answer_says_how_to_get_one(
    open_client: Callable[..., TestClient], papers: Path, encoder: Any
) -> None:
    client = open_client({"papers": papers})
    for path in ("", "/places", "/colours?field=lang"):
        answer = client.get(f"{MAP}{path}")
        assert (answer.status_code, answer.json()["slug"]) == (404, "no-map")
        assert answer.json()["detail"] == "there is no map of this index: its owner has to make one"
    keep(papers, Map(URIS, PLACES, ()))
    assert client.get(MAP).json()["documents"] == 4
    with Index.open(papers) as index:
        index.add([Document("mars", "mars")])
    assert client.get(MAP).json()["outdated"] is True
    (papers / "derived" / NAME).write_bytes(b"damaged")
    keep_record = open_client({"papers": papers}).get(MAP)
    assert keep_record.status_code == 404


def test_a_point_is_inside_by_the_even_odd_rule() -> None:
    """A star of five points: its middle is outside."""
    star = np.array([[np.sin(turn * 4 * np.pi / 5), np.cos(turn * 4 * np.pi / 5)] for turn in range(5)])
    places = np.array([[0, 0], [0, 0.9], [0, -0.9], [0.9, 0.3], [5, 5]])
    assert contains(star, places).tolist() == [False, True, False, True, False]
