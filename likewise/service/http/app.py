"""The ASGI application: a list of routes over `Searcher`, without search logic of its own.

A request passes the guard, waits in a lane for a thread, is answered by a `Searcher` there, and leaves a line in the
log and numbers in the metrics.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer.deadline import Deadline
from indexer.errors import BadInput, LikewiseError
from indexer.filters.mapping import Filter
from indexer.filters.tree import Where
from indexer.records import Changes
from indexer.stores.addresses.open import is_uri
from indexer.stores.port import Info
from likewise.service.http import answers, openapi, requests
from likewise.service.http.access_log import AccessLog
from likewise.service.http.documents import Writers, get_documents, list_documents
from likewise.service.http.embeddings import embed, list_models
from likewise.service.http.guard import Guard, Rules, replay
from likewise.service.http.json_response import JSONResponse, encode
from likewise.service.http.limits import ServiceLane, reads_values
from likewise.service.http.maps import Maps
from likewise.service.http.metrics import MEDIA_TYPE, Metrics
from likewise.service.http.openapi import operation
from likewise.service.http.originals import answer_original, with_original
from likewise.service.http.page.page import CompressedForBrowsers, Page
from likewise.service.http.problems import Problem, problem_of
from likewise.service.http.rerank import rerank as rerank_documents
from likewise.service.mcp import make_mcp_server
from likewise.service.overview import questions_to_try
from likewise.service.served import CLIENT_DEADLINE, ServedIndex, ServedIndexes, ServedTogether, client_deadline
from search.hits.hits import HIT_MEMBERS, Hits
from search.lanes import DATABASE_THREADS, SEARCH_THREADS
from search.query.query import SENT_MEMBERS, Query

if TYPE_CHECKING:
    from indexer.encoders.torch.cross_encoder import CrossEncoderScorer

Endpoint = Callable[[Request], Awaitable[Response]]
Result = TypeVar("Result")
Asked = TypeVar("Asked", ServedIndex, ServedTogether)

ENTRY = "likewise.entry"
"""Key of an ASGI scope: what endpoints add to the request's line in the access log."""
_INDEX = "/v1/indexes/{name}"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})

SEARCH_QUEUE = 156
SEARCH_DEADLINE_S = 10.0
UNWATCHED_S = 0.02
"""Seconds after which the service watches whether a client has left: most answers come sooner."""
HEAVY_THREADS = 2
HEAVY_QUEUE = 16
HEAVY_DEADLINE_S = 30.0
PROBE_THREADS = 2
"""Threads for /readyz and /metrics, which wait for no search."""
FILE_THREADS = 2
"""Threads that read originals."""
WRITE_THREADS = 8
"""Threads that wait for the writer of an index, which makes one change after the other."""
FEW_EXPLAINED = 20
"""Maximum hits that a search explains among other searches. More are heavy work, because every sentence of every hit is
embedded."""


