"""likewise map: the picture of a collection. test_map.py has the drawing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from likewise.map.projection import principal_components


@pytest.mark.slow
def test_every_document_gets_a_place(
    likewise: Callable[..., Any], topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "likewise.map.projection._umap", lambda vectors, _: principal_components(vectors)
    )  # UMAP compiles for half a minute
    said = likewise("map", topics, "--json").succeeded()
    assert said.json["documents"] == 3


def test_an_index_of_two_documents_or_none_is_refused(
    likewise: Callable[..., Any], tmp_path: Path, lines: Callable[..., str]
) -> None:
    folder = tmp_path / "x.index"
    for records, held in ((1, "1 document"), (2, "2 documents"), (0, "0 documents")):
        likewise("index", folder, "-", stdin=lines(*({"id": str(n), "text": f"text {n}"} for n in range(records))))
        if not records:
            likewise("remove", folder, "0", "1")
        error = f"{folder}: a map needs 3 documents with vectors, and it has {held}: index more"
        assert likewise("map", folder).failed(2) == error
