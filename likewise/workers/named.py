"""Workers as a command line names them. The shell finds this file by its door."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from indexer.indexing.embedder import Embedder, Workers
from indexer.listener import Listener
from likewise.workers.pool import Pool
from likewise.workers.process_workers import ProcessWorkers
from likewise.workers.ray_workers import RayWorkers, parse_resources

__all__ = ["opened", "parse_resources"]


@contextmanager
def opened(
    named: str, resources: Mapping[str, float], listener: Listener, notes: list[str]
) -> Iterator[Callable[[Embedder], Workers]]:
    """Yield what makes workers. At the end they are closed, and their notes added.

    Args:
        named: a number of processes, `ray`, or the address of a Ray cluster.
        resources: what a worker takes of its machine in a Ray cluster.
    """
    pools: list[Pool] = []

    def make(embedder: Embedder) -> Workers:
        if named.isdecimal():
            pools.append(ProcessWorkers(embedder, int(named), listener=listener))
        else:
            address = None if named == "ray" else named
            pools.append(RayWorkers(embedder, address, resources=resources, listener=listener))
        return pools[-1]

    try:
        yield make
    finally:
        for pool in pools:
            pool.close()
            notes.extend(pool.notes)