def create_app(
    indexes: Mapping[str, str],
    *,
    writable: bool = False,
    token: str | None = None,
    rerank: str | None = None,
    allowed_hosts: Sequence[str] = (),
    loopback_only: bool = True,
    cors_origins: Sequence[str] = (),
    access_log: bool = False,
    log_queries: bool = False,
    open_readyz: bool = False,
    is_draining: Callable[[], bool] = lambda: False,
    originals: bool = False,
) -> Starlette:
    """Return the HTTP service of some indexes as an ASGI application.

    Args:
        indexes: the folder or DSN of each index, by the name that clients use.
        writable: allow PUT and DELETE.
        token: what clients must send as `Authorization: Bearer TOKEN`; None asks for none.
        rerank: the name or folder of a cross-encoder for /v1/rerank and /v2/rerank.
        allowed_hosts: names that clients may send as Host, such as that of a reverse proxy.
        loopback_only: accept only this machine's own names as Host beside `allowed_hosts`.
        cors_origins: pages (scheme://host:port) whose scripts may ask from a browser.
        access_log: write one line of JSON per request to standard output.
        log_queries: write the text of questions to it, too.
        open_readyz: answer /readyz without the token.
        is_draining: returns whether the service is about to end, so that /readyz refuses.
        originals: show the files that documents were read from, and their pages.

    Raises:
        NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: an index cannot be read.
        BadInput: there is no index, the token is empty, or other machines could read originals without a token.
        ModelError: the cross-encoder cannot be loaded.
    """
    if token is not None and not token.strip():
        raise BadInput("the token is empty: give one, or none at all")
    if originals and token is None and not loopback_only:
        raise BadInput("originals are shown to other machines only with a token: set one, or listen on 127.0.0.1")
    log = AccessLog(questions=log_queries) if access_log else None
    metrics = Metrics()
    service = Service(
        ServedIndexes(indexes, metrics), metrics, _load_scorer(rerank), log, writable, is_draining, originals
    )

    middleware = [Middleware(Observed, service=service)]
    if cors_origins:  # around the guard: without its headers a page of a named origin could not read why it is refused
        allowed: dict[str, Any] = {"allow_origins": cors_origins, "allow_methods": ["*"], "allow_headers": ["*"]}
        read = ["Retry-After", "WWW-Authenticate"]
        middleware.append(Middleware(CORSMiddleware, **allowed, expose_headers=read))
    open_routes = ("/healthz", "/readyz") if open_readyz else ("/healthz",)
    rules = Rules(token, tuple(allowed_hosts), loopback_only, tuple(cors_origins), open_routes)
    middleware += [Middleware(Guard, rules=rules), Middleware(CompressedForBrowsers)]
    app = Starlette(
        routes=service.routes(),
        middleware=middleware,
        exception_handlers=dict.fromkeys((HTTPException, LikewiseError, Problem, Exception), service.answer_error),
        lifespan=lambda _: service.running(),
    )
    app.state.metrics = metrics
    return app


def _load_scorer(model: str | None) -> CrossEncoderScorer | None:
    if model is None:
        return None
    from indexer.encoders import cross_encoder

    return cross_encoder(model)


