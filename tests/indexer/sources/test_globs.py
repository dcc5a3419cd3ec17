"""Patterns and links: what a pattern matches where links lead nowhere, or to folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.errors import SourceError
from indexer.sources import ReadOptions, open_sources


def test_a_link_that_leads_nowhere_matches_only_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to(tmp_path / "gone")
    (tmp_path / ".hidden").symlink_to(tmp_path / "gone")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("text")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for pattern in ("nosuch*", "*.txt", "real/*.md", "**/*.md"):
        with pytest.raises(SourceError, match="no file that matches"):
            open_sources([f"{tmp_path}/{pattern}"], ReadOptions())
    (source,) = open_sources([f"{tmp_path}/brok*"], ReadOptions())
    found = [(each.path, each.reason.text()) for each in source.files()]
    assert found == [(str(tmp_path / "broken"), "a link that leads nowhere")]


def test_a_pattern_goes_through_a_link_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".store").mkdir()
    (tmp_path / ".store" / "a.txt").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / ".store")
    (source,) = open_sources([f"{tmp_path}/*/a.txt"], ReadOptions())
    assert [each.path for each in source.files() if each.status] == [str(tmp_path / "link" / "a.txt")]
