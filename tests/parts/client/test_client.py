"""A program moves from a folder to a service by changing one line: `Client` answers as `Searcher` does."""

from __future__ import annotations

import inspect
import pickle
import socket
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
from search import (
    BadInput,
    DeadlinePassed,
    FilterError,
    IndexDamaged,
    IndexUnavailable,
    LikewiseError,
    NotAnIndex,
    NotPermitted,
    Query,
    Searcher,
    UnknownField,
    UnknownUri,
)

WORDS = ["moon", "sun", "earth", "bread", "oven", "star", "sky", "month", "dough", "flour"]
DOCUMENTS = [
    Document(
        f"d{number}",
        f"The {WORDS[number % 10]} and the {WORDS[number % 7]}. A {WORDS[number % 3]}.\n\nNext: é {number}.",
        f"Title {number}",
        {"year": 2000 + number, "lang": ["en", "de"][number % 2], "deep": {"tags": ["a", number], "none": None}},
        path=f"/srv/d{number}.md",
        format="markdown",
        modified="2024-01-31T10:00:00Z",
        sections=(Section(0, "First"), Section(40, "First > Next", 2)),
    )
    for number in range(60)
]
TOKEN = "0123456789abcdef"
METHODS = ("search", "answer", "search_many", "similar", "get", "get_many", "documents", "count", "info")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, module_encoder: Any) -> Path:
    path = tmp_path_factory.mktemp("client") / "papers.index"
    with Index.create(path, model=module_encoder) as index:
        index.add(DOCUMENTS)
    return path


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving_here(create_app({"papers": str(folder)}, token=TOKEN)) as port:
        yield f"http://127.0.0.1:{port}"


def reverse_length(query: str, texts: list[str]) -> list[float]:
    return [-float(len(text)) for text in texts]


CALLS: list[Callable[[Any], Any]] = [
    lambda s: s.search("the moon"),
    lambda s: s.search(
        "moon and bread", 5, where='year >= 2010 and lang = "en"', mode="hybrid", passages=True, explain=True
    ),
    lambda s: s.search("moon", k=3, where={"year": {"in": [2003, 2005]}}, mode="words", min_score=0.1),
    lambda s: s.search("star", exact=True, min_score=-0.1),
    lambda s: s.search('sky +moon -"no phrase"', 5, mode="hybrid", literal=False, explain=True),
    lambda s: s.search('sky "moon"', 3, literal=False, rerank=reverse_length),
    lambda s: s.search("star", k=4, rerank=reverse_length, rerank_depth=20, min_score=-80),
    lambda s: s.search("star", k=4, rerank=reverse_length, rerank_depth=20, explain=True, mode="hybrid"),
    lambda s: s.search("", vector=np.arange(1, 65, dtype=np.float32)),
    lambda s: s.search_vector(np.arange(1, 65) / 7, 3, where="year < 2030"),
    lambda s: s.search("moon", where='lang = "fr"'),
    lambda s: s.answer(Query("sky", k=2, mode="words", where='exists deep.tags and not title like "%1%"')),
    lambda s: s.search_many(["moon", "oven", "the"], 4, mode="words", where=[None, "year > 2020", {}]),
    lambda s: s.search_many([f"moon {number}" for number in range(7)], mode="hybrid", where="year > 2020", k=2),
    lambda s: s.search_many(["", ""], 2, vectors=np.eye(64)[:2], passages=True, exact=True),
    lambda s: s.search_many([]),
    lambda s: s.similar("d7", 3, where="year != 2008"),
    lambda s: s.get("d11"),
    lambda s: s.get_many(["d5", "none", "d2", 7, "", "d5"]),
    lambda s: list(s.documents()),
    lambda s: list(s.documents('lang = "de" and year > 2010')),
    lambda s: [s.count(), s.count("year < 2004"), s.count({})],
    lambda s: s.info(),
    # and what is wrong
    lambda s: s.search(""),
    lambda s: s.search("moon", k=0),
    lambda s: s.search("moon", mode="fast"),
    lambda s: s.search("moon", where="year >>= 3"),
    lambda s: s.search("moon", where="yeer = 3"),
    lambda s: s.search("moon", where="year = true"),
    lambda s: s.search("moon", vector=[1.0, 2.0]),
    lambda s: s.search("the", mode="words"),
    lambda s: s.search("moon", rerank=lambda query, texts: [1.0]),
    lambda s: s.search_many("moon"),
    lambda s: s.search_many(["moon"], where=[None, None]),
    lambda s: s.search_many(["moon"], vectors=np.eye(3)),
    lambda s: s.search_many([], mode="fast"),
    lambda s: s.similar("none"),
    lambda s: s.get("none"),
    lambda s: s.get(""),
    lambda s: s.get_many("d1"),
    lambda s: s.get_many(3),
    lambda s: s.documents("year >>= 3"),
    lambda s: list(s.documents("yeer = 3")),
    lambda s: s.count("yeer = 3"),
]


def outcome(call: Callable[[Any], Any], asker: Searcher | Client, address: str) -> Any:
    """What a call returns; or the class, the message and the field of its error."""
    try:
        return call(asker)
    except LikewiseError as error:
        return type(error), str(error).replace(address, "papers"), getattr(error, "field", None)


