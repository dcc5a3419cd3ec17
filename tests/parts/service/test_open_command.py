"""likewise open: a folder is indexed or updated, then served, and the browser gets the address."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from hardware import needs_any_file_name

from indexer import Index
from indexer.errors import StorageError
from likewise.service.http import run

SERVED = "likewise: serving My-notes at http://127.0.0.1:8765\n"
NO_DISPLAY = "likewise: open this address in a browser; Ctrl-C ends it\n"


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four notes in the working folder, and no display."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "LIKEWISE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    folder = here / "My notes"
    folder.mkdir()
    for name in ("bread", "moon", "river", "tea"):
        (folder / f"{name}.txt").write_text(f"A note on {name}.\n")
    return folder


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The options of each application that was served. It ends as soon as it has announced its address."""
    applications: list[Any] = []

    def serve(create: Any, host: str, port: int, announce: Callable[[str], None]) -> None:
        applications.append(create)
        announce(f"http://{host}:{port}")

    monkeypatch.setattr("likewise.service.http.run.serve", serve)
    return applications


def uris(folder: Path) -> list[str]:
    with Index.open(folder / ".likewise") as index:
        return sorted(Path(document.uri).stem for document in index)


def counts(said: Any) -> str:
    return str(said.succeeded().out.partition(":")[0])


@contextmanager
def opened(environment: SimpleNamespace, *arguments: str, **variables: str) -> Iterator[tuple[Any, str, int]]:
    """The process, what it says until it serves, and its port."""
    process = subprocess.Popen(
        [environment.python, "-c", "from likewise.shell import main; main()", "open", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables},
    )  # fmt: skip
    said = ""
    try:
        for line in process.stderr:  # type: ignore[union-attr]
            said += line
            match = re.search(r" at http://127\.0\.0\.1:(\d+)\n", said)
            if match and line.endswith("Ctrl-C ends it\n"):
                yield process, said, int(match[1])
                return
        raise AssertionError(f"exit {process.wait()}: {said}")
    finally:
        process.kill()
        process.communicate()


def test_a_folder_is_indexed_served_and_shown_in_the_browser(
    folder: Path, static_model: Path, environment: SimpleNamespace, here: Path
) -> None:
    (here / "configuration" / "likewise").mkdir(parents=True)
    (here / "configuration" / "likewise" / "config.toml").write_text(f'model = "{static_model}"\n')
    browser, gotten = here / "browser", here / "gotten"
    os.mkfifo(gotten)
    browser.write_text(f'#!/bin/sh\necho "$@" > {gotten}\n')
    browser.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        with opened(environment, str(folder), "--port", str(wanted), BROWSER=str(browser)) as (process, said, port):
            address = f"http://127.0.0.1:{port}"
            assert wanted < port < wanted + 20
            assert f"likewise: port {wanted} is taken: this is the next one that is free\n" in said
            assert gotten.read_text() == f"{address}\n"
            with urllib.request.urlopen(address, timeout=60) as page:
                assert page.read().startswith(b"<!doctype html>")
            with urllib.request.urlopen(f"{address}/v1/indexes", timeout=60) as answer:
                (index,) = json.load(answer)["indexes"]
            assert (index["name"], index["documents"], index["model"]) == ("My-notes", 4, static_model.name)
            original = f"{address}/v1/indexes/My-notes/original?uri={quote(str(folder / 'tea.txt'))}"
            with urllib.request.urlopen(original, timeout=60) as answer:
                assert answer.read() == b"A note on tea.\n"
            process.send_signal(signal.SIGINT)
            output, rest = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "5 seen, 4 indexed, 1 skipped: 4 documents in 4 passages\n")
    assert (said.splitlines()[-1], rest) == (
        "likewise: if no browser opens, open this address in one; Ctrl-C ends it",
        "",
    )


def test_the_next_time_it_updates_and_opens(likewise: Any, folder: Path, served: list[Any]) -> None:
    said = likewise("open", folder)
    assert counts(said) == "5 seen, 4 indexed, 1 skipped"  # the index itself
    assert said.err.endswith(SERVED + NO_DISPLAY)
    (folder / "tea.txt").unlink()
    (folder / "salt.txt").write_text("Salt is new.\n")
    assert counts(likewise("open", folder)) == "5 seen, 1 indexed, 3 unchanged, 1 skipped, 1 pruned"
    assert uris(folder) == ["bread", "moon", "river", "salt"]
    for create in served:
        assert create.args == ({"My-notes": str(folder / ".likewise")},)
        assert create.keywords == {"originals": True}


