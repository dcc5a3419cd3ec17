"""Hostile requests, each with the status it gets. None is a 5xx, none reads a file, none tells a path."""

from __future__ import annotations

import json
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from likewise.service.http import limits
from likewise.service.http.guard import Rules, is_loopback
from likewise.service.http.requests import EmbeddingsRequest, NewDocument, repeated_member

SEARCH = "/v1/indexes/papers/search"
TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "10.0.0.1", "127.0.0.1:x", "a/b", ""]
)
def test_a_wrong_host_is_misdirected(shared: TestClient, host: str) -> None:
    for path in ("/healthz", "/", "/v1/indexes", "/mcp"):
        answer = shared.get(path, headers={"Host": host})
        assert (answer.status_code, answer.json()["slug"]) == (421, "wrong-host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "127.8.8.8", "[::1]:8765"])
def test_this_machines_names_are_right(shared: TestClient, host: str) -> None:
    assert shared.get("/v1/indexes", headers={"Host": host}).status_code == 200


def test_other_hosts_are_accepted_by_number_and_by_name() -> None:
    rules = Rules("token", ("Search.Example",), loopback_only=False)
    assert [rules.accepts_host(host) for host in ("search.example:443", "10.0.0.1", "evil.example")] == [
        True,
        True,
        False,
    ]
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "example.org")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", "https://127.0.0.1"])
def test_a_foreign_page_is_refused(shared: TestClient, origin: str) -> None:
    answer = shared.post(SEARCH, json={"query": "moon"}, headers={"Origin": origin})
    assert (answer.status_code, answer.json()["slug"]) == (403, "foreign-origin")
    assert "access-control-allow-origin" not in answer.headers
    assert shared.post("/mcp", json={}, headers={"Origin": origin}).status_code == 403


def test_its_own_page_and_a_named_one_may_ask(open_client: Callable[..., TestClient], papers: Path) -> None:
    client = open_client({"papers": papers}, cors_origins=["https://app.example"], token=TOKEN)
    sent = {"Authorization": f"Bearer {TOKEN}"}
    own = client.post(SEARCH, json={"query": "moon"}, headers={"Origin": "http://127.0.0.1", **sent})
    assert (own.status_code, own.headers.get("access-control-allow-origin")) == (200, None)
    named = client.post(SEARCH, json={"query": "moon"}, headers={"Origin": "https://app.example", **sent})
    assert named.headers["access-control-allow-origin"] == "https://app.example"
    before = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    allowed = client.options(SEARCH, headers=before | {"Access-Control-Request-Headers": "authorization"})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "https://app.example")
    refused = client.post(SEARCH, json={"query": "moon"}, headers={"Origin": "https://app.example"})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "https://app.example")
    foreign = client.options(SEARCH, headers=before | {"Origin": "https://evil.example"})
    assert (foreign.status_code, foreign.headers.get("access-control-allow-origin")) == (400, None)


def test_only_healthz_is_open_without_the_token(open_client: Callable[..., TestClient], papers: Path) -> None:
    client = open_client({"papers": papers}, token=TOKEN)
    routes = ("/", "/page/page.js", "/readyz", "/metrics", "/openapi.json", "/v1/indexes", "/nothing", "/mcp")
    for path in routes:
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"Authorization": f"Bearer {TOKEN}x"}).status_code == 401
    answer = client.post(SEARCH, json={"query": "moon"})
    assert (answer.json()["slug"], answer.headers["www-authenticate"]) == ("unauthorized", "Bearer")
    for wrong in ("", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", "Bearer \xff", TOKEN):
        assert client.get("/v1/indexes", headers={"Authorization": wrong.encode("latin-1")}).status_code == 401
    assert client.get("/v1/indexes", headers={"Authorization": f"bearer {TOKEN}"}).status_code == 200
    assert client.get("/healthz").status_code == 200
    assert client.post("/v1/embeddings", json={}).json()["error"]["code"] == "unauthorized"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (b'"' + b"a " * 500_001 + b'"', "input has 1,000,002 characters or tokens, and 1,000,000 is the limit"),
        (b"[" + b'"a",' * 10_000 + b'"a"]', "has 10,001 items, and 2,048 is the limit"),
        (b"[" + b'"' + b"a" * 600_000 + b'",' + b'"' + b"a" * 600_000 + b'"]', "input has 1,200,000 characters"),
        pytest.param(
            b"[" + b"1," * 1_000_000 + b"1]", "has 1,000,001 items, and 1,000,000 is the limit", marks=pytest.mark.slow
        ),
        (b"[" + b"[1]," * 10_000 + b"[1]]", "has 10,001 items, and 2,048 is the limit"),
    ],
    ids=["text", "texts", "long texts", "tokens", "lists"],
)
def test_too_much_to_embed_is_refused_before_it_is_tokenized(
    shared: TestClient, monkeypatch: pytest.MonkeyPatch, texts: bytes, said: str
) -> None:
    monkeypatch.setattr("likewise.service.http.app.embed", lambda *_: pytest.fail("it was embedded"))
    tracemalloc.start()
    answer = shared.post("/v1/embeddings", content=b'{"model": "papers", "input": ' + texts + b"}")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_input")
    assert said in answer.json()["error"]["message"]
    assert peak < 100_000_000


