"""Questions of several threads are embedded together; no thread waits for others to come; errors reach their thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from search.question_batches import BATCH_QUESTIONS, QuestionBatches


class SlowEncoder:
    """An encoder whose first call waits for an event, and which records every call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.started, self.go = threading.Event(), threading.Event()

    def encode(self, texts: Sequence[str], role: str = "document", truncate: bool = False) -> Any:
        assert (role, truncate) == ("query", True)
        first = not self.calls
        self.calls.append(list(texts))
        if first:
            self.started.set()
            assert self.go.wait(20)
        if any("bad" in text for text in texts):
            raise ValueError("bad text")
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)


def gathered(batches: QuestionBatches, count: int) -> None:
    """Wait until this many questions wait for the leader."""
    pause = threading.Event()
    while len(batches._waiting) < count + 1:  # and the leader's own
        pause.wait(0.001)


def test_questions_that_come_meanwhile_are_embedded_together_and_each_gets_its_own_vector() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    texts = [f"{chr(97 + n % 26)}{'x' * n}" for n in range(BATCH_QUESTIONS + 5)]
    with ThreadPoolExecutor(len(texts) + 1) as pool:
        first = pool.submit(batches.encode, encoder, "first")  # type: ignore[arg-type]
        assert encoder.started.wait(20)
        others = [pool.submit(batches.encode, encoder, text) for text in texts]  # type: ignore[arg-type]
        gathered(batches, len(texts))
        encoder.go.set()
        assert first.result(20).tolist() == [5, ord("f")]
        for text, other in zip(texts, others, strict=True):
            assert other.result(20).tolist() == [len(text), ord(text[0])]
    assert [len(call) for call in encoder.calls] == [1, BATCH_QUESTIONS, 5]
    assert (batches._waiting, batches._led) == ([], False)


def test_one_bad_question_does_not_fail_the_others() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(batches.encode, encoder, "first")  # type: ignore[arg-type]
        assert encoder.started.wait(20)
        others = [pool.submit(batches.encode, encoder, text) for text in ("good", "bad", "fine")]  # type: ignore[arg-type]
        gathered(batches, 3)
        encoder.go.set()
        first.result(20)
        with pytest.raises(ValueError, match="bad text"):
            others[1].result(20)
        assert [others[n].result(20)[0] for n in (0, 2)] == [4, 4]
    assert batches.encode(encoder, "after")[0] == 5  # type: ignore[arg-type]


def test_another_encoder_is_asked_by_itself() -> None:
    slow, other, batches = SlowEncoder(), SlowEncoder(), QuestionBatches()
    other.go.set()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(batches.encode, slow, "first")  # type: ignore[arg-type]
        assert slow.started.wait(20)
        second = pool.submit(batches.encode, other, "second")  # type: ignore[arg-type]
        gathered(batches, 1)
        slow.go.set()
        assert (first.result(20)[0], second.result(20)[0]) == (5, 6)
    assert (slow.calls, other.calls) == ([["first"]], [["second"]])


def test_a_leader_that_is_interrupted_hands_over() -> None:
    class Interrupted(SlowEncoder):
        def encode(self, texts: Sequence[str], role: str = "document", truncate: bool = False) -> Any:
            rows = super().encode(texts, role, truncate)
            if texts[0] == "stop":
                raise KeyboardInterrupt
            return rows

    encoder, batches = Interrupted(), QuestionBatches()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(batches.encode, encoder, "stop")  # type: ignore[arg-type]
        assert encoder.started.wait(20)
        second = pool.submit(batches.encode, encoder, "next")  # type: ignore[arg-type]
        gathered(batches, 1)
        encoder.go.set()
        with pytest.raises(KeyboardInterrupt):
            first.result(20)
        assert second.result(20)[0] == 4
    assert batches._led is False


def test_a_leader_that_is_interrupted_before_it_wakes_the_others_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class InterruptedEvent(threading.Event):
        """Interrupted when its own thread, which leads the second batch, begins to wake the others."""

        def set(self) -> None:
            if self.is_set():
                raise KeyboardInterrupt
            super().set()

    encoder, batches = SlowEncoder(), QuestionBatches()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(batches.encode, encoder, "first")  # type: ignore[arg-type]
        assert encoder.started.wait(20)
        monkeypatch.setattr("search.question_batches.Event", InterruptedEvent)
        second = pool.submit(batches.encode, encoder, "bb")  # type: ignore[arg-type]
        gathered(batches, 1)
        monkeypatch.undo()
        third = pool.submit(batches.encode, encoder, "ccc")  # type: ignore[arg-type]
        gathered(batches, 2)
        encoder.go.set()
        assert first.result(20)[0] == 5
        with pytest.raises(KeyboardInterrupt):
            second.result(20)
        assert third.result(20)[0] == 3
    assert (batches._waiting, batches._led) == ([], False)


def test_a_forked_child_begins_again() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(batches.encode, encoder, "first")  # type: ignore[arg-type]
        assert encoder.started.wait(20)
        if (child := os.fork()) == 0:  # the leader does not exist here
            row = batches.encode(encoder, "child")  # type: ignore[arg-type]
            os._exit(0 if row[0] == 5 else 1)
        assert os.waitpid(child, 0)[1] == 0
        encoder.go.set()
        assert first.result(20)[0] == 5
