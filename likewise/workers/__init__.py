"""Workers that embed documents for an index: processes of this machine, or actors of a Ray cluster.

`pool.py` gives batches to workers and replaces workers that are lost; the other files start them. The interface that an
index needs is `indexer.indexing.embedder.Workers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.workers.process_workers import ProcessWorkers as ProcessWorkers
    from likewise.workers.ray_workers import RayWorkers as RayWorkers
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {"likewise.workers.process_workers": ["ProcessWorkers"], "likewise.workers.ray_workers": ["RayWorkers"]},
    )