@pytest.mark.parametrize(
    "members",
    [
        b'"input": [' + b"[1]," * 3_500_000 + b"[1]]",
        b'"input": [' + b"[1]," * 500_000 + b"[1]]",
        b'"input": [' + b'"a",' * 3_500_000 + b'"a"]',
        b'"input": "a"' + b"".join(b',"%d": 1' % number for number in range(300_000)),
    ],
    ids=["lists", "fewer lists", "texts", "members"],
)
def test_a_body_of_very_many_values_is_not_parsed(
    shared: TestClient, monkeypatch: pytest.MonkeyPatch, members: bytes
) -> None:
    monkeypatch.setattr(EmbeddingsRequest, "model_validate_json", lambda _: pytest.fail("it was parsed"))
    answer = shared.post("/v1/embeddings", content=b'{"model": "papers", ' + members + b"}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_input")
    assert answer.json()["error"]["message"].startswith("the body has too many values: send at most 2,048 texts")


def test_brackets_and_commas_within_texts_are_not_values(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.service.http.app.embed", lambda request, _: {"texts": len(request.input)})
    texts = ['the moon [{"a": [1, 2]}], \\' + "[" * 300 + ":" * 300 + "\u00e9" * 300] * 1000
    body = json.dumps({"model": "papers", "input": texts}).encode()
    assert len(body) > 1 << 20
    assert shared.post("/v1/embeddings", content=body).json() == {"texts": 1000}


@pytest.mark.parametrize(
    "body",
    ['{"query": "moon", "where": "n < 3", "where": "n > 0"}', '{"query": "moon", "where": {"n": {"<": 3, "<": 9}}}'],
)
def test_a_member_that_is_given_twice_is_refused(shared: TestClient, body: str) -> None:
    answer = shared.post(SEARCH, content=body)
    assert answer.status_code == 400
    assert "is given twice: give it once" in answer.json()["detail"]


def test_a_repeated_member_is_found_among_very_many() -> None:
    members = [f'"m{number}": 0' for number in range(200_000)]
    assert repeated_member("{" + ", ".join([*members, members[-1]]) + "}") == "m199999"
    assert repeated_member("{" + ", ".join(members) + "}") is None


def test_ten_thousand_values_are_one_condition(shared: TestClient) -> None:
    answer = shared.post(SEARCH, json={"query": "moon", "where": {"year": {"in": list(range(-7979, 2021))}}})
    assert sorted(hit["uri"] for hit in answer.json()["hits"]) == ["bread", "moon"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "EOF"),
        (b"{", "EOF"),
        (b"[]", "should be an object"),
        (b'"a"', "should be an object"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 100_000, "recursion limit"),
        (b'{"query": "a", "where": ' + b'{"not": ' * 5000 + b"{}" + b"}" * 5000 + b"}", "recursion limit"),
        (b'{"query": "a", "where": ' + b'{"not": ' * 150 + b'{"year": 1}' + b"}" * 150 + b"}", "more than 32 levels"),
        (b'{"query": "a", "k": 1000000000}', "less than or equal to 1000"),
        (b'{"query": "a", "k": 1001}', "less than or equal to 1000"),
        (b'{"query": "a", "k": 0}', "greater than or equal to 1"),
        (b'{"query": "a", "k": 101, "explain": true}', "100 hits at most"),
        (b'{"query": "a", "k": 201, "fold": true}', "ask for 200 hits at most, or unfolded"),
        (b'{"query": "a", "k": "3"}', "valid integer"),
        (b'{"query": "a", "k": 1.5}', "integer"),
        (b'{"query": "a", "wehre": "x = 1"}', "wehre: there is no member of this name; near: where"),
        (b'{"query": "a", "filter": "x = 1"}', "filter: there is no member of this name; near: where"),
        (b'{"query": "a", "mode": "sparse"}', "'dense', 'words' or 'hybrid'"),
        (b'{"query": ""}', "give query, vector or both"),
        (b'{"query": "   "}', "empty"),
        (b'{"query": "\\ud800"}', "hex escape"),
        (b"{}", "give query, vector or both"),
        (b'{"query": "' + b"a " * 6000 + b'"}', "at most 10000 characters"),
        (b'{"query": "a", "where": "' + b"x" * 30_000 + b'"}', "at most 20000 characters"),
        (b'{"vector": [NaN]}', "finite number"),
        (b'{"vector": [Infinity, 1]}', "finite number"),
        (b'{"vector": [1e400]}', "finite number"),
        (b'{"vector": [1, 2]}', "2 dimensions"),
        (b'{"vector": []}', "at least 1 item"),
        (b'{"vector": [' + b"0," * 63 + b"0]}", "zero"),
        (b'{"vector": [' + b"0," * 20_000 + b"0]}", "has 20,001 items, and 16,384 is the limit"),
        (b'{"query": "a", "min_score": NaN}', "finite number"),
        (b'{"query": "a", "where": "year = 1; DROP TABLE documents"}', "filter"),
        (b'{"query": "a", "where": "year = 1 or 1 = 1 --"}', "filter"),
        (b'{"query": "a", "where": {"year": {"$gt": 1}}}', "$gt"),
        (b'{"query": "a", "where": {"year)) OR 1=1 --": 1}}', "no document has a field"),
        (b'{"query": "a", "where": "yeer = 1"}', "near: year"),
        (b'{"query": "a", "where": {"or": [' + b'{"year": 1},' * 500 + b'{"year": 2}]}}', "more than 500 conditions"),
        (b'{"query": "a", "where": {"year": {"in": [' + b"1," * 10_000 + b"2]}}}", "10,001 values, and at most 10,000"),
        (b'{"query": "a", "where": {"lang": {"like": "' + b"_" * 1001 + b'"}}}', "1,001 characters, and at most 1,000"),
    ],
    ids=range(40),
)
def test_a_bad_body_says_what_is_wrong(shared: TestClient, body: bytes, said: str) -> None:
    answer = shared.post(SEARCH, content=body)
    assert answer.status_code == 400, answer.text
    assert said in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/problem+json"
    assert "/tmp" not in answer.text
    assert len(answer.content) < 2000


