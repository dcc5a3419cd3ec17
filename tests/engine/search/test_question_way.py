"""The way of a question: the functions of `search` that it enters between `Searcher.search` and its hits.

A stop is a function that the question enters. A return is coming back to a function that it has left, to enter another
one from there. Values have no way of their own: making a question or a hit, the words of a question, the arithmetic of
fusion.py and the empty methods of `Timings` do not count.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import search
from indexer import Document, Index
from search import Mode, Searcher

MAX_STOPS, MAX_RETURNS = 18, 6
VALUES = {"fusion.py", "hits.py", "marks.py", "query.py", "timings.py"}


def stops(searcher: Searcher, question: str, mode: Mode) -> list[tuple[CodeType, CodeType | None]]:
    """Return each stop of a question with the stop from which it was first entered, in this order."""
    folder = Path(search.__file__).parent
    first: dict[CodeType, CodeType | None] = {}
    open_frames: list[tuple[FrameType, CodeType | None]] = []  # with their stop

    def follow(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "return" and open_frames and open_frames[-1][0] is frame:
            open_frames.pop()
        if event != "call" or not code.co_filename.startswith(f"{folder}/"):
            return
        before = open_frames[-1][1] if open_frames else None
        is_of_value = Path(code.co_filename).name in VALUES or code.co_name.startswith(("<", "__"))
        # What a value calls while it is made belongs to the value.
        is_inside = bool(open_frames) and Path(open_frames[-1][0].f_code.co_filename).name in VALUES
        if not is_of_value and not is_inside:
            first.setdefault(code, before)
            before = code
        open_frames.append((frame, before))

    sys.setprofile(follow)
    try:
        searcher.search(question, mode=mode)
    finally:
        sys.setprofile(None)
    return list(first.items())


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("mode", ["dense", "words", "hybrid"])
@pytest.mark.parametrize("question", ["the moon", "the mooon"])
def test_a_question_has_a_short_way(tmp_path: Path, encoder: Any, mode: Mode, question: str) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"d{n}", f"the moon and the star {n}") for n in range(60)])
    with Searcher(tmp_path / "x.index", encoder) as searcher:
        way = stops(searcher, question, mode)
    names = [code.co_name for code, _ in way]
    assert names[:2] == ["search", "answer"]
    assert [name for name in names if name in ("plan", "hits", "rank", "rank_units")] == [
        *("plan", "hits", "rank", "rank_units")
    ]
    entered_from = Counter(before for _, before in way if before is not None)
    returns = sum(count - 1 for count in entered_from.values())
    assert len(way) <= MAX_STOPS, names
    assert returns <= MAX_RETURNS, names
