"""docs/defaults.md says what the program does by default: each cell of its table is read from the program, or run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from starlette.testclient import TestClient

from docs.examples import ROOT
from indexer import Document, Index
from indexer.errors import EndpointUnavailable, UnknownField
from search import Query, Searcher

pytestmark = pytest.mark.needs("shell", "service", "evaluation")

PAGE = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")
ASSETS = ROOT / "likewise" / "service" / "http" / "page" / "assets"
NO = {False: "no", True: "yes"}


class Ways(NamedTuple):
    """What is true of each way to ask; in the order of the columns."""

    shell: Any
    python: Any
    http: Any
    mcp: Any
    page: Any

    def cells(self, names: dict[Any, str]) -> list[str]:
        return [names.get(value, str(value)) for value in self]


class Program(NamedTuple):
    """The program, to be asked with nothing but a question.

    Attributes:
        search: asks the index in Python.
        post: asks it over HTTP, with more members.
        call: calls the MCP tool, with more arguments; None for a refusal.
        schema: the default of each argument of that tool.
    """

    folder: Path
    search: Callable[..., Any]
    post: Callable[..., Any]
    call: Callable[..., Any]
    schema: dict[str, Any]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, module_encoder: Any) -> Iterator[Program]:
    from mcp.client import Client

    from likewise.service import create_app
    from likewise.service.mcp import make_mcp_server
    from likewise.service.served import ServedIndexes

    folder = tmp_path_factory.mktemp("defaults") / "papers.index"
    with Index.create(folder, model=module_encoder) as index:
        index.add([Document("moon", "The moon orbits the earth.", metadata={"year": 2020})])
    tools = make_mcp_server(ServedIndexes({"papers": str(folder)}))

    async def asked(use: Callable[[Client], Any]) -> Any:
        async with Client(tools) as client:
            return await use(client)

    def call(**arguments: Any) -> Any:
        answer = anyio.run(asked, lambda client: client.call_tool("search", {"query": "moon", **arguments}))
        return None if answer.is_error else answer.structured_content

    tool = next(each for each in anyio.run(asked, Client.list_tools).tools if each.name == "search")
    schema = {name: each.get("default") for name, each in tool.input_schema["properties"].items()}
    with ExitStack() as stack:
        searcher = stack.enter_context(Searcher(folder))
        app = create_app({"papers": str(folder)})
        client = stack.enter_context(TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False))

        def post(**members: Any) -> Any:
            return client.post("/v1/indexes/papers/search", json={"query": "moon", **members}).json()

        yield Program(folder, searcher.search, post, call, schema)


def table() -> dict[str, list[str]]:
    """Return the cells of each row, without its name."""
    head, _, *rows = (line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("|"))
    assert head == ["shell", "Python", "HTTP", "MCP", "page"]
    return {name: cells for name, *cells in rows}


def signature(call: Callable[..., Any]) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(call).parameters.items()}


def test_the_table_has_the_default_of_every_argument(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.evaluation.commands.evaluate import evaluate
    from likewise.service.http.openapi import describe_api
    from likewise.shell.commands.search import search

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # neither has a configuration file
    shell = search.make_context("search", [str(program.folder), "moon"]).params
    python, schemas = signature(Searcher.search), describe_api()["components"]["schemas"]
    http = {name: each.get("default") for name, each in schemas["SearchRequest"]["properties"].items()}
    state = (ASSETS / "address.js").read_text(encoding="utf-8").partition("EMPTY = ")[2].partition("}")[0]
    request = (ASSETS / "asking.js").read_text(encoding="utf-8")
    assert "k: HITS" in state
    assert "const HITS = 10;" in (ASSETS / "address.js").read_text(encoding="utf-8")
    assert 'mode: ""' in state
    page = http | {"literal": "literal: true" in state, "fold": "fold: true" in request}
    page["explain"] = "{ ...body, explain: true }" in request

    def ways(name: str) -> Ways:
        return Ways(shell[name], python[name], http[name], program.schema.get(name, signature(Query)[name]), page[name])

    rows = table()
    assert (http["mode"], program.schema["mode"]) == (None, None)
    by_services = Ways(shell["mode"], python["mode"], program.post()["mode"], program.call()["mode"], None)
    assert rows["mode"] == by_services._replace(page=by_services.http).cells({})
    assert rows["`k` hits"] == ways("k").cells({})
    assert rows["hits are"] == ways("passages").cells({False: "documents", True: "passages"})
    assert rows['`"a phrase"`, `+word`, `-word`'] == ways("literal").cells({False: "conditions", True: "text"})
    assert rows["near duplicates are one hit"] == ways("fold").cells(NO | {None: "on a terminal"})
    assert rows["`explain`, the nearest sentence"] == ways("explain").cells(NO)
    assert rows["`min_score`, the lowest score"] == ways("min_score").cells({None: "none"})
    assert rows["`exact`, every vector compared"] == ways("exact").cells(NO)
    assert len(rows) == 11
    many = evaluate.make_context("evaluate", [str(program.folder), "--queries", __file__, "--qrels", __file__])
    assert "have `k` 100" in PAGE
    assert (signature(Searcher.search_many)["k"], many.params["k"]) == (100, 100)


def test_the_table_says_what_is_answered(
    program: Program, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table()
    shown = re.findall(r'"(\w+)"', (ASSETS / "asking.js").read_text(encoding="utf-8").partition("const SHOWN")[2])
    printed = likewise("search", program.folder, "moon").out
    why = Ways("why" in printed, bool(program.search("moon")[0].why), "why" in program.post()["hits"][0], None, None)
    why = why._replace(mcp="why" in program.call()["hits"][0], page="why" in shown)
    assert rows["each hit has its `why`"] == why.cells(NO)
    assert "With `--json`, each hit has its `why`." in PAGE
    assert likewise("search", program.folder, "moon", "--json").json["hits"][0]["why"]["cosine"] is not None

    unknown = "yaer = 2020"
    with pytest.raises(UnknownField):
        program.search("moon", where=unknown)
    likewise("search", program.folder, "moon", "--where", unknown).failed(2, 'no document has a field "yaer"')
    assert program.post(where=unknown)["slug"] == "unknown-field"
    assert program.call(where=unknown) is None
    assert rows["filter by an unknown field"] == ["error"] * 5

    def unreachable(*_: object) -> None:
        raise EndpointUnavailable("http://10.1.1.1/v1 does not answer")

    monkeypatch.setattr("search.question_encoder.QuestionEncoder.encode", unreachable)
    with pytest.raises(EndpointUnavailable):
        program.search("moon earth", mode="hybrid")
    likewise("search", program.folder, "moon earth", "--mode", "hybrid").failed(3, "does not answer")
    assert (program.post(query="moon earth")["mode"], program.call(query="moon earth")["mode"]) == ("words", "words")
    assert rows["the model of hybrid mode fails"] == ["error", "error", "by words", "by words", "by words"]