def test_a_service_answers_as_the_folder_does(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search.searcher.PAGE_DOCUMENTS", 16)
    monkeypatch.setattr(likewise.client.client, "_MAX_BATCH", 2)
    errors = set()
    with Searcher(folder) as searcher, Client(url, TOKEN) as client:
        for number, call in enumerate(CALLS):
            expected = outcome(call, searcher, str(folder))
            assert outcome(call, client, url) == expected, inspect.getsource(call)
            if isinstance(expected, tuple):
                errors.add(expected[0])
                assert number >= 21
    assert {BadInput, FilterError, UnknownField, UnknownUri} < errors


@pytest.mark.parametrize("name", METHODS)
def test_the_methods_have_the_same_arguments_and_answers(name: str) -> None:
    assert inspect.signature(getattr(Client, name)) == inspect.signature(getattr(Searcher, name))


def test_the_only_index_need_not_be_named(folder: Path) -> None:
    with serving_here(create_app({"a b": str(folder)})) as port, Client(f"http://127.0.0.1:{port}/") as client:
        assert client.count() == 60
        client.close()
        with pytest.raises(BadInput, match=r": this Client is closed: make another$"):
            client.count()
    with serving_here(create_app({"a": str(folder), "b": str(folder)})) as port:
        url = f"http://127.0.0.1:{port}"
        with Client(url) as client, pytest.raises(BadInput) as several:
            client.count()
        assert str(several.value) == f"{url}: several indexes are served: name one as index: a, b"
        with Client(url, index="b") as client:
            assert client.count() == 60
        with Client(url, index="c") as client, pytest.raises(NotAnIndex, match="no index 'c' is served here: a, b"):
            client.get("d1")


@pytest.mark.parametrize(("token", "said"), [(None, "a token is needed"), ("wrong\n", "the token is wrong")])
def test_a_wrong_token_is_one_clear_error(url: str, token: str | None, said: str) -> None:
    with Client(url, token, "papers") as client, pytest.raises(NotPermitted) as refused:
        client.search("moon")
    assert str(refused.value).startswith(f"{url}: {said}")
    assert str(refused.value).endswith(": give the token of the service as token=")


def test_a_service_that_is_not_there_is_one_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Client(url, index="papers") as client, pytest.raises(IndexUnavailable) as unreachable:
            client.search("moon")
    assert str(unreachable.value).startswith(f"{url}: the service cannot be reached (")


@pytest.mark.parametrize(
    ("status", "content", "kind", "said"),
    [
        (502, {"text": "<html>"}, IndexUnavailable, "status 502, and not an answer of likewise: check the address"),
        (200, {"text": "<html>"}, LikewiseError, "status 200, and not an answer of likewise: check the address"),
        (404, {"json": {"error": 1}}, LikewiseError, "status 404, and not an answer of likewise: check the address"),
        (503, {"json": {"slug": "full", "detail": "too many"}}, IndexUnavailable, "too many"),
        (503, {"json": {"slug": "too-slow", "detail": "20 s"}}, DeadlinePassed, "20 s"),
        (400, {"json": {"slug": "text-too-long", "detail": "9 tokens"}}, LikewiseError, "9 tokens"),
        (503, {"json": {"slug": "index-unavailable", "detail": "gone"}}, IndexUnavailable, "gone"),
        (500, {"json": {"slug": "index-damaged", "detail": "broken"}}, IndexDamaged, "broken"),
        (None, httpx.ReadTimeout(""), IndexUnavailable, "did not answer within 60 seconds: ask again later"),
    ],
)
def test_other_answers_are_errors(status: int | None, content: Any, kind: type[LikewiseError], said: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if status is None:
            raise content
        return httpx.Response(status, **content)

    client = Client("http://host", index="papers")
    client._http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://host")
    with client, pytest.raises(LikewiseError) as refused:
        client.count()
    assert type(refused.value) is kind
    assert str(refused.value).removeprefix("http://host: ") == said


def test_members_that_a_newer_service_adds_are_left_out(folder: Path) -> None:
    with Searcher(folder) as searcher:
        hits = searcher.search("moon", 2, mode="words").as_json()
    newer = hits | {"families": 2, "hits": [hit | {"family": []} for hit in hits["hits"]]}
    client = Client("http://host", index="papers")
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=newer))
    client._http = httpx.Client(transport=transport, base_url="http://host")
    with client:
        assert client.search("moon", 2, mode="words").as_json() == hits


def test_a_filter_that_fits_into_no_address_is_refused(url: str) -> None:
    with Client(url, index="papers") as client, pytest.raises(BadInput, match="too long for an address: ask in parts"):
        client.count({"title": {"in": [f"{number} {'月' * 300}" for number in range(60)]}})


def test_a_client_is_not_pickled_and_says_what_to_pass() -> None:
    with pytest.raises(BadInput, match="this Client is open and cannot be pickled: pass its path or address"):
        pickle.dumps(Client("http://host"))


@pytest.mark.parametrize("url", ["localhost:8765", "papers.index", "ftp://host", "http://", ""])
def test_what_cannot_be_an_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="is not the address of a service: give one such as http://localhost:8765"):
        Client(url)


def test_requests_are_cut_by_number_hits_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likewise.client.client, "_MAX_BATCH_BYTES", 40)
    parts = list(likewise.client.client._batches(["a" * 20, "b" * 20, "c" * 90, *"defg"], 3))
    assert [[len(value) for value in part] for part in parts] == [[20], [20], [90], [1, 1, 1], [1]]


@pytest.mark.parametrize("answer", ["[]", '{"status": "ok"}', "<html>"])
def test_another_service_is_named_in_a_sentence(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client("http://127.0.0.1:1")
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=answer))
    monkeypatch.setattr(client, "_http", httpx.Client(transport=transport, base_url="http://127.0.0.1:1"))
    with pytest.raises(LikewiseError, match=r"127\.0\.0\.1:1: status 200, and not an answer of likewise"):
        client.search("moon")
