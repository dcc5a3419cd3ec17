"""Every route answers what the library answers, and writes what it says."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from indexer import Document, Index
from indexer.errors import BadInput, EndpointUnavailable, NotAnIndex
from indexer.indexing.embedder import Embedder
from likewise.service import create_app
from likewise.service.http.access_log import AccessLog
from likewise.service.http.metrics import forget_ended_workers
from likewise.service.served import _answer
from search import Query, Searcher
from search.hits.hits import HIT_MEMBERS
from search.hits.marks import QuestionWords

SEARCH = "/v1/indexes/papers/search"
DOCUMENT = "/v1/indexes/papers/document"
DOCUMENTS = "/v1/indexes/papers/documents"


@pytest.mark.parametrize(
    "asked",
    [
        {"query": "the moon", "mode": "dense"},
        {"query": "the moon", "mode": "words", "k": 2},
        {"query": "the sun", "mode": "hybrid", "passages": True, "exact": True, "explain": True},
        {"query": "the sun", "mode": "dense", "where": "year >= 2021", "min_score": -1.0},
        {"query": "the sun", "mode": "dense", "where": {"year": {">=": 2021}, "not": {"lang": "de"}}},
        {"query": "orbits", "mode": "hybrid", "where": 'tags = "star"'},
        {"query": '"the sun" -bread', "literal": False},
        {"query": 'the moon -"is a"', "mode": "hybrid", "literal": False},
    ],
)
def test_a_search_answers_as_the_library_does(client: TestClient, papers: Path, asked: dict[str, Any]) -> None:
    answered = client.post(SEARCH, json=asked)
    assert answered.status_code == 200
    expected = Searcher(papers).search(asked.pop("query"), **asked).as_json()
    assert answered.json() == json.loads(json.dumps(expected))


def test_files_that_are_gone_are_named_and_listed_last(
    open_client: Callable[..., TestClient], tmp_path: Path, encoder: Any
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    documents = []
    for day, name in enumerate(("ash", "birch", "cedar", "date", "elm", "fir"), 1):
        (notes / name).write_text(f"the wood of {name}")
        path, modified = str(notes / name), f"2024-01-0{day}T00:00:00+00:00"
        documents.append(Document(path, f"the wood of {name}", name, path=path, modified=modified))
    with Index.create(tmp_path / "x.index", model=encoder) as index:
        index.add(documents)
    for name in ("fir", "elm", "birch"):
        (notes / name).unlink()
    client = open_client({"x": tmp_path / "x.index"})
    hits = client.post("/v1/indexes/x/search", json={"query": "elm", "k": 6, "mode": "dense"}).json()["hits"]
    assert {hit["title"]: hit["gone"] for hit in hits} == {
        **dict.fromkeys(("ash", "cedar", "date"), False),
        **dict.fromkeys(("birch", "elm", "fir"), True),
    }
    (hit,) = client.post("/v1/indexes/x/search", json={"query": "elm", "k": 1, "fields": ["title", "gone"]}).json()[
        "hits"
    ]
    assert hit == {"title": "elm", "gone": True}
    listed = {
        sort: [hit["title"] for hit in client.post("/v1/indexes/x/list", json={"k": 4, "sort": sort}).json()["hits"]]
        for sort in ("newest", "title")
    }
    assert listed == {"newest": ["date", "cedar", "ash", "fir"], "title": ["ash", "birch", "cedar", "date"]}


DASHES = [
    # a question of the page, the documents that are left, and the beginning of the note
    ("what does sun -star do", 5, "read as words: -star; "),
    ("-moon and the sun", 5, "read as words: -moon; "),
    ('the -"is a" moon', 5, 'read as words: -"is a"; '),
    ("the moon -bread, or the sun", 5, "read as words: -bread,; "),
    ("unpack -xzf", 5, "read as words: -xzf; "),
    ("how cold is -40", 5, "read as words: -40; "),
    ("-std=c++20", 5, "read as words: -std=c++20; "),
    ("the sun -star", 4, "read as conditions: -star"),
    ('unpack -"xzf"', 4, 'read as conditions: -"xzf"'),
    ("-star -bread", 3, "read as conditions: -star, -bread"),
]


def test_dashes_of_the_page_are_read_as_in_the_shell(client: TestClient, papers: Path) -> None:
    with Index.open(papers) as index:
        index.add([Document("flags", "Unpack with `tar -xzf`, compile with -std=c++20, at −40 degrees.")])
    for question, left, note in DASHES:
        for path, more in ((SEARCH, {}), ("/v1/search", {"indexes": ["papers"]})):
            answer = client.post(path, json={"query": question, "literal": False, "fold": True, **more}).json()
            assert (answer["matched"], [one.startswith(note) for one in answer["notes"]]) == (left, [True]), question


def test_a_search_returns_the_members_of_hits_that_it_is_asked_for(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[str] = []
    monkeypatch.setattr(QuestionWords, "mark", lambda self, text, *others: marked.append(text) or [])
    asked = {"query": "the moon", "mode": "words", "k": 1}
    everything = client.post(SEARCH, json=asked).json()
    assert (list(everything["hits"][0]), len(marked)) == (list(HIT_MEMBERS), 1)
    without_why = client.post(SEARCH, json=asked | {"why": False}).json()
    del everything["hits"][0]["why"]
    assert without_why == everything
    some = client.post(SEARCH, json=asked | {"fields": ["score", "uri", "metadata"]}).json()
    assert some["hits"] == [{name: everything["hits"][0][name] for name in ("uri", "score", "metadata")}]
    shown = client.post(SEARCH, json=asked | {"fields": ["shown", "start"]}).json()["hits"]
    assert shown == [{"start": 0, "shown": [[0, len(everything["hits"][0]["text"])]]}]
    assert {**some, "hits": []} == {**everything, "hits": []}
    assert len(marked) == 1  # nobody has asked for the marks


@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ({"fields": ["uri", "cosin"]}, "fields.1: Input should be 'uri', 'title', 'text', 'start', 'end', 'score', "),
        ({"fields": []}, "fields: List should have at least 1 item"),
        ({"fields": ["uri", "why"], "why": False}, "the body: fields has why, and why is false"),
        ({"fields": ["uri"], "explain": True}, "the body: explain is answered in why, which is left out"),
        ({"why": False, "explain": True}, "the body: explain is answered in why, which is left out"),
    ],
)
def test_members_that_a_search_cannot_return_are_refused(
    client: TestClient, asked: dict[str, Any], detail: str
) -> None:
    refused = client.post(SEARCH, json={"query": "moon", **asked})
    assert (refused.status_code, refused.json()["slug"]) == (400, "bad-input")
    assert refused.json()["detail"].startswith(detail)


def test_numbers_are_the_same_as_in_python(own_vectors: Path, open_client: Callable[..., TestClient]) -> None:
    numbers = {"a": 0.1 + 0.2, "b": 1e16, "c": 5e-324, "d": -0.0, "e": 2**63 - 1, "f": 1e22, "g": [1 / 3, 2]}
    with Index.open(own_vectors) as index:
        index.add([Document("n", "ü \u2028 text", "", numbers)], vectors=np.ones((1, 3)))
    client = open_client({"v": own_vectors})
    (hit,) = client.post("/v1/indexes/v/search", json={"query": "ü text", "where": 'uri = "n"'}).json()["hits"]
    assert repr(hit["metadata"]) == repr(numbers)
    assert hit["text"] == "ü \u2028 text"
    (same,) = Searcher(own_vectors).search("ü text", where='uri = "n"', mode="words")
    assert hit["score"] == same.score


def test_the_default_mode_is_hybrid_and_words_without_a_model(
    client: TestClient, own_vectors: Path, open_client: Callable[..., TestClient]
) -> None:
    assert client.post(SEARCH, json={"query": "moon"}).json()["mode"] == "hybrid"
    without_model = open_client({"v": own_vectors})
    answered = without_model.post("/v1/indexes/v/search", json={"query": "moon"}).json()
    assert (answered["mode"], [hit["uri"] for hit in answered["hits"]]) == ("words", ["moon"])
    answered = without_model.post("/v1/indexes/v/search", json={"vector": [0, 2, 0], "k": 1}).json()
    assert (answered["mode"], answered["hits"][0]["uri"], answered["hits"][0]["score"]) == ("dense", "sun", 1.0)
    refused = without_model.post("/v1/indexes/v/search", json={"query": "moon", "mode": "dense"})
    assert refused.status_code == 400
    assert "holds your own vectors" in refused.json()["detail"]


def test_similar_and_document_answer_as_the_library_does(client: TestClient, papers: Path) -> None:
    answered = client.post("/v1/indexes/papers/similar", json={"uri": "moon", "k": 2, "where": "year < 2022"})
    expected = Searcher(papers).similar("moon", 2, where="year < 2022")
    assert answered.json()["hits"] == json.loads(json.dumps(expected.as_json()))["hits"]
    document = client.get(DOCUMENT, params={"uri": "moon"}).json()
    assert document["text"] == "The moon orbits the earth.\nIt is full once a month."
    assert (document["title"], document["metadata"]) == ("Moon", {"year": 2020, "lang": "en"})
    assert client.get(DOCUMENT, params={"uri": "mars"}).status_code == 404


def test_many_questions_are_answered_as_by_the_library(client: TestClient, papers: Path) -> None:
    asked = {"k": 2, "mode": "hybrid", "where": ["year >= 2020", None]}
    answered = client.post("/v1/indexes/papers/search-many", json={"queries": ["moon", "bread"], **asked}).json()
    expected = Searcher(papers).search_many(["moon", "bread"], **asked)  # type: ignore[arg-type]
    assert answered == {"answers": json.loads(json.dumps([hits.as_json() for hits in expected]))}
    for wrong, said in (
        ({"queries": ["moon"] * 101}, "queries: has 101 items, and 100 is the limit: send fewer"),
        ({"queries": ["moon"] * 11, "k": 1000}, "the body: ask for 10,000 hits at most, for all questions together"),
        (
            {"queries": ["moon"], "where": [None, None]},
            "2 filters were given for 1 questions: give one, or one per question",
        ),
        ({"queries": ["moon", ""]}, "the question is empty: ask with at least one word"),
    ):
        refused = client.post("/v1/indexes/papers/search-many", json=wrong)
        assert (refused.status_code, refused.json()["detail"]) == (400, said)


def test_documents_are_listed_in_pages(client: TestClient, papers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search.searcher.PAGE_DOCUMENTS", 2)
    first = client.get(DOCUMENTS).json()
    assert [document["uri"] for document in first["documents"]] == ["moon", "sun"]
    second = client.get(DOCUMENTS, params={"cursor": first["cursor"]}).json()
    assert ([document["uri"] for document in second["documents"]], second["cursor"]) == (["erde", "bread"], None)
    monkeypatch.setattr("search.searcher.PAGE_CHARACTERS", 30)
    english = client.get(DOCUMENTS, params={"where": 'lang = "en" and year < 2021'}).json()
    assert english["documents"] == [json.loads(json.dumps(asdict(Searcher(papers).get("moon"))))]
    for cursor in ("x", f"{'9' * 19}-x", "1-", "0"):
        refused = client.get(DOCUMENTS, params={"cursor": cursor})
        assert (refused.status_code, refused.json()["slug"]) == (400, "bad-input")
    replaced = client.get(DOCUMENTS, params={"cursor": "1-of-another"})
    assert (replaced.status_code, replaced.json()["slug"]) == (503, "index-unavailable")


def test_documents_are_read_by_their_uris(client: TestClient, papers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"uris": ["bread", "mars", "moon"]}
    answered = client.post("/v1/indexes/papers/get-many", json=asked).json()
    expected = [json.loads(json.dumps(asdict(document))) for document in Searcher(papers).get_many(["bread", "moon"])]
    assert answered == {"documents": expected, "left": 0}
    monkeypatch.setattr("likewise.service.http.documents._READ_DOCUMENTS", 1)
    monkeypatch.setattr("likewise.service.http.documents.PAGE_CHARACTERS", 10)
    assert client.post("/v1/indexes/papers/get-many", json=asked).json() == {"documents": expected[:1], "left": 2}


def test_documents_are_counted_and_the_index_is_described(client: TestClient, papers: Path) -> None:
    count = "/v1/indexes/papers/count"
    assert client.get(count).json() == {"documents": 4, "notes": []}
    assert client.get(count, params={"where": "year > 2020"}).json() == {"documents": 2, "notes": []}
    misspelt = {"where": 'lang = "dd"'}
    noted = ['no document has lang = "dd"; near: "de" (1)']
    assert client.get(count, params=misspelt).json() == {"documents": 0, "notes": noted}
    assert client.get(DOCUMENTS, params=misspelt).json() == {"documents": [], "cursor": None, "notes": noted}
    assert client.get(count, params={"where": "yeer > 2020"}).json()["slug"] == "unknown-field"
    info = client.get("/v1/indexes/papers/info").json()
    assert info == json.loads(json.dumps(asdict(Searcher(papers).info())))
    assert str(papers.parent) not in json.dumps(info)


def test_a_misspelt_parameter_is_refused(client: TestClient) -> None:
    misspelt = client.get("/v1/indexes/papers/count", params={"wher": "year > 2020"})
    assert (misspelt.status_code, misspelt.json()["slug"]) == (400, "bad-input")
    assert misspelt.json()["detail"] == "there is no parameter 'wher' here, but ?where="
    assert "?where= or ?cursor=" in client.get(DOCUMENTS, params={"limit": "1"}).json()["detail"]
    assert client.post("/v1/indexes/papers/search?k=3", json={"query": "x"}).status_code == 400
    assert client.get("/healthz?from=probe").status_code == 200


def test_indexes_are_described(client: TestClient) -> None:
    assert client.get("/v1/indexes").json() == {
        "indexes": [
            {
                "name": "papers",
                "documents": 4,
                "passages": 4,
                "model": "words",
                "dimensions": 64,
                "fields": {"lang": ["text"], "tags": ["text"], "year": ["number"]},
                "more_fields": 0,
            }
        ],
        "writable": False,
    }


def test_a_question_that_the_model_cannot_read_is_noted(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.languages.questions.reads_english_alone", lambda recipe: True)
    for query, mode, notes in (
        ("wie ist der Mond und die Erde", "dense", 1),
        ("wie ist der Mond und die Erde", "words", 0),
        ("moon and earth", "dense", 0),
    ):
        answer = client.post("/v1/indexes/papers/search", json={"query": query, "mode": mode}).json()
        assert sum("reads English alone" in note for note in answer["notes"]) == notes, (query, mode)


def test_documents_are_listed_without_a_question(client: TestClient) -> None:
    listed = client.post("/v1/indexes/papers/list", json={"k": 2, "where": "year >= 2020", "sort": "title"}).json()
    assert (listed["matched"], [hit["title"] for hit in listed["hits"]]) == (3, ["Erde", "Moon"])
    assert client.post("/v1/indexes/papers/list", json={"sort": "size"}).status_code == 400
    overview = client.get("/v1/indexes/papers/overview").json()
    assert overview == {"regions": [], "questions": []}  # no map, and titles of one word


def test_fields_are_listed_with_their_frequent_values(client: TestClient, papers: Path) -> None:
    listed = {field["name"]: field for field in client.get("/v1/indexes/papers/fields").json()["fields"]}
    assert list(listed) == ["lang", "tags", "year"]
    assert listed["lang"] == {
        "name": "lang",
        "types": ["text"],
        "documents": 4,
        "values": [{"value": "en", "documents": 3}, {"value": "de", "documents": 1}],
        "shared": 1,
        "numbers": None,
        "days": None,
        "histogram": [],
    }
    asked = {"facets": [{"field": "lang", "where": "year >= 2020"}, {"field": "year", "where": {"lang": "en"}}]}
    lang, year = client.post("/v1/indexes/papers/facets", json=asked).json()["facets"]
    assert (lang["documents"], sum(value["documents"] for value in lang["values"])) == (3, 3)
    assert (year["documents"], sum(year["histogram"]), len(year["histogram"])) == (3, 3, 20)
    assert year["numbers"] == {"min": 2019, "max": 2022}  # of all documents
    refused = client.post("/v1/indexes/papers/facets", json={"facets": [{"field": "lang", "where": "yaer = 1"}]})
    assert refused.json()["slug"] == "unknown-field"
    assert listed["year"]["numbers"] == {"min": 2019, "max": 2022}
    with Index.open(papers) as index:
        index.add([Document("a", "b", "", {"day": "2024-02-03", "year": True}, modified="2024-01-31T10:00:00Z")])
    listed = {field["name"]: field for field in client.get("/v1/indexes/papers/fields").json()["fields"]}
    assert list(listed) == ["day", "lang", "tags", "year", "modified"]
    assert (listed["day"]["types"], listed["day"]["days"]) == (
        ["text", "date"],
        {"min": "2024-02-03", "max": "2024-02-03"},
    )
    assert listed["year"]["values"][0] == {"value": True, "documents": 1}
    assert listed["modified"]["days"] == {"min": "2024-01-31", "max": "2024-01-31"}
    assert client.get("/v1/indexes/none/fields").json()["slug"] == "unknown-index"


def test_messages_keep_their_words_where_an_address_is_one_character(
    open_client: Callable[..., TestClient], own_vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_vectors)
    client = open_client({"v": Path()})
    refused = client.post("/v1/indexes/v/search", json={"vector": [0.5, 0.5]})
    assert refused.json()["detail"] == "the question's vector has 2 dimensions and v has 3"
    refused = client.post("/v1/indexes/v/search", json={"query": "x", "where": "a.b = 1"})
    assert '"a.b"' in refused.json()["detail"]


def test_documents_are_put_and_deleted(writer: TestClient, papers: Path) -> None:
    new = {"uri": "mars", "text": "Mars is red.", "title": "Mars", "metadata": {"year": 2023, "moons": 2}}
    put = writer.put(DOCUMENTS, json={"documents": [new, {"uri": "sun", "title": None, "text": "The sun is hot."}]})
    assert put.json() == {"added": ["mars"], "replaced": ["sun"], "updated": [], "unchanged": [], "notes": []}
    assert writer.put(DOCUMENTS, json={"documents": [new]}).json()["unchanged"] == ["mars"]
    assert writer.post(SEARCH, json={"query": "red mars", "where": "moons = 2"}).json()["hits"][0]["uri"] == "mars"
    assert Index.open(papers).get("sun").text == "The sun is hot."
    assert writer.delete(DOCUMENT, params={"uri": "mars"}).json() == {"removed": 1}
    gone = writer.delete(DOCUMENT, params={"uri": "mars"})
    assert (gone.status_code, gone.json()["slug"]) == (404, "unknown-uri")
    assert len(Searcher(papers)) == 4


def test_an_index_of_own_vectors_takes_no_documents(open_client: Callable[..., TestClient], own_vectors: Path) -> None:
    client = open_client({"v": own_vectors}, writable=True)
    refused = client.put("/v1/indexes/v/documents", json={"documents": [{"uri": "a", "text": "a"}]})
    assert (refused.status_code, refused.json()["slug"]) == (400, "no-model")


def test_documents_are_removed_by_uris_or_by_a_filter(writer: TestClient, papers: Path) -> None:
    def remove(**body: Any) -> tuple[int, Any]:
        answer = writer.request("DELETE", DOCUMENTS, json=body)
        return answer.status_code, answer.json().get("detail", answer.json())

    assert remove() == (400, "give either uris or a filter (where) to remove")
    assert remove(uris=["sun"], where="year = 1") == (400, "give either uris or a filter (where) to remove")
    assert remove(where={})[1] == 'an empty filter would remove every document: if that is meant, give "exists uri"'
    assert remove(where="")[0] == remove(where="yeer = 3")[0] == remove(filter="year = 3")[0] == 400
    assert remove(uris=["sun", "mars"]) == (404, "papers: has no document 'mars'; nothing was removed")
    refusal = 'this would remove 3 of 4 documents: send "yes": true if it is meant'
    assert remove(where="year >= 2020") == (400, refusal)
    assert remove(uris=["moon", "sun", "bread", "sun"]) == (400, refusal)
    assert len(Searcher(papers)) == 4
    assert remove(uris=["sun", "mars"], missing_ok=True) == (200, {"removed": 1})
    assert remove(where="year >= 2020", yes=True) == (200, {"removed": 2})
    assert Searcher(papers).uris() == ["bread"]


def test_documents_are_not_removed_from_a_service_that_is_read_only(client: TestClient) -> None:
    refused = client.request("DELETE", DOCUMENTS, json={"uris": ["sun"]})
    assert (refused.status_code, refused.json()["slug"]) == (403, "read-only")


@pytest.mark.parametrize("replace_all", [False, True])
def test_first_documents_with_vectors_make_an_index_of_own_vectors(
    open_client: Callable[..., TestClient], register: Any, encoder: Any, tmp_path: Path, replace_all: bool
) -> None:
    register(encoder, named=lambda _: encoder)
    Index.create(tmp_path / "new.index", "auto").close()
    client, documents = open_client({"new": tmp_path / "new.index"}, writable=True), "/v1/indexes/new/documents"
    new: dict[str, Any] = {"documents": [{"uri": "a", "text": "a"}], "vectors": [[1, 0, 0]]}
    assert client.put(documents, json=new | {"replace_all": replace_all}).json()["added"] == ["a"]
    new = {"documents": [{"uri": "b", "text": "b"}], "vectors": [[0, 1, 0]]}
    assert client.put(documents, json=new).json()["added"] == ["b"]
    with Index.open(tmp_path / "new.index") as index:
        assert (index.recipe, index.settings.model_open, index.dimensions, len(index)) == (None, None, 3, 2)
        assert index.check().ok
    found = client.post("/v1/indexes/new/search", json={"vector": [0, 1, 0]}).json()
    assert [hit["uri"] for hit in found["hits"]] == ["b", "a"]
    refused = client.put(documents, json={"documents": [{"uri": "c", "text": "c"}]})
    assert refused.json()["slug"] == "no-model"


def test_a_service_writes_to_an_index_that_was_replaced_by_another_width(
    open_client: Callable[..., TestClient], own_vectors: Path
) -> None:
    documents = "/v1/indexes/v/documents"
    client = open_client({"v": own_vectors}, writable=True)
    new = {"documents": [{"uri": "a", "text": "a"}], "vectors": [[1, 2, 3]]}
    assert client.put(documents, json=new).json()["added"] == ["a"]
    with Index.open(own_vectors) as index:
        index.replace_all([Document("b", "b")], [[1, 0]])
    new["vectors"] = [[0, 1]]
    assert client.put(documents, json=new).json()["added"] == ["a"]
    new["documents"] = [{"uri": "c", "text": "c", "format": "x", "sections": [{"start": 0, "heading": "C"}]}]
    assert client.put(documents, json=new | {"replace_all": True, "vectors": [[1, 1, 1, 1]]}).json()["added"] == ["c"]
    (document,) = Searcher(own_vectors).documents()
    assert (document.uri, document.format, document.sections[0].heading) == ("c", "x", "C")


def test_clients_are_told_nothing_of_a_command_line(
    open_client: Callable[..., TestClient], own_vectors: Path, likewise: Callable[..., Any]
) -> None:
    client = open_client({"v": own_vectors})
    answer = client.post("/v1/indexes/v/search", json={"query": "moon", "mode": "dense"})
    sentence = 'v: holds your own vectors and has no model: give the question\'s vector, or ask with the mode "words"'
    assert (answer.status_code, answer.json()["detail"]) == (400, sentence)
    said = likewise("search", own_vectors, "moon")
    assert said.err.strip().endswith('or ask with the mode "words" (--mode words)')


def test_a_uri_that_is_put_twice_is_named(writer: TestClient) -> None:
    documents = [{"uri": "twice", "text": "first"}, {"uri": "twice", "text": "last"}]
    answer = writer.put(DOCUMENTS, json={"documents": documents}).json()
    assert answer["added"] == ["twice"]
    assert answer["notes"] == [
        "these uris came more than once in one call, and the last document of each was kept: 'twice'"
    ]


def test_a_metadata_field_that_cannot_be_stored_is_named(writer: TestClient) -> None:
    document = {"uri": "wide", "text": "text", "metadata": {"n": 2**64}}
    answer = writer.put(DOCUMENTS, json={"documents": [document]})
    sentence = "metadata: metadata field 'n' is a whole number beyond 64 bits: write it as text"
    assert (answer.status_code, answer.json()["slug"], answer.json()["detail"]) == (400, "bad-input", sentence)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"modified": "yesterday"}, "modified is 'yesterday': write a date such as 2024-01-31T10:00:00Z"),
        ({"sections": [{"start": 5}]}, "a section starts outside of the text of 4 characters"),
        ({"sections": [{"start": -1}]}, "a section starts outside of the text of 4 characters"),
    ],
)
def test_a_date_or_a_section_that_means_nothing_is_refused(
    writer: TestClient, members: dict[str, Any], said: str
) -> None:
    new = {"uri": "mars", "text": "Mars"}
    refused = writer.put(DOCUMENTS, json={"documents": [new | members]})
    assert (refused.status_code, refused.json()["detail"]) == (400, f"documents.0: {said}")
    fitting = {"modified": "2024-01-31T10:00:00+02:00", "sections": [{"start": 4}]}
    assert writer.put(DOCUMENTS, json={"documents": [new | fitting]}).json()["added"] == ["mars"]


def test_nothing_is_written_without_writable(client: TestClient, papers: Path) -> None:
    put = client.put(DOCUMENTS, json={"documents": [{"uri": "a", "text": "b"}]})
    deleted = client.delete(DOCUMENT, params={"uri": "moon"})
    assert [(answer.status_code, answer.json()["slug"]) for answer in (put, deleted)] == [(403, "read-only")] * 2
    assert len(Searcher(papers)) == 4


def test_a_locked_index_asks_to_try_again(writer: TestClient, papers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, Index.open(papers) as other, other.lock():
        patch.setattr("likewise.service.http.documents.LOCK_DEADLINE_S", 0.1)
        put = writer.put(DOCUMENTS, json={"documents": [{"uri": "a", "text": "b"}]})
    assert (put.status_code, put.json()["slug"], put.headers["retry-after"]) == (503, "locked", "1")
    assert writer.put(DOCUMENTS, json={"documents": [{"uri": "a", "text": "b"}]}).json()["added"] == ["a"]


def test_a_write_waits_for_the_lock_as_other_writers_do(
    writer: TestClient, papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It blocks: a writer that asks again and again gets no turn beside several that block."""
    flock, blocks = fcntl.flock, threading.Event()

    def observed(file: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX:
            blocks.set()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", observed)
    with ThreadPoolExecutor() as threads:
        with Index.open(papers) as first, first.lock():
            put = threads.submit(writer.put, DOCUMENTS, json={"documents": [{"uri": "a", "text": "b"}]})
            assert blocks.wait(60)
            assert not put.done()
        assert put.result().json()["added"] == ["a"]


def test_documents_are_embedded_before_the_lock_is_taken(
    writer: TestClient, papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another writer changes in between is compared again under the lock."""
    embed, began, embedded = Embedder.embed, threading.Event(), list[list[str]]()

    def observed(embedder: Embedder, documents: Any) -> Any:
        embedded.append([document.uri for document in documents])
        began.set()
        vectors = embed(embedder, documents)
        embedder.notes = ("a runtime cannot be used",)
        return vectors

    monkeypatch.setattr(Embedder, "embed", observed)
    new = [{"uri": uri, "text": f"about {uri}"} for uri in ("venus", "mars")]
    with ThreadPoolExecutor() as threads:
        with Index.open(papers) as first, first.lock():
            put = threads.submit(writer.put, DOCUMENTS, json={"documents": [*new, {"uri": "sun", "text": "new"}]})
            assert began.wait(60)
            first.add([Document("venus", "about venus"), Document("mars", "something else")])
        answer = put.result().json()
    assert embedded == [["venus", "mars", "sun"]]
    assert (answer["added"], answer["replaced"], answer["unchanged"]) == ([], ["mars", "sun"], ["venus"])
    assert answer["notes"] == ["a runtime cannot be used"]
    texts = {document.uri: document.text for document in Searcher(papers).documents()}
    assert (texts["venus"], texts["mars"], texts["sun"]) == ("about venus", "about mars", "new")


def test_commits_and_replaced_folders_are_seen(client: TestClient, papers: Path, tmp_path: Path, encoder: Any) -> None:
    def uris() -> list[str]:
        return [hit["uri"] for hit in client.post(SEARCH, json={"query": "venus", "k": 1}).json()["hits"]]

    assert uris() != ["venus"]
    with Index.open(papers) as index:
        index.add([Document("venus", "Venus is hot.")])
    assert uris() == ["venus"]
    with Index.create(tmp_path / "other.index", model=encoder) as other:
        other.add([Document("other venus", "Another venus.")])
    shutil.rmtree(papers)
    shutil.move(tmp_path / "other.index", papers)
    assert uris() == ["other venus"]


def test_a_removed_index_is_unavailable_and_the_others_are_not(
    open_client: Callable[..., TestClient], papers: Path, own_vectors: Path
) -> None:
    client = open_client({"papers": papers, "v": own_vectors})
    assert client.get("/readyz").json() == {"status": "ready", "words": "ready"}
    shutil.rmtree(papers)
    for answer in (client.post(SEARCH, json={"query": "moon"}), client.get("/readyz")):
        assert (answer.status_code, answer.json()["slug"]) == (503, "index-unavailable")
        assert str(papers) not in answer.text
    assert client.post("/v1/indexes/v/search", json={"query": "moon"}).status_code == 200
    assert client.get("/healthz").json() == {"status": "ok"}


def test_metrics_count_what_was_asked(client: TestClient) -> None:
    for _ in range(3):
        client.post(SEARCH, json={"query": "moon"})
    client.post(SEARCH, json={"query": ""})
    client.get("/no/such/route")
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    assert {family.name.split("_")[0] for family in families} == {"likewise"}
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }
    route = ("route", "/v1/indexes/{name}/search")
    assert samples["likewise_requests_total", ("method", "POST"), route, ("status", "200")] == 3
    assert samples["likewise_requests_total", ("method", "POST"), route, ("status", "400")] == 1
    assert samples["likewise_requests_total", ("method", "GET"), ("route", "other"), ("status", "404")] == 1
    assert samples["likewise_request_duration_seconds_count", route] == 4
    assert samples["likewise_index_documents", ("index", "papers")] == 4
    assert samples["likewise_queue_duration_seconds_count",] >= 3
    for step in ("tokenization", "encoding", "ranking"):  # of the question that warms the encoder, too
        assert samples[f"likewise_{step}_duration_seconds_count",] == 4
    assert (samples["likewise_batch_questions_count",], samples["likewise_batch_questions_sum",]) == (4, 4)


def samples_of(client: TestClient) -> dict[str, float]:
    """Return the values of metrics with one sample, and of the others the sum."""
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            values[sample.name] = values.get(sample.name, 0) + sample.value
    return values


def test_metrics_of_the_version_and_the_store(client: TestClient, papers: Path) -> None:
    samples = samples_of(client)
    (build,) = (
        sample.labels
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
        if sample.name == "likewise_build_info"
    )
    assert build == {"version": version("likewise"), "python": platform.python_version()}
    os.utime(papers / "generation", (0, time.time() - 1000))
    assert samples_of(client)["likewise_index_last_commit_age_seconds"] == pytest.approx(1000, abs=60)
    assert "likewise_store_errors_total" not in samples
    shutil.rmtree(papers)
    client.post(SEARCH, json={"query": "moon"})
    text = client.get("/metrics").text
    assert 'likewise_store_errors_total{kind="index-unavailable"} 1.0' in text


def test_a_worker_that_was_killed_has_no_requests_in_progress(tmp_path: Path) -> None:
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, check=True).stdout.decode().strip()
    running = tmp_path / f"gauge_livesum_{os.getpid()}.db"
    for file in (running, tmp_path / f"gauge_livesum_{ended}.db", tmp_path / f"counter_{ended}.db"):
        file.touch()
    forget_ended_workers(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {running.name, f"counter_{ended}.db"}


def test_the_log_has_a_line_per_request_and_no_question(papers: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for asked in (False, True):
        app = create_app({"papers": str(papers)}, access_log=True, log_queries=asked)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            client.post(SEARCH, json={"query": "secret moon", "k": 2})
        (line,) = capfd.readouterr().out.splitlines()
        entry = json.loads(line)
        expected = {"method": "POST", "status": 200, "index": "papers", "mode": "hybrid", "k": 2, "hits": 2}
        assert {name: entry[name] for name in expected} == expected
        assert entry["seconds"] > 0
        assert entry.get("query") == ("secret moon" if asked else None)


def test_a_slow_reader_of_a_log_that_does_not_block_gets_every_line() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    log = AccessLog(writer)
    for number in range(2000):  # more than a pipe holds
        log.write({"number": number})
    with os.fdopen(reader) as lines:
        assert [json.loads(next(lines))["number"] for _ in range(2000)] == list(range(2000))
        log.close()
        os.close(writer)
        assert lines.read() == ""


def test_vectors_in_openai_form_are_those_of_the_encoder(client: TestClient, encoder: Any) -> None:
    answered = client.post("/v1/embeddings", json={"model": "papers", "input": ["the moon", "bread"]}).json()
    rows = np.array([entry["embedding"] for entry in answered["data"]], np.float32)
    np.testing.assert_array_equal(rows, encoder.encode(["the moon", "bread"]))
    assert answered["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    long = client.post("/v1/embeddings", json={"model": "papers", "input": "word " * 50})
    assert long.status_code == 400
    assert long.json()["error"] == {
        "message": "input 0 has 52 tokens and the model reads 32: cut it",
        "type": "invalid_request_error",
        "param": None,
        "code": "text_too_long",
    }
    assert (
        client.post("/v1/embeddings", json={"model": "other", "input": "a"}).json()["error"]["code"] == "unknown_index"
    )


def test_an_application_that_is_mounted_answers_as_ever(papers: Path) -> None:
    app = create_app({"papers": str(papers)}, token="secret")
    outer = Starlette(routes=[Mount("/find", app)], lifespan=lambda _: app.router.lifespan_context(app))
    token = {"Authorization": "Bearer secret"}
    with TestClient(outer, base_url="http://127.0.0.1") as client:
        assert client.get("/find/healthz").status_code == 200
        assert client.get("/find/readyz").status_code == 401
        assert client.post(f"/find{SEARCH}", json={"query": "moon"}, headers=token).json()["hits"][0]["uri"] == "moon"
        assert "error" in client.post("/find/v1/embeddings", json={}, headers=token).json()
        tools = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accepted = {"Accept": "application/json, text/event-stream"}
        assert len(client.post("/find/mcp", json=tools, headers=token | accepted).json()["result"]["tools"]) == 4


def test_an_application_is_refused_before_it_serves(tmp_path: Path, papers: Path) -> None:
    with pytest.raises(NotAnIndex):
        create_app({"a": str(tmp_path)})
    with pytest.raises(BadInput, match="no index to serve"):
        create_app({})
    with pytest.raises(BadInput, match="token is empty"):
        create_app({"a": str(papers)}, token=" ")


def test_a_document_with_very_many_fields_is_refused_and_few_fields_are_listed(
    writer: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"f{number:05}": {"a": number} for number in range(1001)}
    body = {"documents": [{"uri": "many", "text": "many fields", "metadata": many}]}
    refused = writer.put("/v1/indexes/papers/documents", json=body)
    assert refused.status_code == 400
    assert "the document has 1,001 metadata fields, and 1,000 is the limit" in refused.json()["detail"]
    many.popitem()
    assert writer.put("/v1/indexes/papers/documents", json=body).status_code == 200
    asked = list[str]()
    values = Searcher.values
    monkeypatch.setattr(Searcher, "values", lambda *given: asked.append(given[1]) or values(*given))
    answered = writer.get("/v1/indexes/papers/fields").json()
    names = [field["name"] for field in answered["fields"]]
    assert (len(asked), names[:2], names[197:]) == (202, ["f00000.a", "f00001.a"], ["f00197.a", "lang", "year"])
    assert answered["more_fields"] == 803
    described = writer.get("/v1/indexes").json()["indexes"][0]
    assert (list(described["fields"]), described["more_fields"]) == (names, 803)
    info = writer.get("/v1/indexes/papers/info").json()
    assert (sorted(info["fields"]), info["details"]["more_fields"]) == (sorted(names), 803)


def test_words_answer_a_hybrid_question_whose_model_fails(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreachable(*_: object) -> None:
        raise EndpointUnavailable("http://10.1.1.1:11434/v1 does not answer")

    monkeypatch.setattr("search.question_encoder.QuestionEncoder.encode", unreachable)
    for _ in range(2):
        answered = client.post(SEARCH, json={"query": "moon earth", "where": "year >= 2019"}).json()
        assert (answered["mode"], [hit["uri"] for hit in answered["hits"]]) == ("words", ["moon"])
        assert answered["notes"] == ["the model of papers does not answer at this moment: ranked by words alone"]
    causes = [record.message for record in caplog.records if "10.1.1.1" in record.message]
    assert causes == ["papers: hybrid questions are answered by words alone: http://10.1.1.1:11434/v1 does not answer"]
    explained = client.post(SEARCH, json={"query": "moon earth", "explain": True}).json()
    assert explained["notes"][-1].endswith("ranked by words alone, and not explained")
    for other in ({"mode": "dense"}, {"min_score": 0.0}, {"query": "the"}):
        refused = client.post(SEARCH, json={"query": "moon earth", "mode": "hybrid"} | other)
        assert (refused.status_code, refused.json()["slug"]) == (502, "endpoint-unavailable")
    with pytest.raises(EndpointUnavailable):  # words mode would refuse the vector
        _answer(unreachable, Query("moon", mode="hybrid", vector=[1.0]), "papers")
