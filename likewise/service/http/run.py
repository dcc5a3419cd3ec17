"""Running the application with uvicorn, in this process or in several workers that share a port."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from multiprocessing.synchronize import Event
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors import Multiprocess

from indexer.encoders.machine.hardware import cores
from indexer.errors import LikewiseError
from indexer.stores.addresses.open import is_uri
from likewise.service.http.connections import TimedProtocol
from likewise.service.http.json_response import encode
from likewise.service.http.problems import RETRY_AFTER_S, Problem

GRACE_S = 7
"""Maximum seconds for accepted requests to end when the service is stopped."""
END_S = 2.5
"""Maximum seconds in which the application closes its indexes. Then the process ends: a thread that computes cannot be
stopped, and a writer may wait for another one."""
_CONNECTIONS = 1000
"""Maximum connections at the same time, so that descriptors remain for the indexes."""


MAX_WORKERS = 4
"""Maximum workers that the service starts by itself. Each takes about 250 MB with the default model."""
WORKER_BYTES = 1 << 30
"""Memory of the machine for each worker that the service starts by itself."""


def default_workers(addresses: Iterable[str], *, loads_models: bool) -> int:
    """Return how many processes should answer: one for each core, because threads of one share an interpreter lock.

    One alone answers where processes cannot share a socket that listens (Windows) or start slowly (macOS), where
    each would load torch (writing, reranking), and where each would keep connections and words of a database.

    Args:
        loads_models: whether the service writes or reranks.
    """
    if sys.platform != "linux" or loads_models or any(map(is_uri, addresses)):
        return 1
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # there is no such file outside of a container, and "max" is no limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(1, min(cores(), MAX_WORKERS, memory // WORKER_BYTES))


_METRICS = "likewise-metrics-"
"""Prefix of folders with the metrics of workers. Each has a file that is locked while its service runs."""
_STAND_IN_S = 0.02
"""Seconds after which it is looked again whether workers listen."""
_STARTING_S = 10
"""Maximum seconds in which a worker must answer its supervisor. On a busy machine importing takes longer than 5."""


class CannotListen(LikewiseError):
    """The address cannot be listened on."""

    exit_code = 3


def serve(
    create: Callable[..., Starlette],
    host: str,
    port: int,
    announce: Callable[[str], None],
    *,
    workers: int = 1,
    drain_s: float = 0.0,
) -> None:
    """Serve until SIGINT or SIGTERM. Requests that were accepted are finished.

    Args:
        create: `create_app` with its arguments but `is_draining`. Workers receive it by pickle.
        port: 0 takes a free one.
        announce: called with the service's address (http://host:port) when it answers.
        workers: how many processes answer.
        drain_s: seconds from the signal to end until the service ends, in which /readyz refuses.

    Raises:
        CannotListen: the port is taken, or the host is not an address of this machine.
        NotAnIndex, NewerFormat, OlderFormat, IndexDamaged: an index cannot be read.
    """
    # It listens at once, because another service could do so while the indexes are opened.
    listening = _bind(host, port, listens=True)
    port = listening.getsockname()[1]
    announced = partial(announce, f"http://{_in_url(host)}:{port}")
    sockets: list[Any] = [listening]
    if workers > 1 and sys.platform == "linux":  # elsewhere one of the sockets would get all connections
        listening.close()
        listening = _reserve(host, port)
        sockets = [_OwnSocket(*listening.getsockname()[:2])]  # a name may stand for several addresses
    try:
        if workers == 1:
            draining = threading.Event()
            config = _config(make_app(create, draining.is_set))
            _Announcing(config, announced, drain_s, draining).run(sockets=[listening])
        else:
            _serve_with_workers(create, workers, sockets, listening.getsockname(), announced, drain_s)
    finally:
        listening.close()


def make_app(create: Callable[..., Starlette], is_draining: Callable[[], bool]) -> Starlette:
    """Return the application. In a worker, end the process when its parent process has ended."""
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_after, args=(parent.join,), daemon=True).start()
    app = create(is_draining=is_draining)
    running = app.router.lifespan_context

    @asynccontextmanager
    async def ending(app: Starlette) -> AsyncIterator[Any]:
        async with running(app) as state:
            yield state
            _after(END_S, partial(os._exit, 0))

    app.router.lifespan_context = ending
    TimedProtocol.count = app.state.metrics.connections.inc
    return app


def _end_after(wait: Callable[[], None]) -> None:
    wait()
    os.kill(os.getpid(), signal.SIGTERM)


def _after(seconds: float, call: Callable[[], Any]) -> None:
    """Call a function after some seconds, unless the process has ended."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


def _drain(seconds: float, draining: threading.Event | Event, end: Callable[[], Any]) -> None:
    """End at a signal: after some seconds, in which /readyz refuses; at once at a second signal."""
    if not seconds or draining.is_set():
        end()
    else:
        draining.set()
        _after(seconds, end)


class _Announcing(uvicorn.Server):
    """A server that reports when it answers, and that returns some time after a signal instead of ending by it."""

    def __init__(
        self, config: uvicorn.Config, announce: Callable[[], None], drain_s: float, draining: threading.Event
    ) -> None:
        super().__init__(config)
        self._announce, self._draining, self._drain_s = announce, draining, drain_s

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        await super().startup(sockets=list(sockets or ()))
        if self.started:
            self._announce()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn's own handler would give up at a second Ctrl-C, and leave the indexes open.
        _drain(self._drain_s, self._draining, partial(setattr, self, "should_exit", True))

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        # A further signal, before or after uvicorn has its handlers, must not end the process with an error.
        earlier = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            super().run(sockets=sockets)
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


