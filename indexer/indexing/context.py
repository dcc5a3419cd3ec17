"""The options for working on an index that are not stored in its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from indexer.encoders.machine.runtime import Runtime
from indexer.listener import SILENT, Listener

if TYPE_CHECKING:
    from indexer.cache.vector_cache import VectorCache
    from indexer.indexing.embedder import Embedder, Workers


@dataclass(frozen=True, slots=True)
class Context:
    """The options of a run, which are the same for every index that the run opens.

    Attributes:
        runtime: how encoders compute.
        cache: cache that is searched first for vectors of documents; None for no cache.
        listener: receives what long calls report.
        workers: makes the workers that embed documents, when the first is embedded; None for this process.
        wait: wait for another writer; otherwise raise `IndexLocked` at once.
    """

    runtime: Runtime = field(default_factory=Runtime)
    cache: VectorCache | None = None
    listener: Listener = SILENT
    wait: bool = True
    workers: Callable[[Embedder], Workers] | None = None
