"""likewise backup: a copy that answers as the original."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_a_backup_has_the_documents_and_answers_of_the_original(
    likewise: Callable[..., Any], topics: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.index"
    assert likewise("backup", topics, copy, "--json").json == {"backup": str(copy), "documents": 3}
    assert likewise("remove", topics, "river").code == 0
    assert likewise("list", copy).out == "bread\tBread\nmoon\tMoon\nriver\tRiver\n"
    assert [hit["uri"] for hit in likewise("similar", copy, "moon", "-k", 1, "--json").json["hits"]] == ["river"]


def test_an_existing_destination_is_refused(likewise: Callable[..., Any], topics: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("kept")
    said = likewise("backup", topics, tmp_path / "taken")
    assert (said.code, said.out) == (2, "")
    assert (tmp_path / "taken" / "file").read_text() == "kept"
