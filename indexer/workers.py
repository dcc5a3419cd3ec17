"""The public import path of `ProcessWorkers` and `RayWorkers` of `likewise.workers`."""

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.workers import ProcessWorkers as ProcessWorkers
    from likewise.workers import RayWorkers as RayWorkers
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, {"likewise.workers": ["ProcessWorkers", "RayWorkers"]}, "workers"
    )