@pytest.mark.usefixtures("served")
def test_more_than_half_is_never_removed(likewise: Any, folder: Path) -> None:
    likewise("open", folder).succeeded()
    for name in ("bread", "moon", "river"):
        (folder / f"{name}.txt").unlink()
    said = likewise("open", folder).succeeded()
    assert "would remove 3 of 4 documents, more than half: nothing was pruned" in said.err
    command = "likewise update 'My notes/.likewise' --prune\n"
    assert f"The page shows what the index has. By hand: {command}{SERVED}" in said.err
    (folder / "tea.txt").unlink()
    said = likewise("open", folder).succeeded()
    assert "would remove 4 of 4 documents, more than half: nothing was pruned" in said.err
    assert said.err.endswith(SERVED + NO_DISPLAY)
    assert uris(folder) == ["bread", "moon", "river", "tea"]


@pytest.mark.usefixtures("served")
def test_an_index_of_likewise_index_keeps_its_sources(likewise: Any, folder: Path, here: Path) -> None:
    (here / "far.txt").write_text("Far away.\n")
    likewise("index", folder / ".likewise", folder, "--glob", "b*").succeeded()
    likewise("index", folder / ".likewise", here / "far.txt").succeeded()
    assert counts(likewise("open", folder)) == "3 seen, 0 indexed, 2 unchanged, 1 skipped"
    (here / "far.txt").unlink()
    said = likewise("open", folder).succeeded()
    assert "no such file or folder" in said.err
    assert said.err.endswith(SERVED + NO_DISPLAY)
    assert uris(folder) == ["bread", "far"]


@pytest.mark.usefixtures("served")
def test_a_source_in_a_closed_folder_does_not_prevent_opening(
    likewise: Any, folder: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "far").mkdir()
    (here / "far" / "salt.txt").write_text("Salt is far away.\n")
    likewise("index", folder / ".likewise", folder, here / "far").succeeded()
    stat = os.stat

    def refuse(path: Any, *arguments: Any, **keywords: Any) -> Any:
        if str(path) == str(here / "far"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **keywords)

    monkeypatch.setattr("os.stat", refuse)
    assert likewise("open", folder).succeeded().err.endswith(SERVED + NO_DISPLAY)


@pytest.mark.usefixtures("served")
def test_failed_files_do_not_prevent_opening(likewise: Any, folder: Path) -> None:
    (folder / "bad.jsonl").write_text("not json\n")
    said = likewise("open", folder)
    assert counts(said) == "6 seen, 4 indexed, 1 skipped, 1 failed"
    assert said.err.endswith(SERVED + NO_DISPLAY)


@pytest.mark.usefixtures("served")
def test_a_folder_that_another_process_indexes_is_opened_beside_it(likewise: Any, folder: Path) -> None:
    likewise("open", folder).succeeded()
    with Index.open(folder / ".likewise") as index, index._core.writer():
        said = likewise("open", folder).succeeded()
    assert "is being written by" in said.err
    assert said.err.endswith(SERVED + NO_DISPLAY)


@pytest.mark.usefixtures("served")
def test_what_cannot_be_opened(likewise: Any, folder: Path, here: Path) -> None:
    (here / "empty").mkdir()
    for index in ("x.index", folder / ".likewise"):
        Index.create(index, dimensions=2).close()
    for argument, said in (
        ("nowhere", "nowhere: No such file or directory: name a folder that exists"),
        ("empty", "empty: no file to read: name another place"),
        ("My notes/tea.txt", "My notes/tea.txt: Not a directory: name a folder"),
        ("x.index", "x.index: is an index, not a folder of documents: likewise serve x.index"),
        ("My notes/.likewise", "is an index, not a folder of documents: likewise serve 'My notes/.likewise'"),
        ("~no-such-user/x", "~no-such-user/x: No such file or directory"),
        ("", "'': No such file or directory"),
    ):
        likewise("open", argument).failed(2, said)
    assert [*(here / "empty").iterdir()] == []


