"""Temporary folders: removed with their process, and by the next one where that was killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from opened import store_of

from indexer import Document, Index
from indexer.stores import temporary as temporaries
from indexer.stores.temporary import temporary_folder

ROOT = Path(__file__).parents[3]

READER = """
import sys
from pathlib import Path
from indexer.stores.addresses.open import open_store
store = open_store(Path(sys.argv[1]))
with store.snapshot() as snapshot:
    print(snapshot.words("apple", 1).matched, flush=True)
sys.stdin.read()
"""

PARENT = """
import os, sys
from indexer.stores.temporary import temporary_folder
class Owner: pass
owner = Owner()
folder, _ = temporary_folder(owner, "likewise-")
if (child := os.fork()) == 0:
    of_child, _ = temporary_folder(owner, "likewise-")
    os.write(1, f"{folder} {of_child}\\n".encode())
    sys.stdin.read()
    os._exit(0)
os.write(1, f"{child}\\n".encode())
os.waitpid(child, 0)
"""


class Owner:
    """Anything that can be collected."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, here and in processes that are started."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return folder


@contextmanager
def started(code: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_next_process_removes_what_killed_readers_left_and_nothing_of_the_living(
    tmp_path: Path, place: Path
) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document("a", "apple")], vectors=np.ones((1, 2), np.float32))
        with store_of(index).writer() as writer:
            writer.settle()
    for name in ("likewise-scale", "likewise-readers-notes", "likewise-new-abc"):
        (place / name).mkdir()
    others = set(place.iterdir())
    folder = tmp_path / "x.index"
    with started(READER, folder) as killed, started(READER, folder) as ended, started(READER, folder) as living:
        assert [line(killed), line(ended), line(living)] == ["1", "1", "1"]
        assert len(set(place.iterdir()) - others) == 3
        killed.send_signal(signal.SIGKILL)
        ended.send_signal(signal.SIGTERM)
        assert [killed.wait(60), ended.wait(60)] == [-signal.SIGKILL, -signal.SIGTERM]
        assert len(set(place.iterdir()) - others) == 3
        owner = Owner()
        own, remove = temporary_folder(owner, "likewise-")
        left = set(place.iterdir()) - others
        assert len(left) == 2
        assert own.parent in left
        (of_living,) = left - {own.parent}
        assert len(list(of_living.glob("likewise-words-*/*/meta.json"))) == 2
        remove()
        assert not own.parent.exists()
        assert living.stdin is not None
        living.stdin.close()
        assert living.wait(60) == 0
    assert set(place.iterdir()) == others


def test_what_a_killed_parent_made_stays_as_long_as_its_forked_child(place: Path) -> None:
    owners = [Owner(), Owner()]
    with started(PARENT) as parent:
        said = sorted([line(parent), line(parent)], key=len)
        child, folders = int(said[0]), [Path(folder) for folder in said[1].split()]
        try:
            assert folders[0].parent != folders[1].parent
            parent.kill()
            parent.wait(60)
            _, remove = temporary_folder(owners[0], "likewise-")
            remove()
            assert [folder.exists() for folder in folders] == [True, True]
        finally:
            os.kill(child, signal.SIGKILL)
        assert parent.stdout is not None
        assert parent.stdout.read() == ""  # the child is gone: nobody has the other end of the pipe
    _, remove = temporary_folder(owners[1], "likewise-")
    remove()
    assert list(place.iterdir()) == []


def left_behind(place: Path, count: int) -> list[Path]:
    folders = [place / f"{temporaries._prefix()}{number:016x}" for number in range(count)]
    for folder in folders:
        (folder / "likewise-words-x" / "documents").mkdir(parents=True)
        (folder / "likewise-words-x" / "documents" / "meta.json").write_text("{}")
        (folder / "likewise-words-x" / "documents" / "x.idx").symlink_to(place)
    return folders


def test_many_sweep_at_once(place: Path) -> None:
    owner = Owner()
    own, remove = temporary_folder(owner, "likewise-")
    folders = left_behind(place, 12)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(temporaries._sweep, [place] * 8))
    assert [folder for folder in folders if folder.exists()] == []
    assert own.is_dir()
    remove()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("named_by", ["boot", "name"])
def test_a_folder_of_another_host_is_left_alone_where_its_lock_is_not_seen(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    boot_id = tmp_path / "boot_id"
    monkeypatch.setattr(temporaries, "_BOOT_ID", boot_id)
    owner = Owner()

    def on(host: str) -> None:
        if named_by == "boot":
            boot_id.write_text(f"{host}\n")
        else:
            monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=host))
        temporaries._prefix.cache_clear()

    try:
        on("other")
        folder, remove = temporary_folder(owner, "likewise-")
        (left,) = left_behind(place, 1)
        on("this")
        with monkeypatch.context() as patch:
            patch.setattr(temporaries.fcntl, "flock", lambda file, operation: None)  # nobody here holds a lock
            temporaries._sweep(place)
        assert [folder.is_dir(), left.is_dir()] == [True, True]
        on("other")
        temporaries._sweep(place)
        assert [folder.is_dir(), left.is_dir()] == [True, False]
        remove()
        assert list(place.iterdir()) == []
    finally:
        temporaries._prefix.cache_clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_folders_of_other_users_and_links_to_folders_are_left_alone(place: Path, tmp_path: Path) -> None:
    (foreign,) = left_behind(place, 1)
    os.chown(foreign, 65534, 65534)
    (tmp_path / "precious").mkdir()
    link = place / f"{temporaries._prefix()}{1:016x}"
    link.symlink_to(tmp_path / "precious")
    temporaries._sweep(place)
    assert foreign.is_dir()
    assert link.is_symlink()
    assert (tmp_path / "precious").is_dir()


def test_folders_of_one_process_share_one_and_it_goes_with_the_last(place: Path) -> None:
    owners = [Owner(), Owner()]
    (first, remove_first), (second, _) = [temporary_folder(owner, "likewise-words-") for owner in owners]
    assert first.parent == second.parent
    assert list(place.iterdir()) == [first.parent]
    remove_first()
    remove_first()
    assert list(place.glob("*/*")) == [second]
    owners.clear()
    assert list(place.iterdir()) == []


def test_a_temporary_folder_that_was_emptied_is_made_again(place: Path) -> None:
    owners = [Owner(), Owner(), Owner()]
    first, remove = temporary_folder(owners[0], "likewise-")
    shutil.rmtree(first.parent)
    second, _ = temporary_folder(owners[1], "likewise-")
    remove()
    third, _ = temporary_folder(owners[2], "likewise-")
    assert second.is_dir()
    assert third.parent == second.parent != first.parent
    owners.clear()
    assert list(place.iterdir()) == []


def test_without_locks_a_folder_has_a_name_that_nobody_sweeps(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(file: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    owner = Owner()
    with monkeypatch.context() as patch:
        patch.setattr(temporaries.fcntl, "flock", no_locks)
        folder, remove = temporary_folder(owner, "likewise-")
    temporaries._sweep(place)
    assert folder.is_dir()
    remove()
    assert list(place.iterdir()) == []
