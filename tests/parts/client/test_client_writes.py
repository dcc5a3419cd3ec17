"""A program that writes moves from a folder to a service by changing one line: `Client` changes it as `Index` does."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from chromium import serving_here

import likewise.client.client
from indexer import Document, Index
from indexer.records import Section
from likewise.client.client import Client
from likewise.service import create_app
from search import BadInput, FilterSyntaxError, LikewiseError, NotPermitted, Searcher, UnknownField, UnknownUri

DOCUMENTS = [
    Document(
        f"d{number}",
        f"The {['moon', 'sun', 'bread', 'oven'][number % 4]} and é {number}.\n\nNext.",
        f"Title {number}",
        {"year": 2000 + number, "deep": {"tags": ["a", number], "none": None}},
        format="markdown",
        modified="2024-01-31T10:00:00Z",
        sections=(Section(0, "First"), Section(12, "First > Next", 2)),
    )
    for number in range(8)
]
ROWS = np.random.default_rng(3).normal(size=(8, 5)).astype(np.float32)
PLACES = [[(0, 4), (4, 9)]] * 8
PASSAGES = [ROWS[[number, number - 1]] for number in range(8)]

CALLS: list[Callable[[Any], Any]] = [
    lambda i: i.add(DOCUMENTS),
    lambda i: i.add(DOCUMENTS[3]),
    lambda i: i.add([]),
    lambda i: i.add([Document("d1", "Other text.", None, {"new": True}), DOCUMENTS[2]]),  # type: ignore[arg-type]
    lambda i: i.add([Document("twice", "first"), Document("twice", "last")]),
    lambda i: i.remove("d7"),
    lambda i: i.remove(["d5", "d6", "none", 3, ""], missing_ok=True),
    lambda i: i.remove(where={"year": {"<": 2001}}),
    lambda i: i.remove([]),
    # and what is wrong
    lambda i: i.add([Document("a", " ")]),
    lambda i: i.add([Document("", "a")]),
    lambda i: i.add([Document("a", "b", metadata={"x": float("nan")})]),
    lambda i: i.add(["a"]),
    lambda i: i.add(3),
    lambda i: i.add([Document("a", "\ud800")]),
    lambda i: i.add([Document("a", "b")], spans=[[(0, 1)]]),
    lambda i: i.replace_all([Document("a", "b")], [[1, 2]]),
    lambda i: i.remove(),
    lambda i: i.remove(["d1"], where="year = 1"),
    lambda i: i.remove(3),
    lambda i: i.remove(["d2", "none"]),
    lambda i: i.remove(["d2", 3]),
    lambda i: i.remove(where={}),
    lambda i: i.remove(where=""),
    lambda i: i.remove(where="year >>= 3"),
    lambda i: i.remove(where="yeer = 3"),
    lambda i: i.remove(where="exists uri"),
]
OWN_CALLS: list[Callable[[Any], Any]] = [
    lambda i: i.add(DOCUMENTS[:6], ROWS[:6]),
    lambda i: i.add(DOCUMENTS[4:7], ROWS[4:7].astype(np.float64).tolist()),
    lambda i: i.add(DOCUMENTS[:3], PASSAGES[:3], spans=PLACES[:3]),
    lambda i: i.add(DOCUMENTS[:1], [PASSAGES[0].tolist()], spans=[np.array(PLACES[0])]),
    lambda i: i.replace_all(DOCUMENTS[5:], ROWS[5:, :3]),
    lambda i: i.add(DOCUMENTS[:1], ROWS[:1, :3]),
    lambda i: i.replace_all(DOCUMENTS[1:4], PASSAGES[1:4], spans=PLACES[1:4]),
    lambda i: i.add(DOCUMENTS[0], ROWS[:1]),
    # and what is wrong
    lambda i: i.add(DOCUMENTS[:2], ROWS[:3]),
    lambda i: i.add(DOCUMENTS[:1], [[0.0] * 5]),
    lambda i: i.add([DOCUMENTS[0]] * 2, ROWS[:2]),
    lambda i: i.add(DOCUMENTS[:1], [PASSAGES[0]], spans=[[(0, 1000)]]),
    lambda i: i.replace_all(DOCUMENTS[:1], ROWS[:2]),
]


@pytest.fixture
def written(tmp_path: Path, encoder: Any) -> Iterator[Callable[[int | None], tuple[Index, Client, str]]]:
    """Two equal indexes: one to write with `Index`, and one to write with `Client`; and the address of the service."""
    opened: list[Any] = []

    def make(dimensions: int | None) -> tuple[Index, Client, str]:
        for name in ("one", "other"):
            model = encoder if dimensions is None else None
            opened.append(Index.create(tmp_path / f"{name}.index", model=model, dimensions=dimensions))
        serving = serving_here(create_app({"papers": str(tmp_path / "other.index")}, writable=True))
        url = f"http://127.0.0.1:{serving.__enter__()}"
        opened.append(serving)
        opened.append(Client(url))
        return opened[0], opened[-1], url

    yield make
    for each in reversed(opened):
        each.__exit__(None, None, None)


def outcome(call: Callable[[Any], Any], writer: Index | Client, address: str) -> Any:
    """What a call returns; or the class and the message of its error."""
    try:
        return call(writer)
    except LikewiseError as error:
        return type(error), str(error).replace(address, "papers")


def stored(path: Path) -> list[tuple[Document, Any]]:
    with Searcher(path) as searcher:
        vectors = dict(searcher.all_vectors())
        return [(document, vectors[document.uri].tolist()) for document in searcher.documents()]


@pytest.mark.parametrize(("calls", "dimensions"), [(CALLS, None), (OWN_CALLS, 5)], ids=["model", "own vectors"])
def test_a_service_is_changed_as_the_folder_is(
    calls: list[Callable[[Any], Any]],
    dimensions: int | None,
    written: Callable[[int | None], tuple[Index, Client, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(likewise.client.client, "_MAX_BATCH_BYTES", 1000)
    index, client, url = written(dimensions)
    kinds = set()
    for call in calls:
        expected = outcome(call, index, str(tmp_path / "one.index"))
        assert outcome(call, client, url) == expected, inspect.getsource(call)
        if isinstance(expected, tuple):
            kinds.add(expected[0])
        else:
            assert stored(tmp_path / "other.index") == stored(tmp_path / "one.index"), inspect.getsource(call)
    assert stored(tmp_path / "other.index") == stored(tmp_path / "one.index")  # what is wrong has changed nothing
    assert kinds >= ({BadInput, FilterSyntaxError, UnknownField, UnknownUri} if dimensions is None else {BadInput})


@pytest.mark.parametrize("name", ["remove", "replace_all"])
def test_the_methods_have_the_same_arguments_and_answers(name: str) -> None:
    assert inspect.signature(getattr(Client, name)) == inspect.signature(getattr(Index, name))


def test_what_a_service_does_not_take_is_refused(written: Callable[[int | None], tuple[Index, Client, str]]) -> None:
    _, client, url = written(5)
    with pytest.raises(BadInput, match=r"a: has a path, which a service takes from no client: leave its path out"):
        client.add([Document("a", "text", path="/etc/passwd")], ROWS[:1])
    with pytest.raises(BadInput, match="index 'papers' holds vectors of its owner's own: send vectors with documents"):
        client.add([Document("a", "text")])
    assert client.count() == 0
    client.add(DOCUMENTS[:1], ROWS[:1])
    with pytest.raises(BadInput, match=r"vectors have shape \(1, 2\) .*: this index needs \(1, 5\) of numbers"):
        client.add(DOCUMENTS[:1], [[1, 2]])
    answer = httpx.put(
        f"{url}/v1/indexes/papers/documents", json={"documents": [{"uri": "a", "text": "", "path": "/"}]}
    )
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "documents.0.path: there is no member of this name",
    )


def test_a_request_over_the_limit_is_not_sent() -> None:
    refusal = r"the request has 16,0\d\d,\d{3} bytes, and 16,000,000 is the limit: send less"
    with Client("http://host", index="papers") as client, pytest.raises(BadInput, match=refusal):
        client.replace_all([Document("a", "x" * 16_000_000)], ROWS[:1])


def test_a_service_that_is_read_only_says_so(tmp_path: Path) -> None:
    Index.create(tmp_path / "v.index", dimensions=5).close()
    app = create_app({"v": str(tmp_path / "v.index")})
    with serving_here(app) as port, Client(f"http://127.0.0.1:{port}") as client:
        for call in (lambda: client.add(DOCUMENTS, ROWS), lambda: client.remove("d1")):
            with pytest.raises(NotPermitted, match="the service is read-only"):
                call()


def test_documents_are_sent_in_requests_below_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.extensions["timeout"]["read"] == 1800
        documents = json.loads(request.content)["documents"]
        sizes.append(len(request.content))
        changes = {"added": [each["uri"] for each in documents], "replaced": [], "updated": [], "unchanged": []}
        return httpx.Response(200, json=changes | {"notes": ["the same"], "newer": 1})

    client = Client("http://host", index="papers")
    client._http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://host")
    with client:
        changes = client.add([Document(str(number), "x" * 100_000) for number in range(20)])
    assert (len(changes.added), changes.notes) == (20, ("the same",))
    assert len(sizes) == 3
    assert max(sizes) < 1_000_000