def _ignore(number: int, frame: object) -> None:
    """Do nothing: unlike SIG_IGN, a process that is started during this time does not inherit it."""


def _serve_with_workers(
    create: Callable[..., Starlette],
    workers: int,
    sockets: list[Any],
    address: Any,
    announce: Callable[[], None],
    drain_s: float,
) -> None:
    draining = multiprocessing.get_context("spawn").Event()
    make_app(create, draining.is_set)  # what is wrong with an index is said once, by this process
    listens = multiprocessing.get_context("spawn").Event()
    config = _config(partial(make_app, create, draining.is_set), factory=True, workers=workers)
    config.callback_notify = partial(_notify, listens)
    for left in Path(tempfile.gettempdir()).glob(f"{_METRICS}*/lock"):
        with suppress(OSError), left.open() as lock:  # its service runs, or it is of another user
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left.parent)
    with tempfile.TemporaryDirectory(prefix=_METRICS) as metrics, (Path(metrics) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics  # workers inherit it
        # With a thread for each core in each worker, 32 clients got a fifth fewer answers.
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores() // workers)))
        supervisor = _Draining(config, sockets, drain_s, draining)
        watching = (address, supervisor, listens, announce)
        threading.Thread(target=_announce_and_stand_in, args=watching, daemon=True).start()
        supervisor.run()
        if any(process.exitcode == uvicorn.config.STARTUP_FAILURE for process in supervisor.processes):
            raise LikewiseError("a worker could not start: the reason is in the lines above")


async def _notify(listens: Event) -> None:
    """Say that a worker listens. uvicorn calls this when it has begun to, and then every 30 seconds."""
    listens.set()


@dataclass(frozen=True)
class _OwnSocket:
    """Becomes a socket of its own in each worker, which listens on the same port: the system spreads connections.

    From one socket, the first worker to wake would accept all connections that come together, and answer alone.
    """

    host: str
    port: int

    def __reduce__(self) -> tuple[Callable[..., socket.socket], tuple[str, int]]:
        return partial(_bind, shared=True), (self.host, self.port)


class _Draining(Multiprocess):
    """A supervisor that ends its workers some time after a signal."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], drain_s: float, draining: Event) -> None:
        super().__init__(config, sockets)
        self._drain_s, self._draining = drain_s, draining

    def handle_term(self) -> None:
        _drain(self._drain_s, self._draining, self.should_exit.set)

    handle_int = handle_term


def _announce_and_stand_in(
    address: Any, supervisor: Multiprocess, listens: Event, announce: Callable[[], None]
) -> None:
    """Announce the first worker that listens. From then on, answer with 503 whenever no worker is left, until one
    listens."""
    while not listens.is_set():  # waiting on it could stop a worker that sets it while this process is killed
        if supervisor.should_exit.wait(_STAND_IN_S):
            return
    announce()
    if not isinstance(supervisor.sockets[0], _OwnSocket):  # connections wait in the socket that all workers share
        return
    body = encode(Problem(503, "restarting", "the service is starting again: try again in a second").as_json())
    head = f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER_S}\r\nContent-Length: {len(body)}\r\n"
    answer = f"{head}Content-Type: application/problem+json\r\nConnection: close\r\n\r\n".encode() + body
    while not supervisor.should_exit.wait(_STAND_IN_S):
        processes = list(supervisor.processes)
        if not connection.wait([each.process.sentinel for each in processes], timeout=1):
            continue
        listens.clear()  # before looking, so that a worker that begins to listen meanwhile is noticed
        try:
            socket.create_connection(address[:2], timeout=_STARTING_S).close()  # to another worker
        except ConnectionRefusedError:
            with _bind(*address[:2], listens=True, shared=True) as listening:
                listening.settimeout(_STAND_IN_S)
                while not listens.is_set() and not supervisor.should_exit.is_set():
                    with suppress(OSError):  # nobody has come, or somebody who does not wait
                        client, _ = listening.accept()
                        with client:
                            client.settimeout(1)
                            client.recv(1 << 16)
                            client.sendall(answer)
        except OSError:  # another worker is too busy to accept it
            continue


def _config(app: Callable[..., object], factory: bool = False, workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=factory,
        workers=workers,
        http=TimedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_worker_healthcheck=_STARTING_S,
        timeout_graceful_shutdown=GRACE_S,
    )


def _reserve(host: str, port: int) -> socket.socket:
    """Return a socket that keeps an address for workers with sockets of their own (Linux). It does not listen."""
    _bind(host, port, listens=True).close()  # refused if another service listens, or has reserved the address
    reserved = _bind(host, port, shared=True)
    # Otherwise a service that starts before the workers listen could bind the address, too, and share their port.
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return reserved


def _bind(host: str, port: int, *, listens: bool = False, shared: bool = False) -> socket.socket:
    """Return a socket with this address; `shared`: other sockets of this user may have it, too."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind(address)
            if listens:
                listening.listen()
        except OSError:
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotListen(
            f"{host}:{port}: {reason}: choose another --port or --host; --port 0 takes a free port"
        ) from error
    listening.set_inheritable(True)
    return listening


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
