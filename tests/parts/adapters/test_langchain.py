"""LangChain: its own integration tests of stores and retrievers, and what they leave out: filters, scores, loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parts.adapters.examples import run_example
from parts.adapters.hard_metadata import HARD, REFUSED, REFUSED_IDS

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_tests")

from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from indexer import BadInput, Document, FilterError, Index, NotAnIndex
from likewise.adapters.langchain import LikewiseRetriever, LikewiseVectorStore
from search import Searcher


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[LikewiseVectorStore]:  # type: ignore[override]
        store = LikewiseVectorStore(self.get_embeddings())
        yield store
        store.close()


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def address(self, tmp_path: Path, encoder: Any) -> None:
        self._address = tmp_path / "an.index"
        with Index.create(self._address, encoder) as index:
            index.add([Document(str(number), f"a pear and {number} apples") for number in range(6)])

    @property
    def retriever_constructor(self) -> type[LikewiseRetriever]:
        return LikewiseRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"address": self._address, "mode": "hybrid"}

    @property
    def retriever_query_example(self) -> str:
        return "apples"


class Axes(Embeddings):
    """Texts such as "1 0 -1" are their own vectors."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(number) for number in text.split()] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Constant(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0]] * len(texts)

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


TEXTS = ["1 0", "0.8 0.6", "0.6 0.8", "0 1", "-1 0"]
METADATAS: list[dict[str, Any]] = [
    {"year": 2020, "lang": "en", "tags": ["a", "b"]},
    {"year": 2021, "lang": "de"},
    {"year": 2022, "lang": "en", "of": {"kind": "x"}},
    {"year": 2023},
    {"lang": "en", "draft": True},
]
IDS = ["a", "b", "c", "d", "e"]


@pytest.fixture
def store() -> Iterator[LikewiseVectorStore]:
    store = LikewiseVectorStore.from_texts(TEXTS, Axes(), METADATAS, ids=IDS)
    yield store
    store.close()


def written(metadata: dict[str, Any]) -> str:
    return json.dumps(metadata, sort_keys=True)


def ids_of(documents: list[LangChainDocument]) -> list[str | None]:
    return [document.id for document in documents]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("year >= 2021", "bcd"),
        ({"year": {">=": 2021}}, "bcd"),
        ('lang = "en" and not draft = true', "ac"),
        ({"lang": {"in": ["de"]}}, "b"),
        ('tags = "b"', "a"),
        ('of.kind = "x"', "c"),
        ({"exists": {"=": 1}}, ""),
        ("not exists year", "e"),
        ('lang != "en"', "b"),
        ('uri in ("a", "e")', "ae"),
        ({"or": [{"year": 2020}, {"year": 2023}]}, "ad"),
    ],
)
def test_a_filter_is_that_of_likewise(store: LikewiseVectorStore, where: Any, expected: str) -> None:
    assert ids_of(store.similarity_search("1 0", k=5, filter=where)) == list(expected)
    assert ids_of(store.similarity_search_by_vector([1, 0], k=5, filter=where)) == list(expected)
    assert set(ids_of(store.max_marginal_relevance_search("1 0", k=5, filter=where))) == set(expected)
    retriever = store.as_retriever(search_kwargs={"k": 5, "filter": where})
    assert ids_of(retriever.invoke("1 0")) == list(expected)


def test_a_wrong_filter_is_refused(store: LikewiseVectorStore) -> None:
    with pytest.raises(FilterError, match="cannot be compared"):
        store.similarity_search("1 0", filter="year = 'x'")
    with pytest.raises(FilterError):
        store.similarity_search("1 0", filter={"year": {"~": 1}})


@pytest.mark.parametrize(
    ("call", "given", "right"),
    [
        ("similarity_search", {"query": "1 0", "where": "year = 2020"}, "'where': give filter"),
        ("similarity_search_with_relevance_scores", {"query": "1 0", "filters": {}}, "'filters': give filter"),
        ("search", {"query": "1 0", "search_type": "mmr", "top_k": 1}, "'top_k': give k"),
        ("as_retriever", {"filter": "year = 2020"}, "'filter': give search_kwargs"),
        ("add_documents", {"documents": [], "uris": []}, "'uris': give ids"),
        ("delete", {"filter": "year = 2020"}, "'filter': it has ids"),
        ("from_texts", {"texts": [], "embedding": None, "path": "papers.index"}, "'path': give address"),
    ],
)
def test_an_unknown_argument_is_an_error_that_names_the_right_one(
    store: LikewiseVectorStore, call: str, given: dict[str, Any], right: str
) -> None:
    with pytest.raises(TypeError, match=right):
        getattr(store, call)(**given)


