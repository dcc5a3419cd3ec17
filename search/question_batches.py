"""Embedding together the questions that several callers ask at the same time: threads, or coroutines before they take a
thread.

One pass of the model costs little more for eight questions than for one. No question waits for others to come: one that
finds the encoder idle is embedded at once.
"""

from __future__ import annotations

import atexit
import os
import time
import weakref
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Thread

from indexer.encoders import Encoder
from indexer.records import Vector
from search.timings import Timings

BATCH_QUESTIONS = 32
"""Maximum questions in one pass. With more, the time of a pass grows in proportion."""


@dataclass(frozen=True, eq=False)
class AskedQuestion:
    """A question with its `vector` (dimensions,), or the error of the encoder, once it is embedded."""

    encoder: Encoder
    text: str
    vector: Future[Vector]


class QuestionBatches:
    """Embeds the questions of all callers in one thread, which ends with this object and lets the process end."""

    def __init__(self, timings: Timings | None = None) -> None:
        self._timings = timings or Timings()
        self._start()

    def _start(self) -> None:
        self._process, self._lock = os.getpid(), Lock()
        self._waiting: list[AskedQuestion] = []
        self._asked = SimpleQueue[QuestionBatches | None]()  # this object, once per question; None ends the thread
        self._thread: Thread | None = None
        weakref.finalize(self, self._asked.put, None).atexit = False  # `_end` does it then

    def ask(self, encoder: Encoder, text: str) -> AskedQuestion:
        """Begin to embed a question, and return at once."""
        if self._process != os.getpid():  # a forked child does not have the parent's thread
            self._start()
        question = AskedQuestion(encoder, text, Future())
        with self._lock:
            self._waiting.append(question)
            if self._thread is None:
                self._thread = Thread(target=_embed_all, args=(self._asked,), name="likewise questions", daemon=True)
                self._thread.start()
                for ended in [each for each in [*_threads] if not each.is_alive()]:
                    _threads.pop(ended, None)
                _threads[self._thread] = self._asked
        self._asked.put(self)  # after the batch that takes the question, this does nothing
        return question

    def _embed(self) -> None:
        """Embed the first question that waits, with the others for its encoder."""
        with self._lock:
            if not self._waiting:
                return
            encoder = self._waiting[0].encoder
            batch = [each for each in self._waiting if each.encoder is encoder][:BATCH_QUESTIONS]
            self._waiting = [each for each in self._waiting if each not in batch]
        if batch := [each for each in batch if each.vector.set_running_or_notify_cancel()]:
            begun = time.perf_counter()
            _answer(encoder, batch)
            self._timings.encoded(len(batch), time.perf_counter() - begun)


_threads: dict[Thread, SimpleQueue[QuestionBatches | None]] = {}
"""The threads that run. `_end` waits for them."""


@atexit.register
def _end() -> None:
    """Wait for the threads. Python would end them wherever they are, and in C++ code this aborts the process."""
    for thread, asked in [*_threads.items()]:
        asked.put(None)
        thread.join(1.0)  # at most, because a call of an endpoint may take long


def _embed_all(asked: SimpleQueue[QuestionBatches | None]) -> None:
    while (batches := asked.get()) is not None:
        batches._embed()
        del batches  # the last reference may be this one


def _answer(encoder: Encoder, batch: list[AskedQuestion]) -> None:
    """Give each question its vector. If the batch fails, each question is embedded alone, so that one question cannot
    make the others fail."""
    try:
        rows = encoder.encode([question.text for question in batch], role="query", truncate=True)
    except BaseException as error:  # noqa: BLE001 - raised again by the caller that asked
        if len(batch) == 1:
            batch[0].vector.set_exception(error)
            return
        for question in batch:
            _answer(encoder, [question])
        return
    for question, row in zip(batch, rows, strict=True):
        question.vector.set_result(row)
