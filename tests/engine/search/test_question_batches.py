"""Questions that are asked at the same time are embedded together; none waits for others; errors reach their caller."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index
from indexer.deadline import NEVER
from search import Query, Searcher
from search.question_batches import BATCH_QUESTIONS, AskedQuestion, QuestionBatches


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
    """Wait until this many questions wait for the encoder."""
    pause = threading.Event()
    while len(batches._waiting) < count:
        pause.wait(0.001)


def test_questions_that_come_meanwhile_are_embedded_together_and_each_gets_its_own_vector() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    texts = [f"{chr(97 + n % 26)}{'x' * n}" for n in range(BATCH_QUESTIONS + 5)]
    first = batches.ask(encoder, "first")  # type: ignore[arg-type]
    assert encoder.started.wait(20)
    others = [batches.ask(encoder, text) for text in texts]  # type: ignore[arg-type]
    encoder.go.set()
    assert first.vector.result(20).tolist() == [5, ord("f")]
    for text, other in zip(texts, others, strict=True):
        assert other.vector.result(20).tolist() == [len(text), ord(text[0])]
    assert [len(call) for call in encoder.calls] == [1, BATCH_QUESTIONS, 5]
    assert batches._waiting == []


def test_one_bad_question_does_not_fail_the_others() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    first = batches.ask(encoder, "first")  # type: ignore[arg-type]
    assert encoder.started.wait(20)
    others = [batches.ask(encoder, text) for text in ("good", "bad", "fine")]  # type: ignore[arg-type]
    encoder.go.set()
    first.vector.result(20)
    with pytest.raises(ValueError, match="bad text"):
        others[1].vector.result(20)
    assert [others[n].vector.result(20)[0] for n in (0, 2)] == [4, 4]
    assert batches.ask(encoder, "after").vector.result(20)[0] == 5  # type: ignore[arg-type]


def test_another_encoder_is_asked_by_itself() -> None:
    slow, other, batches = SlowEncoder(), SlowEncoder(), QuestionBatches()
    other.go.set()
    first = batches.ask(slow, "first")  # type: ignore[arg-type]
    assert slow.started.wait(20)
    second = batches.ask(other, "second")  # type: ignore[arg-type]
    slow.go.set()
    assert (first.vector.result(20)[0], second.vector.result(20)[0]) == (5, 6)
    assert (slow.calls, other.calls) == ([["first"]], [["second"]])


def test_a_question_that_is_cancelled_is_not_embedded() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    first = batches.ask(encoder, "first")  # type: ignore[arg-type]
    assert encoder.started.wait(20)
    left, stayed = batches.ask(encoder, "left"), batches.ask(encoder, "stayed")  # type: ignore[arg-type]
    assert left.vector.cancel()
    encoder.go.set()
    assert (first.vector.result(20)[0], stayed.vector.result(20)[0]) == (5, 6)
    assert encoder.calls == [["first"], ["stayed"]]


def test_the_thread_ends_with_its_owner_and_holds_up_no_process() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    encoder.go.set()
    batches.ask(encoder, "first").vector.result(20)  # type: ignore[arg-type]
    thread = batches._thread
    del batches
    assert thread is not None
    thread.join(20)
    assert not thread.is_alive()
    program = (
        "import threading\nfrom search.question_batches import QuestionBatches\n"
        "class Endless:\n    def encode(self, *args, **options): started.set(); threading.Event().wait()\n"
        "started = threading.Event()\nQuestionBatches().ask(Endless(), 'moon')\nassert started.wait(20)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=110, check=False).returncode == 0


@pytest.mark.parametrize("held", [True, False])
def test_a_process_ends_when_its_thread_has_ended(held: bool) -> None:
    """If Python ended the thread in the middle of C++ code, the process would abort."""
    program = (
        "import os, threading, time\nfrom search.question_batches import QuestionBatches\n"
        "sleep, write, me, main = time.sleep, os.write, threading.get_ident, threading.get_ident()\n"
        "class Last:\n    def __del__(self, sleep=sleep, write=write, me=me, main=main):\n"
        "        sleep(0.3); write(1, b'in main' if me() == main else b'ended')\n"
        "class Once:\n    def encode(self, *args, **options): local.last = Last(); return [[1.0]]\n"
        f"local, held = threading.local(), []\nbatches = QuestionBatches()\nheld.append(batches) if {held} else None\n"
        "batches.ask(Once(), 'moon').vector.result(20)\ndel batches\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=110, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"ended", b"")


def test_threads_that_search_one_searcher_are_embedded_together(
    tmp_path: Path, make_encoder: Callable[..., Any]
) -> None:
    encoder = make_encoder()
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", "the moon"), Document("b", "the sun")])
    with Searcher(tmp_path / "x.index", encoder) as searcher, ThreadPoolExecutor(4) as pool:
        searcher.search("warm")
        started, go, calls = threading.Event(), threading.Event(), list[list[str]]()

        def hold(texts: Sequence[str]) -> None:
            calls.append(list(texts))
            started.set()
            assert go.wait(20)

        encoder.ask = hold
        first = pool.submit(searcher.search, "moon", 1)
        assert started.wait(20)
        others = [pool.submit(searcher.search, question, 1) for question in ("sun", "moon", "sun")]
        gathered(searcher.answering.questions._batches, 3)
        go.set()
        assert [answer.result(20)[0].uri for answer in (first, *others)] == ["a", "b", "a", "b"]
        assert [sorted(call) for call in calls] == [["moon"], ["moon", "sun", "sun"]]


def test_a_question_that_is_asked_ahead_is_embedded_once_and_by_the_encoder_of_the_answer(
    tmp_path: Path, make_encoder: Callable[..., Any]
) -> None:
    encoder = make_encoder()
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", "the moon"), Document("b", "the sun")])
    with Searcher(tmp_path / "x.index", encoder) as searcher:
        query = Query("moon", 1)
        begin = searcher.until(NEVER).ask_ahead(query)
        assert begin is not None
        assert begin() is None  # no snapshot has named the encoder yet
        expected = searcher.answer(query)
        calls = list[list[str]]()
        encoder.ask = lambda texts: calls.append(list(texts))
        own = searcher.until(NEVER)
        begin = own.ask_ahead(query)
        assert begin is not None
        vector = begin()
        assert vector is not None
        vector.result(20)
        assert own.answer(query) == expected
        assert calls == [["moon"]]
        assert searcher.until(NEVER).ask_ahead(Query("moon", 1, mode="words")) is None
        assert searcher.until(NEVER).ask_ahead(Query("moon", 1, vector=np.ones(64))) is None
        other = searcher.until(NEVER)
        other.answering.ahead = AskedQuestion(
            make_encoder(), "moon", vector
        )  # as if another index had replaced this one in between
        assert other.answer(query) == expected
        assert calls == [["moon"], ["moon"]]


def test_a_forked_child_begins_again() -> None:
    encoder, batches = SlowEncoder(), QuestionBatches()
    first = batches.ask(encoder, "first")  # type: ignore[arg-type]
    assert encoder.started.wait(20)
    if (child := os.fork()) == 0:  # the thread that embeds does not exist here
        row = batches.ask(encoder, "child").vector.result(20)  # type: ignore[arg-type]
        os._exit(0 if row[0] == 5 else 1)
    assert os.waitpid(child, 0)[1] == 0
    encoder.go.set()
    assert first.vector.result(20)[0] == 5
