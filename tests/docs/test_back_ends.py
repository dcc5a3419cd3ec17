"""The blocks of docs/back-ends.md run in the order of the page; those with a web framework where it is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from asyncio import timeout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from source_imports import ROOT

from indexer import Index, errors

PAGE = (ROOT / "docs" / "back-ends.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```python ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(needs: str = "") -> list[str]:
    """The blocks that need this package; without a package, the blocks that need none."""
    return [code for package, code in _BLOCK.findall(PAGE) if package == needs]


def run(code: str, names: dict[str, Any]) -> None:
    exec(compile(code, "docs/back-ends.md", "exec", dont_inherit=True), names)


def module(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A block as a module, which frameworks look names up in."""
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    run(code, made.__dict__)
    return made


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("in_folder")
def test_the_blocks_that_need_no_framework(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for code in blocks():
        run(code, names)
    assert capsys.readouterr().out.splitlines() == [
        "note-1",
        "2 added",
        "['a-1']",
        "0 0",
        "3 ('two',)",
        "Stars shine.",
        "note-1",
        "note-2",
    ]
    for name in ("searcher", "current", "shared", "tenants"):
        names[name].close()


@pytest.mark.usefixtures("in_folder")
def test_the_blocks_are_all_run() -> None:
    packages = {"fastapi", "async", "writer", "django", "pytest", "pandas"}
    assert {package for package, _ in _BLOCK.findall(PAGE)} == {"", *packages}


@pytest.mark.slow
@pytest.mark.usefixtures("in_folder")
def test_the_regression_file() -> None:
    run(blocks()[0], {})
    (code,) = blocks("pytest")
    Path("test_searches.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_searches.py"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    with Index.open("notes.index") as index:
        index.remove(["note-1"])
    after = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (after.returncode, "2 failed" in after.stdout) == (1, True), after.stdout


@pytest.mark.usefixtures("in_folder")
def test_fastapi(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    from fastapi.testclient import TestClient

    run(blocks()[0], {})
    (code,) = blocks("fastapi")
    page = module("fastapi_page", code, monkeypatch)
    with TestClient(page.app) as client:
        found = client.get("/search", params={"q": "why is my loaf hard", "k": 1, "mode": "hybrid"})
        assert (found.status_code, found.json()["hits"][0]["uri"]) == (200, "note-1")
        assert client.get("/search", params={"q": " "}).status_code == 400
        assert client.get("/search", params={"q": "what is the", "mode": "words"}).status_code == 400
        assert client.get("/search", params={"q": "bread", "mode": "nothing"}).status_code == 422
        assert client.get("/search", params={"q": "bread", "k": 101}).status_code == 422
        Path("notes.index").rename("gone.index")
        gone = client.get("/search", params={"q": "bread"})
        assert (gone.status_code, gone.headers["retry-after"]) == (503, "1")
        Path("gone.index").rename("notes.index")
        assert client.get("/search", params={"q": "bread"}).status_code == 200


@pytest.mark.slow
@pytest.mark.usefixtures("in_folder")
def test_fastapi_with_coroutines(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    run(blocks()[0], {})
    (code,) = blocks("async")
    page = module("fastapi_async_page", code, monkeypatch)
    with TestClient(page.app) as client:
        (hit,) = client.get("/search", params={"q": "why is my loaf hard", "k": 1}).json()["hits"]
        assert hit["uri"] == "note-1"
        monkeypatch.setattr("asyncio.timeout", lambda _: timeout(0))
        assert client.get("/search", params={"q": "why is my loaf hard"}).status_code == 503


@pytest.mark.usefixtures("in_folder")
def test_a_route_that_adds_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    from fastapi.testclient import TestClient

    run(blocks()[0], {})
    (app,), (route,) = blocks("fastapi"), blocks("writer")
    page = module("fastapi_writer_page", app + route, monkeypatch)
    notes = [{"uri": "tea", "text": "Tea cools in a cup."}, {"uri": "tea", "text": "Green tea wants cooler water."}]
    with TestClient(page.app, headers={"Authorization": "Bearer change me"}) as client:
        assert client.put("/notes", json=notes, headers={"Authorization": "Bearer other"}).status_code == 401
        answer = client.put("/notes", json=notes)
        note = "these uris came more than once in one call, and the last document of each was kept: 'tea'"
        assert (answer.status_code, answer.json()) == (200, {"stored": ["tea"], "unchanged": [], "notes": [note]})
        found = client.get("/search", params={"q": "water for green tea", "k": 1}).json()["hits"][0]
        assert (found["uri"], found["text"]) == ("tea", "Green tea wants cooler water.")
        with Index.open("notes.index") as another_worker, another_worker.lock():
            refused = client.put("/notes", json=notes)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert client.get("/search", params={"q": "bread", "k": 1}).status_code == 200
        assert client.put("/notes", json=[{"uri": "blank", "text": " "}]).status_code == 400
        assert client.get("/search", params={"q": " "}).status_code == 400
        assert client.put("/notes", json=[]).status_code == 422
    page.index.close()


@pytest.mark.slow
@pytest.mark.usefixtures("in_folder")
def test_django(monkeypatch: pytest.MonkeyPatch) -> None:
    django = pytest.importorskip("django")
    from django.conf import settings

    memory = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    settings.configure(ROOT_URLCONF="django_page", ALLOWED_HOSTS=["*"], DATABASES=memory, LIKEWISE_INDEX="notes.index")
    django.setup()
    from django.db import connection
    from django.test import Client

    run(blocks()[0], {})
    (code,) = blocks("django")
    page = module("django_page", code, monkeypatch)
    with connection.schema_editor() as editor:
        editor.create_model(page.Note)
    page.save(page.Note(text="Der Hund bellt in der Nacht.", lang="de"))
    client = Client()
    assert [hit["uri"] for hit in client.get("/find", {"q": "Hund", "lang": "de"}).json()["hits"]] == ["note-1"]
    assert client.get("/find", {"q": ""}).status_code == 400
    assert client.get("/find", {"q": "bread", "lang": 'de" or lang != "'}).json()["matched"] == 0
    with Index.open("notes.index") as index:
        assert index.get("note-1").metadata == {"lang": "de"}
    page.searcher().close()
    page.index().close()
    connection.close()


def test_pandas(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    names: dict[str, Any] = {"__name__": "page"}
    (code,) = blocks("pandas")
    run(code, names)
    assert capsys.readouterr().out == (
        "[{'question': 'old bread', 'uri': '1'}, {'question': 'loud pets', 'uri': '2'}]\n"
    )
    assert names["index"].get("1").metadata == {"day": "2020-01-31T00:00:00.000"}
    assert names["index"].get("2").metadata == {"day": None}
    names["searcher"].close()
    names["index"].close()


def test_the_table_of_errors_has_their_statuses() -> None:
    rows = re.findall(r"^\| (`\w+`.*?) \|.*?\| (\d{3}) \|", PAGE, re.MULTILINE)
    assert {status for _, status in rows} == {"400", "404", "500", "502", "503", "507"}
    for first, status in rows:
        kind = getattr(errors, re.findall(r"`(\w+)`", first)[0])
        assert (kind.__name__, kind.http_status) == (kind.__name__, int(status))
