"""Questions that several threads ask at the same time, embedded together: one pass of the model costs little more for
eight questions than for one. Nobody waits for others to come: who finds the encoder idle starts at once.
"""

from __future__ import annotations

import os
from threading import Event, Lock

from indexer.encoders import Encoder
from indexer.records import Vector

BATCH_QUESTIONS = 32
"""Questions embedded in one pass at most: beyond that a pass takes longer in proportion."""


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
    """Embeds questions of all threads of a process. One thread at a time leads: it embeds what waits, for everybody."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._process, self._lock = os.getpid(), Lock()
        self._waiting: list[_Question] = []
        self._led = False

    def encode(self, encoder: Encoder, text: str) -> Vector:
        """Return the vector of a question (dimensions,). Errors of the encoder reach the thread that asked."""
        if self._process != os.getpid():  # the leader of the parent does not exist in a forked child
            self._start()
        question = _Question(encoder, text)
        with self._lock:
            self._waiting.append(question)
            question.leads = not self._led
            self._led = True
        try:
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
        """Embed the questions that wait, the leader's own among them, which is the first."""
        with self._lock:
            encoder = self._waiting[0].encoder
            batch = [each for each in self._waiting if each.encoder is encoder][:BATCH_QUESTIONS]
        _answer(encoder, batch)
        with self._lock:
            self._waiting = [each for each in self._waiting if not each.answered]
        for each in batch:
            each.woken.set()

    def _hand_over(self) -> None:
        """Make the first question that still waits the leader. Called with the lock held."""
        self._led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].woken.set()


def _answer(encoder: Encoder, batch: list[_Question]) -> None:
    """Give each question its vector. Where the batch fails, each is embedded alone: one may be at fault."""
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