@pytest.mark.parametrize(
    "uri", ["/etc/passwd", "../../etc/passwd", "file:///etc/passwd", "%2e%2e/catalog.db", "\x00", "'; --"]
)
def test_a_uri_is_looked_up_and_never_opened(shared: TestClient, uri: str) -> None:
    answer = shared.get("/v1/indexes/papers/document", params={"uri": uri})
    assert (answer.status_code, answer.json()["slug"]) == (404, "unknown-uri")
    answer = shared.post("/v1/indexes/papers/similar", json={"uri": uri})
    assert (answer.status_code, answer.json()["slug"]) == (404, "unknown-uri")


@pytest.mark.parametrize("name", ["../papers", "..%2fpapers", "%2e%2e%2fpapers", "papers%00", "x" * 5000])
def test_an_index_is_named_and_never_opened_by_its_path(shared: TestClient, name: str) -> None:
    assert shared.post(f"/v1/indexes/{name}/search", json={"query": "moon"}).status_code == 404


def test_one_uri_is_named(shared: TestClient) -> None:
    for path in ("", "?uri=", "?uri=moon&uri=sun", "?id=moon"):
        assert shared.get(f"/v1/indexes/papers/document{path}").status_code == 400


def test_a_text_that_would_hold_up_other_writers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.service.http.limits.MAX_TEXT_CHARACTERS", 10)
    assert NewDocument(uri="a", text="x" * 10).text == "x" * 10
    with pytest.raises(ValueError, match="the text has 11 characters, and 10 is the limit: divide it into several"):
        NewDocument(uri="a", text="x" * 11)


