"""The total of the progress bar: the bytes that the run will read, or none; looking for it breaks nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hardware import needs_root

from indexer import Document, Index
from indexer.encoders.tokens.batching import unit
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import Embedding, settings_of_new
from indexer.indexing.runs import index_sources
from indexer.listener import Commit, Listener
from indexer.passages.cut import PassageSettings
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import create_store, holds_store
from likewise.cache.cached_encoder import CachedEncoder
from likewise.cache.vector_cache import VectorCache
from likewise.shell.terminal import progress as shown
from likewise.shell.terminal.progress import RunProgress, _size

ROOT = Path(__file__).parents[3]


def total(*arguments: str | Path, **options: tuple[str, ...]) -> int | None:
    return _size(open_sources([str(argument) for argument in arguments], ReadOptions(**options), holds_store))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "w" / "deep").mkdir(parents=True)
    for name, size in (("a.txt", 10), ("b.md", 200), ("deep/c.txt", 3000), (".hidden", 40000)):
        (tmp_path / "w" / name).write_bytes((b"x " * size)[:size])
    return tmp_path / "w"


def test_the_total_is_of_the_files_that_will_be_read(folder: Path) -> None:
    assert total(folder) == 3210
    assert total(folder / "a.txt") == 10
    assert total(f"{folder}/*.txt") == 10
    assert total(f"{folder}/**/*.txt") == 3010
    assert total(folder, glob=("*.md",)) == 200
    assert total(folder, folder / "a.txt") == 3210  # nothing twice
    assert total(folder, "-") is None


def test_what_vanishes_or_leads_nowhere_has_no_size(folder: Path) -> None:
    (folder / "nowhere").symlink_to(folder / "gone")
    sources = open_sources([str(folder), str(folder / "a.txt")], ReadOptions(), holds_store)
    (folder / "a.txt").unlink()
    assert _size(sources) == 3200


@needs_root
def test_a_folder_that_may_be_listed_and_not_entered(folder: Path, open_path: Path) -> None:
    folder = folder.rename(open_path / "w")
    (folder / "deep").chmod(0o744)
    program = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from likewise.shell.terminal.progress import _size
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import holds_store
import indexer.sources.folders.walk
os.setuid(65534)
print(_size(open_sources([{str(folder)!r}], ReadOptions(), holds_store)))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd="/", capture_output=True, text=True, timeout=110, check=False
    )
    assert (ended.stdout, ended.stderr) == ("210\n", "")


def test_files_and_bytes_are_shown_before_the_first_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "on_terminal", lambda: True)
    monkeypatch.setattr(shown, "_REDRAW_S", 0.0)
    progress = RunProgress(open_sources([str(folder)], ReadOptions(), holds_store))
    assert progress._bar is not None
    task = progress._bar.tasks[0]
    progress.reading(str(folder / "a[red]\x1b.txt"), 3, 5 * 2**20)
    assert task.description == "reading a\\[red]\N{REPLACEMENT CHARACTER}.txt, 3 files, 5.0 MB"
    progress.embedding(1200)
    assert task.description == "embedding 1,200 documents"
    progress.committed(Commit(done=1200, passages=3000, position=3000))
    assert task.description.startswith("1,200 documents, 3,000 passages")
    progress.embedding(1)
    assert task.description.endswith("; embedding 1 document")


def test_a_run_tells_each_file_and_what_it_embeds(
    folder: Path, tmp_path: Path, encoder: Any, lines: Callable[..., str]
) -> None:
    (folder / "r.jsonl").write_text(lines({"id": "1", "text": "one"}, {"id": "2", "text": "two"}))
    told: list[tuple[str | None, int]] = []

    class Recording(Listener):
        def reading(self, file: str, files: int, size: int) -> None:
            told.append((Path(file).name, size))
            assert len(told) == files

        def embedding(self, documents: int) -> None:
            told.append((None, documents))

    sources, options = open_sources([str(folder)], ReadOptions(), holds_store), ReadOptions()
    store = create_store(tmp_path / "x.index", settings_of_new(encoder)[0])
    with IndexCore(store, encoder, Context(listener=Recording())) as index, index.writer() as writer:
        index_sources(index, writer, [(options, sources)])
    size = (folder / "r.jsonl").stat().st_size
    assert told == [("a.txt", 10), ("b.md", 210), ("r.jsonl", 210 + size), ("c.txt", 3210 + size), (None, 5)]


def test_passages_are_counted_while_a_batch_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_encoder: Callable[..., Any]
) -> None:
    encoder, seen, told = make_encoder(), list[str](), list[tuple[int, int]]()
    encode = encoder.encode

    def in_twos(texts: Sequence[str], role: Any = "document", truncate: bool = False) -> Any:
        rows = encode(texts, role, truncate)
        return np.concatenate([unit(rows[at : at + 2], range(at, at + 2), "words") for at in range(0, len(rows), 2)])

    monkeypatch.setattr(encoder, "encode", in_twos)

    class Recording(RunProgress):
        def embedded(self, passages: int, total: int) -> None:
            super().embedded(passages, total)
            told.append((passages, total))
            assert self._bar is not None
            seen.append(self._bar.tasks[0].description)

    monkeypatch.setattr(shown, "on_terminal", lambda: True)
    monkeypatch.setattr(shown, "_REDRAW_S", 0.0)
    (tmp_path / "source").mkdir()
    for number in range(4):
        (tmp_path / "source" / f"{number}.txt").write_text(f"word{number}")
    sources = open_sources([str(tmp_path / "source")], ReadOptions(), holds_store)
    with Index.create(tmp_path / "x.index", encoder):
        pass
    context = Context(listener=Recording(sources))
    with IndexCore.open(tmp_path / "x.index", encoder, context) as core, core.writer() as writer:
        index_sources(core, writer, [(ReadOptions(), sources)])
    assert told[:2] == [(2, 4), (4, 4)]
    assert seen[:2] == ["embedding 2 of 4 passages", "embedding 4 of 4 passages"]


def test_every_writer_commits_after_some_seconds_of_embedding(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        core = index._core
        assert core.batch_characters == 16_000
        assert core._embedding is not None
        core._embedding.here.speed = 500.0  # characters in a second
        assert core.batch_characters == 5_000
        core._embedding.here.speed = 1e9
        assert core.batch_characters == 512 * 1024


def test_vectors_from_the_cache_do_not_count_as_speed(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("indexer.indexing.embedding.time.monotonic", lambda: clock[0])
    encoder.ask = lambda texts: clock.__setitem__(0, clock[0] + 2.0 * len(texts))  # seconds
    cache = VectorCache(tmp_path / "vectors.db")

    def embed(*words: str) -> float | None:
        embedding = Embedding(encoder.recipe, PassageSettings(32, 0))
        embedding.embed(
            encoder,
            [Document(word, word * 100) for word in words],
            cached=lambda encoder, ready: CachedEncoder(encoder, cache, "auto", ready),
        )
        return embedding.speed

    assert embed("a") == (100 + 256) / 2
    assert embed("a", "b", "c") == (100 + 256) / 2
    assert embed("a", "b", "c") is None
    cache.close()