def test_a_retriever_of_the_store_takes_the_arguments_of_langchain(store: LikewiseVectorStore) -> None:
    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 1}, tags=["a"], metadata={"b": 1}, name="c")
    assert (retriever.search_type, retriever.search_kwargs, retriever.tags) == ("mmr", {"k": 1}, ["a"])
    assert (retriever.metadata, retriever.name) == ({"b": 1}, "c")


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ({"filter": 'cat = "lamp"'}, "'filter': give where"),
        ({"top_k": 2}, "'top_k': give k"),
        ({"search_kwargs": {"k": 2}}, "'search_kwargs': give where or k"),
        ({"detail": True}, "'detail': give details"),
    ],
)
async def test_a_retriever_refuses_unknown_arguments(
    tmp_path: Path, encoder: Any, given: dict[str, Any], right: str
) -> None:
    address = tmp_path / "an.index"
    with Index.create(address, encoder) as index:
        index.add([Document("a", "A lamp.", metadata={"cat": "lamp"}), Document("b", "A coat.", metadata={"cat": "x"})])
    with pytest.raises(TypeError, match=right):
        LikewiseRetriever(address=address, encoder=encoder, **given)
    retriever = LikewiseRetriever(address=address, encoder=encoder)
    if right.endswith(("where", "k")):
        with pytest.raises(TypeError, match=right):
            retriever.invoke("coat", **given)
        with pytest.raises(TypeError, match=right):
            await retriever.ainvoke("coat", **given)
    assert [each.id for each in await retriever.ainvoke("coat", where='cat = "lamp"')] == ["a"]


def test_scores_are_cosines_and_relevance_is_between_0_and_1(store: LikewiseVectorStore) -> None:
    scored = store.similarity_search_with_score("2 0", k=5)
    assert ids_of([document for document, _ in scored]) == IDS
    assert [score for _, score in scored] == pytest.approx([1, 0.8, 0.6, 0, -1], abs=1e-3)
    assert [score for _, score in scored if not (-1 <= score <= 1)] == []
    relevant = store.similarity_search_with_relevance_scores("2 0", k=5)
    assert [score for _, score in relevant] == pytest.approx([1, 0.9, 0.8, 0.5, 0], abs=1e-3)
    above = store.similarity_search_with_relevance_scores("2 0", k=5, score_threshold=0.85)
    assert ids_of([document for document, _ in above]) == ["a", "b"]


async def test_coroutines_give_the_same(store: LikewiseVectorStore) -> None:
    assert ids_of(await store.asimilarity_search("1 0", k=2, filter="year > 2020")) == ["b", "c"]
    assert ids_of(await store.amax_marginal_relevance_search("1 0", k=2)) == ids_of(
        store.max_marginal_relevance_search("1 0", k=2)
    )
    assert [score for _, score in await store.asimilarity_search_with_score("1 0", k=1)] == [1.0]


def test_marginal_relevance_is_that_of_the_framework(store: LikewiseVectorStore) -> None:
    rows = [[float(number) for number in text.split()] for text in TEXTS]
    for balance in (0.0, 0.3, 1.0):
        chosen = maximal_marginal_relevance(np.array([1.0, 0.0]), rows, balance, 3)  # type: ignore[arg-type]
        found = store.max_marginal_relevance_search("1 0", k=3, fetch_k=5, lambda_mult=balance)
        assert ids_of(found) == [IDS[position] for position in chosen]


def test_metadata_and_texts_come_back_equal() -> None:
    texts = ["", " ", "a\r\nb", "x" * 100_000, *["text"] * len(HARD)]
    metadatas = [*[{"n": 1}] * 4, *HARD]
    store = LikewiseVectorStore(Constant())
    ids = store.add_texts(texts, metadatas)
    expected = {id_: (text, metadata) for id_, text, metadata in zip(ids, texts, metadatas, strict=True)}
    for documents in (store.get_by_ids(ids), store.similarity_search("x", k=len(ids))):
        assert len(documents) == len(ids)
        for document in documents:
            assert (document.page_content, document.metadata) == expected[str(document.id)]
            assert written(document.metadata) == written(expected[str(document.id)][1])  # 1, 1.0 and True are equal
    store.close()


