"""A live log that is damaged or removed: its acknowledged commits are missing, and every reader and `check` say so."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hardware import needs_root
from opened import store_of, writer_of

from indexer import Document, Index
from indexer.errors import LikewiseError
from indexer.stores.local.catalog import connections, schema
from indexer.stores.local.catalog.database import Migrations
from indexer.stores.local.catalog.generation import Generation, GenerationFile, read_generation
from search import Searcher

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "files" / "golden.index"
FIRST, MORE = 3, 6  # commits of one document in the catalog, and then in its log
ROWS = np.random.default_rng(7).normal(size=(FIRST + MORE, 8)).astype(np.float32)
HEADER, FRAME_HEADER = 32, 24  # bytes, of SQLite's log

Damage = Callable[[bytes], bytes | None]


@dataclass(frozen=True)
class Frame:
    """One page in a log: where it begins, and whether a commit ends with it."""

    start: int
    commits: bool


def _frames(log: bytes) -> list[Frame]:
    """The frames of the log's present salts, as SQLite's format of files describes them."""
    page = int.from_bytes(log[8:12], "big")
    starts = range(HEADER, len(log), FRAME_HEADER + page)
    return [
        Frame(start, int.from_bytes(log[start + 4 : start + 8], "big") > 0)
        for start in starts
        if log[start + 8 : start + 16] == log[16:24]
    ]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a killed writer leaves it: three commits in the catalog, six in its log."""
    folder, copy = (tmp_path_factory.mktemp("live") / name for name in ("x.index", "copy.index"))
    with Index.create(folder, dimensions=8) as index:
        for number in range(FIRST):
            _add(index, number)
        with index.lock():
            for number in range(FIRST, FIRST + MORE):
                _add(index, number)
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-shm"))
    return copy


def _add(index: Index, number: int) -> None:
    index.add([Document(f"d{number}", f"text {number}")], vectors=ROWS[number % 9 :][:1])


def _damaged(live: Path, folder: Path, damage: Damage) -> Path:
    shutil.copytree(live, folder)
    log = folder / "catalog.db-wal"
    content = damage(log.read_bytes())
    log.unlink()
    if content is not None:
        log.write_bytes(content)
    return folder


def _flip(position: int) -> Damage:
    def flip(log: bytes) -> bytes:
        return log[:position] + bytes([log[position] ^ 1]) + log[position + 1 :]

    return flip


def _notes(folder: Path) -> tuple[str, ...]:
    with Searcher(folder) as searcher:
        hits = searcher.search_vector(np.ones(searcher.info().dimensions), 1)
        with store_of(searcher).snapshot() as snapshot:
            assert hits.notes == snapshot.notes
        return hits.notes


def _state(folder: Path) -> Generation:
    """The commit that readers see."""
    with Index.open(folder) as index, store_of(index).snapshot() as snapshot:
        _, history, number = snapshot.version  # type: ignore[misc]
        return Generation(history, number)


