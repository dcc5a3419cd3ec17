"""The documents that a filter leaves are computed without a lock. Other questions would wait for a lock, and a fork
would copy it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from indexer.filters.parse import parse
from indexer.stores.local.segments import masks
from likewise.postgres.selection import PostgresSelection
from likewise.postgres.views import Allowed


def _meanwhile(
    slow: Callable[[], object], begun: threading.Event, end: threading.Event, call: Callable[[], Any]
) -> Any:
    """Return what a call returns while another thread is computing."""
    answers: list[Any] = []
    threads = [threading.Thread(target=slow), threading.Thread(target=lambda: answers.append(call()))]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    threads[1].join(10)
    end.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    return answers


def test_no_question_waits_for_the_masks_of_another_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Event(), threading.Event()

    def make(positions: Any, *_: Any) -> None:
        if positions == "slow":
            begun.set()
            assert end.wait(30)

    def rows(positions: Any) -> masks.AllowedRows:
        return masks.AllowedRows(1, None, ((positions, np.empty(0, np.int64)),))

    def quick() -> Any:
        return rows("quick").masks, end.is_set()

    monkeypatch.setattr(masks, "make_mask", make)
    assert _meanwhile(lambda: rows("slow").masks, begun, end, quick) == [((None,), False)]


def test_no_question_waits_for_the_count_of_another_filter() -> None:
    begun, end = threading.Event(), threading.Event()

    def get(*_: Any) -> Allowed:
        begun.set()
        assert end.wait(30)
        return Allowed(1, 1, limited=False)

    row, cache = SimpleNamespace(documents=3, passages=4), SimpleNamespace(get=get)
    view: Any = SimpleNamespace(state=SimpleNamespace(row=row, allowed=cache))

    def quick() -> Any:
        return PostgresSelection(view, None).documents, end.is_set()

    assert _meanwhile(lambda: PostgresSelection(view, parse("n = 1")).documents, begun, end, quick) == [(3, False)]
