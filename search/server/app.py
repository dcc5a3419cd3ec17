"""The ASGI application: a list of routes over `Searcher`, without search logic of its own.

A request passes the guard, waits in a lane for a thread, is answered by a `Searcher` there, and leaves a line in the
log and numbers in the metrics.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
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
from indexer.filters.limits import FROM_CLIENTS
from indexer.filters.mapping import filter_tree
from indexer.filters.tree import Where
from indexer.stores.addresses.open import is_uri
from search.hits import HIT_MEMBERS
from search.lanes import DATABASE_THREADS, SEARCH_THREADS
from search.mcp import make_mcp_server
from search.overview import questions_to_try
from search.query import SENT_MEMBERS, Query
from search.served import CLIENT_DEADLINE, ServedIndex, ServedIndexes, ServedTogether, client_deadline
from search.server.access_log import AccessLog
from search.server.documents import Writers, get_documents, list_documents
from search.server.embeddings import embed, list_models
from search.server.guard import Guard, Rules, replay
from search.server.json_response import JSONResponse, encode
from search.server.judgments import Judgments
from search.server.limits import ServiceLane
from search.server.maps import Maps
from search.server.metrics import CONTENT_TYPE, Metrics
from search.server.openapi import describe_api
from search.server.originals import answer_original, with_original
from search.server.page.page import CompressedForBrowsers, Page
from search.server.problems import Problem, problem_of
from search.server.requests import (
    DocumentsRequest,
    EmbeddingsRequest,
    FacetsRequest,
    JudgmentRequest,
    ListRequest,
    MatchingRequest,
    PlacedRequest,
    QuestionRequest,
    RerankRequest,
    SearchIndexesRequest,
    SearchManyRequest,
    SearchRequest,
    SimilarRequest,
    UrisRequest,
    WithArea,
    body_of,
    optional_parameter,
    parameter,
    refuse_repeated_members,
)
from search.server.rerank import rerank as rerank_documents

if TYPE_CHECKING:
    from indexer.encoders.torch.cross_encoder import CrossEncoderScorer
    from search.hits import Hits

Result = TypeVar("Result")
Asked = TypeVar("Asked", ServedIndex, ServedTogether)

ENTRY = "likewise.entry"
"""Key of an ASGI scope: what endpoints add to the request's line in the access log."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})

SEARCH_QUEUE = 156
SEARCH_DEADLINE_S = 10.0
UNWATCHED_S = 0.02
"""Seconds after which the service watches whether a client has left: most answers come sooner."""
HEAVY_THREADS = 2
HEAVY_QUEUE = 16
HEAVY_DEADLINE_S = 30.0
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
        NotAnIndex, NewerFormat, IndexDamaged: an index cannot be read.
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

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    def answer(request: Request, error: Exception) -> Response:
        return service.answer_error(request, error)

    middleware = [Middleware(Observed, service=service)]
    if cors_origins:  # around the guard: without its headers a page of a named origin could not read why it is refused
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=cors_origins,
                allow_methods=["*"],
                allow_headers=["*"],
                expose_headers=["Retry-After", "WWW-Authenticate"],
            )
        )
    open_routes = ("/healthz", "/readyz") if open_readyz else ("/healthz",)
    rules = Rules(token, tuple(allowed_hosts), loopback_only, tuple(cors_origins), open_routes)
    middleware += [Middleware(Guard, rules=rules), Middleware(CompressedForBrowsers)]
    app = Starlette(
        routes=service.routes(),
        middleware=middleware,
        exception_handlers=dict.fromkeys((HTTPException, LikewiseError, Problem, Exception), answer),
        lifespan=lifespan,
    )
    app.state.metrics = metrics
    return app


def _load_scorer(model: str | None) -> CrossEncoderScorer | None:
    if model is None:
        return None
    from indexer.encoders import cross_encoder

    return cross_encoder(model)


