"""`ProcessWorkers` and `RayWorkers`: the public path of what `likewise.workers` holds."""

from indexer.doors import installed

with installed("workers"):
    from likewise.workers import ProcessWorkers as ProcessWorkers
    from likewise.workers import RayWorkers as RayWorkers
