"""Batches of documents for workers, which may be lost: each batch is embedded once, or its document is to blame.

One thread for each worker starts it, asks it and replaces it. How a worker is started is given by `ProcessWorkers` and
`RayWorkers`.
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from indexer.encoders.recipes.recipe import MIN_PROBE_COSINE
from indexer.errors import (
    BadInput,
    EndpointUnavailable,
    LikewiseError,
    ModelError,
    RecipeMismatch,
    WorkersLost,
    count_of,
)
from indexer.exchange import Embedded
from indexer.indexing.batches import require_embedded
from indexer.indexing.embedder import Embedder
from indexer.listener import SILENT, Listener
from indexer.records import Document, Vector
from likewise.workers import wire

BATCH_SECONDS = 300.0
"""Maximum seconds for a batch. A batch is about 10 seconds of work, so a worker that needs longer hangs."""

START_SECONDS = 300.0
"""Maximum seconds until a new worker has loaded its model. A cluster may first have to start a machine."""

MAX_LOSSES = 3
"""Workers that a batch, or at last a single document, may lose."""

MAX_STARTS = 3
"""Attempts in a row to start a worker."""

MAX_BLAMED = 10
"""Documents in a row that may be blamed for the loss of their workers. More say that the machine is at fault."""

MIN_COSINE = 0.999
"""Minimum cosine between the probe vectors of two machines. Runtimes and precisions of one model differ by less."""


_ERRORS = {kind.__name__: kind for kind in (EndpointUnavailable, RecipeMismatch)}
"""Errors of workers that keep their class. The others are errors of the model."""


class WorkerLost(Exception):
    """A worker has ended, hangs, or answers with something else than vectors. The message says which."""


class Worker(Protocol):
    """A worker that was started. It answers one request after the other."""

    def ask(self, request: bytes, seconds: float) -> bytes:
        """Return the answer of `wire.Answering`. Raises WorkerLost."""

    def close(self) -> None:
        """End it, also while another thread waits for its answer, which then raises WorkerLost."""


@dataclass(eq=False, slots=True)
class _Task:
    documents: Sequence[Document]
    future: Future[list[Embedded]] = field(default_factory=Future)
    losses: int = 0


class Pool:
    """Workers that embed documents. Threads may share it. The first batch starts the workers.

    Attributes:
        window: batches to submit before the first is committed, so that no worker waits.
        notes: what the caller should know, such as workers that were lost.
    """

    def __init__(
        self,
        embedder: Embedder,
        start: Callable[[int], Worker],
        count: int,
        *,
        seconds: float = BATCH_SECONDS,
        start_seconds: float = START_SECONDS,
        listener: Listener = SILENT,
    ) -> None:
        """Prepare `count` workers.

        Args:
            start: starts the worker of a number from 0 on. Raises WorkerLost if that may succeed later, and another
                LikewiseError if not.
            seconds: maximum time for a batch; start_seconds: until a worker has loaded its model.
            listener: receives notes, and how many workers are busy.

        Raises:
            BadInput: the count is not positive.
        """
        if count < 1:
            raise BadInput(f"{count} workers: give 1 or more")
        self.window = 2 * count
        self.notes: list[str] = []
        self._embedder, self._start, self._count = embedder, start, count
        self._seconds, self._start_seconds, self._listener = seconds, start_seconds, listener
        self._changed = threading.Condition()
        self._queue: deque[_Task] = deque()
        self._workers: dict[int, Worker] = {}
        self._threads: list[threading.Thread] = []
        self._left = count
        self._joined = self._closed = False
        self._busy = self._lost = self._blamed = 0
        self._reason = self._lost_because = ""
        self._probe: Vector | None = None
        self._probe_lock = threading.Lock()

    def submit(self, documents: Sequence[Document]) -> Future[list[Embedded]]:
        """Embed documents, as `Embedder.embed` does. The first call waits until a worker is ready.

        The result of a document that ended all of its workers has no passages and a `failure`.

        Raises:
            WorkersLost: no worker is left; the future may raise it too.
        """
        task = _Task(documents)
        with self._changed:
            if self._closed:
                raise WorkersLost("the workers were closed: make new ones")
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._serve, args=(number,), daemon=True) for number in range(self._count)
                ]
                for thread in self._threads:
                    thread.start()
            self._changed.wait_for(lambda: self._joined or not self._left)
            if not self._left:
                raise self._none_left()
            self._queue.append(task)
            self._changed.notify()
        return task.future

    def close(self) -> None:
        """End the workers. Batches that are under way get WorkersLost."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            workers = list(self._workers.values())
        for worker in workers:
            worker.close()
        for thread in self._threads:
            thread.join()
        if self._lost:
            self._note(f"{count_of(self._lost, 'worker')} lost and replaced, the last because {self._lost_because}")

    def _serve(self, number: int) -> None:
        """Keep a worker of this number, and give it batches until the pool is closed."""
        worker: Worker | None = None
        try:
            while True:
                if worker is None and (worker := self._replace(number)) is None:
                    return
                if (task := self._take()) is None:
                    return
                try:
                    self._count_busy(1)
                    embedded = self._ask(worker, task.documents)
                    self._blamed = 0
                    task.future.set_result(embedded)
                except WorkerLost as error:
                    worker.close()
                    worker = None
                    self._lose(task, str(error))
                except Exception as error:  # noqa: BLE001 a fault of our own too must end the run and not hang it
                    task.future.set_exception(error)
                finally:
                    self._count_busy(-1)
        finally:
            if worker is not None:
                worker.close()
            with self._changed:
                self._workers.pop(number, None)
                self._left -= 1
                unserved = [] if self._left else [*self._queue]
                self._changed.notify_all()
            for task in unserved:
                task.future.set_exception(self._none_left())

    def _replace(self, number: int) -> Worker | None:
        """Return a new worker that makes the same vectors; None if there is none, or the pool is closed."""
        for _ in range(MAX_STARTS):
            if self._closed:
                return None
            worker: Worker | None = None
            try:
                worker = self._start(number)
                with self._changed:
                    self._workers[number] = worker
                    if self._closed:
                        worker.close()
                self._admit(worker)
            except Exception as error:  # noqa: BLE001 a system may refuse a process in many ways
                if worker is not None:
                    worker.close()
                self._reason = str(error)
                if isinstance(error, LikewiseError):
                    self._note(f"worker {number + 1} is refused: {error}")
                    return None
            else:
                with self._changed:
                    self._joined = True
                    self._changed.notify_all()
                return worker
        if not self._closed:
            self._note(f"worker {number + 1} cannot be started: {self._reason}")
        return None

    def _admit(self, worker: Worker) -> None:
        """Raise ModelError unless a new worker has the model of this process."""
        answer, vector = self._exchange(worker, wire.pack_embedder(self._embedder), self._start_seconds)
        recipe, found = self._embedder.recipe, str(answer.get("fingerprint", ""))
        if found != recipe.fingerprint:
            raise ModelError(f"its model {recipe.model!r} has other files ({found[:12]}...)")
        with self._probe_lock:
            if self._probe is None:
                self._probe = self._embedder.probe()
        cosine = float(vector @ self._probe) if vector.shape == self._probe.shape else 0.0
        least = MIN_COSINE if recipe.remote is None else MIN_PROBE_COSINE
        if not cosine >= least:
            raise ModelError(f"its vector of a probe text has the cosine {cosine:.4f} with that of this machine")

    def _ask(self, worker: Worker, documents: Sequence[Document]) -> list[Embedded]:
        answer, numbers = self._exchange(worker, wire.pack_documents(documents), self._seconds)
        recipe = self._embedder.recipe
        try:
            embedded, notes = wire.unpack_embedded(answer, numbers), answer["notes"]
            embedded = [
                require_embedded(document, item, recipe, recipe.dimensions)
                for document, item in zip(documents, embedded, strict=True)
            ]
        except (BadInput, ValueError, TypeError, KeyError) as error:
            raise WorkerLost(f"it answers with something other than vectors of this model: {error}") from error
        for note in notes:
            self._note(note)
        return embedded

    def _exchange(self, worker: Worker, request: bytes, seconds: float) -> tuple[dict[str, str], Vector]:
        reply = worker.ask(request, seconds)
        try:
            answer, numbers = wire.unpack(reply)
        except (ValueError, struct.error) as error:
            raise WorkerLost(f"it answers with something that is no message: {error}") from error
        if "lost" in answer:
            raise WorkerLost(answer["lost"])
        if "error" in answer:
            raise _ERRORS.get(answer["error"], ModelError)(answer["message"])
        return answer, numbers

    def _take(self) -> _Task | None:
        """Return the next batch; None if the pool is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            if self._closed:
                return None
            return self._queue.popleft()

    def _lose(self, task: _Task, reason: str) -> None:
        """Let another worker embed a batch: in halves after MAX_LOSSES workers were lost with it."""
        self._reason = reason
        with self._changed:
            if self._closed:
                task.future.set_exception(WorkersLost("the workers were closed"))
                return
            self._lost += 1
            self._lost_because = reason
        task.losses += 1
        again = [task]
        if task.losses >= MAX_LOSSES:
            again = self._halves(task) if len(task.documents) > 1 else []
        if not again:
            self._blame(task, reason)
        with self._changed:
            self._queue.extendleft(reversed(again))
            self._changed.notify_all()

    def _halves(self, task: _Task) -> list[_Task]:
        """Return two batches whose results become that of this batch. A half of several documents may lose one more
        worker before it is halved too."""
        middle = len(task.documents) // 2
        parts = [task.documents[:middle], task.documents[middle:]]
        halves = [_Task(part, losses=MAX_LOSSES - 1 if len(part) > 1 else 0) for part in parts]

        def join(_: Future[list[Embedded]]) -> None:
            with self._changed:
                if task.future.done() or not all(half.future.done() for half in halves):
                    return
                errors_of = [error for half in halves if (error := half.future.exception()) is not None]
                if errors_of:
                    task.future.set_exception(errors_of[0])
                else:
                    task.future.set_result([item for half in halves for item in half.future.result()])

        for half in halves:
            half.future.add_done_callback(join)
        return halves

    def _blame(self, task: _Task, reason: str) -> None:
        self._blamed += 1
        if self._blamed >= MAX_BLAMED:
            error = f"{MAX_BLAMED} documents in a row have ended their workers ({reason})"
            task.future.set_exception(WorkersLost(f"{error}: see why, and run the same command again to continue"))
            return
        recipe = self._embedder.recipe
        rows = np.empty((0, recipe.dimensions), np.float32)
        task.future.set_result([Embedded((), rows, recipe.identity, failure=reason)])

    def _none_left(self) -> WorkersLost:
        why = self._reason or "they were closed"
        return WorkersLost(f"no worker is left ({why}): what was committed is kept; run it again to continue")

    def _count_busy(self, change: int) -> None:
        with self._changed:
            self._busy += change
            busy, left = self._busy, self._left
        self._listener.workers(busy, left)

    def _note(self, text: str) -> None:
        with self._changed:
            if text in self.notes:
                return
            self.notes.append(text)
        self._listener.note(text)
