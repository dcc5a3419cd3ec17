"""Workers that are actors of a Ray cluster. Ray starts, places and watches them; batches and losses are the pool's.

Ray's own transport pickles the arguments and the results of calls, which are bytes (wire.py), and nothing else of ours.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from indexer.errors import BadInput, WorkersLost
from indexer.indexing.embedder import Embedder
from indexer.listener import SILENT, Listener
from likewise.workers.pool import BATCH_SECONDS, START_SECONDS, Pool, Worker, WorkerLost
from likewise.workers.wire import Answering

_OBJECT_STORE_BYTES = 256 * 2**20
"""Shared memory of a Ray that runs on this machine alone. Batches are much smaller."""

_LOOPBACK = "127.0.0.1"
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # without it, Ray warns about a change of its next version
    "GRPC_VERBOSITY": "ERROR",
}


class RayWorkers(Pool):
    """Actors of a Ray cluster, each with its own copy of the model. Members are those of `Pool`.

    The model is loaded by name on each machine, so each needs likewise and the model's files.
    """

    def __init__(
        self,
        embedder: Embedder,
        address: str | None = None,
        *,
        resources: Mapping[str, float] = MappingProxyType({}),
        seconds: float = BATCH_SECONDS,
        start_seconds: float = START_SECONDS,
        listener: Listener = SILENT,
    ) -> None:
        """Connect to a cluster and prepare as many actors as it has room for.

        Args:
            embedder: embeds the documents; `index.embedder`.
            address: `ray://HOST:PORT` of a cluster (Ray Client). None is the cluster that RAY_ADDRESS names or that
                runs on this machine, or else (always where RAY_ADDRESS is `local`) a Ray of this machine alone, on
                loopback and without a dashboard.
            resources: what an actor takes of its node, such as {"GPU": 1}. By default a GPU where the cluster has any,
                and all cores of a node where it has none.
            seconds: maximum time for a batch of about 10 seconds of work. An actor that needs longer is replaced.
            start_seconds: maximum time until an actor is placed and has loaded its model.
            listener: receives notes, and how many workers are busy.

        Raises:
            WorkersLost: the cluster cannot be reached, or has no room for an actor.
            BadInput: a resource is not a number above 0.
            ModuleNotFoundError: the extra `ray` is not installed.
        """
        for name, amount in resources.items():
            _require_amount(name, amount)
        os.environ.update(_QUIET)
        import ray

        self._ray: Any = ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            _connect(ray, address)
        wanted, count = _room([node["Resources"] for node in ray.nodes() if node["Alive"]], resources)
        if not count:
            self._disconnect()
            named = ", ".join(f"{name}={amount:g}" for name, amount in wanted.items())
            raise WorkersLost(f"no node of the Ray cluster has {named}: ask for less, or add a node")
        self._options = {
            "num_cpus": wanted.pop("CPU", 0),
            "num_gpus": wanted.pop("GPU", 0),
            "resources": wanted,
            "scheduling_strategy": "SPREAD",
            # Ray would hide losses, and with them the document that causes them.
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        super().__init__(
            embedder,
            lambda _: _Actor(ray, self._options),
            count,
            seconds=seconds,
            start_seconds=start_seconds,
            listener=listener,
        )

    def close(self) -> None:
        """End the actors, and the connection to the cluster unless the caller had one."""
        super().close()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._is_ours:
            self._ray.shutdown()


def parse_resources(given: tuple[str, ...]) -> dict[str, float]:
    """Return the resources of texts such as GPU=1 or GPU=1,CPU=4. Raises BadInput for anything else."""
    resources: dict[str, float] = {}
    for part in (part for text in given for part in text.split(",")):
        name, _, text = part.partition("=")
        amount = 0.0
        with suppress(ValueError):
            amount = float(text)
        _require_amount(name, amount, part)
        resources[name] = amount
    return resources


def _require_amount(name: str, amount: float, part: str = "") -> None:
    if not name or not 0 < amount < math.inf:
        shown = part or f"{name}={amount}"
        raise BadInput(f"resource {shown!r:.40} is not NAME=NUMBER: write GPU=1, or GPU=1,CPU=4")


def _connect(ray: Any, address: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    on_sigterm = signal.getsignal(signal.SIGTERM)
    named = address or os.environ.get("RAY_ADDRESS") or "auto"
    try:
        if named != "local":
            try:
                _join(ray, named, quiet)
                return
            except ConnectionError:
                if named != "auto":
                    raise
        with _on_loopback():
            ray.init(
                address="local",
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _node_ip_address=_LOOPBACK,
                **quiet,
            )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, ray.exceptions.RayError) as error:
        where = "on this machine" if named in ("auto", "local") else named
        reason = " ".join(str(error).split())[:300]
        raise WorkersLost(
            f"the Ray cluster {where} cannot be reached ({reason}): start it, correct it, or set RAY_AUTH_MODE=token "
            "if it asks for a token"
        ) from error
    finally:
        # Ray's own handler ends the process in the middle of a commit.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_sigterm)


def _join(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Connect to a cluster. Ray's server for a client may die while it starts (ray issue 63202): try three times."""
    for _ in range(2):
        with suppress(ConnectionAbortedError):
            ray.init(address=address, **options)
            return
    ray.init(address=address, **options)


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Let a Ray that starts in the block, and its processes, listen on loopback.

    Ray replaces 127.0.0.1 by the machine's address unless clusters are switched off, as they are on macOS.
    """
    from ray._private import ray_constants

    earlier = ray_constants.ENABLE_RAY_CLUSTER
    os.environ[_CLUSTERS], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        del os.environ[_CLUSTERS]
        ray_constants.ENABLE_RAY_CLUSTER = earlier


def _room(nodes: list[dict[str, float]], resources: Mapping[str, float]) -> tuple[dict[str, float], int]:
    """Return what an actor takes of its node, and how many actors the nodes have room for."""
    wanted = dict(resources)
    if not wanted:
        has_gpus = any(node.get("GPU") for node in nodes)
        cores = [node["CPU"] for node in nodes if node.get("CPU")]
        wanted = {"GPU": 1.0} if has_gpus else {"CPU": min(cores, default=1.0)}
    return wanted, sum(min(int(node.get(name, 0) // amount) for name, amount in wanted.items()) for node in nodes)


class _Actor(Worker):
    def __init__(self, ray: Any, options: dict[str, Any]) -> None:
        self._ray = ray
        try:
            self._actor = ray.remote(**options)(Answering).remote()
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise WorkerLost(_reason(error)) from error

    def ask(self, request: bytes, seconds: float) -> bytes:
        try:
            answer: bytes = self._ray.get(self._actor.answer.remote(request), timeout=seconds)
        except self._ray.exceptions.GetTimeoutError as error:
            raise WorkerLost(f"it did not answer within {seconds:g} seconds") from error
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise WorkerLost(_reason(error)) from error
        return answer

    def close(self) -> None:
        with suppress(self._ray.exceptions.RayError, ConnectionError, ValueError, RuntimeError):  # it may have ended
            self._ray.kill(self._actor)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "all references to the actor were removed" in text:
        # This process refuses the cluster's question whether it still uses the actor, because it comes without a token.
        return "this machine asks for a token of Ray, and the cluster has none: set RAY_AUTH_MODE=disabled"
    return f"{type(error).__name__}: {text[:200]}"
