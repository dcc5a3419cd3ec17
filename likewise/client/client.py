"""`Client`: an index that `likewise serve` serves, with the methods, answers and errors of `Searcher` and `Index`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np

from indexer import errors
from indexer.errors import BadInput, IndexUnavailable, LikewiseError, NotAnIndex, NotPermitted, UnknownField, UnknownUri
from indexer.filters.mapping import Filter, filter_tree
from indexer.filters.tree import Where, render
from indexer.indexing.batches import Incoming, Spans, Vectors, read_documents
from indexer.lookup import is_uri, read_removal, unknown_uri
from indexer.records import Changes, Document, Section
from indexer.stores.port import Info
from search.asker import Asker, as_list, hits_above
from search.hits.hits import Hit, Hits
from search.hits.rerank import rerank
from search.query.query import SENT_MEMBERS, Query, as_query

_TIMEOUT = httpx.Timeout(60.0)
"""Seconds to wait for each part of an answer. The service itself ends a question after 20."""
_KEEP_ALIVE_S = 2.0
"""Seconds for which an idle connection is used again. Services close idle connections after 5 seconds."""
_MAX_BATCH = 100
_MAX_BATCH_HITS = 10_000
_MAX_BATCH_BYTES = 900_000
"""Maximum questions or uris of a request, hits that its questions ask for, and bytes of them as JSON: the limits of the
service, with room for the other members. Documents are sent in requests of as many bytes, and embedded in seconds."""
_MAX_DOCUMENTS_BYTES = 16_000_000
"""Maximum bytes of a request that writes: the limit of the service, with some room."""
_WRITE_TIMEOUT = httpx.Timeout(60.0, read=1800.0)
"""Seconds to wait until documents are embedded and stored."""

_BY_SLUG: Mapping[str, type[LikewiseError]] = {
    # Of two classes with one slug the later one: a service does not say why an index is unavailable.
    **{
        kind.slug: kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, LikewiseError) and "slug" in vars(kind)
    },
    "bad-input": BadInput,
    "no-model": BadInput,
    "text-too-long": LikewiseError,  # the answer does not have the numbers of tokens
    "unknown-index": NotAnIndex,
}
_BY_STATUS = {401: NotPermitted, 403: NotPermitted, 502: IndexUnavailable, 503: IndexUnavailable, 504: IndexUnavailable}


class Client(Asker):
    """Searches and reads an index over HTTP. Share one among threads. See `Searcher` for the methods.

    Filters and arguments are checked here, before anything is sent; a reranker runs here too. Every request sees the
    newest commit, so the pages of `documents`, and the parts of a long `search_many` or `get_many`, may see several.
    Questions and filters are limited as for every client of the service: for example, `k` is at most 1,000.
    """

    def __init__(self, url: str, token: str | None = None, index: str | None = None) -> None:
        """Prepare to ask a service. Nothing is sent yet.

        Args:
            url: address of the service, such as "http://localhost:8765".
            token: the token of the service, if it asks for one.
            index: name of the index; may be left out if the service has only one.

        Raises:
            BadInput: this cannot be the address of a service.
        """
        self._url, self._index = url.rstrip("/"), index
        try:
            parsed = httpx.URL(self._url)
        except httpx.InvalidURL:
            parsed = httpx.URL()
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise BadInput(f"{url!r} is not the address of a service: give one such as http://localhost:8765")
        headers = [] if token is None else [(b"Authorization", f"Bearer {token.strip()}".encode())]
        limits = httpx.Limits(keepalive_expiry=_KEEP_ALIVE_S)
        self._http = httpx.Client(base_url=self._url, headers=headers, timeout=_TIMEOUT, limits=limits)

    def close(self) -> None:
        self._http.close()

    def answer(self, query: Query) -> Hits:
        return self._ranked(query, lambda members: self._post("search", members))

    def search_indexes(self, indexes: Sequence[str] | None, query: Query | str) -> Hits:
        """Return the best hits of these indexes of the service, or of all, in one ranking: see `search.search_indexes`.

        A text is asked in dense mode.

        Raises:
            NotAnIndex: one of the names is not served.
        """
        names = {} if indexes is None else {"indexes": as_list(indexes, "names", "answer")}
        return self._ranked(
            as_query(query), lambda members: self._send("POST", "/v1/search", json={**members, **names})
        )

    def _ranked(self, query: Query, send: Callable[[Mapping[str, Any]], Any]) -> Hits:
        first = query
        if query.rerank is not None:
            first = replace(query, k=query.depth, rerank=None, min_score=None)
        members = {name: getattr(first, name) for name in SENT_MEMBERS} | _ranking_members(first)
        members |= {"query": first.text or None, "where": _text(first.condition), "vector": _row(first)}
        members |= {name: bool(members[name]) for name in ("explain", "fold", "literal")}
        hits = _hits(send(members))
        if query.rerank is None:
            return hits
        return hits_above(rerank(hits, query.rerank, query.words, query.k), query.min_score)

    def _answer_many(self, questions: Sequence[Query]) -> list[Hits]:
        first = questions[0]
        parts = [{"queries": one.text, "where": _text(one.condition), "vectors": _row(one)} for one in questions]
        answers = list[Hits]()
        for batch in _batches(parts, min(_MAX_BATCH, _MAX_BATCH_HITS // first.k)):
            members = {name: [part[name] for part in batch] for name in batch[0]}
            if first.row is None:
                del members["vectors"]
            answers += map(_hits, self._post("search-many", members | _ranking_members(first))["answers"])
        return answers

    def similar(self, uri: str, k: int = 10, *, where: Filter | None = None) -> Hits:
        query = Query("-", k, where)
        try:
            members = {"uri": self._known(uri), "k": query.k, "where": _text(query.condition)}
            return _hits(self._post("similar", members))
        except UnknownUri:
            raise unknown_uri(self._url, uri) from None

    def get(self, uri: str) -> Document:
        try:
            return _document(self._get("document", {"uri": self._known(uri)}))
        except UnknownUri:
            raise unknown_uri(self._url, uri) from None

    def get_many(self, uris: Iterable[str]) -> list[Document]:
        documents = list[Document]()
        for batch in _batches([uri for uri in as_list(uris, "uris", "get") if uri and is_uri(uri)], _MAX_BATCH):
            left = batch
            while left:
                answer = self._post("get-many", {"uris": left})
                documents += map(_document, answer["documents"])
                left = left[len(left) - answer["left"] :]
        return documents

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        return self._documents(_parameters(where))

    def _documents(self, asked: Mapping[str, str]) -> Iterator[Document]:
        cursor: Mapping[str, str] = {}
        while True:
            page = self._get("documents", {**asked, **cursor})
            yield from map(_document, page["documents"])
            if page["cursor"] is None:
                return
            cursor = {"cursor": page["cursor"]}

    def count(self, where: Filter | None = None) -> int:
        return int(self._get("count", _parameters(where))["documents"])

    def info(self) -> Info:
        answer = self._get("info", {})
        fields = {name: tuple(types) for name, types in answer["fields"].items()}
        segments, dates = tuple(answer["segments"]), tuple(answer["dates"])
        return Info(**_members(Info, answer) | {"fields": fields, "segments": segments, "dates": dates})

    def add(
        self, documents: Iterable[Document] | Document, vectors: Vectors | None = None, *, spans: Spans | None = None
    ) -> Changes:
        """Add new documents, replace changed documents, and leave equal documents as they are, as `Index.add` does.

        The documents are sent in several requests. Those of each are durable and searchable when it is answered.

        Raises:
            BadInput: a document or vector cannot be stored, or a document has a path; documents before it may be stored
                already.
            NotPermitted: the service is read-only.
        """
        incoming, notes = read_documents(documents, vectors, spans, 0)
        changes = Changes(notes=notes)
        parts = list(_to_send(incoming, vectors, spans))
        for batch in _batches(parts, len(parts)):
            changes += self._put(batch)
        return changes

    def replace_all(
        self, documents: Iterable[Document] | Document, vectors: Vectors, *, spans: Spans | None = None
    ) -> Changes:
        """Replace all documents by documents with their own vectors, in one step, as `Index.replace_all` does.

        Raises:
            BadInput: the index has a model, a document or vector cannot be stored, or all together have more than 16
                MB, because they are sent in one request; nothing was changed.
            NotPermitted: the service is read-only.
        """
        incoming, _ = read_documents(documents, vectors, spans, 0)
        return self._put(list(_to_send(incoming, vectors, spans)), replace_all=True)

    def remove(
        self, uris: Iterable[str] | str | None = None, *, where: Filter | None = None, missing_ok: bool = False
    ) -> int:
        """Remove documents by uri or by filter, in one commit, and return how many there were, as `Index.remove` does.

        Raises:
            NotPermitted: the service is read-only.
        """
        chosen = read_removal(uris, where)
        if isinstance(chosen, list):
            sent = [uri for uri in chosen if is_uri(uri) and uri]
            if not missing_ok and len(sent) < len(chosen):
                unknown = next(uri for uri in chosen if uri not in sent)
                raise UnknownUri(f"{self._url}: has no document {unknown!r}; nothing was removed")
            body: dict[str, Any] = {"uris": sent, "missing_ok": missing_ok}
        else:
            body = {"where": render(chosen)}
        return int(self._write("DELETE", body | {"yes": True})["removed"])

    def _put(self, parts: Sequence[Mapping[str, Any]], **members: bool) -> Changes:
        documents = {name: [part[name] for part in parts] for name in (parts[0] if parts else ("documents",))}
        answer = _members(Changes, self._write("PUT", {**documents, **members}))
        return Changes(**{name: tuple(values) for name, values in answer.items()})

    def _write(self, method: str, body: Mapping[str, Any]) -> Any:
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        if len(content) > _MAX_DOCUMENTS_BYTES:
            size = f"the request has {len(content):,} bytes, and {_MAX_DOCUMENTS_BYTES:,} is the limit"
            raise BadInput(f"{self._url}: {size}: send less, or change the index on its own machine")
        return self._send(method, f"{self._path()}/documents", content=content, timeout=_WRITE_TIMEOUT)

    def _known(self, uri: str) -> str:
        if not uri or not is_uri(uri):
            raise unknown_uri(self._url, uri)
        return uri

    def _get(self, route: str, parameters: Mapping[str, str]) -> Any:
        return self._send("GET", f"{self._path()}/{route}", params=parameters)

    def _post(self, route: str, body: Mapping[str, Any]) -> Any:
        return self._send("POST", f"{self._path()}/{route}", json=body)

    def _path(self) -> str:
        """Return the path of the index. Without a name, ask once which index is served."""
        if self._index is None:
            names = [served["name"] for served in self._send("GET", "/v1/indexes")["indexes"]]
            if len(names) != 1:
                raise BadInput(f"{self._url}: several indexes are served: name one as index: {', '.join(names)}")
            (self._index,) = names
        return f"/v1/indexes/{quote(self._index, safe='')}"

    def _send(self, method: str, path: str, **content: Any) -> Any:
        """Return the answer to a request as JSON.

        Raises:
            NotPermitted: the service wants another token.
            IndexUnavailable: the service cannot be reached, or does not answer in time.
            LikewiseError: the error with which the service has answered, of the same class as in the service.
        """
        if self._http.is_closed:
            raise BadInput(f"{self._url}: this Client is closed: make another")
        try:
            response = self._http.request(method, path, **content)
        except httpx.InvalidURL as error:
            raise BadInput(f"{self._url}: the filter or the uri is too long for an address: ask in parts") from error
        except httpx.TimeoutException as error:
            waited = f"did not answer within {content.get('timeout', _TIMEOUT).read:g} seconds"
            raise IndexUnavailable(f"{self._url}: {waited}: ask again later") from error
        except httpx.TransportError as error:
            raise IndexUnavailable(
                f"{self._url}: the service cannot be reached ({error}): start it, or check its address"
            ) from error
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.is_success and isinstance(answer, dict):
            if path != "/v1/indexes" or "indexes" in answer:
                return answer
            answer = None
        raise self._error(response, answer if isinstance(answer, dict) and "slug" in answer else {})

    def _error(self, response: httpx.Response, problem: Mapping[str, Any]) -> LikewiseError:
        status = response.status_code
        message = problem.get("detail", f"status {status}, and not an answer of likewise: check the address")
        if (kind := _BY_SLUG.get(problem.get("slug", ""))) is None:
            kind = _BY_STATUS.get(status, LikewiseError)
            message = f"{self._url}: {message}"
        if status == httpx.codes.UNAUTHORIZED:
            message += ": give the token of the service as token="
        return UnknownField(message, problem["field"]) if kind is UnknownField else kind(message)


def _batches(values: Sequence[Any], most: int) -> Iterator[list[Any]]:
    """Yield the values in lists that fit into one request: at least one value, at most `most`."""
    batch, size = list[Any](), 0
    for value in values:
        bytes_of_value = len(json.dumps(value))
        if batch and (len(batch) >= most or size + bytes_of_value > _MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(value)
        size += bytes_of_value
    if batch:
        yield batch


def _to_send(incoming: Sequence[Incoming], vectors: Vectors | None, spans: Spans | None) -> Iterator[dict[str, Any]]:
    """Yield the members of a request for each document: the document, and its vectors and spans if it brings any."""
    for number, (document, _) in enumerate(incoming):
        if document.path is not None:
            raise BadInput(f"{document.uri}: has a path, which a service takes from no client: leave its path out")
        members = {name: value for name, value in asdict(document).items() if name != "path"}
        part: dict[str, Any] = {"documents": members}
        if vectors is not None:
            # The shortest decimals that are read as the same float32.
            part["vectors"] = np.asarray(vectors[number], np.float32).astype(str).astype(np.float64).tolist()
        if spans is not None:
            part["spans"] = np.asarray(spans[number]).tolist()
        yield part


def _ranking_members(query: Query) -> dict[str, Any]:
    """Return the members that requests for hits have in common."""
    return {
        "k": query.k,
        "mode": query.mode,
        "passages": bool(query.passages),
        "exact": bool(query.exact),
        "min_score": None if query.min_score is None else float(query.min_score),
    }


def _text(where: Where | None) -> str | None:
    return None if where is None else render(where)


def _parameters(where: Filter | None) -> dict[str, str]:
    return {} if (text := _text(filter_tree(where))) is None else {"where": text}


def _row(query: Query) -> list[float] | None:
    return None if query.vector is None else np.asarray(query.vector, np.float64).tolist()


def _hits(answer: Mapping[str, Any]) -> Hits:
    lists = ("family", "family_indexes")
    hits = tuple(
        Hit(**_members(Hit, hit) | {name: tuple(hit.get(name, ())) for name in lists}) for hit in answer["hits"]
    )
    return Hits(**_members(Hits, answer) | {"hits": hits, "notes": tuple(answer["notes"])})


def _document(answer: Mapping[str, Any]) -> Document:
    sections = tuple(Section(**_members(Section, section)) for section in answer["sections"])
    return Document(**_members(Document, answer) | {"sections": sections})


def _members(kind: type, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an answer that a class has. A newer service may answer with more."""
    return {member.name: answer[member.name] for member in fields(kind) if member.init and member.name in answer}
