"""Replicas of the words on the disk: shared by processes, followed by later commits, and made again where damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from postgres_server import new_address, remove_index

from indexer import Document, Index
from indexer.stores.addresses.open import open_store
from likewise.postgres import words
from likewise.postgres.address import parse_address
from search import Searcher

ROWS = np.eye(8, dtype=np.float32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(words, "KEPT_PASSAGES", 5)
    monkeypatch.setattr(words, "KEPT_CHANGES", 3)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "likewise" / "words"


@pytest.fixture
def index(cache: Path) -> Iterator[Index]:
    with Index.create(new_address(), dimensions=8) as index:
        index.add([Document(f"d{i}", f"pear number{i}") for i in range(8)], vectors=ROWS)
        yield index
        store: Any = open_store(index.address)
        remove_index(store.engine)
        store.close()


def found(address: str, text: str) -> tuple[list[str], tuple[str, ...]]:
    """Ask as a new process does."""
    store = open_store(address)
    with store.snapshot() as snapshot:
        ranking = snapshot.words(text, 20)
        answer = [passage.uri for passage in snapshot.passages_by_id(ranking.passages.tolist())], snapshot.notes
    store.close()
    return answer


TABLES = ("setting", "document", "passage", "field", "field_value", "change")


@contextmanager
def set_back(index: Index) -> Iterator[None]:
    """Set the index back to what it was before the block, as the restore of a backup does."""
    name = parse_address(index.address).index
    with psycopg.connect(parse_address(index.address).conninfo, autocommit=True) as connection:

        def run(query: str, *values: Any) -> Any:
            return connection.execute(query, values or None)  # type: ignore[arg-type]

        ((row,),) = run("SELECT to_json(i) FROM likewise.index i WHERE name = %s", name).fetchall()
        tables = row["tables"]
        for table in TABLES:
            run(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {tables}.{table}")
        yield
        with connection.transaction():
            run(f"TRUNCATE {', '.join(f'{tables}.{table}' for table in TABLES)}")
            for table in TABLES:
                run(f"INSERT INTO {tables}.{table} SELECT * FROM kept_{table}")
            for table in ("document", "passage"):
                run(f"SELECT setval('{tables}.{table}_id', (SELECT max(id) FROM {tables}.{table}))")
            counts = ("generation", "documents", "passages", "tokens")
            run(
                f"UPDATE likewise.index SET ({', '.join(counts)}) = (%s, %s, %s, %s) WHERE name = %s",
                *(row[count] for count in counts),
                name,
            )


def test_a_database_that_was_set_back_is_noticed(index: Index, cache: Path) -> None:
    address = index.address
    found(address, "pear")
    with Searcher(address) as living:

        def uris(text: str, where: str | None = None) -> list[str]:
            return sorted(hit.uri for hit in living.search(text, 20, where=where, mode="words") if hit.score > 0)

        with set_back(index):
            for number in range(4):  # enough for another replica on the disk
                index.add([Document(f"lost{number}", "apple")], vectors=ROWS[:1])
            assert len(found(address, "apple")[0]) == 4
            assert uris("apple") == [f"lost{number}" for number in range(4)]
            assert uris("apple", "not uri = 'lost1'") == ["lost0", "lost2", "lost3"]
            first, lost = replicas(cache)
        for number in range(4):
            with Index.open(address) as other:
                other.add([Document(f"kept{number}", "apple cherry")], vectors=ROWS[:1])
        assert uris("apple") == uris("cherry") == [f"kept{number}" for number in range(4)]
        assert uris("apple", "not uri = 'lost1'") == [f"kept{number}" for number in range(4)]
        assert len(found(address, "cherry")[0]) == 4
    assert lost not in replicas(cache)
    assert first in replicas(cache)
    assert index.check().ok


def test_commits_of_the_first_version_are_followed(index: Index, cache: Path) -> None:
    """They have a number, and none by chance."""
    address = index.address
    found(address, "pear")
    name = parse_address(address).index
    with psycopg.connect(parse_address(address).conninfo, autocommit=True) as connection:
        ((tables,),) = connection.execute("SELECT tables FROM likewise.index WHERE name = %s", (name,)).fetchall()
        connection.execute(f"DELETE FROM {tables}.change WHERE document_id < 0")
    for path in cache.glob("*/*/commit"):
        path.unlink()
        (path.parent / words._CHECKSUMS).write_text(json.dumps(words._checksums(path.parent)))
    (first,) = replicas(cache)
    with Searcher(address) as living:
        assert len(living.search("pear", 20, mode="words")) == 8
        index.add([Document("d9", "apple")], vectors=ROWS[:1])
        assert [hit.uri for hit in living.search("apple", 1, mode="words")] == ["d9"]
    assert replicas(cache) == [first]


def replicas(cache: Path) -> list[str]:
    return sorted((path.name for path in cache.glob("*/*")), key=lambda name: int(name.split("-")[0]))


def test_a_replica_is_shared_and_followed(index: Index, cache: Path) -> None:
    address = index.address
    assert len(found(address, "pear")[0]) == 8
    (first,) = replicas(cache)
    index.add([Document("d9", "apple")], vectors=ROWS[:1])
    index.remove(["d0"])
    assert found(address, "apple") == (["d9"], ())
    assert "d0" not in found(address, "pear")[0]
    assert replicas(cache) == [first]  # two changes are read each time
    index.add([Document(f"e{i}", "plum pear") for i in range(3)], vectors=ROWS[:3])
    assert sorted(found(address, "plum")[0]) == ["e0", "e1", "e2"]
    assert len(replicas(cache)) == 2  # from here on the newer one is used
    code = (
        "import sys\nfrom likewise.postgres import words\nwords.KEPT_PASSAGES = 5\nwords.KEPT_CHANGES = 3\n"
        "from indexer.stores.addresses.open import open_store\n"
        "with open_store(sys.argv[1]).snapshot() as snapshot:\n    print(snapshot.words('pear', 20).matched)"
    )
    other = subprocess.run([sys.executable, "-c", code, address], capture_output=True, text=True, check=True)
    assert other.stdout == "10\n"
    assert len(replicas(cache)) == 2


def test_an_older_snapshot_gets_its_own_words(index: Index, cache: Path) -> None:
    reader, asker = open_store(index.address), open_store(index.address)
    with reader.snapshot() as old:
        assert old.documents == 8
        index.add([Document(f"e{i}", "plum pear") for i in range(4)], vectors=ROWS[:4])
        with asker.snapshot() as new:
            assert new.words("pear", 20).matched == 12
        assert len(replicas(cache)) == 1  # newer than this reader
        ranking = old.words("pear", 20)
        assert ranking.matched == 8
        assert old.words("plum", 20).matched == 0
        with reader.snapshot() as new:
            assert new.words("plum", 20).matched == 4
        assert old.words("pear", 20).scores.tolist() == ranking.scores.tolist()
    reader.close()
    asker.close()


@pytest.mark.parametrize("name", ["documents.npy", "analysis", "checksums.json", "documents/meta.json", "*/*.store"])
@pytest.mark.parametrize(
    "damage", ["flip", *(pytest.param(name, marks=pytest.mark.slow) for name in ("empty", "gone"))]
)
def test_a_damaged_replica_is_made_again(index: Index, cache: Path, name: str, damage: str) -> None:
    right = found(index.address, "pear number3")
    (folder,) = cache.glob("*/*")
    path = next(folder.glob(name))
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        middle = len(content) // 2
        path.write_bytes(b"" if damage == "empty" else content[:middle] + b"!" + content[middle + 1 :])
    assert found(index.address, "pear number3") == right
    assert found(index.address, "pear number3") == right
    assert any(_is_sound(path) for path in cache.glob("*/*"))


def _is_sound(path: Path) -> bool:
    try:
        return words._Base(path).generation >= 0
    except (OSError, ValueError):
        return False


def test_without_a_cache_folder_words_are_read_each_time(index: Index, cache: Path) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("not a folder")  # as root, a folder without write permission would be writable
    uris, notes = found(index.address, "pear")
    assert len(uris) == 8
    assert "words cannot be kept there" in notes[0]


def test_a_replica_is_used_where_the_next_cannot_be_written(
    index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(index.address, "pear")
    index.add([Document(f"e{i}", "plum pear") for i in range(4)], vectors=ROWS[:4])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(words, "_write", full)
    read: list[object] = []
    texts = words._texts
    monkeypatch.setattr(words, "_texts", lambda view, analysis, ids: read.append(ids) or texts(view, analysis, ids))
    uris, notes = found(index.address, "plum")
    assert sorted(uris) == ["e0", "e1", "e2", "e3"]
    assert "No space left on device" in notes[0]
    assert [len(ids) for ids in read] == [4]  # type: ignore[arg-type]
