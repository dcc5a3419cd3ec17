"""likewise in Haystack: a DocumentStore, and retrievers by embedding and by words over it.

The fields of a document's `meta` are likewise's metadata, by which the shell and `search.Searcher` filter too. Other
values are kept beside the metadata under the one key `_haystack`. No field of a document may have this name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from os import PathLike, fspath
from typing import Any, Self

import numpy as np
from haystack import Document, component, default_from_dict, default_to_dict
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
from haystack.errors import FilterError
from numpy.typing import NDArray

import indexer
from indexer import BadInput
from indexer.filters.tree import ExactText
from likewise.adapters import storage
from search import Hit, Searcher

Condition = dict[str, Any]
"""A filter as likewise's mapping."""

_KEY = "_haystack"
_EMBEDDED: Condition = {f"metadata.{_KEY}.unembedded": {"exists": False}}
_UNFILTERED = ("content", "blob", "meta", "score", "embedding", "sparse_embedding")
_ORDERINGS = (">", ">=", "<", "<=")


_STORED_MODULE = "search.adapters.haystack"
"""The module that stored pipelines name: the public path, wherever this file is."""


@storage.strict
class LikewiseDocumentStore:
    """Documents with or without embeddings, ranked by cosine or by BM25. Share one among threads.

    Documents come back equal, with the embedding they were given. A document without an embedding is found by words and
    by filters.
    """

    __module__ = _STORED_MODULE

    def __init__(self, address: str | PathLike[str] | None = None) -> None:
        """Open or create an index.

        Args:
            address: address of the index. Without an address, the index is temporary and deleted with this object.

        Raises:
            BadInput: something that is not an index is there already.
        """
        self._address = None if address is None else fspath(address)
        self._index = storage.open_or_create(address)
        self._searcher = Searcher(self._index.address if address is None else address, unknown_fields="empty")

    def close(self) -> None:
        """Release connections and memory; delete a temporary index."""
        self._searcher.close()
        self._index.close()

    @property
    def address(self) -> str:
        """The address of the index, for `search.Searcher` and the shell."""
        return self._index.address

    def to_dict(self) -> dict[str, Any]:
        """Return the description that `from_dict` reads: the address. Without an address the new store is empty."""
        return default_to_dict(self, address=self._address)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LikewiseDocumentStore:
        """Return the store that `to_dict` described."""
        return default_from_dict(cls, data)

    # writing

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Write all documents in one call, or none.

        Args:
            policy: rule for an id that exists already or occurs twice: FAIL and NONE raise, SKIP keeps the first,
                OVERWRITE takes the last.

        Returns:
            How many documents were written; with OVERWRITE as many as were given.

        Raises:
            ValueError: these are not documents.
            DuplicateDocumentError: an id exists already, or occurs twice.
            BadInput: a document that would not come back as it was given, or an embedding of another width.
        """
        if not isinstance(documents, Iterable) or isinstance(documents, str):
            raise ValueError("give a list of Documents")
        documents = list(documents)
        if any(not isinstance(document, Document) for document in documents):
            raise ValueError("give a list of Documents")
        chosen: dict[str, Document] = {}
        with self._index.lock():
            for document in documents:
                if policy != DuplicatePolicy.OVERWRITE and (document.id in chosen or document.id in self._searcher):
                    if policy == DuplicatePolicy.SKIP:
                        continue
                    raise DuplicateDocumentError(f"ID '{document.id}' already exists; nothing was written")
                chosen[document.id] = document
            self._write(list(chosen.values()))
        return len(documents) if policy == DuplicatePolicy.OVERWRITE else len(chosen)

    def _write(self, documents: Sequence[Document]) -> None:
        """Write documents of distinct ids. A document without an embedding gets a vector that no search uses."""
        if not documents:
            return
        storage.require_own_vectors(self._index)
        stored = [_to_stored(document) for document in documents]
        given = next((len(document.embedding) for document in documents if document.embedding is not None), 0)
        width = self._index.settings.dimensions
        if given and width not in (0, given) and not self._searcher.count(_EMBEDDED):
            # No embedding is there that the width could have been taken from.
            written = {document.uri for document in stored}
            others = [document for document in self._searcher.documents() if document.uri not in written]
            rows = np.concatenate([_rows([None] * len(others), given), _rows([d.embedding for d in documents], given)])
            self._index.replace_all([*others, *stored], rows)
        else:
            rows = _rows([document.embedding for document in documents], given or width or 1)
            storage.log_notes(self._index.add(stored, rows).notes)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents by id; unknown ids are ignored."""
        self._index.remove(document_ids, missing_ok=True)

    def delete_all_documents(self) -> None:
        """Delete all documents. Embeddings that are written afterwards may have another width."""
        self.delete_by_filter({})

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that match, and return how many there were."""
        with self._index.lock():
            return self._index.remove([document.uri for document in self._matching(filters)], missing_ok=True)

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Merge these fields into the meta of the documents that match, and return how many there were."""
        with self._index.lock():
            found = self.filter_documents(filters)
            self._write([_with(document, meta={**document.meta, **meta}) for document in found])
        return len(found)

    # reading

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return self._searcher.count()

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Return how many documents match."""
        with _filter_errors():
            return self._searcher.count(_translated(filters))

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that match, in the order they were written.

        Haystack's filters mean what its documentation says, with these limits: only `id` and fields of `meta` can be
        filtered by, a list in `meta` satisfies a condition that one of its values satisfies, and an empty list or
        dictionary counts as None. Text is ordered if it is a date in ISO 8601, and dates are compared as points in
        time.

        Raises:
            FilterError: a filter that is not well formed, that compares values of two types, or has no translation.
        """
        return [_from_stored(document) for document in self._matching(filters)]

    def _matching(self, filters: dict[str, Any] | None) -> Iterator[indexer.Document]:
        with _filter_errors():
            yield from self._searcher.documents(_translated(filters))

    def embedding_retrieval(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        return_embedding: bool = True,
    ) -> list[Document]:
        """Return the documents whose embeddings are nearest, with the cosine as their score.

        Raises:
            FilterError: as `filter_documents`.
            BadInput: an embedding of another width than the documents'.
        """
        condition = _translated(filters)
        where = _EMBEDDED if condition is None else {"and": [condition, _EMBEDDED]}
        try:
            with _filter_errors():
                hits = storage.with_notes_logged(self._searcher.search_vector(query_embedding, top_k, where=where))
        except BadInput:
            if not self._searcher.count(_EMBEDDED):  # the width is that of no embedding
                return []
            raise
        found = [_from_hit(hit) for hit in hits]
        return found if return_embedding else [_with(document, embedding=None) for document in found]

    def bm25_retrieval(self, query: str, filters: dict[str, Any] | None = None, top_k: int = 10) -> list[Document]:
        """Return the documents that hold words of the question, with BM25 as their score.

        Raises:
            FilterError: as `filter_documents`.
            BadInput: an empty question.
        """
        with _filter_errors():
            return [_from_hit(hit) for hit in storage.by_words(self._searcher, query, top_k, _translated(filters))]

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Return each field of meta with its type: int, float, boolean or keyword."""
        types: dict[str, str] = {}
        for document in self._searcher.documents():
            for name, value in _meta(document.metadata).items():
                if value is not None:
                    kinds = {bool: "boolean", int: "int", float: "float"}
                    types[name] = kinds.get(type(value), "keyword")
        return {name: {"type": kind} for name, kind in types.items()}

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return the smallest and the largest value of a field; None if there is no value, or if values cannot be
        ordered."""
        values = [value for value in self._values(metadata_field, None) if isinstance(value, str | int | float)]
        if not values or len({isinstance(value, str) for value in values}) > 1:
            return {"min": None, "max": None}
        return {"min": min(values), "max": max(values)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Return a page of the different values of a field in the order of their text, and how many there are.

        Args:
            search_term: return only values that contain this text, in upper or lower case.
        """
        unique = {json.dumps(value, sort_keys=True): value for value in self._values(metadata_field, filters)}
        kept = [value for value in unique.values() if (search_term or "").lower() in str(value).lower()]
        kept.sort(key=lambda value: (str(value), type(value).__name__))
        return kept[from_ : from_ + size], len(kept)

    def count_unique_metadata_by_filter(self, filters: dict[str, Any], metadata_fields: list[str]) -> dict[str, int]:
        """Return how many different values each field has in the documents that match."""
        names = [name.removeprefix("meta.") for name in metadata_fields]
        unique: dict[str, set[str]] = {name: set() for name in names}
        for document in self._matching(filters):
            for name in names:
                if (value := document.metadata.get(name)) is not None:
                    unique[name].add(json.dumps(value, sort_keys=True))
        return {name: len(values) for name, values in unique.items()}

    def _values(self, field: str, filters: dict[str, Any] | None) -> list[Any]:
        name = field.removeprefix("meta.")
        values = [_meta(document.metadata).get(name) for document in self._matching(filters)]
        return [value for value in values if value is not None]

    # coroutines

    write_documents_async = storage.in_thread(write_documents)
    delete_documents_async = storage.in_thread(delete_documents)
    delete_all_documents_async = storage.in_thread(delete_all_documents)
    delete_by_filter_async = storage.in_thread(delete_by_filter)
    update_by_filter_async = storage.in_thread(update_by_filter)
    count_documents_async = storage.in_thread(count_documents)
    count_documents_by_filter_async = storage.in_thread(count_documents_by_filter)
    filter_documents_async = storage.in_thread(filter_documents)
    embedding_retrieval_async = storage.in_thread(embedding_retrieval)
    bm25_retrieval_async = storage.in_thread(bm25_retrieval)
    get_metadata_fields_info_async = storage.in_thread(get_metadata_fields_info)
    get_metadata_field_min_max_async = storage.in_thread(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = storage.in_thread(get_metadata_field_unique_values)
    count_unique_metadata_by_filter_async = storage.in_thread(count_unique_metadata_by_filter)


@storage.strict
class _Retriever:
    """The parameters of a retriever, and the form in which a pipeline stores them."""

    def __init__(
        self,
        document_store: LikewiseDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        """Set the defaults of `run`.

        Args:
            filters: only documents that match.
            top_k: how many documents, 1 or more.
            filter_policy: whether filters given to `run` replace these, or are merged with them.
        """
        _require_store(document_store)
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = filter_policy

    def to_dict(self) -> dict[str, Any]:
        """Return the description that `from_dict` reads."""
        parameters = {**vars(self), "document_store": self.document_store.to_dict()}
        own = {name: value for name, value in parameters.items() if not name.startswith("_")}
        return default_to_dict(self, **{**own, "filter_policy": self.filter_policy.value})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the retriever that `to_dict` described."""
        retriever: Self = default_from_dict(cls, _with_store(data))
        return retriever

    def _limits(self, filters: dict[str, Any] | None, top_k: int | None) -> tuple[dict[str, Any] | None, int]:
        """Return the filters and the number of documents for one call of `run`."""
        return apply_filter_policy(self.filter_policy, self.filters, filters), self.top_k if top_k is None else top_k


@component
@storage.strict
class LikewiseEmbeddingRetriever(_Retriever):
    """Finds the documents of a LikewiseDocumentStore whose embeddings are nearest to the embedding of a question."""

    __module__ = _STORED_MODULE

    def __init__(
        self,
        document_store: LikewiseDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        """Set the defaults of `run`.

        Args:
            filters: only documents that match.
            top_k: how many documents, 1 or more.
            return_embedding: return documents with their embeddings.
            filter_policy: whether filters given to `run` replace these, or are merged with them.
        """
        _Retriever.__init__(self, document_store, filters, top_k, filter_policy)  # `component` makes the class again.
        self.return_embedding = return_embedding

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the nearest documents under "documents", best first."""
        limits = self._limits(filters, top_k)
        return {"documents": self.document_store.embedding_retrieval(query_embedding, *limits, self.return_embedding)}

    run_async = storage.in_thread(run)


@component
@storage.strict
class LikewiseBM25Retriever(_Retriever):
    """Finds the documents of a LikewiseDocumentStore that hold words of a question."""

    __module__ = _STORED_MODULE

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the documents with words of the question under "documents", best first."""
        return {"documents": self.document_store.bm25_retrieval(query, *self._limits(filters, top_k))}

    run_async = storage.in_thread(run)


def _require_store(document_store: object) -> None:
    if not isinstance(document_store, LikewiseDocumentStore):
        raise TypeError(f"the document_store is not a LikewiseDocumentStore but {type(document_store).__name__}")


def _with_store(data: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a retriever, with the store and the policy themselves in place of their
    descriptions."""
    given = data["init_parameters"]
    store = LikewiseDocumentStore.from_dict(given["document_store"])
    policy = FilterPolicy.from_str(given.get("filter_policy", FilterPolicy.REPLACE.value))
    return {**data, "init_parameters": {**given, "document_store": store, "filter_policy": policy}}


# documents


def _to_stored(document: Document) -> indexer.Document:
    """Return a document as likewise stores it. Values that are not fields of `meta` are kept as JSON in a key without a
    value, so that filters cannot name them.
    """
    if _KEY in document.meta:
        raise BadInput(
            f"{document.id}: its meta has a field {_KEY}, under which this adapter keeps the rest: rename it"
        )
    storage.require_same(document.id, document.meta)
    rest: dict[str, Any] = {}
    if document.content is None:
        rest["content"] = None
    if document.score is not None:
        rest["score"] = document.score
    if document.embedding is not None:
        rest["embedding"] = storage.packed(document.embedding)
    if document.blob is not None:
        rest["blob"] = document.blob.to_dict()
    if document.sparse_embedding is not None:
        rest["sparse_embedding"] = document.sparse_embedding.to_dict()
    storage.require_same(document.id, rest)
    wall, instant = _dates(document.meta)
    own = {
        "unembedded": True if document.embedding is None else None,
        "wall": wall,
        "instant": instant,
        "rest": {json.dumps(rest): None} if rest else None,
    }
    kept = {name: value for name, value in own.items() if value}
    metadata = {**document.meta, _KEY: kept} if kept else document.meta
    return indexer.Document(document.id, document.content or "", metadata=metadata)


def _from_stored(document: indexer.Document) -> Document:
    return _restored(document.uri, document.text, document.metadata)


def _from_hit(hit: Hit) -> Document:
    return _with(_restored(hit.uri, hit.text, hit.metadata), score=hit.score if hit.cosine is None else hit.cosine)


def _restored(id_: str, text: str, metadata: Mapping[str, Any]) -> Document:
    kept = metadata.get(_KEY, {}).get("rest", {})
    rest = json.loads(next(iter(kept))) if kept else {}
    blob, sparse, embedding = rest.get("blob"), rest.get("sparse_embedding"), rest.get("embedding")
    return Document(
        id=id_,
        content=rest.get("content", text),
        meta=_meta(metadata),
        score=rest.get("score"),
        embedding=None if embedding is None else storage.unpacked(embedding),
        blob=None if blob is None else ByteStream.from_dict(blob),
        sparse_embedding=None if sparse is None else SparseEmbedding.from_dict(sparse),
    )


def _with(document: Document, **fields: Any) -> Document:
    """Return a copy with other fields. Haystack's documents must not be changed in place."""
    names = ("id", "content", "blob", "meta", "score", "embedding", "sparse_embedding")
    return Document(**{**{name: getattr(document, name) for name in names}, **fields})


def _meta(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name != _KEY}


def _rows(embeddings: Sequence[list[float] | None], width: int) -> NDArray[np.float64]:
    """Return the vectors of documents (n, width). A document without an embedding gets any vector: no search by
    embedding finds it."""
    rows = np.zeros((len(embeddings), width))
    rows[:, 0] = 1
    for row, embedding in zip(rows, embeddings, strict=True):
        if embedding is not None:
            if len(embedding) != width:
                raise BadInput(f"an embedding has {len(embedding)} dimensions where others have {width}")
            row[:] = embedding
    return rows


# dates: Haystack compares text that is a date in ISO 8601 as a point in time. A date without a time zone is taken to be
# in that of the date it is compared with, so that both the clock's time and the point in time are kept.


def _date(value: object) -> datetime | None:
    """Return the date that a value is. A text must begin with a whole date, as Haystack requires, and be ISO 8601."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or len(value) < 10 or value[4] != "-" or value[7] != "-":
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _wall(date: datetime) -> int:
    """Microseconds of the clock's time since the year 1."""
    return (date.replace(tzinfo=None) - datetime.min) // timedelta(microseconds=1)


def _instant(date: datetime) -> int | None:
    """Microseconds in UTC since the year 1; None for a date without a time zone."""
    offset = date.utcoffset()
    return None if offset is None else _wall(date) - offset // timedelta(microseconds=1)


def _dates(meta: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the dates in a meta under the same keys: all dates by the clock, and dates with a time zone as points in
    time."""
    wall: dict[str, Any] = {}
    instant: dict[str, Any] = {}
    for name, value in meta.items():
        if isinstance(value, dict):
            walls, instants = _dates(value)
            wall.update({name: walls} if walls else {})
            instant.update({name: instants} if instants else {})
        elif (date := _date(value)) is not None:
            wall[name] = _wall(date)
            if (point := _instant(date)) is not None:
                instant[name] = point
    return wall, instant


# filters


@contextmanager
def _filter_errors() -> Iterator[None]:
    """Raise Haystack's error for a filter, because programs for Haystack catch it."""
    try:
        yield
    except indexer.FilterError as error:
        raise FilterError(str(error)) from error


def _translated(filters: dict[str, Any] | None) -> Condition | None:
    return _condition(filters) if filters else None


def _condition(filters: Any) -> Condition:
    if not isinstance(filters, Mapping):
        raise FilterError(f"a filter is a dictionary, not {filters!r:.80}")
    if "operator" not in filters:
        raise FilterError(f"'operator' key missing in {filters}")
    if "field" in filters:
        return _comparison(filters)
    if "conditions" not in filters:
        raise FilterError(f"neither 'field' nor 'conditions' key in {filters}")
    operator, conditions = filters["operator"], filters["conditions"]
    if not isinstance(conditions, list) or not conditions:
        raise FilterError(f"'conditions' is not a list with a condition in {filters}")
    parts = [_condition(each) for each in conditions]
    if operator == "AND":
        return {"and": parts}
    if operator == "OR":
        return {"or": parts}
    if operator == "NOT":
        return {"not": {"and": parts}}
    raise FilterError(f"Unknown logical operator '{operator}'. Valid operators are: AND, NOT, OR")


def _comparison(condition: Mapping[str, Any]) -> Condition:
    field, operator = condition["field"], condition["operator"]
    if "value" not in condition:
        raise FilterError(f"'value' key missing in {condition}")
    if not isinstance(field, str) or field in _UNFILTERED:
        raise FilterError(f"documents are filtered by id and by fields of meta, not by {field!r}")
    value = condition["value"]
    path = field.removeprefix("meta.")
    if not path:
        raise FilterError(f"{field!r} names no field of meta")
    key = "uri" if field == "id" else f"metadata.{path}"
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise FilterError(f"'{operator}' needs a list, not {type(value).__name__}")
        some = {"or": [_equal(key, path, each) for each in value]} if value else _nothing(key)
        return some if operator == "in" else {"not": some}
    if operator == "==":
        return _equal(key, path, value)
    if operator == "!=":
        return {"not": _equal(key, path, value)}
    if operator not in _ORDERINGS:
        raise FilterError(f"Unknown comparison operator '{operator}'. Valid operators are: {', '.join(_OPERATORS)}")
    if value is None:
        return _nothing(key)
    if not isinstance(value, str | datetime):
        return {key: {operator: value}}
    date = _date(value)
    if date is None or key == "uri":
        raise FilterError(f"'{operator}' compares numbers and dates in ISO 8601, not {field} with {value!r:.80}")
    # The second holds for no document, and is refused if the field has no text.
    return {"or": [_when(path, operator, date), {"and": [{key: {">=": ""}}, {key: {"exists": False}}]}]}


_OPERATORS = ("==", "!=", *_ORDERINGS, "in", "not in")


def _nothing(key: str) -> Condition:
    return {"and": [{key: {"exists": True}}, {key: {"exists": False}}]}


def _equal(key: str, path: str, value: Any) -> Condition:
    if value is None:
        return {key: {"exists": False}}
    date = _date(value)
    if date is None or key == "uri":
        return {key: {"=": ExactText(value) if isinstance(value, str) else value}}
    same = [] if isinstance(value, datetime) else [{key: {"=": ExactText(value)}}]
    return {"or": [*same, _when(path, "=", date)]}


def _when(path: str, operator: str, date: datetime) -> Condition:
    by_clock = {f"metadata.{_KEY}.wall.{path}": {operator: _wall(date)}}
    point, key = _instant(date), f"metadata.{_KEY}.instant.{path}"
    if point is None:
        return by_clock
    return {"or": [{key: {operator: point}}, {"and": [{key: {"exists": False}}, by_clock]}]}
