"""`likewise search --index A --index B QUESTION`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_each_hit_names_its_index(likewise: Callable[..., Any], topics: Path, index: Path) -> None:
    both = ("--index", topics, f"--index=kitchen={index}")
    answer = json.loads(likewise("search", *both, "bread and moon", "--json", "-k", 20).out)
    assert answer["matched"] == 6
    assert sorted((hit["index"], hit["uri"]) for hit in answer["hits"]) == [
        *(("kitchen", uri) for uri in ("bread", "cake", "moon")),
        *(("topics", uri) for uri in ("bread", "moon", "river")),
    ]
    scores = [hit["score"] for hit in answer["hits"]]
    assert scores == sorted(scores, reverse=True)
    printed = likewise("search", *both, "moon", "-k", 2, "--where", "year >= 2021").out
    assert "kitchen: moon" in printed
    assert "topics: moon" in printed
    words = json.loads(likewise("search", *both, "bread oven", "--mode", "words", "--json", "-k", 9).out)["hits"]
    named = sorted((hit["index"], hit["uri"]) for hit in words)
    assert named == [("kitchen", "bread"), ("kitchen", "cake"), ("topics", "bread")]
    asked = likewise("search", *both, "-", "--json", "-k", 1, stdin="moon\nbread\n").out
    assert [json.loads(line)["query"] for line in asked.splitlines()] == ["moon", "bread"]
    context = json.loads(likewise("search", *both, "moon tide", "--json", "-C", 1, "-k", 1).out)["hits"]
    assert [(hit["index"], hit["before"], hit["after"]) for hit in context] == [("kitchen", [], [])]


def test_what_is_wrong_is_said(likewise: Callable[..., Any], topics: Path, index: Path) -> None:
    def refused(*arguments: Any) -> str:
        result = likewise(*arguments)
        assert result.code == 2
        return str(result.err)

    assert "are both named 'topics'" in refused("search", "--index", topics, "--index", topics, "moon")
    assert "Missing argument 'QUERY'" in refused("search", "--index", topics, "--index", index)
    both = f"{index} is an index: to ask several, write --index {topics} --index {index}"
    assert both in refused("search", topics, index, "moon")
    assert both in refused("search", "--index", topics, index, "moon")
    assert "list takes one index" in refused("list", "--index", topics, "--index", index)
    assert "missing.index" in refused("search", "--index", topics, "--index", "missing.index", "moon")
    assert 'no document has a field "lang"' in refused(
        "search", "--index", topics, "--index", index, "moon", "--where", "lang = 1"
    )