def _places(log: bytes) -> dict[str, tuple[Damage, int]]:
    """Damage by name, and how many of the log's commits are lost by it."""
    frames = _frames(log)
    ends = [number for number, frame in enumerate(frames) if frame.commits]
    assert len(ends) == MORE

    def lost(position: int) -> int:
        frame = sum(frame.start <= position for frame in frames) - 1
        return sum(end >= frame for end in ends)

    places: dict[str, tuple[Damage, int]] = {
        "removed": (lambda log: None, MORE),
        "emptied": (lambda log: b"", MORE),
        "zeros": (lambda log: bytes(len(log)), MORE),
        "garbage": (lambda log: np.random.default_rng(1).bytes(len(log)), MORE),
        "cut in the header": (lambda log: log[: HEADER - 1], MORE),
        "cut in the middle": (lambda log: log[: frames[ends[2]].start + 100], MORE - 2),
        "cut before its last byte": (lambda log: log[: frames[-1].start + 4096], 1),
        "another log's salt": (lambda log: log[:16] + bytes(8) + log[24:], MORE),
    }
    positions = {"magic number": 3, "page size": 9, "header's salt": 17, "header's checksum": 31}
    for name, number in {"first": 0, "second": 1, "middle": len(frames) // 2, "last": len(frames) - 1}.items():
        start = frames[number].start
        positions |= {
            f"page number of the {name} frame": start + 3,
            f"salt of the {name} frame": start + 9,
            f"checksum of the {name} frame": start + 23,
            f"first byte of the {name} page": start + FRAME_HEADER,
            f"last byte of the {name} page": start + FRAME_HEADER + 4095,
        }
    for number, end in enumerate(ends):
        positions[f"commit {number}"] = frames[end].start + FRAME_HEADER + 2000
    return places | {name: (_flip(at), MORE if at < HEADER else lost(at)) for name, at in positions.items()}


def test_wherever_a_log_is_damaged_readers_and_check_say_how_many_commits_are_missing(
    live: Path, tmp_path: Path
) -> None:
    places = _places((live / "catalog.db-wal").read_bytes())
    assert len(places) >= 30
    for number, (name, (damage, lost)) in enumerate(places.items()):
        folder = _damaged(live, tmp_path / f"{number}.index", damage)
        last = "the last commit is missing" if lost == 1 else f"the last {lost} commits are missing"
        (note,) = _notes(folder)
        assert note.startswith(f"{folder}: {last}, because"), name
        with Index.open(folder) as index:
            report = index.check()
            assert (len(index), report.problems, report.notes) == (FIRST + MORE - lost, (note,), ()), name
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_log_that_is_damaged_after_it_was_moved_into_the_catalog_is_reported_where_it_hides_commits(
    tmp_path: Path,
) -> None:
    folder, copy = tmp_path / "x.index", tmp_path / "copy.index"
    with Index.create(folder, dimensions=8) as index, index.lock():
        for number in range(FIRST + MORE):
            _add(index, number)
        with closing(sqlite3.connect(folder / "catalog.db")) as connection:
            assert connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-shm"))
    log = (copy / "catalog.db-wal").read_bytes()
    complete = reported = 0
    for number, frame in enumerate(_frames(log)):
        folder = _damaged(copy, tmp_path / f"{number}.index", _flip(frame.start + FRAME_HEADER))
        try:
            notes = _notes(folder)
            with Index.open(folder) as index:
                problems = index.check().problems
                uris = {document.uri for document in index}
        except LikewiseError:
            notes = problems = ("error",)
        reported += bool(notes and problems)
        complete += not notes and not problems and len(uris) == FIRST + MORE
        shutil.rmtree(folder)
    assert reported + complete == len(_frames(log))
    assert complete < reported


def test_nothing_is_said_of_a_sound_log(live: Path, tmp_path: Path) -> None:
    folder = _damaged(live, tmp_path / "x.index", lambda log: log)
    assert _notes(folder) == ()
    with Index.open(folder) as index:
        report = index.check()
        assert (len(index), report.problems, report.notes) == (FIRST + MORE, (), ())
        with index.lock():
            assert _notes(folder) == ()
    assert _notes(folder) == ()


def test_what_stands_behind_the_last_commit_may_be_damaged(live: Path, tmp_path: Path) -> None:
    folder = _damaged(live, tmp_path / "x.index", lambda log: log + b"half of a frame")
    assert _notes(folder) == ()
    with Index.open(folder) as index:
        assert (len(index), index.check().ok) == (FIRST + MORE, True)


def test_a_loss_is_reported_until_a_repair_confirms_it(live: Path, tmp_path: Path) -> None:
    folder = _damaged(live, tmp_path / "x.index", lambda log: None)
    history = _state(folder).history
    (note,) = _notes(folder)
    with Index.open(folder) as index:
        with index.lock():
            assert store_of(index)._writer.notes == (note,)  # type: ignore[attr-defined]
        for number in range(MORE + 2):  # more commits than were lost
            index.add([Document(f"later {number}", "text")], vectors=ROWS[:1])
            assert _notes(folder) == (note,)
            assert index.check().problems == (note,)
        # From now on, other documents have the ids and numbers of the lost documents.
        assert _state(folder).history != history
        report = index.check(repair=True)
        assert report.problems == ()
        assert report.notes == (
            f"no longer reports {MORE} missing commits; index the sources again if you have not yet",
        )
        assert (index.check().problems, index.check().notes, _notes(folder)) == ((), (), ())
        assert index.check(repair=True).notes == ()


def test_losses_add_up(live: Path, tmp_path: Path) -> None:
    folder = _damaged(live, tmp_path / "x.index", lambda log: None)
    with Index.open(folder) as index, index.lock():
        _add(index, 10)
        _add(index, 11)
        shutil.copytree(folder, tmp_path / "y.index", ignore=shutil.ignore_patterns("*-shm"))
    twice = _damaged(tmp_path / "y.index", tmp_path / "z.index", lambda log: _flip(len(log) - 1)(log))
    (note,) = _notes(twice)
    assert f"the last {MORE + 1} commits are missing" in note
    with Index.open(twice) as index:
        assert "no longer reports 7 missing" in index.check(repair=True).notes[0]
        assert index.check().ok


def test_a_run_over_the_same_sources_brings_back_what_was_lost(likewise: Any, lines: Any, tmp_path: Path) -> None:
    folder, names = tmp_path / "x.index", ("apple", "banana", "cherry", "bread")
    source = tmp_path / "source"
    source.mkdir()
    for name in names[:2]:
        (source / f"{name}.txt").write_text(name)
    assert likewise("index", folder, source).code == 0
    with _keeping_the_log(folder):
        for name in names[2:]:
            (source / f"{name}.txt").write_text(name)
        assert likewise("index", folder, source).code == 0
        shutil.copytree(folder, tmp_path / "copy.index", ignore=shutil.ignore_patterns("*-shm"))
    folder = tmp_path / "copy.index"
    with Index.open(folder) as index:
        assert (len(index), index.check().ok) == (4, True)
    (folder / "catalog.db-wal").unlink()
    (folder / "catalog.db-shm").unlink(missing_ok=True)
    asked = likewise("search", folder, "cherry", "--json")
    assert "commits are missing" in asked.err
    with Index.open(folder) as index:
        assert len(index) == 2
    likewise("check", folder, "--json").reported(1, ok=False)
    said = likewise("index", folder, source)
    assert "commits are missing" in said.err
    with Index.open(folder) as index:
        assert sorted(Path(document.uri).stem for document in index) == sorted(names)
    said = likewise("check", folder, "--repair").succeeded()
    assert "missing commits; index the sources again" in said.out
    assert likewise("search", folder, "cherry").err == ""
    assert likewise("check", folder).code == 0


@contextmanager
def _keeping_the_log(folder: Path) -> Iterator[None]:
    """Read in one transaction all the time, so that no writer moves the log into the catalog."""
    with closing(sqlite3.connect(folder / "catalog.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM document").fetchall()
        yield


def test_a_damaged_file_is_a_note_of_check_until_the_next_writer(live: Path, tmp_path: Path) -> None:
    sound = (live / "generation").read_bytes()
    for number in range(len(sound)):
        folder = tmp_path / f"{number}.index"
        shutil.copytree(live, folder)
        (folder / "generation").write_bytes(_flip(number)(sound) or b"")
        assert _notes(folder) == ()
        with Index.open(folder) as index:
            report = index.check()
            (note,) = report.notes
            assert report.ok
            assert "the file generation is damaged" in note
            with index.lock():
                pass
            assert (index.check().ok, index.check().notes) == (True, ())
        assert read_generation(folder) == read_generation(live)
        shutil.rmtree(folder)


@pytest.mark.parametrize("content", [None, b""])
def test_an_index_without_the_file_has_a_note_of_check_and_gets_it_from_the_next_writer(
    live: Path, tmp_path: Path, content: bytes | None
) -> None:
    folder = tmp_path / "x.index"
    shutil.copytree(live, folder)
    (folder / "generation").unlink()
    if content is not None:
        (folder / "generation").write_bytes(content)
    assert _notes(folder) == ()
    with Index.open(folder) as index:
        (note,) = index.check().notes
        problem = "missing" if content is None else "damaged"
        assert note == f"the file generation is {problem}, so commits that are missing would go unnoticed"
        assert index.check().ok
        _add(index, 10)
        assert (_notes(folder), index.check().notes) == ((), ())
    assert read_generation(folder) == _state(folder)


def test_the_file_of_another_index_says_nothing(live: Path, tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    Index.create(folder, dimensions=8).close()
    shutil.copy(live / "generation", folder / "generation")
    assert _notes(folder) == ()
    assert Index.open(folder).check().ok


def test_a_loss_of_one_commit_is_seen_before_a_migration_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x.index"
    shutil.copytree(GOLDEN, folder)
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        rows = dict(connection.execute("SELECT name, value FROM setting"))
    known = Migrations("likewise")
    known(name="version_1")(schema.version_1)
    known(name="version_2")(lambda db: None)
    monkeypatch.setattr(schema, "MIGRATIONS", known)
    monkeypatch.setattr(connections, "FORMAT_VERSION", 2)
    file = GenerationFile(folder)
    file.write(Generation(rows["history"], int(rows["generation"]) + 1))
    file.close()
    with Index.open(folder) as index:
        assert "the last commit is missing" in _notes(folder)[0]
        with store_of(index).writer():
            pass
        assert "the last commit is missing" in _notes(folder)[0]
        assert index.info().format_version == 2


def test_copies_and_successors_say_what_their_original_has_lost(live: Path, tmp_path: Path) -> None:
    folder = _damaged(live, tmp_path / "x.index", lambda log: None)
    (note,) = _notes(folder)
    with Index.open(folder) as index:
        assert index.copy(tmp_path / "y.index") == (note,)
        assert _notes(tmp_path / "y.index") == (note.replace("x.index", "y.index"),)
        index.replace_all([Document("new", "text")], vectors=ROWS[:1])
        assert _notes(folder) == (note,)
        index.check(repair=True)
        assert _notes(folder) == ()


def test_every_way_to_write_leaves_the_number_of_its_last_commit(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"

    def recorded(of: Path) -> bool:
        with Index.open(of) as index:
            report = index.check()
            assert (report.ok, _notes(of)) == (True, ())
            assert "generation" not in " ".join(report.notes)
            return read_generation(of) == _state(of)

    with Index.create(folder, dimensions=8) as index:
        assert recorded(folder)
        for change in (
            lambda: index.add([Document(f"d{n}", "text") for n in range(9)], vectors=ROWS),
            lambda: index.remove(["d1"]),
            lambda: writer_of(index).change(lambda settings: replace(settings, recall=0.9)),
            lambda: writer_of(index).begin_run(),
            index.compact,
            lambda: writer_of(index).settle(),
            lambda: index.check(repair=True),
            lambda: index.copy(tmp_path / "y.index"),
            lambda: index.replace_all([Document("new", "text")], vectors=ROWS[:1]),
        ):
            change()
            assert recorded(folder)
            with index.lock():
                assert _notes(folder) == ()
    assert recorded(tmp_path / "y.index")
    with Index.temporary(dimensions=8) as index:
        _add(index, 0)
        assert recorded(Path(index.address))


def test_a_file_that_cannot_be_written_is_a_note_and_the_commit_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: GenerationFile, generation: Generation) -> None:
        raise OSError(28, "No space left on device")

    with Index.create(tmp_path / "x.index", dimensions=8) as index:
        with monkeypatch.context() as patch:
            patch.setattr(GenerationFile, "write", full)
            changes = index.add([Document("a", "text")], vectors=ROWS[:1])
        assert changes.added == ("a",)
        assert [note for note in changes.notes if "No space left on device" in note] == list(changes.notes)
        assert len(changes.notes) == 1
        assert (index.check().ok, _notes(tmp_path / "x.index")) == (True, ())


ASKER = """
import mmap, os, sys, urllib.parse
import faiss
import numpy as np
import indexer.stores.local.store
from search import Searcher
os.setuid(65534)  # after the imports: the interpreter may lie where nobody else may read
for folder in sys.argv[1:]:
    print(*Searcher(folder).search_vector(np.ones(8), 1).notes)
"""


@needs_root
def test_who_may_not_write_is_told_too(live: Path, open_path: Path) -> None:
    damages: tuple[Damage, ...] = (lambda log: log, lambda log: None, lambda log: _flip(len(log) - 1)(log))
    folders = [_damaged(live, open_path / f"{number}.index", damage) for number, damage in enumerate(damages)]
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555)
    command = [sys.executable, "-c", ASKER, *map(str, folders)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, timeout=110).stdout
    sound, removed, damaged = said.splitlines()
    assert sound == ""
    assert f"the last {MORE} commits are missing" in removed
    assert "the last commit is missing" in damaged


WRITER = """
import sys
import numpy as np
from indexer import Document, Index
with Index.open(sys.argv[1]) as index, index.lock():
    for number in range(5):
        index.add([Document(f"d{number}", "text")], vectors=np.eye(8)[:1])
        print(number, flush=True)
"""


@pytest.mark.parametrize("step", ["commit.begun", "commit.written", "commit.done", "commit.acknowledged"])
def test_a_writer_killed_around_the_record_raises_no_alarm(tmp_path: Path, step: str) -> None:
    folder = tmp_path / "x.index"
    Index.create(folder, dimensions=8).close()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LIKEWISE_KILL_AT": f"{step}:4"}
    killed = subprocess.run([sys.executable, "-c", WRITER, str(folder)], env=environment, check=False, stdout=-1)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, b"0\n1\n2\n")
    committed = step in ("commit.done", "commit.acknowledged")
    acknowledged = read_generation(folder)
    assert acknowledged is not None
    assert _notes(folder) == ()
    with Index.open(folder) as index:
        assert len(index) == 3 + committed
        number = _state(folder).number
        assert number - acknowledged.number == (step == "commit.done")
        assert (index.check().ok, index.check().notes) == (True, ())
        with index.lock():
            assert read_generation(folder) == acknowledged._replace(number=number)
        _add(index, 10)
        assert _notes(folder) == ()


READER = """
import sys
from indexer.stores.addresses.open import open_store
from pathlib import Path
store, asked = open_store(Path(sys.argv[1])), 0
print("ready", flush=True)
while not Path(sys.argv[2]).exists():
    with store.snapshot() as snapshot:
        missing = [note for note in snapshot.notes if "missing" in note]
        assert not missing, missing
    asked += 1
print(asked, snapshot.version[2])
"""


@pytest.mark.slow
def test_commits_while_snapshots_are_opened_are_never_reported_as_missing(tmp_path: Path) -> None:
    folder, end = tmp_path / "x.index", tmp_path / "end"
    with Index.create(folder, dimensions=8) as index:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "error", "-c", READER, str(folder), str(end)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
            done, missing, asked = threading.Event(), list[str](), [0, 0, 0]
            store = store_of(index)

            def read(number: int) -> None:
                while not done.is_set():
                    with store.snapshot() as snapshot:
                        missing.extend(note for note in snapshot.notes if "missing" in note)
                    asked[number] += 1

            threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for number in range(120):
                if number % 100 == 50:
                    index.compact()
                elif number % 100 == 99:
                    index.replace_all([Document("new", "text")], vectors=ROWS[:1])
                elif number % 20 < 10:
                    writer_of(index).begin_run()
                else:
                    index.add([Document(f"d{number % 30}", f"{number}")], vectors=ROWS[number % 9 : number % 9 + 1])
            done.set()
            end.touch()
            for thread in threads:
                thread.join()
            output, _ = reader.communicate(timeout=110)
    assert reader.returncode == 0
    assert missing == []
    assert all(asked)
    assert int(output.split()[0]) > 0
