"""docs/seeing-inside.md shows what the program prints, and its recipes are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.examples import ROOT, refreshed
from indexer import Recipe

PAGE = (ROOT / "docs" / "seeing-inside.md").read_text(encoding="utf-8")
_COSINE = re.compile(r"\b[01]\.\d{3}\b")


@pytest.mark.slow
def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = refreshed(PAGE)
    assert _COSINE.sub("…", printed) == _COSINE.sub("…", PAGE)
    shown = [float(number) for number in _COSINE.findall(PAGE)]
    assert [float(number) for number in _COSINE.findall(printed)] == pytest.approx(shown, abs=0.002)
    assert len(shown) == 9 + 16


def test_every_recipe_says_what_its_row_says() -> None:
    rows = re.findall(r"\| `(bert-base-uncased:\S+)` \| (\d+) \|", PAGE)
    assert len(rows) == 8
    for text, dimensions in rows:
        spec = Recipe.parse(text)
        width = len(spec.layers or (-1,)) if spec.combine == "concat" else 1
        assert (spec.model, 768 * width) == ("bert-base-uncased", int(dimensions))
