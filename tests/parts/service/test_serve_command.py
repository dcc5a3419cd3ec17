"""likewise serve: what it refuses to start with. test_run.py has the service."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from likewise.federation.index_names import addresses_by_name


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "name the INDEX to serve"),
        (["{}", "{}"], 2, "both named 'topics'"),
        (["{}", "--host", "0.0.0.0"], 2, "there is no token"),
        (["{}", "--host", "::"], 2, "there is no token"),
        (["{}", "--host", "no.such.host.invalid", "--token-file", "{token}"], 3, "no.such.host.invalid"),
        (["{}", "--port", "{taken}"], 3, "in use"),
        (["{}", "--token-file", "{empty}"], 2, "holds no token"),
        (["{}", "a={}", "--watch", "."], 2, "--watch needs exactly one INDEX, and 2 are served"),
        (["{}", "--workers", "0"], 2, "1<=x<=64"),
        (["{}", "--cors-origin", "example.org"], 2, "'example.org' is not a website: write https://NAME"),
        (["{}", "--port", "0", "--rerank", "no-such-model"], 2, "no-such-model"),
        (["/no/such.index", "--port", "0"], 2, "/no/such.index"),
    ],
)
def test_what_it_refuses_to_start_with(
    likewise: Any, topics: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "token").write_text("secret\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        values = {"taken": str(taken.getsockname()[1]), "empty": tmp_path / "empty", "token": tmp_path / "token"}
        ended = likewise("serve", *(argument.format(topics, **values) for argument in arguments))
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err


def test_names_of_indexes(tmp_path: Path) -> None:
    (tmp_path / "a=b.index").mkdir()
    given = [
        "papers.index",
        "notes=/x/y",
        "postgresql://me@host/db?index=law",
        "pg=postgresql://h/db",
        str(tmp_path / "a=b.index"),
    ]
    assert addresses_by_name(given) == {
        "papers": "papers.index",
        "notes": "/x/y",
        "law": "postgresql://me@host/db?index=law",
        "pg": "postgresql://h/db",
        "a-b": str(tmp_path / "a=b.index"),
    }
    assert list(addresses_by_name(["postgresql://h/db", "."])) == ["default", Path.cwd().name]
    assert addresses_by_name([str(tmp_path / "notes" / ".likewise")]) == {
        "notes": str(tmp_path / "notes" / ".likewise")
    }
    assert addresses_by_name([".."]) == {Path.cwd().parent.name: ".."}
    assert addresses_by_name(["notes=~/notes.index"]) == {"notes": str(Path("~/notes.index").expanduser())}


def test_a_new_index_is_made_for_writers_and_their_first_documents_choose_its_model(
    likewise: Any, make_encoder: Any, register: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoders = {name: make_encoder(name=name, weights=name) for name in ("all-MiniLM-L6-v2", "multilingual-e5-small")}
    register(named=lambda spec: encoders[spec.model])
    monkeypatch.setattr("indexer.languages.choice.data_file", lambda: tmp_path)
    applications: list[Any] = []
    monkeypatch.setattr("likewise.service.http.run.serve", lambda create, *_, **__: applications.append(create))
    ended = likewise("serve", tmp_path / "new.index", "--writable")
    assert (ended.code, "its first documents choose the model" in ended.err) == (0, True)
    text = "Die alten Häuser der Stadt stehen seit vielen Jahren am Fluss, und niemand weiß, wer sie gebaut hat."
    with TestClient(applications[0](), base_url="http://127.0.0.1") as client:
        assert client.get("/v1/indexes").json()["indexes"][0]["model"] is None  # the first documents choose it
        put = client.put("/v1/indexes/new/documents", json={"documents": [{"uri": "a", "text": text}]}).json()
        assert put["notes"][0].startswith("the model is multilingual-e5-small: the texts are German 100 %")
        assert client.get("/v1/indexes").json()["indexes"][0]["model"] == "multilingual-e5-small"
        found = client.post("/v1/indexes/new/search", json={"query": "Häuser", "mode": "dense"}).json()
        assert [hit["uri"] for hit in found["hits"]] == ["a"]
    assert likewise("serve", tmp_path / "new.index", "--writable").err == ""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".likewise.toml").write_text('model = "multilingual-e5-small"\n')
    said = likewise("serve", "named.index", "--writable").err
    assert "named.index is new: its model is multilingual-e5-small" in said
    with TestClient(applications[-1](), base_url="http://127.0.0.1") as client:
        assert client.get("/v1/indexes").json()["indexes"][0]["model"] == "multilingual-e5-small"
