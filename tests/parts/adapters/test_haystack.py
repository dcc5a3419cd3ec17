"""Haystack: its own tests of document stores, and what they leave out: retrieval, filters of dates, loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from parts.adapters.examples import run_example
from parts.adapters.hard_metadata import HARD, REFUSED, REFUSED_IDS

pytest.importorskip("haystack")

from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy
from haystack.errors import FilterError
from haystack.testing import document_store as suite
from haystack.testing import document_store_async as suite_async
from haystack.utils.filters import document_matches_filter

from indexer import BadInput, Index
from likewise.adapters.haystack import LikewiseBM25Retriever, LikewiseDocumentStore, LikewiseEmbeddingRetriever
from search import Searcher


@pytest.fixture
def document_store() -> Iterator[LikewiseDocumentStore]:
    store = LikewiseDocumentStore()
    yield store
    store.close()


class TestStore(
    suite.DocumentStoreBaseExtendedTests,
    suite.CountDocumentsByFilterTest,
    suite.CountUniqueMetadataByFilterTest,
    suite.GetMetadataFieldsInfoTest,
    suite.GetMetadataFieldMinMaxTest,
    suite.GetMetadataFieldUniqueValuesTest,
):
    @pytest.fixture
    def document_store(self) -> Iterator[LikewiseDocumentStore]:  # type: ignore[override]
        store = LikewiseDocumentStore()
        yield store
        store.close()

    def test_write_documents(self, document_store: LikewiseDocumentStore) -> None:  # type: ignore[override]
        """NONE means FAIL."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


class TestStoreAsync(
    suite_async.CountDocumentsAsyncTest,
    suite_async.CountDocumentsByFilterAsyncTest,
    suite_async.CountUniqueMetadataByFilterAsyncTest,
    suite_async.DeleteAllAsyncTest,
    suite_async.DeleteByFilterAsyncTest,
    suite_async.DeleteDocumentsAsyncTest,
    suite_async.FilterDocumentsAsyncTest,
    suite_async.GetMetadataFieldMinMaxAsyncTest,
    suite_async.GetMetadataFieldUniqueValuesAsyncTest,
    suite_async.GetMetadataFieldsInfoAsyncTest,
    suite_async.UpdateByFilterAsyncTest,
    suite_async.WriteDocumentsAsyncTest,
):
    async def test_write_documents_async(self, document_store: LikewiseDocumentStore) -> None:  # type: ignore[override]
        """NONE means FAIL."""
        document = Document(content="test doc")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([document])
        self.assert_documents_are_equal(await document_store.filter_documents_async(), [document])


DATES: list[Any] = [
    "2024-03-01",
    "2024-03-01T00:00:00",
    "2024-03-01T00:00:00Z",
    "2024-03-01T02:00:00+02:00",
    "2024-02-29T23:30:00-01:00",
    "2024-03-01T01:00:00.000001",
    "0001-01-01T00:00:00+05:00",
    "9999-12-31T23:59:59-05:00",
]
META: list[dict[str, Any]] = [
    *({"date": date, "nested": {"date": date}, "n": n} for n, date in enumerate(DATES)),
    {"n": 2.0, "text": "a", "flag": True},
    {"n": 1e-9, "text": "b", "flag": False, "uri": "mine"},
    {"date": None, "nested": {}},
    {"n": -3, "text": "", "uri": "other", "nested": {"deeper": {"x": "y"}}},
]