@dataclass(eq=False)
class Service:
    """The endpoints, and what they share. The attributes are arguments of `create_app`, opened."""

    indexes: ServedIndexes
    metrics: Metrics
    scorer: CrossEncoderScorer | None
    log: AccessLog | None
    writable: bool
    is_draining: Callable[[], bool]
    originals: bool

    def __post_init__(self) -> None:
        self._writers, self._maps = Writers(), Maps()
        in_database = any(is_uri(served.address) for served in self.indexes.values())
        threads = DATABASE_THREADS if in_database else SEARCH_THREADS
        self._searches = ServiceLane(threads, SEARCH_QUEUE, SEARCH_DEADLINE_S, self.metrics.queue.observe)
        # Filters that read values take half as many threads, and leave all others to questions without such filters.
        self._filters = ServiceLane(threads // 2, SEARCH_QUEUE, SEARCH_DEADLINE_S, self.metrics.queue.observe)
        self._probes = ServiceLane(PROBE_THREADS, SEARCH_QUEUE, SEARCH_DEADLINE_S)
        self._files = ServiceLane(FILE_THREADS, HEAVY_QUEUE, HEAVY_DEADLINE_S)
        self._pictures = ServiceLane(1, HEAVY_QUEUE, HEAVY_DEADLINE_S)  # one process draws them
        self._heavy = ServiceLane(HEAVY_THREADS, HEAVY_QUEUE, HEAVY_DEADLINE_S, self.metrics.queue.observe)
        self._writes = ServiceLane(WRITE_THREADS, HEAVY_QUEUE, HEAVY_DEADLINE_S, self.metrics.queue.observe)
        self._openapi, self._page = openapi.describe_api(), Page()
        self._mcp = _Mcp()

    def routes(self) -> list[BaseRoute]:
        """Return every route of the service."""
        operations: dict[str, dict[str, tuple[Endpoint, tuple[str, ...] | None]]] = {}
        for each in openapi.OPERATIONS:
            # Clients of other services' forms, and watchers of a service, may add parameters of their own.
            names = None if each.tag in ("models", "service") else tuple(one["name"] for one in each.parameters)
            operations.setdefault(each.path, {})[each.method] = getattr(self, each.name), names
        return [
            *(Route(path, _by_method(by_method), methods=[*by_method]) for path, by_method in operations.items()),
            Route("/", self.page),
            Route("/page/{version}/{file}", self.page_file),
            Route("/openapi.json", self.description),
            # Not GET: a stream on which a stateless service has nothing to say would never end.
            Route("/mcp", self._mcp, methods=["POST"]),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the encoders and answer MCP for the length of a block; then close everything."""
        try:
            await self._heavy.run(self.indexes.warm)
            server = make_mcp_server(self.indexes, self._run_tool)
            # Stateless, because workers share no sessions; the guard has checked Host and Origin.
            guarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
            tools = server.streamable_http_app(json_response=True, stateless_http=True, transport_security=guarded)
            self._mcp.app = tools
            async with server.session_manager.run():
                yield
        finally:
            for lane in (self._searches, self._filters, self._probes, self._files, self._pictures, self._heavy):
                lane.close()
            self._writes.close()
            self._writers.close()
            self.indexes.close()
            if self.log is not None:
                self.log.close()

    @operation("search", f"POST {_INDEX}/search", Hits, requests.SearchRequest)
    async def search(self, request: Request) -> Response:
        """Rank documents by a question."""
        served, body = self._index(request), await requests.body_of(request, requests.SearchRequest)
        query = await self._query(request, served, body)

        def search(served: ServedIndex) -> Hits:
            within = self._within(served, body, query.condition)
            return served.answer(query if body.area is None else replace(query, where=within))

        return await self._hits(request, served, search, query.condition, body.members, query)

    @operation("search", "POST /v1/search", Hits, requests.SearchIndexesRequest)
    async def search_indexes(self, request: Request) -> Response:
        """Search several indexes."""
        body = await requests.body_of(request, requests.SearchIndexesRequest)
        served = self.indexes.together(body.indexes)
        _note(request, index=served.name)
        query = await self._query(request, served, body)

        def search(served: ServedTogether) -> Hits:
            return served.answer(query, by_default=not body.mode and bool(body.query))

        return await self._hits(request, served, search, query.condition, body.members, query)

    async def _query(
        self, request: Request, served: ServedIndex | ServedTogether, body: requests.QuestionRequest
    ) -> Query:
        query = Query(
            text=body.query or "",
            where=await requests.filter_of(body.where),
            mode=body.mode or ("dense" if not body.query else served.default_mode),
            **{name: getattr(body, name) for name in SENT_MEMBERS},
        )
        _note(request, mode=query.mode, k=query.k, query=query.text)
        return query

    @operation("search", f"POST {_INDEX}/search-many", answers.SearchManyAnswer, requests.SearchManyRequest)
    async def search_many(self, request: Request) -> Response:
        """Rank documents by each of some questions."""
        served, body = self._index(request), await requests.body_of(request, requests.SearchManyRequest)
        mode, given = body.mode or served.default_mode, body.where
        where = [await requests.filter_of(one) for one in (given if isinstance(given, list) else [given])]
        _note(request, mode=mode, k=body.k, questions=len(body.queries))

        def search(served: ServedIndex) -> bytes:
            members = {name: getattr(body, name) for name in ("vectors", "passages", "min_score", "exact")}
            asked = where if isinstance(given, list) else where[0]
            every = served.searcher.search_many(body.queries, body.k, mode=mode, where=asked, **members)
            return encode({"answers": [served.described(hits, body.members) for hits in every]})

        lane = self._lane(*where, otherwise=self._heavy)
        return Response(await self._ask(request, search, lane), media_type="application/json")

    @operation("search", f"POST {_INDEX}/similar", Hits, requests.SimilarRequest)
    async def similar(self, request: Request) -> Response:
        """Find documents like one."""
        body = await requests.body_of(request, requests.SimilarRequest)
        _note(request, k=body.k)
        where = await requests.filter_of(body.where)

        def similar(served: ServedIndex) -> Hits:
            return served.searcher.similar(body.uri, body.k, where=self._within(served, body, where))

        return await self._hits(request, self._index(request), similar, where)

    async def _hits(
        self,
        request: Request,
        served: Asked,
        search: Callable[[Asked], Hits],
        where: Where | None,
        members: Sequence[str] = HIT_MEMBERS,
        query: Query | None = None,
    ) -> Response:
        """Answer with the hits of a search under a filter, and with some members of each hit."""
        is_heavy = query is not None and query.explain and query.k > FEW_EXPLAINED

        def answer(served: Asked) -> tuple[int, bytes]:
            hits = search(served)
            return len(hits), encode(served.described(hits, members))

        lane = self._lane(where, otherwise=self._heavy if is_heavy else None)
        count, text = await self._ask_of(request, served, answer, lane, query)
        _note(request, hits=count)
        return Response(text, media_type="application/json")

    async def page(self, request: Request) -> Response:
        return self._page.first(request)

    async def page_file(self, request: Request) -> Response:
        return self._page.file(request)

    async def description(self, request: Request) -> Response:
        return JSONResponse(self._openapi)

    @operation("service", "GET /healthz", answers.StatusAnswer)
    async def get_health(self, request: Request) -> Response:
        """Say that the process answers."""
        return JSONResponse({"status": "ok"})

    @operation("service", "GET /readyz", answers.ReadyAnswer)
    async def get_readiness(self, request: Request) -> Response:
        """Say that every index can be read."""
        if self.is_draining():
            raise Problem(503, "draining", "the service is about to end: send requests to another one")

        def read() -> dict[str, Any]:
            for served in self.indexes.values():
                served.searcher.count()
            building = any(served.searcher.is_building_words for served in self.indexes.values())
            return {"status": "ready", "words": "building" if building else "ready"}

        return JSONResponse(await self._probes.run(read))

    @operation("service", "GET /metrics", "text/plain")
    async def get_metrics(self, request: Request) -> Response:
        """Return metrics for Prometheus."""
        text = await self._probes.run(lambda: self.metrics.exposition(self.indexes))
        return Response(text, media_type=MEDIA_TYPE)

    @operation("indexes", "GET /v1/indexes", answers.IndexesAnswer)
    async def list_indexes(self, request: Request) -> Response:
        """List the indexes, with their fields."""

        def describe() -> dict[str, Any]:
            return {"indexes": [served.describe() for served in self.indexes.values()], "writable": self.writable}

        return JSONResponse(await self._searches.run(describe))

    @operation("indexes", f"GET {_INDEX}/info", Info)
    async def get_info(self, request: Request) -> Response:
        """Return the state of an index in numbers."""
        return JSONResponse(await self._ask(request, lambda served: asdict(served.info())))

    @operation("page", f"GET {_INDEX}/fields")
    async def list_fields(self, request: Request) -> Response:
        """List fields with frequent values."""
        return JSONResponse(await self._ask(request, lambda served: served.fields()))

    @operation("page", f"POST {_INDEX}/facets", None, requests.FacetsRequest)
    async def count_fields(self, request: Request) -> Response:
        """Count fields."""
        body = await requests.body_of(request, requests.FacetsRequest)
        filters = [await requests.filter_of(facet.where) for facet in body.facets]

        def count(served: ServedIndex) -> dict[str, Any]:
            facets = []
            for facet, of_facet in zip(body.facets, filters, strict=True):
                where = self._within(served, facet, of_facet)
                facets.append({"name": facet.field, **served.facet(facet.field, where, histogram=True)})
            return {"facets": facets}

        return JSONResponse(await self._ask(request, count, self._lane(*filters)))

    @operation("page", f"POST {_INDEX}/list", None, requests.ListRequest)
    async def list_by(self, request: Request) -> Response:
        """List by time or title."""
        body = await requests.body_of(request, requests.ListRequest)
        where = await requests.filter_of(body.where)

        def listed(served: ServedIndex) -> dict[str, Any]:
            within = self._within(served, body, where)
            listed = served.searcher.beginnings(body.k, within, body.sort).as_json(requests.ASKED_MEMBERS)
            return {"matched": listed["matched"], "hits": listed["hits"]}

        return JSONResponse(await self._ask(request, listed, self._lane(where)))

    @operation("page", f"GET {_INDEX}/overview")
    async def get_overview(self, request: Request) -> Response:
        """Return regions and questions."""

        def describe(served: ServedIndex) -> dict[str, Any]:
            return self._maps.main_regions(served) | {"questions": questions_to_try(served.searcher)}

        return JSONResponse(await self._ask(request, describe))

    def _within(self, served: ServedIndex, body: requests.WithArea, where: Where | None) -> Where | None:
        return where if body.area is None else self._maps.within(served, body.area, where)

    @operation("documents", f"GET {_INDEX}/document", answers.DocumentAnswer, None, openapi.URI)
    async def get_document(self, request: Request) -> Response:
        """Return a document."""
        uri = requests.parameter(request, "uri")
        return JSONResponse(await self._ask(request, lambda served: with_original(served, uri, self.originals)))

    @operation("documents", f"DELETE {_INDEX}/document", answers.RemovedAnswer, None, openapi.URI)
    async def remove_document(self, request: Request) -> Response:
        """Remove a document (if writable)."""
        served, uri = self._index(request), requests.parameter(request, "uri")
        self._require_writable()
        return JSONResponse(await self._writes.run(lambda: self._writers.delete(served, uri)))

    @operation("documents", f"GET {_INDEX}/original", openapi.FILE, None, openapi.URI, openapi.PAGE, openapi.MARKS)
    async def get_original(self, request: Request) -> Response:
        """Return the file of a document, or the picture of a page (if originals are shown)."""
        if not self.originals:
            raise Problem(403, "no-originals", "the service shows no originals: its operator can allow it")
        lane = self._pictures if "page" in request.query_params else self._files
        return await self._ask(request, lambda served: answer_original(served, request), lane)

    @operation("documents", f"GET {_INDEX}/documents", answers.DocumentsAnswer, None, openapi.WHERE, openapi.CURSOR)
    async def list_documents(self, request: Request) -> Response:
        """List documents in pages, in the order they were added."""
        where, cursor = requests.optional_parameter(request, "where"), requests.optional_parameter(request, "cursor")
        condition = await requests.filter_of(where)
        listed = self._ask(request, lambda served: list_documents(served, condition, cursor), self._lane(condition))
        return JSONResponse(await listed)

    @operation("documents", f"PUT {_INDEX}/documents", Changes, requests.DocumentsRequest)
    async def put_documents(self, request: Request) -> Response:
        """Add or replace documents (if writable)."""
        served = self._index(request)
        self._require_writable()
        body = await requests.body_of(request, requests.DocumentsRequest)
        return JSONResponse(await self._writes.run(lambda: self._writers.put(served, body)))

    @operation("documents", f"DELETE {_INDEX}/documents", answers.RemovedAnswer, requests.RemovalRequest)
    async def remove_documents(self, request: Request) -> Response:
        """Remove documents by uris or by a filter (if writable)."""
        served = self._index(request)
        self._require_writable()
        body = await requests.body_of(request, requests.RemovalRequest)
        where: Filter | None = body.where and await requests.filter_of(body.where)
        return JSONResponse(await self._writes.run(lambda: self._writers.remove(served, body, where)))

    @operation("documents", f"POST {_INDEX}/get-many", answers.FoundDocumentsAnswer, requests.UrisRequest)
    async def get_documents(self, request: Request) -> Response:
        """Return documents by their uris."""
        body = await requests.body_of(request, requests.UrisRequest)
        return JSONResponse(await self._ask(request, lambda served: get_documents(served, body.uris)))

    @operation("documents", f"GET {_INDEX}/count", answers.CountAnswer, None, openapi.WHERE)
    async def count(self, request: Request) -> Response:
        """Count the documents that a filter leaves."""
        where = await requests.filter_of(requests.optional_parameter(request, "where"))

        def counted(served: ServedIndex) -> dict[str, Any]:
            return {"documents": served.searcher.count(where), "notes": served.filter_notes(where)}

        return JSONResponse(await self._ask(request, counted, self._lane(where)))

    @operation("page", f"GET {_INDEX}/map")
    async def get_map(self, request: Request) -> Response:
        """Describe the map of an index."""
        return JSONResponse(await self._ask(request, self._maps.describe))

    @operation("page", f"GET {_INDEX}/map/places", openapi.FILE)
    async def get_places(self, request: Request) -> Response:
        """Return x and y of every point as little-endian float32."""
        return Response(await self._ask(request, self._maps.places), media_type=openapi.FILE)

    @operation("page", f"GET {_INDEX}/map/colours", None, None, openapi.FIELD)
    async def get_colours(self, request: Request) -> Response:
        """Return the value of a field at every point."""
        field = requests.parameter(request, "field")
        return JSONResponse(await self._ask(request, lambda served: self._maps.colours(served, field)))

    @operation("page", f"POST {_INDEX}/map/documents", None, requests.PlacedRequest)
    async def name_points(self, request: Request) -> Response:
        """Name documents."""
        served, body = self._index(request), await requests.body_of(request, requests.PlacedRequest)
        return JSONResponse(await self._searches.run(lambda: self._maps.documents(served, body.points, body.uris)))

    @operation("page", f"POST {_INDEX}/map/matching", None, requests.MatchingRequest)
    async def match_points(self, request: Request) -> Response:
        """Tell which points pass a filter."""
        body = await requests.body_of(request, requests.MatchingRequest)
        where = await requests.filter_of(body.where)

        def matching(served: ServedIndex) -> dict[str, Any]:
            return self._maps.matching(served, self._within(served, body, where))

        return JSONResponse(await self._ask(request, matching, self._lane(where)))

    @operation("models", "GET /v1/models", answers.ModelsAnswer)
    async def list_models(self, request: Request) -> Response:
        """List the indexes that embed texts (OpenAI's form)."""
        return JSONResponse(await self._searches.run(lambda: list_models(self.indexes)))

    @operation("models", "POST /v1/embeddings", answers.EmbeddingsAnswer, requests.EmbeddingsRequest)
    async def embed(self, request: Request) -> Response:
        """Embed texts (OpenAI's form)."""
        body = await requests.body_of(request, requests.EmbeddingsRequest)
        return JSONResponse(await self._heavy.run(lambda: embed(body, self.indexes)))

    @operation("models", "POST /v1/rerank", answers.RerankAnswer, requests.RerankRequest)
    async def rerank_v1(self, request: Request) -> Response:
        """Order documents by relevance (Cohere's form, if there is a reranker)."""
        return await self._rerank(request, "1")

    @operation("models", "POST /v2/rerank", answers.RerankAnswer, requests.RerankRequest)
    async def rerank_v2(self, request: Request) -> Response:
        """Order documents by relevance (Cohere's form, if there is a reranker)."""
        return await self._rerank(request, "2")

    async def _rerank(self, request: Request, version: str) -> Response:
        if (scorer := self.scorer) is None:
            raise Problem(404, "no-reranker", "the service has no reranker: its operator can start it with one")
        body = await requests.body_of(request, requests.RerankRequest)
        return JSONResponse(await self._heavy.run(lambda: rerank_documents(body, scorer, version)))

    async def _ask(
        self, request: Request, work: Callable[[ServedIndex], Result], lane: ServiceLane | None = None
    ) -> Result:
        """Ask the index of a request in a thread, until the deadline or until the client has left."""
        return await self._ask_of(request, self._index(request), work, lane or self._searches)

    async def _ask_of(
        self,
        request: Request,
        served: Asked,
        work: Callable[[Asked], Result],
        lane: ServiceLane,
        query: Query | None = None,
    ) -> Result:
        """Ask one index or several, as `_ask`.

        Args:
            query: a question to embed before, together with others.
        """
        deadline = client_deadline()
        limited = served.until(deadline)

        embed = None if query is None else limited.ask_ahead(query)
        return await _until_left(request.receive, deadline, lambda: lane.run(lambda: work(limited), embed))

    async def _run_tool(self, work: Callable[[], Result], where: str | None) -> Result:
        return await self._lane(await requests.filter_of(where)).run(work)

    def _lane(self, *filters: Where | None, otherwise: ServiceLane | None = None) -> ServiceLane:
        """Return the lane of a request with these filters."""
        return self._filters if any(map(reads_values, filters)) else otherwise or self._searches

    def answer_error(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed."""
        return problem_of(error, self.indexes).response(request.url.path)

    def _index(self, request: Request) -> ServedIndex:
        served = self.indexes[request.path_params["name"]]
        _note(request, index=served.name)
        return served

    def _require_writable(self) -> None:
        if not self.writable:
            raise Problem(403, "read-only", "the service is read-only: its operator can make it writable")


def _by_method(operations: Mapping[str, tuple[Endpoint, tuple[str, ...] | None]]) -> Endpoint:
    """Return the endpoint of a path, which chooses one by the method of a request. HEAD is a GET without its body.

    Args:
        operations: by method, an endpoint and the parameters that it knows; None for any.
    """

    async def answer(request: Request) -> Response:
        endpoint, names = operations["GET" if request.method == "HEAD" else request.method]
        if names is not None:
            requests.refuse_unknown_parameters(request, names)
        return await endpoint(request)

    return answer


class _Mcp:
    """The endpoint of MCP. Its application is made when the service starts, because it can start only once."""

    app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (app := self.app) is None:
            raise Problem(503, "not-started", "the service has not started")
        deadline = client_deadline()
        CLIENT_DEADLINE.set(deadline)
        body = (await receive()).get("body", b"")  # the guard has read all of it
        requests.refuse_repeated_members(body)
        answering = False

        async def noted(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        try:
            await _until_left(receive, deadline, lambda: app(scope, replay(body, receive), noted))
        except Problem:
            if not answering:  # otherwise the client has left after its answer
                raise


async def _until_left(receive: Receive, deadline: Deadline, work: Callable[[], Awaitable[Result]]) -> Result:
    """Return the result of `work`. When the client leaves, cancel the deadline, and raise Problem."""
    scope = anyio.CancelScope()
    watching: list[asyncio.Task[None]] = []

    async def watch() -> None:
        await _left(receive)
        deadline.cancel()
        scope.cancel()  # also the waiting for a thread

    loop = asyncio.get_running_loop()
    timer = loop.call_later(UNWATCHED_S, lambda: watching.append(loop.create_task(watch())))
    try:
        with scope:
            return await work()
        raise Problem(400, "disconnected", "the client left before its answer")
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _note(request: Request, **members: str | int) -> None:
    """Add members to the request's line in the access log."""
    request.scope.setdefault(ENTRY, {}).update(members)


class Observed:
    """ASGI middleware that measures every request and writes it to the log."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._metrics, self._log = app, service.metrics, service.log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500
        entry: dict[str, Any] = {}
        scope[ENTRY] = entry

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with self._metrics.in_progress.track_inprogress():
                await self._app(scope, receive, observed)
        finally:
            seconds = time.perf_counter() - began
            route = scope.get("route")
            path = route.path if isinstance(route, Route) else "other"
            method = scope["method"] if scope["method"] in _METHODS else "other"  # a client may invent many
            self._metrics.requests.labels(method, path, str(status)).inc()
            self._metrics.duration.labels(path).observe(seconds)
            if self._log is not None:
                if not self._log.questions:
                    entry.pop("query", None)
                client, *_ = scope.get("client") or (None,)
                answered = {"method": method, "route": path, "status": status, "seconds": round(seconds, 6)}
                self._log.write({"client": client, **answered, **entry})
