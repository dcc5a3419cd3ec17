"""Indexes that were moved or copied, with their files or alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from indexer import Document, Index
from search import Searcher

LINES = '{"text": "a record of stars"}\n{"id": "x7", "text": "a second record"}\n'


@pytest.fixture
def project(tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder. The index .likewise has three files of it, and one file from elsewhere."""
    folder = tmp_path.resolve() / "project"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "bread.md").write_text("# Bread\n\nHow long dough rests.\n")
    (folder / "docs" / "records.jsonl").write_text(LINES)
    (folder / "moon.txt").write_text("The moon pulls the sea.\n")
    (folder.parent / "far.txt").write_text("Far away.\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(folder)
    likewise("index", ".").succeeded()
    likewise("index", ".likewise", "../far.txt").succeeded()
    return folder


def uris(index: Path) -> list[str]:
    with Searcher(index) as searcher:
        return sorted(document.uri for document in searcher.documents())


def uris_in(folder: Path, far: Path) -> list[str]:
    """The uris of all documents if the project is in a folder."""
    names = ("docs/bread.md", "docs/records.jsonl:1", "moon.txt")
    return sorted(["x7", str(far), *(str(folder / name) for name in names)])


def renamed(project: Path, monkeypatch: pytest.MonkeyPatch, name: str = "renamed") -> Path:
    """The project by its new name, which is the working folder."""
    new = project.parent / name
    new.parent.mkdir(exist_ok=True)
    project.rename(new)
    monkeypatch.chdir(new)
    return new


def counts(said: Any) -> list[int]:
    return [said.succeeded().json[name] for name in ("indexed", "unchanged", "updated", "pruned", "failed")]


def test_searching_shows_files_where_they_are_now(
    likewise: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = project.parent / "far.txt"
    assert uris(project / ".likewise") == uris_in(project, far)
    new = renamed(project, monkeypatch)
    assert uris(new / ".likewise") == uris_in(new, far)
    (hit,) = likewise("search", "how long dough rests", "--json", "-k", 1).succeeded().json["hits"]
    assert (hit["uri"], hit["path"]) == (str(new / "docs" / "bread.md"),) * 2
    assert "docs/bread.md" in likewise("search", "how long dough rests", "-k", 1).succeeded().out
    for where, names in {
        'under "docs"': ["docs/bread.md", "docs/records.jsonl:1", "x7"],
        'path = "moon.txt"': ["moon.txt"],
        f'uri in ("{project}/moon.txt", "{new}/docs/records.jsonl:1")': ["docs/records.jsonl:1"],
        'uri endswith "bread.md"': ["docs/bread.md"],
    }.items():
        listed = likewise("list", "--where", where, "--json").succeeded().out.splitlines()
        assert sorted(json.loads(line)["uri"].removeprefix(f"{new}/") for line in listed) == names
    with Searcher(new / ".likewise") as searcher:
        document = searcher.get(str(new / "moon.txt"))
        assert (document.path, document.text) == (str(new / "moon.txt"), "The moon pulls the sea.\n")
        assert str(project / "moon.txt") not in searcher
        assert str(new / "moon.txt") not in {hit.uri for hit in searcher.similar(str(new / "moon.txt"))}
    likewise("check").succeeded()
    status = likewise("status", "--json").succeeded().json
    assert (status["sources"], status["unchanged"]) == ([str(new), str(far)], 4)
    assert (status["new"], status["changed"], status["gone"], status["missing"]) == ([], [], [], [])


def test_the_next_run_finds_nothing_changed(
    likewise: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = project.parent / "far.txt"
    with Searcher(project / ".likewise") as searcher:
        hits = searcher.search("moon", 3)
    new = renamed(project, monkeypatch)
    assert counts(likewise("index", ".", "--json", "--prune")) == [0, 4, 0, 0, 0]
    assert uris(new / ".likewise") == uris_in(new, far)
    likewise("check").succeeded()
    with Searcher(new / ".likewise") as searcher:
        assert [hit.score for hit in searcher.search("moon", 3)] == [hit.score for hit in hits]
    # Into a folder below the old place: each address begins with an old address.
    new = renamed(new, monkeypatch, "other")
    deeper = new.parent / "renamed" / "other"
    deeper.parent.mkdir()
    new = renamed(new, monkeypatch, "renamed/other")
    assert uris(deeper / ".likewise") == uris_in(deeper, far)
    assert counts(likewise("update", "--json")) == [0, 5, 0, 0, 0]
    assert uris(deeper / ".likewise") == uris_in(deeper, far)


def test_a_writer_follows_while_readers_are_open(
    likewise: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = renamed(project, monkeypatch)
    with Searcher(new / ".likewise") as searcher:
        assert str(new / "moon.txt") in searcher
        with Index.open(new / ".likewise") as index:
            index.add([Document("added", "by a program")])
        assert {str(new / "moon.txt"), "added"} <= {document.uri for document in searcher.documents()}
        assert str(new / "moon.txt") in searcher


def test_a_copied_project_and_a_read_only_project_show_their_own_files(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far, copy = project.parent / "far.txt", project.parent / "copy"
    shutil.copytree(project, copy)
    assert uris(copy / ".likewise") == uris_in(copy, far)
    assert uris(project / ".likewise") == uris_in(project, far)
    for path in (copy / ".likewise", *(copy / ".likewise").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert uris(copy / ".likewise") == uris_in(copy, far)


def test_an_index_that_moves_without_its_files_keeps_their_addresses(
    likewise: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far, elsewhere = project.parent / "far.txt", project.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "moon.txt").write_text("Another moon.\n")  # the same name by chance
    (project / ".likewise").rename(elsewhere / "my.index")
    assert uris(elsewhere / "my.index") == uris_in(project, far)
    assert counts(likewise("update", elsewhere / "my.index", "--json")) == [0, 5, 0, 0, 0]
    likewise("copy", elsewhere / "my.index", "again.index").succeeded()
    assert uris(project / "again.index") == uris_in(project, far)


def test_an_index_that_moves_from_one_of_its_projects_to_the_other_keeps_both(
    likewise: Callable[..., Any], project: Path
) -> None:
    twin = project.parent / "twin"
    shutil.copytree(project / "docs", twin / "docs")
    likewise("index", "both.index", project / "docs" / "bread.md", twin / "docs" / "bread.md").succeeded()
    both = [str(folder / "docs" / "bread.md") for folder in (project, twin)]
    (project / "both.index").rename(twin / "both.index")
    assert uris(twin / "both.index") == both
    likewise("remove", twin / "both.index", both[1]).succeeded()
    assert uris(twin / "both.index") == both[:1]


def test_a_copy_of_a_moved_index_has_the_new_addresses(
    likewise: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far, new = project.parent / "far.txt", renamed(project, monkeypatch)
    other = project.parent / "other"
    shutil.copytree(new / "docs", other / "docs")
    likewise("copy", ".likewise", other / "copy.index").succeeded()
    assert uris(other / "copy.index") == uris_in(new, far)
    likewise("check", other / "copy.index").succeeded()
    assert counts(likewise("update", other / "copy.index", "--json")) == [0, 5, 0, 0, 0]


@pytest.mark.parametrize("step", ["commit.written", "commit.done"])
def test_a_killed_writer_leaves_one_of_both_states(
    likewise: Callable[..., Any],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: SimpleNamespace,
    step: str,
) -> None:
    new = renamed(project, monkeypatch)
    program = "import sys; from indexer import Index; index = Index.open(sys.argv[1]); index.remove(['x7'])"
    killed = subprocess.run(
        [environment.python, "-c", program, str(new / ".likewise")],
        env={**os.environ, "LIKEWISE_KILL_AT": step},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -9
    assert uris(new / ".likewise") == uris_in(new, project.parent / "far.txt")
    assert counts(likewise("index", ".", "--json")) == [0, 4, 0, 0, 0]


def test_a_folder_with_two_names_is_one_source(likewise: Callable[..., Any], project: Path) -> None:
    far, link = project.parent / "far.txt", project.parent / "link"
    link.symlink_to(project)
    before = uris_in(project, far)
    assert counts(likewise("index", ".likewise", link, "--json"))[:2] == [0, 4]
    assert counts(likewise("index", ".likewise", link / "docs", link / "moon.txt", "--json"))[:2] == [0, 4]
    assert uris(project / ".likewise") == before
    assert str(link) not in "".join(likewise("status", "--json").succeeded().json["sources"])
    likewise("index", "linked.index", link / "docs", project, project / "docs" / "bread.md").succeeded()
    inside = [str(link / "docs" / name) for name in ("bread.md", "records.jsonl:1")]
    assert uris(project / "linked.index") == sorted([*inside, "x7", str(project / "moon.txt")])
    assert counts(likewise("update", "linked.index", "--json"))[:2] == [0, 4]