def comparison(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


def joined(operator: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    return {"operator": operator, "conditions": list(conditions)}


FILTERS: list[dict[str, Any]] = [
    *(comparison("meta.date", operator, date) for operator in ("==", "!=", ">", ">=", "<", "<=") for date in DATES),
    *(comparison("meta.nested.date", operator, DATES[3]) for operator in ("==", "!=", "<")),
    *(comparison("meta.n", operator, 2) for operator in ("==", "!=", ">", ">=", "<", "<=")),
    *(comparison("meta.text", operator, "a") for operator in ("==", "!=")),
    *(comparison(field, operator, None) for field in ("meta.n", "meta.date", "meta.no") for operator in ("==", "!=")),
    *(comparison("meta.n", operator, None) for operator in (">", "<=")),
    *(comparison("meta.no", operator, 7) for operator in ("==", "!=", ">", "<=")),
    *(comparison("meta.n", operator, values) for operator in ("in", "not in") for values in ([], [2, 7], [2, None])),
    *(comparison("meta.date", operator, DATES[1:2]) for operator in ("in", "not in")),
    comparison("meta.flag", "==", True),
    comparison("meta.flag", "!=", True),
    comparison("meta.uri", "==", "mine"),
    comparison("text", "==", "b"),
    comparison("id", "==", "id3"),
    comparison("id", "!=", "id3"),
    comparison("id", "in", ["id3", "id5"]),
    comparison("meta.nested.deeper.x", "==", "y"),
    joined("AND", comparison("meta.n", ">", 1), comparison("meta.date", "<", DATES[0])),
    joined("OR", comparison("meta.n", ">", 4), comparison("meta.text", "==", "a")),
    joined("NOT", comparison("meta.n", ">", 1), comparison("meta.n", "<", 5)),
    joined("NOT", joined("OR", comparison("meta.n", "==", 1), joined("NOT", comparison("meta.flag", "==", None)))),
]


def test_a_filter_finds_what_haystacks_own_rules_find(document_store: LikewiseDocumentStore) -> None:
    documents = [Document(id=f"id{n}", content=f"text {n}", meta=meta) for n, meta in enumerate(META)]
    document_store.write_documents(documents)
    assert len(FILTERS) > 70
    for filters in FILTERS:
        expected = [document.id for document in documents if document_matches_filter(filters, document)]
        assert [document.id for document in document_store.filter_documents(filters)] == expected, filters
        assert document_store.count_documents_by_filter(filters) == len(expected), filters


def test_a_date_may_be_given_as_a_datetime(document_store: LikewiseDocumentStore) -> None:
    document_store.write_documents([Document(id=date, meta={"date": date}) for date in DATES[:5]])
    noon = datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=12)))
    for operator, expected in ((">", 5), ("==", 0), ("<", 0)):
        assert document_store.count_documents_by_filter(comparison("meta.date", operator, noon)) == expected


@pytest.mark.parametrize(
    "filters",
    [
        comparison("content", "==", "text 1"),
        comparison("embedding", "==", None),
        comparison("meta", "==", {}),
        comparison("meta.", "==", 1),
        comparison("meta.n", "~", 1),
        comparison("meta.n", "==", [1]),
        comparison("meta.n", "==", {"a": 1}),
        comparison("meta.n", ">", "2024-01-01"),
        comparison("meta.n", "==", "1"),
        comparison("meta.text", ">", 1),
        comparison("meta.text", ">", "a"),
        comparison("id", "<", "2024-01-01"),
        comparison("meta.n", "==", float("nan")),
        comparison("meta.n", "==", 2**70),
        joined("XOR", comparison("meta.n", "==", 1)),
        joined("AND"),
        {"operator": "AND", "conditions": [1]},
        {"field": "meta.n", "value": 1},
        reduce(lambda inner, _: joined("NOT", inner), range(40), comparison("meta.n", "==", 1)),
    ],
    ids=lambda filters: str(filters)[:60],
)
def test_what_has_no_translation_is_refused(filters: dict[str, Any], document_store: LikewiseDocumentStore) -> None:
    document_store.write_documents([Document(content="text 1", meta={"n": 1, "text": "a"})])
    with pytest.raises(FilterError):
        document_store.filter_documents(filters)
    with pytest.raises(FilterError):
        document_store.delete_by_filter(filters)
    with pytest.raises(FilterError):
        document_store.bm25_retrieval("text", filters)
    with pytest.raises(FilterError):
        document_store.embedding_retrieval([1.0], filters)
    assert document_store.count_documents() == 1


