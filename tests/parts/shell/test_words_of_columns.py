"""The other columns of a table are searched by words, as a title is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONG_AGO = time.time() - 3600


def test_other_columns_are_found_by_words(likewise: Callable[..., Any], tmp_path: Path) -> None:
    table, index = tmp_path / "pots.csv", tmp_path / "x.index"

    def write(text: str, seconds: int) -> None:
        table.write_text(text, encoding="utf-8")
        os.utime(table, (LONG_AGO + seconds, LONG_AGO + seconds))

    def hits(question: str, mode: str) -> list[dict[str, Any]]:
        said = likewise("search", index, "--mode", mode, "--json", question).succeeded()
        return list(said.json["hits"])

    content = "product,colour,text\nkettle,copper,boils quickly\npot,green,heavy lid\n"
    write(content, 0)
    likewise("index", index, table).succeeded()
    (hit,) = hits("copper", "words")
    assert (hit["text"], hit["why"]["words"], hit["why"]["weak"]) == ("boils quickly", [], False)
    hit = hits("a green pot", "hybrid")[0]
    assert (hit["text"], hit["why"]["words"], hit["why"]["weak"]) == ("heavy lid", [], False)
    assert "boils quickly" in likewise("search", index, "--mode", "words", "copper").succeeded().out
    write(content.replace("copper", "silver"), 9)
    likewise("index", index, table, "--json").reported(0, indexed=0, updated=1)  # nothing is embedded for it
    assert [[hit["text"] for hit in hits(word, "words")] for word in ("copper", "silver")] == [[], ["boils quickly"]]
