"""likewise diff: the answers of two indexes to the same questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search.evaluation.overlap import rank_biased_overlap


def test_overlap_is_that_of_the_paper() -> None:
    assert rank_biased_overlap("abc", "abc") == pytest.approx(1)
    assert rank_biased_overlap("abc", "def") == 0
    assert rank_biased_overlap("", "") == 1
    assert rank_biased_overlap("a", "") == 0
    # By hand, p = .5: agreements 0, 1, 2/3 at depths 1 to 3; 2/3 goes on.
    by_hand = 0.5 * (0 + 0.5 * 1 + 0.25 * 2 / 3) + 2 / 3 * 0.125
    assert rank_biased_overlap("abc", "bad", 0.5) == pytest.approx(by_hand)
    # Of unequal length (the shorter one's agreement, 1, is taken to go on).
    assert rank_biased_overlap("ab", "abcd", 0.9) == pytest.approx(1)
    assert 0 < rank_biased_overlap("ab", "cdab", 0.9) < 0.7


def test_two_indexes_are_told_apart(
    likewise: Callable[..., Any], lines: Callable[..., str], index: Path, tmp_path: Path
) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text(lines({"_id": "1", "text": "bread"}, {"_id": "2", "text": "moon"}))
    same = likewise("diff", index, index, "--queries", queries, "--json")
    assert same.json == {"questions": 2, "changed": [], "mean_rbo": pytest.approx(1)}
    records = lines(
        {"id": "loaf", "text": "bread bread"}, {"id": "cake", "text": "cake flour"}, {"id": "moon", "text": "moon"}
    )
    likewise("index", tmp_path / "y.index", "-", stdin=records)
    said = likewise("diff", index, tmp_path / "y.index", "--queries", queries, "-k", "1", "--json")
    (changed,) = said.json["changed"]
    assert (changed["query"], changed["before"], changed["after"], changed["rbo"]) == ("1", ["bread"], ["loaf"], 0)
    assert said.json["mean_rbo"] == pytest.approx(0.5)
    printed = likewise("diff", index, tmp_path / "y.index", "--queries", queries, "-k", "1").out
    assert "first: bread -> loaf" in printed
    assert printed.endswith("1 of 2 questions changed; overlap 0.500 on average\n")


def test_two_collections_are_one_line_per_question_and_are_said_to_differ(
    likewise: Callable[..., Any], lines: Callable[..., str], index: Path, tmp_path: Path
) -> None:
    queries = tmp_path / "q.jsonl"
    queries.write_text(lines({"_id": "1", "text": "bread"}, {"_id": "2", "text": "moon"}))
    likewise("index", tmp_path / "y.index", "-", stdin=lines({"id": "a", "text": "bread"}, {"id": "b", "text": "moon"}))
    said = likewise("diff", index, tmp_path / "y.index", "--queries", queries)
    assert said.out.splitlines() == [
        "0.000  bread",
        "0.000  moon",
        "2 of 2 questions changed; overlap 0.000 on average",
    ]
    assert said.err == (
        f"likewise: warning: these are two different collections: {tmp_path}/y.index has 0% of the documents that "
        f"{tmp_path}/x.index finds, and {tmp_path}/x.index has 0% of those that {tmp_path}/y.index finds; compare two "
        "indexes of the same documents\n"
    )