def test_documents_come_back_equal(document_store: LikewiseDocumentStore) -> None:
    documents = [
        *(Document(id=f"hard{n}", content="text", meta=meta) for n, meta in enumerate(HARD)),
        Document(id="none", content=None),
        Document(id="empty", content=""),
        Document(id="blob", blob=ByteStream(bytes(range(256)), {"of": ["blob"]}, "image/png")),
        Document(id="sparse", content="x", sparse_embedding=SparseEmbedding([0, 7], [0.1, 1 / 3])),
        Document(id="score", content="x", score=0.1),
        Document(id="f4", content="x", embedding=[0.5, -0.25, 3.0]),
        Document(id="f8", content="x", embedding=[0.1, 1e300, -0.2]),
        Document(content="an id of its own", meta={"a": 1}),
    ]
    small = [document for document in documents if document.id != "f8"]
    document_store.write_documents(small)
    assert document_store.filter_documents() == small
    with pytest.raises(BadInput, match="not finite"):
        document_store.write_documents([document for document in documents if document.id == "f8"])
    precise = Document(id="f8", content="x", embedding=[0.1, 1 / 3, -0.2])
    document_store.write_documents([precise])
    assert document_store.filter_documents(comparison("id", "==", "f8")) == [precise]
    assert document_store.update_by_filter({}, {"seen": True}) == len(small) + 1
    expected = [replace(document, meta={**document.meta, "seen": True}) for document in [*small, precise]]
    assert document_store.filter_documents() == expected


@pytest.mark.parametrize("meta", [*REFUSED, {"_haystack": 1}], ids=[*REFUSED_IDS, "reserved"])
def test_what_would_be_lost_is_refused(meta: dict[Any, Any], document_store: LikewiseDocumentStore) -> None:
    with pytest.raises(BadInput, match="meta"):
        document_store.write_documents([Document(content="good"), Document(id="bad", content="bad", meta=meta)])
    assert document_store.count_documents() == 0


def test_ids_that_come_twice_in_one_call_follow_the_policy(document_store: LikewiseDocumentStore) -> None:
    twice = [Document(id="a", content="first"), Document(id="a", content="second")]
    with pytest.raises(DuplicateDocumentError):
        document_store.write_documents(twice, DuplicatePolicy.FAIL)
    assert document_store.count_documents() == 0
    assert document_store.write_documents(twice, DuplicatePolicy.SKIP) == 1
    assert document_store.filter_documents() == twice[:1]
    assert document_store.write_documents(twice, DuplicatePolicy.OVERWRITE) == 2
    assert document_store.filter_documents() == twice[1:]


def test_documents_are_found_by_embedding_and_by_words(document_store: LikewiseDocumentStore) -> None:
    documents = [
        Document(id="a", content="a ripe pear", embedding=[1, 0], meta={"n": 1}),
        Document(id="b", content="a green apple", embedding=[3, 4], meta={"n": 2}),
        Document(id="c", content="an apple and a pear", meta={"n": 3}),
        Document(id="d", content=None, embedding=[-1, 0]),
    ]
    document_store.write_documents(documents)
    near = document_store.embedding_retrieval([2, 0])
    assert [document.id for document in near] == ["a", "b", "d"]
    assert [document.score for document in near] == pytest.approx([1, 0.6, -1], abs=1e-3)
    assert replace(near[0], score=None) == documents[0]
    assert document_store.embedding_retrieval([2, 0], top_k=1, return_embedding=False)[0].embedding is None
    assert [d.id for d in document_store.embedding_retrieval([1, 0], comparison("meta.n", ">", 1))] == ["b"]
    words = document_store.bm25_retrieval("apples")
    assert [document.id for document in words] == ["b", "c"]
    assert [document for document in words if not (document.score is not None and document.score > 0)] == []
    assert [d.id for d in document_store.bm25_retrieval("apples", comparison("meta.n", "==", 3))] == ["c"]
    assert document_store.bm25_retrieval("the of and") == []
    with pytest.raises(BadInput, match="3 dimensions"):
        document_store.embedding_retrieval([1, 0, 0])