class Service:
    """The endpoints, and what they share."""

    def __init__(
        self,
        indexes: ServedIndexes,
        metrics: Metrics,
        scorer: CrossEncoderScorer | None,
        log: AccessLog | None,
        writable: bool,
        is_draining: Callable[[], bool],
        originals: bool,
    ) -> None:
        self.indexes, self.metrics, self.log = indexes, metrics, log
        self._scorer, self._writable, self._writers = scorer, writable, Writers()
        self._maps, self._is_draining, self._originals = Maps(), is_draining, originals
        in_database = any(is_uri(served.address) for served in indexes.values())
        threads = DATABASE_THREADS if in_database else SEARCH_THREADS
        self._searches = ServiceLane(threads, SEARCH_QUEUE, SEARCH_DEADLINE_S, self.metrics.queue.observe)
        self._heavy = ServiceLane(HEAVY_THREADS, HEAVY_QUEUE, HEAVY_DEADLINE_S, self.metrics.queue.observe)
        self._writes = ServiceLane(WRITE_THREADS, HEAVY_QUEUE, HEAVY_DEADLINE_S, self.metrics.queue.observe)
        self._openapi, self._page = describe_api(), Page()
        self._mcp: ASGIApp = _NotStarted()

    def routes(self) -> list[BaseRoute]:
        """Return every route of the service."""
        index = "/v1/indexes/{name}"
        return [
            Route(f"{index}/search", self.search, methods=["POST"]),  # first, because it is asked most
            Route("/", self.page),
            Route("/page/{version}/{file}", self.page_file),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/metrics", self.show_metrics),
            Route("/openapi.json", self.openapi),
            Route("/v1/indexes", self.list_indexes),
            Route(f"{index}/fields", self.fields),
            Route(f"{index}/facets", self.facets, methods=["POST"]),
            Route(f"{index}/list", self.list_documents, methods=["POST"]),
            Route(f"{index}/overview", self.overview),
            Route(f"{index}/map", self.map),
            Route(f"{index}/map/places", self.map_places),
            Route(f"{index}/map/previous", self.map_previous),
            Route(f"{index}/map/colours", self.map_colours),
            Route(f"{index}/map/matching", self.map_matching, methods=["POST"]),
            Route(f"{index}/map/documents", self.map_documents, methods=["POST"]),
            Route(f"{index}/search-many", self.search_many, methods=["POST"]),
            Route(f"{index}/similar", self.similar, methods=["POST"]),
            Route(f"{index}/document", self.document, methods=["GET", "DELETE"]),
            Route(f"{index}/original", self.original),
            Route(f"{index}/judgments", self.judgments, methods=["GET", "PUT"]),
            Route(f"{index}/documents", self.documents, methods=["GET", "PUT"]),
            Route(f"{index}/get-many", self.get_many, methods=["POST"]),
            Route(f"{index}/count", self.count),
            Route(f"{index}/info", self.info),
            Route("/v1/search", self.search_indexes, methods=["POST"]),
            Route("/v1/embeddings", self.embeddings, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/rerank", self.rerank, methods=["POST"]),
            Route("/v2/rerank", self.rerank, methods=["POST"]),
            # Not GET: a stream on which a stateless service has nothing to say would never end.
            Route("/mcp", _Delegating(lambda: self._mcp), methods=["POST"]),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the encoders and answer MCP for the length of a block; then close everything."""
        try:
            await self._heavy.run(self.indexes.warm)
            server = make_mcp_server(self.indexes, self._searches.run)
            # Stateless, because workers share no sessions; the guard has checked Host and Origin.
            guarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
            self._mcp = server.streamable_http_app(json_response=True, stateless_http=True, transport_security=guarded)
            async with server.session_manager.run():
                yield
        finally:
            self._searches.close()
            self._heavy.close()
            self._writes.close()
            self._writers.close()
            self.indexes.close()
            if self.log is not None:
                self.log.close()

    async def page(self, request: Request) -> Response:
        return self._page.first(request)

    async def page_file(self, request: Request) -> Response:
        return self._page.file(request)

    async def healthz(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        if self._is_draining():
            raise Problem(503, "draining", "the service is about to end: send requests to another one")

        def read() -> dict[str, Any]:
            for served in self.indexes.values():
                served.searcher.count()
            building = any(served.searcher.is_building_words for served in self.indexes.values())
            return {"status": "ready", "words": "building" if building else "ready"}

        return JSONResponse(await self._searches.run(read))

    async def show_metrics(self, request: Request) -> Response:
        text = await self._searches.run(lambda: self.metrics.exposition(self.indexes))
        return Response(text, media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(self._openapi)

    async def list_indexes(self, request: Request) -> Response:
        def describe() -> dict[str, Any]:
            return {"indexes": [served.describe() for served in self.indexes.values()], "writable": self._writable}

        return JSONResponse(await self._searches.run(describe))

    async def fields(self, request: Request) -> Response:
        return JSONResponse(await self._ask(request, lambda served: served.fields()))

    async def facets(self, request: Request) -> Response:
        body = await body_of(request, FacetsRequest)

        def count(served: ServedIndex) -> dict[str, Any]:
            facets = []
            for facet in body.facets:
                where = self._within(served, facet, filter_tree(facet.where, FROM_CLIENTS))
                facets.append({"name": facet.field, **served.facet(facet.field, where, histogram=True)})
            return {"facets": facets}

        return JSONResponse(await self._ask(request, count))

    async def list_documents(self, request: Request) -> Response:
        body = await body_of(request, ListRequest)

        def listed(served: ServedIndex) -> dict[str, Any]:
            where = self._within(served, body, filter_tree(body.where, FROM_CLIENTS))
            listed = served.searcher.beginnings(body.k, where, body.sort).as_json()
            return {"matched": listed["matched"], "hits": listed["hits"]}

        return JSONResponse(await self._ask(request, listed))

    async def overview(self, request: Request) -> Response:
        def describe(served: ServedIndex) -> dict[str, Any]:
            return {"regions": self._maps.main_regions(served), "questions": questions_to_try(served.searcher)}

        return JSONResponse(await self._ask(request, describe))

    def _within(self, served: ServedIndex, body: WithArea, where: Where | None) -> Where | None:
        return where if body.area is None else self._maps.within(served, body.area, where, body.area_of)

    async def search(self, request: Request) -> Response:
        served, body = self._index(request), await body_of(request, SearchRequest)
        query = self._query(request, served, body)

        def search(served: ServedIndex) -> Hits:
            if body.area is None:
                return served.answer(query)
            return served.answer(replace(query, where=self._within(served, body, query.condition)))

        return await self._hits(request, served, search, body, query)

    async def search_indexes(self, request: Request) -> Response:
        body = await body_of(request, SearchIndexesRequest)
        served = self.indexes.together(body.indexes)
        _note(request, index=served.name)
        query = self._query(request, served, body)
        return await self._hits(request, served, lambda served: served.answer(query), body, query)

    def _query(self, request: Request, served: ServedIndex | ServedTogether, body: QuestionRequest) -> Query:
        query = Query(
            text=body.query or "",
            where=filter_tree(body.where, FROM_CLIENTS),
            mode=body.mode or ("dense" if not body.query else served.default_mode),
            **{name: getattr(body, name) for name in SENT_MEMBERS},
        )
        _note(request, mode=query.mode, k=query.k, query=query.text)
        return query

    async def search_many(self, request: Request) -> Response:
        served, body = self._index(request), await body_of(request, SearchManyRequest)
        mode, given = body.mode or served.default_mode, body.where
        where = [filter_tree(one, FROM_CLIENTS) for one in (given if isinstance(given, list) else [given])]
        _note(request, mode=mode, k=body.k, questions=len(body.queries))

        def search(served: ServedIndex) -> bytes:
            every = served.searcher.search_many(
                body.queries,
                body.k,
                mode=mode,
                where=where if isinstance(given, list) else where[0],
                vectors=body.vectors,
                passages=body.passages,
                min_score=body.min_score,
                exact=body.exact,
            )
            return encode({"answers": [served.described(hits, body.members) for hits in every]})

        return Response(await self._ask(request, search, self._heavy), media_type="application/json")

    async def map(self, request: Request) -> Response:
        return JSONResponse(await self._ask(request, self._maps.describe))

    async def map_places(self, request: Request) -> Response:
        places = await self._ask(request, self._maps.places)
        return Response(places, media_type="application/octet-stream")

    async def map_previous(self, request: Request) -> Response:
        return JSONResponse(await self._ask(request, self._maps.previous))

    async def map_colours(self, request: Request) -> Response:
        field = parameter(request, "field")
        return JSONResponse(await self._ask(request, lambda served: self._maps.colours(served, field)))

    async def map_documents(self, request: Request) -> Response:
        served, body = self._index(request), await body_of(request, PlacedRequest)
        return JSONResponse(await self._searches.run(lambda: self._maps.documents(served, body.points, body.uris)))

    async def map_matching(self, request: Request) -> Response:
        body = await body_of(request, MatchingRequest)
        where = filter_tree(body.where, FROM_CLIENTS)

        def matching(served: ServedIndex) -> dict[str, Any]:
            return self._maps.matching(served, self._within(served, body, where))

        return JSONResponse(await self._ask(request, matching))

    async def similar(self, request: Request) -> Response:
        body = await body_of(request, SimilarRequest)
        _note(request, k=body.k)
        where = filter_tree(body.where, FROM_CLIENTS)

        def similar(served: ServedIndex) -> Hits:
            return served.searcher.similar(body.uri, body.k, where=self._within(served, body, where))

        return await self._hits(request, self._index(request), similar)

    async def _hits(
        self,
        request: Request,
        served: Asked,
        search: Callable[[Asked], Hits],
        body: QuestionRequest | None = None,
        query: Query | None = None,
    ) -> Response:
        """Answer with the hits of a search, and with the members of each hit that the body asks for."""
        members = HIT_MEMBERS if body is None else body.members
        is_heavy = body is not None and body.explain and body.k > FEW_EXPLAINED

        def answer(served: Asked) -> tuple[int, bytes]:
            hits = search(served)
            return len(hits), encode(served.described(hits, members))

        lane = self._heavy if is_heavy else self._searches
        count, text = await self._ask_of(request, served, answer, lane, query)
        _note(request, hits=count)
        return Response(text, media_type="application/json")

    async def document(self, request: Request) -> Response:
        served, uri = self._index(request), parameter(request, "uri")
        if request.method == "DELETE":
            self._require_writable()
            return JSONResponse(await self._writes.run(lambda: self._writers.delete(served, uri)))
        return JSONResponse(await self._ask(request, lambda served: with_original(served, uri, self._originals)))

    async def original(self, request: Request) -> Response:
        if not self._originals:
            raise Problem(403, "no-originals", "the service shows no originals: its operator can allow it")
        return await self._ask(request, lambda served: answer_original(served, request), self._heavy)

    async def documents(self, request: Request) -> Response:
        if request.method == "PUT":
            served = self._index(request)
            self._require_writable()
            body = await body_of(request, DocumentsRequest)
            return JSONResponse(await self._writes.run(lambda: self._writers.put(served, body.documents)))
        where, cursor = optional_parameter(request, "where"), optional_parameter(request, "cursor")
        return JSONResponse(await self._ask(request, lambda served: list_documents(served, where, cursor)))

    async def get_many(self, request: Request) -> Response:
        body = await body_of(request, UrisRequest)
        return JSONResponse(await self._ask(request, lambda served: get_documents(served, body.uris)))

    async def count(self, request: Request) -> Response:
        where = filter_tree(optional_parameter(request, "where"), FROM_CLIENTS)

        def counted(served: ServedIndex) -> dict[str, Any]:
            return {"documents": served.searcher.count(where), "notes": served.filter_notes(where)}

        return JSONResponse(await self._ask(request, counted))

    async def info(self, request: Request) -> Response:
        return JSONResponse(await self._ask(request, lambda served: asdict(served.searcher.info())))

    async def judgments(self, request: Request) -> Response:
        served = self._index(request)
        if request.method == "PUT":
            self._require_writable()
            body = await body_of(request, JudgmentRequest)
            grades = await self._heavy.run(lambda: Judgments(served).judge(body.query, body.uri, body.grade))
        elif self._writable:
            question = parameter(request, "query")
            grades = await self._searches.run(lambda: Judgments(served).of(question))
        else:
            grades = {}
        judged = [{"uri": uri, "grade": grade} for uri, grade in grades.items()]
        return JSONResponse({"writable": self._writable, "judgments": judged})

    async def models(self, request: Request) -> Response:
        return JSONResponse(await self._searches.run(lambda: list_models(self.indexes)))

    async def embeddings(self, request: Request) -> Response:
        body = await body_of(request, EmbeddingsRequest)
        return JSONResponse(await self._heavy.run(lambda: embed(body, self.indexes)))

    async def rerank(self, request: Request) -> Response:
        if (scorer := self._scorer) is None:
            raise Problem(404, "no-reranker", "the service has no reranker: its operator can start it with one")
        body = await body_of(request, RerankRequest)
        version = "2" if request.url.path.endswith("/v2/rerank") else "1"
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

    def answer_error(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed."""
        return problem_of(error, self.indexes).response(request.url.path)

    def _index(self, request: Request) -> ServedIndex:
        served = self.indexes[request.path_params["name"]]
        _note(request, index=served.name)
        return served

    def _require_writable(self) -> None:
        if not self._writable:
            raise Problem(403, "read-only", "the service is read-only: its operator can make it writable")


class _NotStarted:
    """The answer at /mcp while the application does not run."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise Problem(503, "not-started", "the service has not started")


class _Delegating:
    """An endpoint whose application is made when the service starts, because an MCP application can start only once."""

    def __init__(self, current: Callable[[], ASGIApp]) -> None:
        self._current = current

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        deadline = client_deadline()
        CLIENT_DEADLINE.set(deadline)
        body = (await receive()).get("body", b"")  # the guard has read all of it
        refuse_repeated_members(body)
        answering = False

        async def noted(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        try:
            await _until_left(receive, deadline, lambda: self._current()(scope, replay(body, receive), noted))
        except Problem:
            if not answering:  # otherwise the client has left after its answer
                raise


async def _until_left(receive: Receive, deadline: Deadline, work: Callable[[], Awaitable[Result]]) -> Result:
    """Return the result of `work`. When the client leaves, cancel the deadline, and raise Problem."""
    scope = anyio.CancelScope()

    async def run() -> Result:
        with scope:
            return await work()
        raise Problem(400, "disconnected", "the client left before its answer")

    working = asyncio.create_task(run())
    try:
        await asyncio.wait({working}, timeout=UNWATCHED_S)
        if not working.done():
            leaving = asyncio.create_task(_left(receive))
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
        if not working.done():
            deadline.cancel()
            scope.cancel()  # also the waiting for a thread
        return await working
    finally:
        working.cancel()


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
                client = scope.get("client")
                self._log.write(
                    {
                        "client": client[0] if client else None,
                        "method": method,
                        "route": path,
                        "status": status,
                        "seconds": round(seconds, 6),
                        **entry,
                    }
                )
