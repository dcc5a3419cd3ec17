"""How an index is worked on: what its settings do not say, because it is not stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from indexer.encoders.runtime import Runtime
from indexer.listener import SILENT, Listener

if TYPE_CHECKING:
    from indexer.stores.vector_cache import VectorCache


@dataclass(frozen=True, slots=True)
class Context:
    """Everything about a run that is the same for every index that it opens.

    Attributes:
        runtime: how encoders compute.
        cache: where vectors of documents are looked for first; None for nowhere.
        listener: receives what long calls report.
        wait: whether to wait for another writer; otherwise `IndexLocked` is raised at once.
    """

    runtime: Runtime = field(default_factory=Runtime)
    cache: VectorCache | None = None
    listener: Listener = SILENT
    wait: bool = True

    @property
    def vector_cache(self) -> VectorCache | None:
        """The cache, if vectors may come from it: those of int8 also depend on the documents of its calibration."""
        return None if self.runtime.precision == "int8" else self.cache
