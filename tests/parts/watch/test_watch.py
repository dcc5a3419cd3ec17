"""A watched index becomes what a new index of the same sources is, whatever events came or were lost."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import likewise.watch.watch
from indexer import Index
from indexer.errors import SourceError, StorageError
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import settings_of_new
from indexer.indexing.runs import Outcome, index_sources
from indexer.listener import Listener
from indexer.sources import ReadOptions
from indexer.stores.addresses.open import create_store, is_store
from likewise.watch.watch import Groups, Watch

pytest.importorskip("watchfiles")


class Noting(Listener):
    """Keeps what it receives in a list."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, text: str) -> None:
        if not text.endswith("a question will take some seconds"):  # a note about the encoder of the tests
            self._notes.append(text)

    waiting = note


class Watching:
    """A watch in a thread, with what it reported."""

    def __init__(self, folder: Path, encoder: Any, *sources: Path, **options: Any) -> None:
        self.folder, self.outcomes, self.notes = folder, list[Outcome](), list[str]()

        @contextmanager
        def open_index(listener: Listener, groups: Groups) -> Iterator[IndexCore]:
            if is_store(str(folder)):
                with IndexCore.open(str(folder), context=Context(listener=listener)) as index:
                    yield index
            else:
                settings, made = settings_of_new(encoder)
                with IndexCore(create_store(str(folder), settings), made, Context(listener=listener)) as index:
                    yield index

        settings: dict[str, Any] = {"every_s": 600.0, "prune": True, "yes": True, **options}
        self.watch = Watch(
            [(ReadOptions(), [str(source) for source in sources])],
            open_index,
            str(folder),
            report=self.outcomes.append,
            listener=Noting(self.notes),
            **settings,
        )
        self.thread = threading.Thread(target=self.watch.run)

    def __enter__(self) -> Watching:
        self.thread.start()
        self.until(lambda: bool(self.outcomes))
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(600):
            if condition():
                return
            threading.Event().wait(0.05)
        raise AssertionError(f"it did not happen within 30 seconds: {self.outcomes[-3:]} {self.notes}")

    def texts(self) -> dict[str, str]:
        with Index.open(self.folder) as index:
            return {document.uri: document.text for document in index}


def folders_of(watch: Watch) -> set[str]:
    return {folder for source in watch._sources for folder in source.folders}


def on_disk(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.rglob("*.txt")}


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likewise.watch.watch, "QUIET_MS", 100)
    monkeypatch.setattr(likewise.watch.watch, "SETTLING_S", 0.5)
    # Files of a test are younger than the ledger trusts.
    monkeypatch.setattr("indexer.records._SETTLED_NS", 0)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("the moon")
    return folder


def test_files_that_are_created_changed_renamed_and_deleted(tmp_path: Path, notes: Path, encoder: Any) -> None:
    with Watching(tmp_path / "x.index", encoder, notes) as watching:
        assert watching.texts() == on_disk(notes)
        (notes / "b.txt").write_text("the sun")
        watching.until(lambda: watching.texts() == on_disk(notes))
        (notes / "b.txt").write_text("the sun is a star")
        (notes / "a.txt").rename(notes / "c.txt")
        (notes / "sub" / "deep").mkdir(parents=True)
        (notes / "sub" / "deep" / "d.txt").write_text("mars")
        watching.until(lambda: watching.texts() == on_disk(notes))
        (notes / "c.txt").unlink()
        shutil.rmtree(notes / "sub")
        watching.until(lambda: watching.texts() == on_disk(notes))
    assert watching.notes == []


@pytest.mark.slow
def test_bursts_of_a_thousand_changes_and_a_folder_that_is_moved_in(tmp_path: Path, notes: Path, encoder: Any) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for number in range(50):
        (elsewhere / f"moved{number}.txt").write_text(f"moved {number}")
    with Watching(tmp_path / "x.index", encoder, notes) as watching:
        for number in range(400):
            (notes / f"{number}.txt").write_text(f"text {number}")
        for number in range(0, 400, 2):
            (notes / f"{number}.txt").write_text(f"other {number}")
        for number in range(0, 400, 4):
            (notes / f"{number}.txt").rename(notes / f"renamed {number}.txt")
        for number in range(1, 400, 4):
            (notes / f"{number}.txt").unlink()
        elsewhere.rename(notes / "moved")
        watching.until(lambda: watching.texts() == on_disk(notes))
        assert len(watching.texts()) == 351


