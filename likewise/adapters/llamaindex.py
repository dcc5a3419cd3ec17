"""likewise in LlamaIndex: a vector store that also answers by words and by both.

The metadata of a node is likewise's metadata, by which the shell and `search.Searcher` filter too. The rest of the node
is kept beside it under the one key `_llamaindex`. No field of a node's metadata may have this name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

import indexer
from indexer import BadInput, FilterError, Index
from indexer.filters.tree import ExactText
from likewise.adapters import storage
from search import Hit, Searcher

Condition = dict[str, Any]
"""A filter as likewise's mapping."""

_KEY = "_llamaindex"
_REF_DOC_ID = f"metadata.{_KEY}.ref_doc_id"
_NODES: dict[str, type[BaseNode]] = {
    kind.class_name(): kind for kind in (TextNode, Node, ImageNode, IndexNode, Document, ImageDocument)
}
_MODES = VectorStoreQueryMode
_MMR_PREFETCH = 4
"""Number of nodes that MMR chooses from for each requested node, as in LlamaIndex's other stores."""


@storage.strict
class LikewiseVectorStore(BasePydanticVectorStore):
    """Nodes with their embeddings, ranked by cosine, by BM25 or by both. Share one among threads.

    Nodes come back equal, with the embedding they were given.

    Attributes:
        address: of the index, as it was given.
    """

    stores_text: bool = True
    address: str | None = None
    _index: Index = PrivateAttr()
    _searcher: Searcher = PrivateAttr()

    def __init__(
        self, address: str | PathLike[str] | None = None, stores_text: bool = True, is_embedding_query: bool = True
    ) -> None:
        """Open or create an index.

        Args:
            address: address of the index. Without an address, the index is temporary and deleted with this object.
            stores_text, is_embedding_query: always True; LlamaIndex gives them when it makes a store from `to_dict()`.

        Raises:
            BadInput: something that is not an index is there already.
        """
        if not stores_text or not is_embedding_query:
            raise BadInput("stores_text and is_embedding_query are True: leave them out")
        super().__init__(stores_text=True)
        self.address = None if address is None else fspath(address)
        self._index = storage.open_or_create(address)
        self._searcher = Searcher(self._index.address if address is None else address, unknown_fields="empty")

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex writes this class."""
        return "LikewiseVectorStore"

    @property
    def client(self) -> Index:
        """The index; a temporary index has an address too."""
        return self._index

    def close(self) -> None:
        """Release connections and memory; delete a temporary index."""
        self._searcher.close()
        self._index.close()

    # writing

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes with their embeddings. A node replaces the stored node with the same id.

        Returns:
            The ids, in the order of the nodes.

        Raises:
            ValueError: a node has no embedding.
            BadInput: an id occurs twice, or a node would not come back as it was given.
        """
        if nodes:
            storage.require_own_vectors(self._index)
            rows = [np.array(node.get_embedding()) for node in nodes]
            storage.log_notes(self._index.add([_to_stored(node) for node in nodes], rows).notes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of one source document."""
        self._remove({_REF_DOC_ID: ref_doc_id})

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by filter, or by both: then a node must have one of the ids and match the filter. Unknown
        ids are ignored.

        Raises:
            ValueError: neither ids nor a filter were given.
            FilterError: as `query`.
        """
        if node_ids is None and filters is None:
            raise ValueError("give node_ids or filters; clear() deletes everything")
        self._remove(self._where(node_ids, None, filters))

    def clear(self) -> None:
        """Delete all nodes."""
        self._remove(None)

    def _remove(self, where: Condition | None) -> None:
        with self._index.lock():
            self._index.remove([document.uri for document in self._searcher.documents(where)], missing_ok=True)

    # reading

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes by id, in that order, or by filter, in the order they were added; without either, all.

        Raises:
            FilterError: as `query`.
        """
        if node_ids is not None and filters is None:
            found = self._searcher.get_many(node_ids)
        else:
            found = list(self._searcher.documents(self._where(node_ids, None, filters)))
        return [_from_stored(document.uri, document.text, document.metadata) for document in found]

    def query(
        self, query: VectorStoreQuery, mmr_prefetch_k: int | None = None, **kwargs: Any
    ) -> VectorStoreQueryResult:
        """Answer a query.

        DEFAULT ranks by cosine, TEXT_SEARCH and SPARSE by BM25, HYBRID by both, and MMR chooses near nodes that differ
        from one another. In HYBRID likewise finds the weight of both itself, so `alpha` is refused.

        A filter on a list in the metadata holds if it holds for one of its values; a field with null, an empty list
        or an empty dictionary is missing.

        Args:
            mmr_prefetch_k: number of nodes that MMR chooses from; four for each requested node.

        Raises:
            ValueError: another mode, or a query that lacks what the mode needs.
            FilterError: a filter that compares a field with a value of another type.
        """
        if query.output_fields is not None or query.embedding_field is not None:
            raise ValueError("output_fields and embedding_field are not supported: leave them out")
        # LlamaIndex's own index gives empty lists for "no restriction".
        where = self._where(query.node_ids or None, query.doc_ids or None, query.filters)
        k = query.similarity_top_k
        if query.mode == _MODES.DEFAULT:
            return _result(storage.with_notes_logged(self._searcher.search_vector(_vector(query), k, where=where)))
        if query.mode == _MODES.MMR:
            return self._diverse(query, where, mmr_prefetch_k or _MMR_PREFETCH * k)
        if query.mode in (_MODES.TEXT_SEARCH, _MODES.SPARSE):
            return _result(storage.by_words(self._searcher, _text(query), query.sparse_top_k or k, where))
        if query.mode == _MODES.HYBRID:
            if query.alpha is not None:
                raise ValueError("alpha is not supported: likewise weighs words and embeddings itself: leave it out")
            k = query.hybrid_top_k or k
            return _result(
                storage.with_notes_logged(
                    self._searcher.search(_text(query), k, where=where, mode="hybrid", vector=_vector(query))
                )
            )
        raise ValueError(f"mode {query.mode} is not supported: use DEFAULT, TEXT_SEARCH, SPARSE, HYBRID or MMR")

    def _diverse(self, query: VectorStoreQuery, where: Condition | None, depth: int) -> VectorStoreQueryResult:
        vector = _vector(query)
        near = storage.with_notes_logged(
            self._searcher.search_vector(vector, max(depth, query.similarity_top_k), where=where)
        )
        hits = {hit.uri: hit for hit in near}
        if not hits:
            return _result(())
        scores, ids = get_top_k_mmr_embeddings(
            vector,
            [self._searcher.vectors(uri)[0].tolist() for uri in hits],
            similarity_top_k=query.similarity_top_k,
            embedding_ids=list(hits),
            mmr_threshold=query.mmr_threshold,
        )
        return _result([hits[uri] for uri in ids], scores)

    def _where(
        self, node_ids: list[str] | None, doc_ids: list[str] | None, filters: MetadataFilters | None
    ) -> Condition | None:
        parts: list[Condition] = []
        if node_ids is not None:
            parts.append({"uri": {"in": node_ids}})
        if doc_ids is not None:
            parts.append({_REF_DOC_ID: {"in": doc_ids}})
        if filters is not None and filters.filters:
            parts.append(self._joined(filters))
        return {"and": parts} if parts else None

    def _joined(self, filters: MetadataFilters) -> Condition:
        parts = [
            self._joined(each) if isinstance(each, MetadataFilters) else self._condition(each)
            for each in filters.filters
        ]
        if not parts:
            raise FilterError("a MetadataFilters within another one is empty: leave it out")
        if filters.condition == FilterCondition.OR:
            return {"or": parts}
        if filters.condition == FilterCondition.NOT:
            return {"not": {"or": parts}}
        return {"and": parts}

    def _condition(self, each: MetadataFilter) -> Condition:
        """Translate one filter with the meaning of LlamaIndex's own store: a missing field satisfies only NE, NIN and
        IS_EMPTY."""
        if not each.key:
            raise FilterError("a filter has an empty key: name a field of the metadata")
        key, operator, value = f"metadata.{each.key}", each.operator, _exact(each.value)
        if operator == FilterOperator.IS_EMPTY:
            missing = {key: {"exists": False}}
            return {"or": [missing, {key: ""}]} if self._holds_text(key) else missing
        if value is None:
            raise FilterError(f"the filter on {each.key!r} has no value: only IS_EMPTY needs none")
        if operator in _LISTED:
            if not isinstance(value, list):
                raise FilterError(f"{operator.name} needs a list, and {each.key!r} has {value!r:.80}")
            if operator == FilterOperator.ALL:
                if not value:
                    raise FilterError(f"ALL of no values has no translation: give {each.key!r} a list of values")
                return {"and": [{key: one} for one in value]}
            some: Condition = {key: {"in": value}}
            return {"not": some} if operator == FilterOperator.NIN else some
        if operator == FilterOperator.NE:
            return {"not": {key: value}}
        if operator in _COMPARED:
            return {key: {_COMPARED[operator]: value}}
        if operator in _TEXT_MATCHES and isinstance(each.value, str):
            pattern = re.sub(r"([%_\\])", r"\\\1", each.value)
            return {
                key: {"contains": each.value} if operator == FilterOperator.TEXT_MATCH else {"like": f"%{pattern}%"}
            }
        raise FilterError(f"{operator.name} does not accept the value {each.value!r:.80}")

    def _holds_text(self, key: str) -> bool:
        """Return whether some node has text in this field. Only then may the field be compared with text."""
        try:
            self._searcher.count({key: ""})
        except FilterError:
            return False
        return True

    async_add = storage.in_thread(add)
    adelete = storage.in_thread(delete)
    adelete_nodes = storage.in_thread(delete_nodes)
    aclear = storage.in_thread(clear)
    aget_nodes = storage.in_thread(get_nodes)
    aquery = storage.in_thread(query)


def _exact(value: Any) -> Any:
    """Return the value of a filter with texts as LlamaIndex compares them, so that no text is a date."""
    if isinstance(value, list):
        return [_exact(each) for each in value]
    return ExactText(value) if isinstance(value, str) else value


_TEXT_MATCHES = (FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE)
_LISTED = (FilterOperator.IN, FilterOperator.NIN, FilterOperator.ANY, FilterOperator.ALL)
_COMPARED = {
    FilterOperator.EQ: "=",
    FilterOperator.CONTAINS: "=",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
}


def _to_stored(node: BaseNode) -> indexer.Document:
    """Return a node as likewise stores it. The rest of the node is kept as JSON in a key without a value, so that
    filters cannot name it. The metadata are kept there too, because their order counts in LlamaIndex.
    """
    if _KEY in node.metadata:
        raise BadInput(f"{node.node_id}: its metadata has a field {_KEY}, which the adapter needs: rename it")
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    own: dict[str, Any] = {} if node.ref_doc_id is None else {"ref_doc_id": node.ref_doc_id}
    metadata = {**node.metadata, _KEY: own}
    try:
        kept = node.model_dump(mode="json")
        kept["embedding"] = storage.packed(node.get_embedding())
        if kept.get("text") == text:
            del kept["text"]
        own["node"] = {json.dumps(kept): None}
        same = _from_stored(node.node_id, text, metadata) == node
    except BadInput:
        raise
    except (TypeError, ValueError) as error:
        raise BadInput(f"{node.node_id}: the node cannot be written as JSON and read back: {error}") from error
    if not same:
        raise BadInput(
            f"{node.node_id}: the {type(node).__name__} would not come back as it is: its metadata may hold text, "
            "numbers, booleans, None, lists and dictionaries with text as keys"
        )
    return indexer.Document(node.node_id, text, metadata=metadata)


def _from_stored(uri: str, text: str, metadata: Mapping[str, Any]) -> BaseNode:
    if _KEY not in metadata:  # not written by this adapter
        return TextNode(id_=uri, text=text, metadata=dict(metadata))
    kept = json.loads(next(iter(metadata[_KEY]["node"])))
    kind = _NODES.get(kept["class_name"])
    if kind is None:
        raise BadInput(f"{uri}: is a {kept['class_name']}, which is none of {', '.join(_NODES)}")
    kept["embedding"] = storage.unpacked(kept["embedding"])
    if "text" in kind.model_fields:
        kept.setdefault("text", text)
    return kind.from_dict(kept)


def _result(hits: Sequence[Hit], scores: Sequence[float] | None = None) -> VectorStoreQueryResult:
    nodes = [_from_stored(hit.uri, hit.text, hit.metadata) for hit in hits]
    similarities = [hit.score for hit in hits] if scores is None else list(scores)
    return VectorStoreQueryResult(nodes=nodes, similarities=similarities, ids=[hit.uri for hit in hits])


def _vector(query: VectorStoreQuery) -> list[float]:
    if query.query_embedding is None:
        raise ValueError(f"a query in mode {query.mode.value} needs a query_embedding")
    return query.query_embedding


def _text(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        raise ValueError(f"a query in mode {query.mode.value} needs a query_str")
    return query.query_str
