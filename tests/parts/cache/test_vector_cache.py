"""The cache of vectors: what is embedded twice, what is kept apart, and what happens where it is broken."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from indexer.encoders import RecipeSpec, registry
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.locate import DEFAULT_MODEL
from indexer.errors import NothingKnown, in_shell
from likewise.cache import deferred, vector_cache
from likewise.cache.cached_encoder import CachedEncoder
from likewise.cache.user_cache import UserCache
from likewise.cache.vector_cache import VectorCache, default_path
from search import Searcher

TEXTS = {"moon.txt": "The moon orbits the earth.", "bread.txt": "Bread is baked in an oven.", "sun.txt": "A star."}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files, for a user with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIKEWISE_VECTOR_CACHE")
    files = tmp_path / "files"
    files.mkdir()
    for name, text in TEXTS.items():
        (files / name).write_text(text)
    return files


def rows(index: Path, folder: Path) -> bytes:
    """The stored vectors, file by file."""
    with Searcher(index) as searcher:
        found = [searcher.vectors(str(folder / name)) for name in TEXTS]
    assert [vectors for vectors in found if vectors is None] == []
    return b"".join(np.asarray(getattr(vectors, "rows", vectors), np.float32).tobytes() for vectors in found)


def about_cache(said: Any) -> list[str]:
    """The notes about the cache: others are about this model."""
    return [note for note in said.json["notes"] if "cache" in note]


def vectors_of(cache: Path) -> int:
    with sqlite3.connect(cache) as connection:
        (count,) = connection.execute("SELECT count(*) FROM vector").fetchone()
    connection.close()
    return int(count)


def test_nothing_is_embedded_twice(folder: Path, tmp_path: Path, likewise: Callable[..., Any], encoder: Any) -> None:
    assert likewise("index", tmp_path / "plain.index", folder, "--no-cache").code == 0
    assert not default_path().exists()
    assert likewise("index", tmp_path / "a.index", folder).code == 0
    assert default_path().stat().st_mode & 0o777 == 0o600
    asked = len(encoder.seen)
    said = likewise("index", tmp_path / "b.index", folder, "--json")
    assert said.json["indexed"] == 3
    assert about_cache(said) == []
    assert likewise("index", tmp_path / "a.index", folder, "--rebuild").code == 0
    renamed = folder.rename(tmp_path / "renamed")
    assert likewise("index", tmp_path / "a.index", renamed, "--prune", "--yes").code == 0
    assert encoder.seen[asked:] == []
    renamed.rename(folder)
    plain = rows(tmp_path / "plain.index", folder)
    assert len(plain) == 3 * 4 * encoder.dimensions
    assert rows(tmp_path / "b.index", folder) == plain
    assert likewise("index", tmp_path / "c.index", folder, "--no-cache").code == 0
    assert len(encoder.seen) - asked == 3


def test_a_question_and_the_encoder_itself_never_use_the_cache(
    folder: Path, tmp_path: Path, likewise: Callable[..., Any], encoder: Any
) -> None:
    likewise("index", tmp_path / "a.index", folder)
    stored = vectors_of(default_path())
    asked = len(encoder.seen)
    for _ in range(2):
        assert likewise("search", tmp_path / "a.index", "moon").code == 0
    assert encoder.seen[asked:] == ["moon", "moon"]
    assert vectors_of(default_path()) == stored


def test_what_decides_a_vector_is_in_its_key(tmp_path: Path, make_encoder: Callable[..., Any]) -> None:
    cache = VectorCache(tmp_path / "vectors.db")
    one, other = make_encoder(), make_encoder(weights="2")
    first = CachedEncoder(one, cache, "auto").encode(["moon", "sun", "moon"])
    assert one.seen == ["moon", "sun"]
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal(CachedEncoder(one, cache, "auto").encode(["sun", "moon"]), first[1::-1])
    assert one.seen == ["moon", "sun"]
    CachedEncoder(one, cache, "float32").encode(["moon"])
    CachedEncoder(one, cache, "auto").encode(["moon"], role="query")
    CachedEncoder(one, cache, "auto").encode(["moon"], truncate=True)
    assert one.seen == ["moon", "sun", "moon", "moon", "moon"]
    CachedEncoder(other, cache, "auto").encode(["moon"])
    assert other.seen == ["moon"]
    cache.close()


def test_a_text_that_the_model_does_not_know_is_named_by_its_place(tmp_path: Path, encoder: Any) -> None:
    def refuse(texts: Any) -> None:
        if "unknown" in texts:
            raise NothingKnown([list(texts).index("unknown")], "words")

    cache = VectorCache(tmp_path / "vectors.db")
    cached = CachedEncoder(encoder, cache, "auto")
    cached.encode(["moon"])
    encoder.ask = refuse
    with pytest.raises(NothingKnown) as error:
        cached.encode(["moon", "sun", "unknown"])
    assert error.value.texts == (2,)
    cache.close()


def test_a_flipped_byte_is_noticed_and_embedded_again(
    folder: Path, tmp_path: Path, likewise: Callable[..., Any], encoder: Any
) -> None:
    likewise("index", tmp_path / "a.index", folder)
    with sqlite3.connect(default_path()) as connection:
        damaged = list(connection.execute("SELECT key, vector FROM vector"))
        for key, vector in damaged:
            connection.execute("UPDATE vector SET vector = ? WHERE key = ?", (bytes([vector[0] ^ 1]) + vector[1:], key))
    connection.close()
    asked = len(encoder.seen)
    said = likewise("index", tmp_path / "b.index", folder, "--json")
    assert about_cache(said) == []
    assert len(encoder.seen) - asked == len(damaged)
    assert rows(tmp_path / "b.index", folder) == rows(tmp_path / "a.index", folder)


def test_a_broken_cache_is_a_note_and_not_an_error(folder: Path, tmp_path: Path, likewise: Callable[..., Any]) -> None:
    default_path().parent.mkdir(parents=True)
    default_path().write_bytes(b"no database" * 1000)
    said = likewise("index", tmp_path / "a.index", folder, "--json").succeeded()
    assert said.json["indexed"] == 3
    (note,) = about_cache(said)
    assert "cannot be used (file is not a database)" in note
    assert "likewise cache --clear" in note
    assert likewise("cache").code == 3
    assert likewise("cache", "--clear", "--json").json["vectors"] == 0
    assert about_cache(likewise("index", tmp_path / "b.index", folder, "--json")) == []
    assert vectors_of(default_path()) >= 3


def test_damage_that_sqlite_reads_over_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    cache = VectorCache(path)
    rows = {bytes([number]) * 32: bytes([number]) * 64 for number in range(8)}
    cache.put(rows)
    cache.keep_model(b"model" * 4, "{}", "{}")
    cache.close()
    keys = list(rows)
    with sqlite3.connect(path) as connection:
        for number, change in enumerate(("vector = 'text'", "vector = NULL", "checksum = 7", "used = 'never'")):
            connection.execute(f"UPDATE vector SET {change} WHERE key = ?", (keys[number],))
        connection.execute("UPDATE model SET recipe = 7")
        connection.execute("INSERT INTO setting VALUES ('max_bytes', 'many')")
        connection.execute("CREATE TRIGGER kept BEFORE DELETE ON vector BEGIN SELECT RAISE(IGNORE); END")
    connection.close()
    assert cache.get(keys) == {key: rows[key] for key in keys[3:]}
    assert cache.model(b"model" * 4) is None
    assert cache.size()[2] == vector_cache.DEFAULT_MAX_BYTES
    assert cache.problems == []
    cache.limit(0)  # rows that cannot be removed would be tried for ever
    assert len(cache.problems) == 1
    assert "its rows cannot be removed" in cache.problems[0]
    cache.clear()
    cache.put(rows)
    assert (cache.get(keys), cache.problems) == (rows, [])
    cache.close()


def test_a_folder_that_cannot_be_used_is_not_taken_for_a_damaged_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "vectors.db").mkdir()
    for path in (tmp_path / "file" / "vectors.db", tmp_path / "vectors.db"):
        cache = VectorCache(path)
        cache.put({b"key": b"row"})
        (problem,) = cache.problems
        assert "permissions" in problem
        assert "LIKEWISE_VECTOR_CACHE=off" in problem
        assert "--clear" not in problem


def test_a_cache_on_a_full_disk_can_be_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite needs space to remove rows, so the file is deleted."""
    cache = VectorCache(tmp_path / "vectors.db")
    cache.put({b"key": b"row"})

    def full() -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(cache, "_open", full)
        cache.clear()
    assert (cache.path.exists(), cache.problems) == (False, [])
    cache.put({b"key": b"new"})
    assert cache.get([b"key"]) == {b"key": b"new"}
    cache.close()


