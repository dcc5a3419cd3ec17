"""Attributes that are computed when they are first read."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from indexer.lazy_property import LazyProperty


@dataclass(frozen=True)
class Doubled:
    number: int
    may_end: threading.Event
    begun: threading.Event

    @LazyProperty
    def double(self) -> list[int]:
        """Twice the number."""
        self.begun.set()
        assert self.may_end.wait(60)
        return [2 * self.number]


def test_it_is_computed_once_and_no_other_object_waits_for_it() -> None:
    slow, quick = (Doubled(number, threading.Event(), threading.Event()) for number in (1, 2))
    quick.may_end.set()
    thread = threading.Thread(target=lambda: slow.double)
    thread.start()
    assert slow.begun.wait(60)
    assert quick.double == [4]
    assert thread.is_alive()
    slow.may_end.set()
    thread.join()
    assert slow.double is slow.double
    assert slow.double == [2]
    assert Doubled.double.__doc__ == "Twice the number."
