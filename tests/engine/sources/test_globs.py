"""Patterns: what they match, also as git says; that none is slow; links that lead nowhere, or to folders."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from indexer.errors import SourceError
from indexer.sources import Entry, ReadOptions, open_sources
from indexer.sources.folders.globs import Globs, parse_glob
from indexer.stores.addresses.open import holds_store

NAMES = ("a", "b", "ab", "ba", "a-b", "aab", "a.b", "-", "*", "[", "]", "c", "1", "a*b")
PIECES = ("a", "b", "ab", "-", ".", "/", "*", "**", "***", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[[:alpha:]]")
PIECES += (
    "[[:digit:]a]",
    "[[:x:]]",
    "\\a",
    "\\*",
    "\\[",
    "\\",
    "[",
    "**/",
    "/**",
    "/**/",
    "*/",
    "[a-",
    "[b-a]",
    "[a\\-c]",
)


def test_a_link_that_leads_nowhere_matches_only_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to(tmp_path / "gone")
    (tmp_path / ".hidden").symlink_to(tmp_path / "gone")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("text")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for pattern in ("nosuch*", "*.txt", "real/*.md", "**/*.md"):
        with pytest.raises(SourceError, match="no file that matches"):
            open_sources([f"{tmp_path}/{pattern}"], ReadOptions(), holds_store)
    (source,) = open_sources([f"{tmp_path}/brok*"], ReadOptions(), holds_store)
    found = [(each.path, each.reason.text()) for each in source.files()]
    assert found == [(str(tmp_path / "broken"), "a link that leads nowhere")]


def test_a_pattern_goes_through_a_link_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".store").mkdir()
    (tmp_path / ".store" / "a.txt").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / ".store")
    (source,) = open_sources([f"{tmp_path}/*/a.txt"], ReadOptions(), holds_store)
    assert [each.path for each in source.files() if each.status] == [str(tmp_path / "link" / "a.txt")]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_random_patterns_match_what_git_says(tmp_path: Path) -> None:
    chance = random.Random(3)
    patterns = ["".join(chance.choices(PIECES, k=chance.randint(1, 6))) for _ in range(250)]
    paths = {"/".join(chance.choices(NAMES, k=chance.randint(1, 4))) for _ in range(120)}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for number, pattern in enumerate(patterns):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / ".gitignore").write_text(pattern)
    asked = "\0".join(f"{number}/{path}" for number in range(len(patterns)) for path in paths)
    command = ["git", "check-ignore", "-z", "--stdin", "--no-index"]
    said = subprocess.run(command, cwd=tmp_path, input=asked, capture_output=True, text=True, check=True).stdout
    expected = {path for path in said.split("\0") if path}
    globs = enumerate(map(parse_glob, patterns))
    ours = {f"{number}/{path}" for number, glob in globs for path in paths if glob and _ignored(glob.matches, path)}
    assert ours == expected
    assert len(expected) > 1_000


def _ignored(matches: Callable[[str, bool], bool], path: str) -> bool:
    """Return whether a pattern ignores a file, or a folder above it."""
    folders = [path[:end] for end, character in enumerate(path) if character == "/"]
    return matches(path, False) or any(matches(folder, True) for folder in folders)


@pytest.mark.parametrize(
    ("pattern", "other", "match"),
    [
        ("*a*a*a*a*a*a*a*a*ab", "a" * 60, "a" * 60 + "b"),
        ("*a" * 120 + "b", "a" * 255, "a" * 255 + "b"),
        ("**/*a/" * 20 + "b", "a/" * 40 + "c", "a/" * 40 + "b"),
        ("**/a/" * 60 + "b", "a/" * 120 + "c", "a/" * 120 + "b"),
    ],
)
def test_a_pattern_that_nearly_matches_ends(pattern: str, other: str, match: str) -> None:
    assert not Globs([pattern]).match(other)
    assert Globs([pattern]).match(match)


def test_a_gitignore_with_many_stars_does_not_stop_a_folder(
    tmp_path: Path, collect: Callable[..., list[Entry]]
) -> None:
    (tmp_path / ".gitignore").write_text("*a*a*a*a*a*a*a*a*ab")
    for name in ("a" * 60, "a" * 60 + "b"):
        (tmp_path / name).write_text("text")
    states = {Path(entry.file).name: entry.state for entry in collect(tmp_path, glob=("*a*a*a*a*a*a*a*a*a",))}
    assert states == {"a" * 60: "read"}


def test_a_file_that_a_pattern_names_counts_for_more_than_its_folder() -> None:
    assert Globs(["!*.md", "notes/"]).match("notes/a.txt")
    assert not Globs(["!*.md", "notes/"]).match("notes/a.md")
    assert not Globs(["*.md", "!a.md"]).match("notes/a.md")
    assert not Globs(["# *.md", "", "!", "/", "[a"]).match("# *.md")