@pytest.mark.parametrize("metadata", REFUSED, ids=REFUSED_IDS)
def test_what_would_be_lost_is_refused(metadata: dict[Any, Any]) -> None:
    store = LikewiseVectorStore(Constant())
    with pytest.raises(BadInput, match="metadata"):
        store.add_texts(["good", "bad"], [{}, metadata], ids=["1", "2"])
    assert store.get_by_ids(["1", "2"]) == []
    store.close()


def test_wrong_numbers_of_ids_and_ids_that_come_twice_are_refused() -> None:
    store = LikewiseVectorStore(Constant())
    with pytest.raises(ValueError, match="1 ids were given for 2 texts"):
        store.add_texts(["a", "b"], ids=["1"])
    with pytest.raises(ValueError, match="3 metadatas"):
        store.add_texts(["a", "b"], [{}, {}, {}])
    with pytest.raises(BadInput, match="comes twice"):
        store.add_texts(["a", "b"], ids=["1", "1"])
    assert store.add_texts([]) == []
    mixed = store.add_documents([LangChainDocument(page_content="x", id="1"), LangChainDocument(page_content="y")])
    assert mixed[0] == "1"
    assert len(mixed[1]) == 36
    store.close()


def test_an_index_at_an_address_is_opened_again_and_a_temporary_one_is_deleted(tmp_path: Path) -> None:
    address = tmp_path / "kept.index"
    LikewiseVectorStore.from_texts(TEXTS, Axes(), METADATAS, ids=IDS, address=address).close()
    again = LikewiseVectorStore(Axes(), address)
    assert ids_of(again.similarity_search("0 1", k=1)) == ["d"]
    assert again.delete() is True
    assert again.similarity_search("0 1") == []
    again.close()
    temporary = LikewiseVectorStore(Axes())
    folder = Path(temporary.address)
    temporary.add_texts(["1 0"])
    assert folder.exists()
    del temporary
    assert not folder.exists()


def test_an_index_with_a_model_is_read_but_not_written(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "an.index", encoder) as index:
        index.add(Document("a", "a pear", metadata={"n": 1}))
    store = LikewiseVectorStore(Constant(), tmp_path / "an.index")
    with pytest.raises(BadInput, match="with its own model words"):
        store.add_texts(["x"])
    assert [document.metadata for document in store.get_by_ids(["a"])] == [{"n": 1}]
    store.close()


def test_a_retriever_asks_the_indexs_own_model_in_every_mode(tmp_path: Path, encoder: Any) -> None:
    address = tmp_path / "an.index"
    fruits = ["a ripe pear", "a green apple", "an apple and a pear", "a blue train"]
    with Index.create(address, encoder) as index:
        index.add([Document(text[-5:], text, "title", {"n": n}) for n, text in enumerate(fruits)])
    searcher = Searcher(address, encoder)
    for mode in ("dense", "words", "hybrid"):
        retriever = LikewiseRetriever(address=address, k=3, mode=mode, where="n < 3")  # type: ignore[arg-type]
        expected = searcher.search("green apple", 3, where="n < 3", mode=mode)  # type: ignore[arg-type]
        assert [(d.id, d.page_content, d.metadata) for d in retriever.invoke("green apple")] == [
            (hit.uri, hit.text, hit.metadata) for hit in expected
        ]
        assert len(retriever.invoke("green apple", k=1, where={"n": 3}, mode="dense")) == 1
    (found,) = LikewiseRetriever(address=address, k=1, details=True).invoke("train")
    assert found.metadata["n"] == 3
    assert found.metadata["likewise"]["title"] == "title"
    assert found.metadata["likewise"]["start"] == 0
    with pytest.raises(ValueError, match="mode"):
        LikewiseRetriever(address=address, mode="fuzzy")  # type: ignore[arg-type]
    with pytest.raises(FilterError):
        LikewiseRetriever(address=address, where="n <")
    with pytest.raises(NotAnIndex, match=r"^an index is a folder .* likewise\.client\.Client asks a service$"):
        LikewiseRetriever(address="http://localhost:8765")


def test_what_likewise_has_to_tell_is_logged(tmp_path: Path, encoder: Any, caplog: pytest.LogCaptureFixture) -> None:
    with Index.create(tmp_path / "an.index", encoder) as index:
        index.add(Document("a", "a ripe pear"))
    assert ids_of(LikewiseRetriever(address=tmp_path / "an.index").invoke("pear " * 40)) == ["a"]
    assert [record.levelname for record in caplog.records if "left out" in record.message] == ["WARNING"]


def test_the_example_of_the_docs_prints_what_it_says() -> None:
    printed, promised = run_example("langchain_core")
    assert printed == promised
    assert len(printed) == 2
