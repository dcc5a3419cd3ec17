"""A lazy pattern is the pattern that `re.compile` returns, compiled when it is first used."""

from __future__ import annotations

import copy
import re

import pytest

from indexer.lazy_pattern import lazy_pattern


def test_nothing_is_compiled_before_the_first_use() -> None:
    broken = lazy_pattern("(")
    assert broken.pattern == "("
    with pytest.raises(re.error, match="missing \\)"):
        broken.search("a")


def test_it_does_what_the_compiled_pattern_does() -> None:
    compiled, lazy = (
        re.compile(r"(?P<word>[a-z]+)\d", re.IGNORECASE),
        lazy_pattern(r"(?P<word>[a-z]+)\d", re.IGNORECASE),
    )
    for _ in range(2):  # the second time with the method that was found
        assert lazy.findall("Ab1 c2") == compiled.findall("Ab1 c2") == ["Ab", "c"]
    assert lazy.sub(r"\g<word>", "Ab1 c2") == "Ab c"
    assert [match["word"] for match in lazy.finditer("Ab1 c2")] == ["Ab", "c"]
    assert (lazy.flags, lazy.groupindex) == (compiled.flags, compiled.groupindex)
    assert lazy.fullmatch("c") is None
    assert copy.copy(lazy_pattern("a")).findall("banana") == ["a", "a", "a"]