@pytest.mark.usefixtures("served")
def test_a_path_is_read_as_people_write_it(
    likewise: Any, folder: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(here))
    assert likewise("open", "~/My notes").succeeded().err.endswith(SERVED + NO_DISPLAY)
    said = likewise("open", "My", "notes")
    assert said.code == 2
    assert "name one FOLDER; with blanks in quotation marks: 'My notes'\n" in said.err
    monkeypatch.chdir(folder)
    assert likewise("open", ".").succeeded().err == SERVED + NO_DISPLAY


@needs_any_file_name
@pytest.mark.usefixtures("served")
def test_a_folder_whose_name_is_not_utf_8_says_so(likewise: Any, folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    folder.rename(folder.parent / name)
    said = likewise("open", name)
    assert said.code == 2
    assert "its name is not valid UTF-8: rename it" in said.err


@pytest.mark.usefixtures("served")
def test_what_prevents_serving_is_said_before_a_file_is_read(
    likewise: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: socket.socket, address: tuple[str, int]) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("socket.socket.bind", refuse)
        likewise("open", folder, "--port", "80").failed(2, "port 80: Permission denied: choose another --port")
    monkeypatch.setenv("LIKEWISE_TOKEN", "a" * 32)
    likewise("open", folder).failed(2, "LIKEWISE_TOKEN is set, and a browser cannot send a token")
    assert not (folder / ".likewise").exists()


@pytest.mark.usefixtures("served")
def test_a_folder_without_a_text_says_where_the_reasons_are(likewise: Any, here: Path, folder: Path) -> None:
    (here / "pictures").mkdir()
    (here / "pictures" / "a.jpg").write_bytes(b"\xff\xd8\xff\x00")
    said = likewise("open", "pictures")
    assert (said.code, said.out) == (2, "2 seen, 0 indexed, 2 skipped: 0 documents in 0 passages\n")
    last = said.err.splitlines()[-1]
    assert last.startswith("likewise: error: pictures: none of its files can be read: likewise info ")
    (here / "pictures" / "a.txt").write_text("A picture of the moon.\n")
    assert counts(likewise("open", "pictures")) == "3 seen, 1 indexed, 2 skipped"


@pytest.mark.usefixtures("served")
def test_a_folder_that_cannot_be_read_or_written(
    likewise: Any, folder: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda path, mode: mode != os.W_OK)
        likewise("open", "My notes").failed(2, "My notes: cannot be written", "likewise index NAME.index 'My notes'")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if Path(path).name == folder.name:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    def is_closed(_: str) -> bool:
        raise StorageError("this user may not look into it")

    monkeypatch.setattr("os.scandir", refuse)
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("indexer.stores.addresses.open.is_store", is_closed)
    likewise("open", folder).failed(2, f"{folder}: Permission denied: name a folder that exists and that you may read")


@pytest.mark.usefixtures("served")
def test_without_the_extra_nothing_is_indexed(likewise: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("likewise.service.http.app", raising=False)
    monkeypatch.delitem(sys.modules, "likewise.service.http.app", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    likewise("open", folder).failed(2, "which is not installed: pip install 'likewise[serve]'")
    assert not (folder / ".likewise").exists()


def test_an_interrupted_indexing_ends_with_130_and_continues(
    likewise: Any, folder: Path, encoder: Any, served: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("indexer.indexing.runs.Run.feed", interrupt)
        said = likewise("open", folder)
    assert (said.code, served) == (130, [])
    assert said.err.endswith("likewise: interrupted; what was committed is kept\n")
    assert counts(likewise("open", folder)) == "5 seen, 4 indexed, 1 skipped"


def test_it_gives_up_after_the_last_port(likewise: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []

    def serve(create: Any, host: str, port: int, announce: Any) -> None:
        ports.append(port)
        raise run.CannotListen(f"{port}: in use") from OSError(98, "Address already in use")

    monkeypatch.setattr("likewise.service.http.run.serve", serve)
    monkeypatch.setattr("likewise.service.commands.open._update", lambda *_: None)
    for port, tried in ((65534, 2), (65535, 1)):
        likewise("open", folder, "--port", port).failed(3, "in use")
        assert ports == [*range(port, port + tried)]
        ports.clear()
