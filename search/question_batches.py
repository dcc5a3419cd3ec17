"""Embedding together the questions that several threads ask at the same time.

One pass of the model costs little more for eight questions than for one. No thread waits for others to come: a thread
that finds the encoder idle starts at once.
"""

from __future__ import annotations

import os
import time
from threading import Event, Lock

from indexer.encoders import Encoder
from indexer.records import Vector
from search.timings import NoTimings, Timings

BATCH_QUESTIONS = 32
"""Maximum questions in one pass. With more, the time of a pass grows in proportion."""


class _Question:
    """One question that waits for its vector."""

    __slots__ = ("encoder", "error", "leads", "text", "vector", "woken")

    def __init__(self, encoder: Encoder, text: str) -> None:
        self.encoder, self.text = encoder, text
        self.vector: Vector | None = None
        self.error: Exception | None = None
        self.leads = False
        self.woken = Event()

    @property
    def answered(self) -> bool:
        return self.vector is not None or self.error is not None


class QuestionBatches:
    """Embeds the questions of all threads of a process. One thread at a time leads and embeds for all that wait."""

    def __init__(self, timings: Timings | None = None) -> None:
        self._timings = timings or NoTimings()
        self._start()

    def _start(self) -> None:
        self._process, self._lock = os.getpid(), Lock()
        self._waiting: list[_Question] = []
        self._led = False

    def encode(self, encoder: Encoder, text: str) -> Vector:
        """Return the vector of a question (dimensions,). An error of the encoder is raised in the asking thread."""
        if self._process != os.getpid():  # a forked child does not have the parent's leading thread
            self._start()
        question = _Question(encoder, text)
        try:
            with self._lock:
                self._waiting.append(question)
                question.leads = not self._led
                self._led = True
            if not question.leads:
                question.woken.wait()
            if question.leads:
                self._lead()
        finally:
            with self._lock:
                if question in self._waiting:  # this thread was interrupted
                    self._waiting.remove(question)
                if question.leads:
                    self._hand_over()
        if question.error is not None:
            raise question.error
        assert question.vector is not None
        return question.vector

    def _lead(self) -> None:
        """Embed the questions that wait. The leader's own question is the first of them."""
        with self._lock:
            encoder = self._waiting[0].encoder
            batch = [each for each in self._waiting if each.encoder is encoder][:BATCH_QUESTIONS]
        begun = time.perf_counter()
        _answer(encoder, batch)
        self._timings.encoded(len(batch), time.perf_counter() - begun)
        # Woken before they leave the queue: after an interruption in between, the next leader finds the others there.
        for each in batch:
            if each.answered:
                each.woken.set()
        with self._lock:
            self._waiting = [each for each in self._waiting if not each.answered]

    def _hand_over(self) -> None:
        """Make the first question that still waits the leader. Called with the lock held."""
        self._led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].woken.set()


def _answer(encoder: Encoder, batch: list[_Question]) -> None:
    """Give each question its vector. If the batch fails, each question is embedded alone, so that one question cannot
    make the others fail."""
    texts = [question.text for question in batch]
    try:
        rows = encoder.encode(texts, role="query", truncate=True)
    except Exception as error:  # noqa: BLE001 - raised again by the thread that asked
        if len(batch) == 1:
            batch[0].error = error
            return
        for question in batch:
            _answer(encoder, [question])
        return
    for question, row in zip(batch, rows, strict=True):
        question.vector = row
