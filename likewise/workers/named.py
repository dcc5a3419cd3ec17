"""Workers as a command line names them. The shell finds this file by its door."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from indexer.encoders.machine.hardware import cores, gpus, multiplies_bfloat16, named_threads
from indexer.encoders.recipes.locate import DEFAULT_MODEL
from indexer.encoders.recipes.port import loaded, of_role
from indexer.indexing.core import IndexCore
from indexer.indexing.embedder import Embedder, Workers
from indexer.listener import Listener
from likewise.workers.pool import Pool
from likewise.workers.process_workers import ProcessWorkers
from likewise.workers.ray_workers import RayWorkers, parse_resources

__all__ = ["opened", "parse_resources", "quicker"]

STATIC_MODEL = "minishlab/potion-base-4M"
"""A static model for English. In a change of the model on SciFact it was 67 times as quick as the default model, and
found less."""


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


def quicker(index: IndexCore) -> str:
    """Return what would embed the documents of an index quicker than this process does on this machine; empty if
    nothing is known."""
    if not index.window():  # Nothing has been embedded here yet.
        return ""
    device = str(getattr(loaded(of_role(index.encoder, "document")), "device", ""))
    if device.startswith("cuda"):
        return f"--workers {len(gpus())} would use every GPU" if len(gpus()) > 1 else ""
    if device != "cpu":
        return ""
    is_named = index.context.runtime.device != "auto"
    ways = ["the GPU, without --device cpu" if is_named and gpus() else "a computer with a GPU"]
    if (threads := named_threads() or cores()) < cores():
        ways.append(f"all {cores()} cores (OMP_NUM_THREADS is {threads})")
    if index.encoder.recipe.model == DEFAULT_MODEL:
        if index.context.runtime.precision == "auto" and not multiplies_bfloat16():
            ways.append("--precision int8, which finds nearly the same")
        ways.append(f"a new index with --model {STATIC_MODEL}, a static model that finds less")
    return f"quicker: {', or '.join(ways)}"
