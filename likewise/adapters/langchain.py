"""likewise in LangChain: a VectorStore for the vectors of an `Embeddings`, and a retriever over any index.

Filters have likewise's form: text such as `year >= 2020 and lang in ("en", "de")`, or a mapping.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from pydantic import ConfigDict, PrivateAttr

import indexer
from indexer import Filter
from likewise.adapters import storage
from search import Hit, Mode, Query, Searcher


@storage.strict
class LikewiseVectorStore(VectorStore):
    """Texts with the vectors of an `Embeddings`, ranked by cosine. Share one among threads."""

    def __init__(self, embedding: Embeddings, address: str | PathLike[str] | None = None) -> None:
        """Open or create an index.

        Args:
            embedding: embeds texts and questions.
            address: address of the index. Without an address, the index is temporary and deleted with this object.

        Raises:
            BadInput: something that is not an index is there already.
        """
        self._embedding = embedding
        self._index = storage.open_or_create(address)
        self._searcher = Searcher(self._index.address if address is None else address, unknown_fields="empty")

    def close(self) -> None:
        """Release connections and memory; delete a temporary index."""
        self._searcher.close()
        self._index.close()

    @property
    def address(self) -> str:
        """The address of the index, for `search.Searcher`, the shell and `LikewiseRetriever`."""
        return self._index.address

    @property
    def embeddings(self) -> Embeddings:
        """The `Embeddings` for texts and questions."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        address: str | PathLike[str] | None = None,
        **kwargs: Any,
    ) -> LikewiseVectorStore:
        """Return a store of these texts. Arguments and errors are those of `add_texts` and the class."""
        store = cls(embedding, address)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Embed and add texts. A text replaces the stored text with the same id.

        Args:
            metadatas: JSON values, one dictionary per text.
            ids: one per text; a missing id is drawn at random.

        Returns:
            The ids, in the order of the texts.

        Raises:
            ValueError: there are not as many metadatas or ids as texts.
            BadInput: an id occurs twice, or a text or metadata would not come back as it was given.
        """
        texts = list(texts)
        for name, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(texts):
                raise ValueError(f"{len(given)} {name} were given for {len(texts)} texts: give one per text, or none")
        storage.require_own_vectors(self._index)
        documents = [
            indexer.Document(uri=id_ or str(uuid.uuid4()), text=text, metadata=metadata or {})
            for text, metadata, id_ in zip(
                texts, metadatas or [{}] * len(texts), ids or [None] * len(texts), strict=True
            )
        ]
        for document in documents:
            storage.require_same(document.uri, document.metadata)
        if documents:
            storage.log_notes(self._index.add(documents, np.asarray(self._embedding.embed_documents(texts))).notes)
        return [document.uri for document in documents]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete texts by id; unknown ids are ignored. Without ids everything is deleted."""
        if ids is None:
            self._index.remove(where={"uri": {"exists": True}})
        else:
            self._index.remove(ids, missing_ok=True)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return texts by id, in that order; missing ones are left out."""
        return [
            Document(id=document.uri, page_content=document.text, metadata=dict(document.metadata))
            for document in self._searcher.get_many(ids)
        ]

    def similarity_search(self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any) -> list[Document]:
        """Return the k texts nearest to a question.

        Args:
            filter: as text or mapping. A field that no text has satisfies no condition.

        Raises:
            FilterError: a filter that does not parse, or compares a field with a value of another type.
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return the k texts nearest to a question with their cosines within [-1, 1], higher is nearer."""
        return [(_document(hit), _cosine(hit)) for hit in self._nearest(self._vector(query), k, filter)]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the k texts nearest to a vector."""
        return [_document(hit) for hit in self._nearest(np.asarray(embedding), k, filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return k of the fetch_k nearest texts, near to the question and different from one another.

        Args:
            lambda_mult: from 0, as different as possible, to 1, as near as possible.
        """
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return k of the fetch_k texts nearest to a vector, as `max_marginal_relevance_search` does."""
        question = np.asarray(embedding, dtype=np.float64)
        hits = self._nearest(question, max(k, fetch_k), filter)
        rows = [passages[(passages @ question).argmax()] for passages in (self._searcher.vectors(h.uri) for h in hits)]
        chosen = maximal_marginal_relevance(question, rows, lambda_mult, k) if rows else []
        return [_document(hits[position]) for position in chosen]

    def as_retriever(
        self,
        *,
        search_type: str = "similarity",
        search_kwargs: dict[str, Any] | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> VectorStoreRetriever:
        """Return a retriever over this store. `search_kwargs` has the arguments of each question, such as `filter`."""
        arguments = {"search_kwargs": search_kwargs or {}, "tags": tags, "metadata": metadata, "name": name}
        return super().as_retriever(search_type=search_type, **arguments)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Return the function that maps scores for `similarity_search_with_relevance_scores`: [-1, 1] to [0, 1]."""
        return lambda cosine: (1 + cosine) / 2

    def _vector(self, query: str) -> np.ndarray[Any, Any]:
        return np.asarray(self._embedding.embed_query(query))

    def _nearest(self, vector: np.ndarray[Any, Any], k: int, where: Filter | None) -> Sequence[Hit]:
        return storage.with_notes_logged(self._searcher.search_vector(vector, k, where=where))


class LikewiseRetriever(BaseRetriever):
    """Passages of an index, found with the index's own model, by meaning, by words, or by both.

    The `page_content` of a document is the passage that was found, `metadata` is that of its document, and `id` the
    document's uri. With `details` the metadata has one more key, "likewise": title, path, page, heading, line, start
    and end of the passage, score and cosine.

    Attributes:
        address: of the index.
        k: how many documents.
        where: a filter as text or mapping; None for all documents.
        mode: "dense", "words" or "hybrid".
        details: add what likewise knows of a passage to its metadata.
        encoder: needed only for an index that was made with an encoder of your own.

    Raises:
        NotAnIndex: there is no index at the address.
        BadInput: k, mode or where cannot be asked for.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    address: str | PathLike[str]
    k: int = 4
    where: Any = None
    mode: Mode = "dense"
    details: bool = False
    encoder: Any = None
    _searcher: Searcher = PrivateAttr()

    if not TYPE_CHECKING:  # which take the arguments from the members

        def __init__(self, **members: Any) -> None:
            storage.refuse_unknown(type(self).__name__, members, type(self).model_fields)
            super().__init__(**members)
            # Not in a validator of pydantic, which would make a ValidationError of BadInput.
            Query("-", self.k, self.where, self.mode)
            self._searcher = Searcher(fspath(self.address), self.encoder)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        where: Filter | None = None,
        mode: Mode | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return documents for `invoke`; k, where and mode may be given for one question."""
        storage.refuse_unknown(f"{type(self).__name__}.invoke", kwargs, ("k", "where", "mode"))
        hits = self._searcher.search(
            query,
            self.k if k is None else k,
            where=self.where if where is None else where,
            mode=self.mode if mode is None else mode,
        )
        return [_document(hit, details=self.details) for hit in storage.with_notes_logged(hits)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        """Return documents for `ainvoke`, with the arguments of `invoke`."""
        return await asyncio.to_thread(
            self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **kwargs
        )


def _document(hit: Hit, *, details: bool = False) -> Document:
    metadata = dict(hit.metadata)
    if details:
        names = ("title", "path", "page", "heading", "line", "start", "end", "score", "cosine")
        metadata["likewise"] = {name: getattr(hit, name) for name in names}
    return Document(id=hit.uri, page_content=hit.text, metadata=metadata)


def _cosine(hit: Hit) -> float:
    assert hit.cosine is not None, "dense hits have a cosine"
    return hit.cosine
