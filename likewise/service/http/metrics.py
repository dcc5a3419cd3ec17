"""Prometheus metrics of the service: base units, counters that end in `_total`, the prefix `likewise_`.

Several workers share the files in the folder PROMETHEUS_MULTIPROC_DIR, so that each worker answers for all of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from indexer.errors import LikewiseError
from likewise.service.served import ServedIndexes
from search.timings import Timings

MEDIA_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_QUESTIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


class Metrics(Timings):
    """The metrics of one application. They receive the timings of its searchers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "likewise_requests", "Requests that were answered.", ("method", "route", "status"), registry=self._registry
        )
        self.duration = self._histogram("request", "from the arrival of a request to the end of its answer", ("route",))
        self.queue = self._histogram("queue", "a request waited for a thread")
        self._tokenization = self._histogram("tokenization", "turning a question into tokens took")
        self._encoding = self._histogram("encoding", "one pass of the model took, for one question or several")
        self._ranking = self._histogram("ranking", "ranking a question and reading its hits took")
        self._batch = Histogram(
            "likewise_batch_questions",
            "Questions that were embedded in one pass of the model.",
            buckets=_QUESTIONS,
            registry=self._registry,
        )
        self._store_errors = Counter(
            "likewise_store_errors",
            "Requests that failed because an index could not be read or written, by the slug of the error.",
            ("kind",),
            registry=self._registry,
        )
        self.in_progress = self._sum("requests_in_progress", "Requests that are being read, wait or are worked on.")
        self.connections = self._sum("connections", "Open connections of clients.")

    def _sum(self, name: str, what: str) -> Gauge:
        return Gauge(f"likewise_{name}", what, registry=self._registry, multiprocess_mode="livesum")

    def _histogram(self, name: str, what: str, labels: Sequence[str] = ()) -> Histogram:
        return Histogram(
            f"likewise_{name}_duration_seconds", f"Seconds: {what}.", labels, buckets=_SECONDS, registry=self._registry
        )

    def tokenized(self, seconds: float) -> None:
        self._tokenization.observe(seconds)

    def encoded(self, questions: int, seconds: float) -> None:
        self._batch.observe(questions)
        self._encoding.observe(seconds)

    def ranked(self, seconds: float) -> None:
        self._ranking.observe(seconds)

    def failed(self, slug: str) -> None:
        self._store_errors.labels(slug).inc()

    def exposition(self, indexes: ServedIndexes) -> bytes:
        """Return everything, with the sizes of these indexes, in Prometheus's text format."""
        registry = self._registry
        if (folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR")) is not None:
            forget_ended_workers(Path(folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        sizes = CollectorRegistry()
        sizes.register(_IndexSizes(indexes))
        build = {"version": version("likewise"), "python": python_version()}
        Info("likewise_build", "Versions of the program and of Python.", registry=sizes).info(build)
        return generate_latest(registry) + generate_latest(sizes)


def forget_ended_workers(folder: Path) -> None:
    """Remove the gauges of workers that have ended: a killed worker no longer has requests in progress."""
    for file in folder.glob("gauge_live*_*.db"):
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)


class _IndexSizes(Collector):
    """The sizes of the served indexes when they are asked for."""

    def __init__(self, indexes: ServedIndexes) -> None:
        self._indexes = indexes

    def collect(self) -> Iterable[Metric]:
        documents = GaugeMetricFamily("likewise_index_documents", "Documents of an index.", labels=("index",))
        passages = GaugeMetricFamily("likewise_index_passages", "Passages of an index.", labels=("index",))
        size = GaugeMetricFamily("likewise_index_bytes", "Bytes of an index in storage.", labels=("index",))
        age = GaugeMetricFamily(
            "likewise_index_last_commit_age_seconds", "Seconds since the last commit of an index.", labels=("index",)
        )
        for name, served in self._indexes.items():
            try:
                info, committed = served.searcher.info(), served.searcher.committed_at()
            except LikewiseError:  # /readyz says so; the other indexes still have sizes
                continue
            documents.add_metric([name], info.documents)
            passages.add_metric([name], info.passages)
            size.add_metric([name], info.bytes)
            if committed is not None:
                age.add_metric([name], max(0.0, time.time() - committed))
        return documents, passages, size, age
