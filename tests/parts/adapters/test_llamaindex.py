"""LlamaIndex: every query mode and every filter against brute force, nodes that come back equal, and its own index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parts.adapters.examples import run_example
from parts.adapters.hard_metadata import HARD, REFUSED

pytest.importorskip("llama_index.core")

from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import BaseNode, ImageNode, IndexNode, MediaResource, Node, NodeRelationship, TextNode
from llama_index.core.schema import RelatedNodeInfo as Related
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from indexer import BadInput, Document, FilterError, Index
from likewise.adapters.llamaindex import LikewiseVectorStore
from search import Searcher

TEXTS = [
    "a ripe pear",
    "a green apple",
    "an apple and a pear",
    "a blue train",
    "the night train to the apple orchard",
    "",
]
METADATA: list[dict[str, Any]] = [
    {"n": 1, "lang": "en", "tags": ["a", "b"], "empty": ""},
    {"n": 2.5, "lang": "de", "tags": ["b"], "empty": []},
    {"n": -3, "lang": "en", "tags": []},
    {"lang": "fr", "tags": ["a", "c"], "empty": None},
    {"n": 10, "tags": ["c"], "empty": "full"},
    {"n": 2, "lang": "", "nested": {"deep": 7}},
]
ROWS = np.random.default_rng(7).normal(size=(6, 4))
QUESTION = [0.5, -1.0, 0.25, 2.0]


def nodes() -> list[TextNode]:
    found = []
    for number, (text, metadata, row) in enumerate(zip(TEXTS, METADATA, ROWS, strict=True)):
        node = TextNode(id_=f"n{number}", text=text, metadata=metadata, embedding=row.tolist())
        node.relationships[NodeRelationship.SOURCE] = Related(node_id=f"doc{number // 2}")
        found.append(node)
    return found


@pytest.fixture
def store() -> Iterator[LikewiseVectorStore]:
    store = LikewiseVectorStore()
    assert store.add(nodes()) == [f"n{number}" for number in range(6)]
    yield store
    store.close()


def asked(store: LikewiseVectorStore, mode: str = "default", k: int = 6, **settings: Any) -> tuple[list[str], Any]:
    query = VectorStoreQuery(
        query_embedding=QUESTION,
        query_str="apple train",
        similarity_top_k=k,
        mode=VectorStoreQueryMode(mode),
        **settings,
    )
    result = store.query(query)
    assert result.nodes is not None
    assert result.ids == [node.node_id for node in result.nodes]
    by_id = {node.node_id: node for node in nodes()}
    assert list(result.nodes) == [by_id[node_id] for node_id in result.ids]
    return result.ids, result.similarities


def cosines() -> dict[str, float]:
    question = np.array(QUESTION)
    lengths = np.linalg.norm(ROWS, axis=1) * np.linalg.norm(question)
    return {f"n{number}": float(cosine) for number, cosine in enumerate(ROWS @ question / lengths)}


def bm25() -> dict[str, float]:
    """BM25 with k1 1.2 and b 0.75."""
    words = [text.split() for text in TEXTS]
    average = sum(map(len, words)) / len(words)
    scores: dict[str, float] = {}
    for number, document in enumerate(words):
        score = 0.0
        for term in ("apple", "train"):
            holding = sum(term in other for other in words)
            weight = np.log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
            count = document.count(term)
            score += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(document) / average))
        if score:
            scores[f"n{number}"] = float(score)
    return scores


def best(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda node_id: -scores[node_id])


def test_default_ranks_by_cosine(store: LikewiseVectorStore) -> None:
    expected = cosines()
    ids, similarities = asked(store, k=4)
    assert ids == best(expected)[:4]
    assert similarities == pytest.approx([expected[node_id] for node_id in ids], abs=2e-3)


@pytest.mark.parametrize("mode", ["text_search", "sparse"])
def test_words_rank_by_bm25(store: LikewiseVectorStore, mode: str) -> None:
    expected = bm25()
    ids, similarities = asked(store, mode)
    assert set(ids) == set(expected) == {"n1", "n2", "n3", "n4"}
    assert ids == best(expected)
    assert similarities == pytest.approx([expected[node_id] for node_id in ids], rel=1e-4)
    assert asked(store, mode, k=2)[0] == ids[:2]
    assert asked(store, mode, sparse_top_k=1)[0] == ids[:1]
    stop = VectorStoreQuery(query_str="the of and", mode=VectorStoreQueryMode(mode))
    assert store.query(stop).nodes == []


def test_hybrid_is_that_of_likewise(store: LikewiseVectorStore) -> None:
    hits = Searcher(store.client.address).search("apple train", 6, mode="hybrid", vector=QUESTION)
    assert asked(store, "hybrid") == ([hit.uri for hit in hits], [hit.score for hit in hits])
    assert asked(store, "hybrid", hybrid_top_k=2)[0] == [hit.uri for hit in hits[:2]]


@pytest.mark.parametrize("threshold", [None, 0.0, 0.4, 1.0])
def test_mmr_chooses_near_nodes_that_differ(store: LikewiseVectorStore, threshold: float | None) -> None:
    rows = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    near, weight = cosines(), 0.5 if threshold is None else threshold
    chosen = best(near)[:1]
    while len(chosen) < 3:
        last = rows[int(chosen[-1][1:])]  # LlamaIndex looks at the node that was chosen last
        left = [node_id for node_id in near if node_id not in chosen]
        gains = {each: weight * near[each] - (1 - weight) * float(rows[int(each[1:])] @ last) for each in left}
        chosen.append(best(gains)[0])
    assert asked(store, "mmr", k=3, mmr_threshold=threshold)[0] == chosen


def test_a_query_that_cannot_be_answered_is_refused(store: LikewiseVectorStore) -> None:
    for mode in ("semantic_hybrid", "svm", "linear_regression", "logistic_regression"):
        with pytest.raises(ValueError, match="not supported"):
            asked(store, mode)
    with pytest.raises(ValueError, match="alpha"):
        asked(store, "hybrid", alpha=0.5)
    with pytest.raises(ValueError, match="query_embedding"):
        store.query(VectorStoreQuery(query_str="x"))
    with pytest.raises(ValueError, match="query_str"):
        store.query(VectorStoreQuery(query_embedding=QUESTION, mode=VectorStoreQueryMode.TEXT_SEARCH))
    with pytest.raises(ValueError, match="output_fields"):
        asked(store, output_fields=["text"])
    with pytest.raises(TypeError, match="prefetch"):
        store.query(VectorStoreQuery(query_embedding=QUESTION), prefetch=3)
    with pytest.raises(TypeError, match="'where': give filters"):
        store.get_nodes(where={"year": 2020})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'path': give address"):
        LikewiseVectorStore(path="papers.index")  # type: ignore[call-arg]


def only(key: str, op: FilterOperator, value: Any = None) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, operator=op, value=value)])


SCALAR: list[tuple[str, FilterOperator, Any]] = [
    (key, op, value)
    for key, values in (("n", [2, 2.5, -3]), ("lang", ["en", "", "zz"]))
    for value in values
    for op in (FilterOperator.EQ, FilterOperator.NE)
]
ORDERED: list[tuple[str, FilterOperator, Any]] = [
    (key, op, value)
    for key, value in (("n", 2), ("lang", "en"))
    for op in (FilterOperator.GT, FilterOperator.GTE, FilterOperator.LT, FilterOperator.LTE)
]
MATCHED: list[tuple[str, FilterOperator, Any]] = [
    ("lang", op, text)
    for op in (FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE)
    for text in ("e", "E", "EN", "%", "_n", "\\", "")
]
LISTED: list[tuple[str, FilterOperator, Any]] = [
    *((key, op, value) for op in (FilterOperator.IN, FilterOperator.NIN) for key, value in (("n", [2, 10]), ("n", []))),
    *(("lang", op, ["en", "fr"]) for op in (FilterOperator.IN, FilterOperator.NIN)),
    *(("tags", op, v) for op in (FilterOperator.ANY, FilterOperator.ALL) for v in (["a"], ["a", "b"], ["z"])),
    ("tags", FilterOperator.ANY, []),
    *(("tags", FilterOperator.CONTAINS, value) for value in ("a", "z")),
    *((key, FilterOperator.IS_EMPTY, None) for key in ("n", "lang", "tags", "empty", "unknown")),
    *(("unknown", op, "x") for op in (FilterOperator.EQ, FilterOperator.NE, FilterOperator.GT)),
]


@pytest.mark.parametrize("kind", [SCALAR, ORDERED, MATCHED, LISTED], ids=["scalars", "orderings", "texts", "lists"])
def test_a_filter_finds_what_llamaindexes_own_rules_find(store: LikewiseVectorStore, kind: list[Any]) -> None:
    for key, op, value in kind:
        filters = only(key, op, value)
        rule = build_metadata_filter_fn(lambda node_id: METADATA[int(node_id[1:])], filters)
        expected = [f"n{number}" for number in range(6) if rule(f"n{number}")]
        assert [node.node_id for node in store.get_nodes(filters=filters)] == expected, (key, op, value)
        assert set(asked(store, filters=filters)[0]) == set(expected), (key, op, value)


def test_every_operator_is_tested() -> None:
    tested = {op for kind in (SCALAR, ORDERED, MATCHED, LISTED) for _, op, _ in kind}
    assert set(FilterOperator) == tested


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (("and", ("n", ">", 1), ("lang", "==", "de")), "1"),
        (("or", ("n", ">", 5), ("lang", "==", "de")), "14"),
        (("not", ("n", ">", 1), ("lang", "==", "en")), "3"),
        ((None, ("n", ">", 1), ("lang", "==", "de")), "1"),
        (("and", ("n", "<", 5), ("not", ("lang", "==", "en"), ("n", "==", 2))), "1"),
        (("or", ("and", ("n", ">", 1), ("n", "<", 3)), ("not", ("or", ("n", "<", 100), ("lang", "==", "x")))), "135"),
        (("and", ("nested.deep", "==", 7)), "5"),
    ],
    ids=str,
)
def test_conditions_are_joined_to_any_depth(store: LikewiseVectorStore, filters: Any, expected: str) -> None:
    def built(part: Any) -> MetadataFilters | MetadataFilter:
        if len(part) == 3 and isinstance(part[1], str):
            return MetadataFilter(key=part[0], operator=FilterOperator(part[1]), value=part[2])
        condition = None if part[0] is None else FilterCondition(part[0])
        return MetadataFilters(filters=[built(each) for each in part[1:]], condition=condition)

    found = store.get_nodes(filters=built(filters))  # type: ignore[arg-type]
    assert [node.node_id for node in found] == [f"n{number}" for number in expected]


@pytest.mark.parametrize(
    "filters",
    [
        only("n", FilterOperator.TEXT_MATCH, "e"),
        only("lang", FilterOperator.TEXT_MATCH_INSENSITIVE, 3),
        only("n", FilterOperator.EQ, "2"),
        only("lang", FilterOperator.GT, 2),
        only("n", FilterOperator.EQ, [1]),
        only("n", FilterOperator.IN, 1),
        only("tags", FilterOperator.ALL, []),
        only("n", FilterOperator.EQ, None),
        only("", FilterOperator.EQ, 1),
        MetadataFilters(filters=[MetadataFilters(filters=[])]),
    ],
    ids=str,
)
def test_what_has_no_translation_is_refused(store: LikewiseVectorStore, filters: MetadataFilters) -> None:
    with pytest.raises(FilterError):
        asked(store, filters=filters)
    with pytest.raises(FilterError):
        store.delete_nodes(filters=filters)
    assert len(store.get_nodes()) == 6


def test_nodes_are_chosen_by_id_and_by_source(store: LikewiseVectorStore) -> None:
    order = best(cosines())
    assert asked(store, node_ids=["n4", "n0", "no"])[0] == [each for each in order if each in ("n0", "n4")]
    assert asked(store, doc_ids=["doc1"])[0] == [each for each in order if each in ("n2", "n3")]
    assert asked(store, node_ids=["n2"], doc_ids=["doc0"])[0] == []
    assert asked(store, node_ids=[], doc_ids=[])[0] == order
    assert store.get_nodes([]) == []
    assert [node.node_id for node in store.get_nodes(["n5", "no", "n1"])] == ["n5", "n1"]
    assert store.get_nodes() == nodes()
    both = store.get_nodes(["n0", "n1"], only("lang", FilterOperator.EQ, "de"))
    assert [node.node_id for node in both] == ["n1"]


def test_nodes_are_deleted(store: LikewiseVectorStore) -> None:
    def left() -> list[str]:
        return [node.node_id[1:] for node in store.get_nodes()]

    store.delete("doc1")
    assert left() == ["0", "1", "4", "5"]
    store.delete("no such document")
    store.delete_nodes(["n0", "no"])
    assert left() == ["1", "4", "5"]
    store.delete_nodes(filters=only("n", FilterOperator.GT, 5))
    assert left() == ["1", "5"]
    with pytest.raises(ValueError, match="clear"):
        store.delete_nodes()
    store.clear()
    assert left() == []
    assert store.query(VectorStoreQuery(query_embedding=QUESTION)).nodes == []


async def test_coroutines_do_the_same(store: LikewiseVectorStore) -> None:
    result = await store.aquery(VectorStoreQuery(query_embedding=QUESTION, similarity_top_k=2))
    assert result.ids == best(cosines())[:2]
    await store.adelete("doc0")
    await store.adelete_nodes(["n2"])
    assert [node.node_id for node in await store.aget_nodes()] == ["n3", "n4", "n5"]
    await store.aclear()
    assert await store.async_add(nodes()) == [f"n{number}" for number in range(6)]


def hard_nodes() -> list[BaseNode]:
    row = [0.1, 1 / 3, -2.0]
    related = Related(node_id="source", node_type="4", metadata={"a": [1]}, hash="h")
    return [
        *(TextNode(id_=f"hard{n}", text="text", metadata=m, embedding=row) for n, m in enumerate(HARD)),
        TextNode(id_="order", text="x", metadata={"b": 1, "a": 2, "c": {"z": 1, "y": 2}}, embedding=row),
        TextNode(
            id_="full",
            text="text\r\n",
            embedding=[1.0, 0.5, 0.25],
            start_char_idx=3,
            end_char_idx=9,
            excluded_embed_metadata_keys=["b"],
            excluded_llm_metadata_keys=["a"],
            metadata_separator="|",
            metadata_template="{key}={value}",
            text_template="{content}{metadata_str}",
            mimetype="text/x",
            relationships={NodeRelationship.SOURCE: related, NodeRelationship.CHILD: [related, related]},
        ),
        IndexNode(id_="index", text="x", index_id="other", embedding=row),
        ImageNode(id_="image", text="", image="aGVsbG8=", image_mimetype="image/png", embedding=row),
        Node(id_="node", text_resource=MediaResource(text="of a resource"), embedding=row),
    ]


def test_nodes_come_back_equal() -> None:
    store = LikewiseVectorStore()
    given = hard_nodes()
    store.add(given)
    found = store.get_nodes()
    assert found == hard_nodes() == given
    assert [type(node) for node in found] == [type(node) for node in given]
    assert [node.hash for node in found] == [node.hash for node in given]
    (order,) = store.get_nodes(["order"])
    assert list(order.metadata) == ["b", "a", "c"]
    assert list(order.metadata["c"]) == ["z", "y"]
    store.close()


class OtherNode(TextNode):
    extra: int = 1

    @classmethod
    def class_name(cls) -> str:
        return "OtherNode"


@pytest.mark.parametrize(
    "metadata", [m for m in REFUSED if all(isinstance(k, str) for k in m)], ids=lambda m: str([*m])
)
def test_what_would_be_lost_is_refused(metadata: dict[str, Any]) -> None:
    store = LikewiseVectorStore()
    with pytest.raises(BadInput):
        store.add(
            [TextNode(text="x", embedding=[1.0]), TextNode(id_="b", text="x", metadata=metadata, embedding=[1.0])]
        )
    assert store.get_nodes() == []
    store.close()


def test_nodes_that_cannot_be_kept_are_refused() -> None:
    store = LikewiseVectorStore()
    for node, message in (
        (OtherNode(text="x", embedding=[1.0]), r"^\S+: is a OtherNode, which is none of"),
        (TextNode(text="x", embedding=[1.0], metadata={"_llamaindex": 1}), "_llamaindex"),
        (TextNode(text="x", embedding=[0.0]), "only zeros"),
    ):
        with pytest.raises(BadInput, match=message):
            store.add([node])
    with pytest.raises(ValueError, match="embedding"):
        store.add([TextNode(text="x")])
    with pytest.raises(BadInput, match="comes twice"):
        store.add([TextNode(id_="a", text="x", embedding=[1.0])] * 2)
    assert store.add([]) == []
    assert store.get_nodes() == []
    store.close()


def test_llamaindexes_own_index_works_on_it(tmp_path: Path) -> None:
    address = tmp_path / "an.index"
    store = LikewiseVectorStore(address)
    context = StorageContext.from_defaults(vector_store=store)
    plain = [TextNode(id_=f"n{n}", text=text, metadata=METADATA[n]) for n, text in enumerate(TEXTS[:5])]
    index = VectorStoreIndex(plain, storage_context=context, embed_model=MockEmbedding(embed_dim=3))
    found = index.as_retriever(similarity_top_k=2, vector_store_query_mode="text_search").retrieve("green apples")
    assert [each.node.node_id for each in found][:1] == ["n1"]
    index.delete_nodes(["n1"])
    assert [node.node_id for node in LikewiseVectorStore(str(address)).get_nodes()] == ["n0", "n2", "n3", "n4"]
    again = LikewiseVectorStore.from_dict(store.to_dict())
    assert again.address == str(address)
    assert len(again.get_nodes()) == 4
    assert Searcher(address).count('lang = "en"') == 2
    store.close()


def test_an_index_with_a_model_is_read_but_not_written(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "an.index", encoder) as index:
        index.add(Document("a", "a pear", metadata={"n": 1}))
    store = LikewiseVectorStore(tmp_path / "an.index")
    assert store.get_nodes() == [TextNode(id_="a", text="a pear", metadata={"n": 1})]
    with pytest.raises(BadInput, match="its own model"):
        store.add(nodes())
    store.close()


def test_a_temporary_store_is_deleted_with_the_object() -> None:
    store = LikewiseVectorStore()
    folder = Path(store.client.address)
    store.add(nodes())
    store.query(VectorStoreQuery(query_embedding=QUESTION))
    assert folder.exists()
    del store
    assert not folder.exists()


def test_the_example_of_the_docs_prints_what_it_says() -> None:
    printed, promised = run_example("llama_index")
    assert printed == promised
    assert len(printed) == 2


def test_a_text_is_equal_to_the_same_text_alone_also_where_it_reads_as_a_date() -> None:
    store = LikewiseVectorStore()
    texts = ["2024-03-01", "1 March 2024", "2024-03-01T10:00:00"]
    nodes = [TextNode(id_=str(n), text="t", embedding=[1.0, 0.0], metadata={"day": day}) for n, day in enumerate(texts)]
    store.add(nodes)
    filters = MetadataFilters(filters=[MetadataFilter(key="day", value="2024-03-01")])
    assert [node.node_id for node in store.get_nodes(filters=filters)] == ["0"]


@pytest.mark.parametrize("mode", [VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.MMR])
def test_what_likewise_has_to_tell_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: VectorStoreQueryMode
) -> None:
    with Index.create(tmp_path / "x.index", dimensions=4) as index:
        index.add([Document(f"n{n}", text) for n, text in enumerate(TEXTS)], vectors=ROWS)
        index.compact()
    for segment in (tmp_path / "x.index" / "segments").iterdir():
        segment.write_bytes(b"damaged")
    store = LikewiseVectorStore(tmp_path / "x.index")
    store.query(VectorStoreQuery(query_embedding=QUESTION, similarity_top_k=2, mode=mode))
    assert ["answering from the catalog" in record.message for record in caplog.records] == [True]