def test_a_cache_that_another_process_holds_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_cache, "BUSY_SECONDS", 0.01)
    cache = VectorCache(tmp_path / "vectors.db")
    cache.put({b"key": b"row"})
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        cache.clear()
        assert len(cache.problems) == 1
        assert "locked" in cache.problems[0]
        cache.clear()
        other.execute("ROLLBACK")
    cache.close()
    again = VectorCache(tmp_path / "vectors.db")
    assert again.get([b"key"]) == {b"key": b"row"}
    again.close()


def test_a_schema_that_is_no_text_any_more_is_a_problem_and_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    cache = VectorCache(path)
    cache.size()
    cache.close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE vector (key", b"CREATE TAB\xe9\xe9 vector (key"))
    cache = VectorCache(path)
    assert cache.get([b"key"]) == {}
    assert len(cache.problems) == 1
    assert in_shell(cache.problems[0]).endswith(": likewise cache --clear makes it new")


def test_a_recipe_that_another_version_has_kept_is_made_again(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = VectorCache(tmp_path / "vectors.db")
    model = RecipeSpec.parse(DEFAULT_MODEL)
    key = deferred._key(model, Runtime())
    assert key is not None
    cache.keep_model(key, '{"model": "all-MiniLM-L6-v2", "a member of": "tomorrow"}', "{}")
    monkeypatch.setattr(registry, "_load_spec", lambda *_: (encoder, encoder.recipe))
    assert registry.get_encoder(model, models=UserCache(cache)) == (encoder, encoder.recipe)
    cache.close()


PROGRAM = """
import sys
from pathlib import Path
from likewise.cache.vector_cache import VectorCache
cache = VectorCache(Path(sys.argv[1]))
for block in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):
    cache.put({block.to_bytes(4, "big") + bytes([n]) * 12: bytes([block % 256]) * 64 for n in range(20)})
    print(block, flush=True)
print(cache.problems)
"""


def test_processes_share_it_and_may_be_killed(tmp_path: Path, environment: SimpleNamespace) -> None:
    path = tmp_path / "vectors.db"

    def start(first: int, blocks: int) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", PROGRAM, str(path), str(first), str(blocks)]
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)

    killed = [start(number * 10_000, 10_000) for number in range(1, 3)]
    last = []
    for number, process in enumerate(killed):
        assert process.stdout is not None
        last.append([process.stdout.readline() for _ in range(5 + 3 * number)][-1])
        process.send_signal(signal.SIGKILL)
        process.communicate()
    others = [start(number * 10, 10) for number in range(3)]
    assert [process.communicate()[0].splitlines()[-1] for process in others] == ["[]"] * 3
    cache = VectorCache(path)
    blocks = [*range(30), *map(int, last)]
    keys = {
        block.to_bytes(4, "big") + bytes([n]) * 12: bytes([block % 256]) * 64 for block in blocks for n in range(20)
    }
    assert cache.get([*keys]) == keys
    assert cache.problems == []
    cache.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


RUN = """
import sys, likewise.shell
try:
    likewise.shell.main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(sorted({"torch", "transformers", "sentence_transformers"} & set(sys.modules)))
"""


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.db")
    cache.put({b"key": b"vector"})
    with cache._guarded():  # what another thread is doing at this moment
        if (child := os.fork()) == 0:
            signal.alarm(20)
            os._exit(0 if cache.get([b"key"]) == {b"key": b"vector"} else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert cache.get([b"key"]) == {b"key": b"vector"}


@pytest.mark.slow
def test_with_every_vector_cached_no_torch_is_imported(
    folder: Path, tmp_path: Path, environment: SimpleNamespace
) -> None:
    """With the default model: a second index, the calibration of 40 passages, and the compiled encoder."""
    for number in range(40):
        (folder / f"{number}.txt").write_text(
            f"Note {number} is about the moon. It has a second sentence, {number * 7}."
        )

    def run(*arguments: str | Path) -> list[str]:
        line = [sys.executable, "-c", RUN, "index", *map(str, arguments), "--json"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=110, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert "torch" in run(tmp_path / "a.index", folder)[-1]
    said = run(tmp_path / "b.index", folder)
    assert '"indexed": 43' in said[0]
    assert said[-1] == "[]"
    assert run(tmp_path / "b.index", folder, "--rebuild")[-1] == "[]"
    assert rows(tmp_path / "b.index", folder) == rows(tmp_path / "a.index", folder)
    with Searcher(tmp_path / "a.index") as one, Searcher(tmp_path / "b.index") as two:
        assert [hit.score for hit in one.search("the moon")] == [hit.score for hit in two.search("the moon")]


def test_nobody_else_may_read_the_cache_or_its_log_while_it_is_open(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.db")
    before = os.umask(0)
    try:
        cache.put({b"key": b"vector"})
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "vectors.db": 0o600,
        "vectors.db-shm": 0o600,
        "vectors.db-wal": 0o600,
    }
    (tmp_path / "vectors.db-wal").chmod(0o644)  # as an earlier version left it
    other = VectorCache(tmp_path / "vectors.db")
    assert other.get([b"key"]) == {b"key": b"vector"}
    assert (tmp_path / "vectors.db-wal").stat().st_mode & 0o777 == 0o600
    other.close()
    cache.close()