def test_a_giant_or_compressed_body_is_refused_unread(shared: TestClient) -> None:
    def endless() -> Any:
        while True:
            yield b" " * 65536

    announced = shared.post(SEARCH, content=b"{}", headers={"Content-Length": str(limits.MAX_BODY_BYTES + 1)})
    assert (announced.status_code, announced.json()["slug"]) == (413, "too-large")
    assert shared.post(SEARCH, content=b" " * (limits.MAX_BODY_BYTES + 1)).status_code == 413
    assert shared.post(SEARCH, content=b"{}", headers={"Content-Encoding": "gzip"}).status_code == 415
    two = shared.post(SEARCH, content=b"{}", headers={"Transfer-Encoding": "chunked", "Content-Length": "2"})
    assert (two.status_code, two.json()["slug"]) == (400, "two-lengths")


def test_too_many_headers_are_refused(shared: TestClient) -> None:
    answer = shared.get("/healthz", headers=[(f"x-{number}", "y") for number in range(10_000)])
    assert (answer.status_code, answer.json()["slug"]) == (431, "too-many-headers")


def test_large_bodies_together_are_bounded(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(limits, "MAX_BUFFERED_BYTES", 10)
        answer = shared.post(SEARCH, json={"query": "moon"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert shared.post(SEARCH, json={"query": "moon"}).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "TRACE", "BREW"])
def test_another_method_is_refused(shared: TestClient, method: str) -> None:
    answer = shared.request(method, SEARCH)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_an_error_of_ours_tells_nothing(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("/secret/place/catalog.db is broken")

    monkeypatch.setattr("search.searcher.Searcher.answer", fail)
    answer = shared.post(SEARCH, json={"query": "moon"})
    assert (answer.status_code, answer.json()["slug"]) == (500, "internal")
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def exchange(port: int, sent: bytes, timeout_s: float = 20) -> bytes:
    """Return the server's answer to these bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(sent)
        received = b""
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        return received


def test_bytes_that_are_not_quite_http(serving: Any, own_vectors: Path) -> None:
    """Sent to the real server, through a socket."""
    head = b"POST /v1/indexes/vectors/search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    with serving(own_vectors) as service:
        many = b"".join(b"x-%d: y\r\n" % number for number in range(10_000))
        for request, status in (
            (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + many + b"\r\n", b" 431 "),
            (head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", b" 400 "),
            (head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", b" 400 "),
            (head + b"Content-Length: -1\r\n\r\n", b" 400 "),
            (head + b"Content-Length: 99999999999999999999\r\n\r\n", b" 413 "),
            (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b" 400 "),
            (b"GET /healthz HTTP/1.1\r\n\r\n", b" 400 "),
            (b"GET /healthz HTTP/1.1\nHost: localhost\nConnection: close\n\n", b" 400 "),
            (b"GET /healthz HTTP/1.1\r\nHost: localhost\nX: y\r\nConnection: close\r\n\r\n", b" 400 "),
            (b"\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b" 400 "),
            (head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\n\r\n", b" 400 "),
            (b"\x16\x03\x01\x02\x00\x01\x00", b" 400 "),
            (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b" 404 "),
        ):
            answer = exchange(service.port, request)
            assert status in answer.partition(b"\r\n")[0], request[:80]
        both = b"POST /v1/indexes/vectors/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        both += b"Content-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        answer = exchange(service.port, both + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (answer.count(b"HTTP/1.1 "), answer[:13]) == (1, b"HTTP/1.1 400 ")
        body = json.dumps({"query": "moon"}).encode()
        smuggled = (
            head
            + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
            + b"GET /metrics HTTP/1.1\r\n\r\n"
        )
        assert exchange(service.port, smuggled).count(b"HTTP/1.1 ") == 1


def test_a_body_that_does_not_come_is_given_up(
    open_client: Callable[..., TestClient], papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_DEADLINE_S", 0.2)
    client = open_client({"papers": papers})

    async def receive() -> dict[str, Any]:
        await anyio.sleep(0.15)
        return {"type": "http.request", "body": b" ", "more_body": True}

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": SEARCH, "scheme": "http", "headers": [(b"host", b"127.0.0.1")]}
    anyio.run(client.app, scope, receive, send)
    assert (sent[0]["status"], json.loads(sent[1]["body"])["slug"]) == (408, "slow-body")