def test_embeddings_may_come_after_documents_without(tmp_path: Path) -> None:
    store = LikewiseDocumentStore(tmp_path / "an.index")
    first = [Document(id="a", content="a pear"), Document(id="b", content="an apple")]
    store.write_documents(first)
    assert store.embedding_retrieval([0.0, 0.0, 1.0]) == []
    second = [Document(id="b", content="an apple", embedding=[0.0, 1.0, 1.0]), Document(id="c", content="a plum")]
    store.write_documents(second, DuplicatePolicy.OVERWRITE)
    assert store.filter_documents() == [first[0], *second]
    assert [document.id for document in store.embedding_retrieval([0.0, 0.0, 1.0])] == ["b"]
    with pytest.raises(BadInput, match=r"shape \(1, 1\)"):
        store.write_documents([Document(id="d", content="x", embedding=[1.0])])
    store.delete_all_documents()
    store.write_documents([Document(id="d", content="x", embedding=[1.0, 0.0])])
    assert [document.id for document in store.embedding_retrieval([1.0, 0.0])] == ["d"]
    store.close()


async def test_retrievers_are_components_of_a_pipeline(tmp_path: Path) -> None:
    store = LikewiseDocumentStore(tmp_path / "an.index")
    store.write_documents([Document(id=str(n), content=f"pear {n}", embedding=[1.0, n], meta={"n": n}) for n in (1, 2)])
    pipeline = Pipeline()
    only = comparison("meta.n", ">", 0)
    pipeline.add_component("near", LikewiseEmbeddingRetriever(store, only, 1, filter_policy=FilterPolicy.MERGE))
    pipeline.add_component("words", LikewiseBM25Retriever(store))
    assert pipeline.to_dict()["components"]["words"]["type"] == "search.adapters.haystack.LikewiseBM25Retriever"
    again = Pipeline.from_dict(pipeline.to_dict(), allowed_modules=["search.adapters.haystack"])
    for each in (pipeline, again):
        found = each.run({"near": {"query_embedding": [1.0, 0.0]}, "words": {"query": "pear", "top_k": 2}})
        assert [document.id for document in found["near"]["documents"]] == ["1"]
        assert [document.id for document in found["words"]["documents"]] == ["1", "2"]
        merged = each.get_component("near").run([1.0, 0.0], comparison("meta.n", "!=", 1))
        assert [document.id for document in merged["documents"]] == ["2"]
    words = LikewiseBM25Retriever.from_dict(LikewiseBM25Retriever(store, only, 3).to_dict())
    assert (words.filters, words.top_k, words.document_store.address) == (only, 3, store.address)
    assert len((await words.run_async("pear", top_k=1))["documents"]) == 1
    with pytest.raises(TypeError):
        LikewiseBM25Retriever("store")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="LikewiseBM25Retriever has no argument 'where': give filters"):
        LikewiseBM25Retriever(store, where=only)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'limit': give top_k"):
        words.run("pear", limit=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'where': give filters"):
        await store.filter_documents_async(where=only)


def test_a_temporary_store_is_deleted_with_the_object() -> None:
    store = LikewiseDocumentStore()
    folder = Path(store.address)
    store.write_documents([Document(content="x", embedding=[1.0])])
    store.embedding_retrieval([1.0])
    assert folder.exists()
    del store
    assert not folder.exists()


def test_fields_of_meta_are_those_of_the_shell(tmp_path: Path, encoder: Any) -> None:
    store = LikewiseDocumentStore(tmp_path / "an.index")
    store.write_documents([Document(id="a", content="x", embedding=[1.0], meta={"year": 2024, "of": {"kind": "k"}})])
    assert Searcher(store.address).count('year = 2024 and of.kind = "k"') == 1
    with pytest.raises(BadInput, match="its own model"):
        Index.create(tmp_path / "words.index", encoder).close()
        LikewiseDocumentStore(tmp_path / "words.index").write_documents([Document(content="x", embedding=[1.0])])
    store.close()


def test_the_example_of_the_docs_prints_what_it_says() -> None:
    printed, promised = run_example("haystack")
    assert printed == promised
    assert len(printed) == 2