def test_a_file_that_an_editor_replaces(tmp_path: Path, notes: Path, encoder: Any) -> None:
    """The SOURCE is a file, and each save puts another one in its place."""
    file = notes / "a.txt"
    with Watching(tmp_path / "x.index", encoder, file) as watching:
        for text in ("first save", "second save", "third save"):
            (notes / "a.tmp").write_text(text)
            (notes / "a.tmp").replace(file)
            watching.until(lambda text=text: watching.texts() == {str(file): text})  # type: ignore[misc]


def test_without_events_the_timer_finds_changes(
    tmp_path: Path, notes: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network mount, or where the system has no watches left."""

    def no_watches(*_: object, **__: object) -> Iterator[None]:
        raise OSError("OS file watch limit reached. about ['/x'] (os error 28)")
        yield

    monkeypatch.setattr("watchfiles.watch", no_watches)
    with Watching(tmp_path / "x.index", encoder, notes, every_s=0.3) as watching:
        (notes / "b.txt").write_text("the sun")
        watching.until(lambda: watching.texts() == on_disk(notes))
        (note,) = watching.notes
        assert "OS file watch limit reached" in note
        assert "fs.inotify.max_user_watches" in note
        assert "found by the scan every 0.3 seconds" in note


@pytest.mark.slow
def test_the_index_may_lie_among_its_sources(tmp_path: Path, notes: Path, encoder: Any) -> None:
    """Writing to it is no event that leads to writing to it."""
    with Watching(notes / "x.index", encoder, notes) as watching:
        (notes / "b.txt").write_text("the sun")
        watching.until(lambda: watching.texts().keys() == {str(notes / "a.txt"), str(notes / "b.txt")})
        threading.Event().wait(1.5)
        scans = len(watching.outcomes)
        threading.Event().wait(1.5)
        assert len(watching.outcomes) <= scans + 1  # the one that settles


def test_an_empty_or_missing_source_prunes_nothing(tmp_path: Path, notes: Path, encoder: Any) -> None:
    with Watching(tmp_path / "x.index", encoder, notes, every_s=0.3) as watching:
        away = notes.rename(tmp_path / "away")
        watching.until(lambda: any("no such file or folder" in note for note in watching.notes))
        notes.mkdir()
        watching.until(lambda: any("empty, so nothing is pruned" in note for note in watching.notes))
        assert watching.texts() == {str(notes / "a.txt"): "the moon"}
        notes.rmdir()
        away.rename(notes)
        (notes / "b.txt").write_text("the sun")
        watching.until(lambda: watching.texts() == on_disk(notes))


def test_without_yes_most_of_the_index_is_never_pruned(tmp_path: Path, notes: Path, encoder: Any) -> None:
    for number in range(5):
        (notes / f"{number}.txt").write_text(f"text {number}")
    with Watching(tmp_path / "x.index", encoder, notes, yes=False) as watching:
        for number in range(5):
            (notes / f"{number}.txt").unlink()
        watching.until(lambda: any("more than half" in note for note in watching.notes))
        assert len(watching.texts()) == 6


def test_a_file_that_failed_keeps_its_documents_and_the_rest_is_pruned(
    tmp_path: Path, notes: Path, encoder: Any
) -> None:
    (notes / "r.jsonl").write_text('{"id": "r1", "text": "one"}\n{"id": "r2", "text": "two"}\n')
    with Watching(tmp_path / "x.index", encoder, notes) as watching:
        (notes / "r.jsonl").write_text('{"id": "r1", "text": "one"}\n{"id": "r2", "te\n')
        (notes / "a.txt").unlink()
        watching.until(lambda: watching.texts() == {"r1": "one", "r2": "two"})
        note = f"pruning keeps the documents of files and folders that could not be read whole: {notes / 'r.jsonl'}"
        watching.until(lambda: note in watching.notes)


def test_a_missing_source_at_the_start_is_an_error(tmp_path: Path, encoder: Any) -> None:
    watching = Watching(tmp_path / "x.index", encoder, tmp_path / "none")
    with pytest.raises(SourceError, match="no such file"):
        watching.watch.run()
    assert not (tmp_path / "x.index").exists()


@pytest.mark.slow
def test_it_stops_after_the_commit_in_progress(tmp_path: Path, notes: Path, encoder: Any) -> None:
    for number in range(300):
        (notes / f"{number}.txt").write_text(f"text {number} " * 400)
    watching = Watching(tmp_path / "x.index", encoder, notes)
    encoder.ask = lambda _: watching.watch.stop()
    watching.watch.run()
    assert watching.outcomes == []
    kept = len(watching.texts())
    assert 0 < kept < 301
    encoder.ask = lambda _: None
    with Watching(tmp_path / "x.index", encoder, notes) as again:
        assert again.texts() == on_disk(notes)
        assert again.outcomes[0].summary.unchanged == kept


def test_it_stops_while_another_writer_holds_the_lock(tmp_path: Path, notes: Path, encoder: Any) -> None:
    folder = tmp_path / "x.index"
    with Index.create(folder, model=encoder) as other, other.lock():
        watching = Watching(folder, encoder, notes)
        watching.thread.start()
        watching.until(lambda: bool(watching.notes))
        assert "is being written by another process: waiting" in watching.notes[0]
        watching.watch.stop()
        watching.thread.join(30)
        assert not watching.thread.is_alive()
    assert watching.outcomes == []


def test_a_link_out_of_the_folder_and_ignored_files_start_no_scan(tmp_path: Path, notes: Path, encoder: Any) -> None:
    outside = tmp_path / "outside"
    for folder in (outside, notes / "node_modules", notes / "sub"):
        folder.mkdir()
    (notes / "link").symlink_to(outside)
    (notes / ".likewiseignore").write_text("*.log\n")
    with Watching(tmp_path / "x.index", encoder, notes) as watching:
        for file in (outside / "a.txt", notes / "node_modules" / "b.txt", notes / "c.log", notes / ".d.swp"):
            file.write_text("changes")
            assert not watching.watch._matters(str(file))
        for path in (notes / "sub", notes / "sub" / "e.txt", notes / "new", notes / ".likewiseignore"):
            assert watching.watch._matters(str(path))
        assert folders_of(watching.watch) == {str(notes), str(notes / "sub")}


@pytest.mark.slow
def test_events_that_do_not_matter_do_not_stop_the_timer(
    tmp_path: Path, notes: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likewise.watch.watch, "_LONGEST_BURST_MS", 200)
    with Watching(tmp_path / "x.index", encoder, notes, every_s=0.3) as watching:
        enough = len(watching.outcomes) + 3

        def is_scanned() -> bool:
            (notes / f".{time.monotonic_ns()}.swp").write_text("not read")
            return len(watching.outcomes) >= enough

        watching.until(is_scanned)


def test_new_folders_are_listened_to(tmp_path: Path, notes: Path, encoder: Any) -> None:
    with Watching(tmp_path / "x.index", encoder, notes) as watching:
        (notes / "new" / "er").mkdir(parents=True)
        watching.until(lambda: str(notes / "new" / "er") in folders_of(watching.watch))
        for place in ("new/er/b.txt", "new/c.txt"):
            (notes / place).write_text(f"text of {place}")
            watching.until(lambda: watching.texts() == on_disk(notes))
        shutil.rmtree(notes / "new")
        (notes / "new").mkdir()  # often with the inode of the one before
        watching.until(lambda: watching.texts() == on_disk(notes))
        (notes / "new" / "d.txt").write_text("of the second folder")
        watching.until(lambda: watching.texts() == on_disk(notes))


NOT_UTF_8 = os.fsdecode(b"caf\xe9")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names that are not UTF-8")


@pytest.mark.slow
@on_linux
def test_a_folder_with_a_name_that_is_not_utf_8_is_left_to_the_timer(tmp_path: Path, notes: Path, encoder: Any) -> None:
    (notes / NOT_UTF_8).mkdir()
    (notes / NOT_UTF_8 / "b.txt").write_text("cannot be a document")
    (notes / "sub").mkdir()
    (notes / "sub" / "c.txt").write_text("mars")
    with Watching(tmp_path / "x.index", encoder, notes) as watching:
        assert watching.notes == [
            f"{notes}/caf?: its name is not valid UTF-8, so changes in the folder above are found by the scan every "
            "600 seconds: rename it"
        ]
        (notes / "sub" / "c.txt").write_text("venus")
        watching.until(lambda: watching.texts()[str(notes / "sub" / "c.txt")] == "venus")
        threading.Event().wait(1.5)
        scans = len(watching.outcomes)
        threading.Event().wait(1.5)
        assert len(watching.outcomes) == scans  # the listing of a scan leads to no other scan


@pytest.mark.slow
@on_linux
def test_a_file_with_a_name_that_is_not_utf_8_does_not_end_the_events(
    tmp_path: Path, notes: Path, encoder: Any
) -> None:
    with Watching(tmp_path / "x.index", encoder, notes) as watching:
        for name in ("b.txt", "c.txt"):
            (notes / NOT_UTF_8).write_text(name)
            (notes / name).write_text(f"text of {name}")
            watching.until(lambda name=name: str(notes / name) in watching.texts())  # type: ignore[misc]
        assert watching.notes == []


def test_a_folder_that_is_made_during_a_scan_leads_to_another_scan(
    tmp_path: Path, notes: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watching(tmp_path / "x.index", encoder, notes).watch
    watch.scan()
    watch._is_settling = False
    watch.scan()
    assert not watch._is_settling

    def run(*arguments: Any, **options: Any) -> Outcome:
        (notes / "new").mkdir()
        return index_sources(*arguments, **options)

    monkeypatch.setattr(likewise.watch.watch, "index_sources", run)
    watch.scan()
    assert watch._is_settling


@pytest.mark.parametrize(
    ("first", "is_settling"),
    [
        (lambda notes: {(1, str(notes / "b.txt"))}, True),
        (lambda notes: {(1, str(notes / ".b.swp"))}, False),
        (lambda _: RuntimeError('Unable to decode path "/x/caf\\xE9" to string'), True),
        (lambda _: RuntimeError("Error creating recommended watcher: Too many open files"), False),
    ],
)
def test_events_at_the_begin_of_listening_lead_to_another_scan(
    tmp_path: Path,
    notes: Path,
    encoder: Any,
    monkeypatch: pytest.MonkeyPatch,
    first: Callable[[Path], Any],
    is_settling: bool,
) -> None:
    def events(*_: object, **__: object) -> Iterator[Any]:
        if isinstance(found := first(notes), Exception):
            raise found
        yield found

    monkeypatch.setattr("watchfiles.watch", events)
    watch = Watching(tmp_path / "x.index", encoder, notes).watch
    watch._is_settling = False
    watch.scan()
    assert watch._is_settling is is_settling


def test_a_note_is_told_at_once_and_by_a_scan_that_fails(
    tmp_path: Path, notes: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = Watching(tmp_path / "x.index", encoder, notes)
    watching.watch.scan()

    def run(index: IndexCore, *_: Any, **__: Any) -> Outcome:
        index.context.listener.note("the model is loading")
        assert watching.notes == ["the model is loading"]
        raise StorageError("the disk is full")

    monkeypatch.setattr(likewise.watch.watch, "index_sources", run)
    for _ in range(2):
        with pytest.raises(StorageError):
            watching.watch.scan()
    assert watching.notes == ["the model is loading"]
