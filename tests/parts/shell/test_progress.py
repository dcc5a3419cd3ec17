"""Progress: the bar or the lines, the rate and the time left, what they count, and when the first commit comes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hardware import needs_root

from indexer import Document, Index
from indexer.encoders.tokens.batching import tell, unit
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import Embedding, settings_of_new
from indexer.indexing.index_embedding import IndexEmbedding
from indexer.indexing.runs import index_sources
from indexer.listener import Collecting, Commit, Listener
from indexer.passages.cut import PassageSettings
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import create_store, holds_store
from likewise.cache.cached_encoder import CachedEncoder
from likewise.cache.vector_cache import VectorCache
from likewise.shell.indexing.vector_options import VectorOptions
from likewise.shell.terminal import progress as shown
from likewise.shell.terminal.progress import RunProgress, Steps, _size

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
    folder = Path(shutil.move(folder, open_path / "w"))  # it may be on another disk
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


def test_rate_and_time_left_come_with_the_second_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("likewise.shell.terminal.progress.time.monotonic", lambda: clock[0])
    progress = RunProgress(open_sources([str(folder)], ReadOptions(), holds_store))  # of 3,210 bytes
    advice = iter(["quicker: a faster computer"])
    progress.quicker = lambda: next(advice)  # a second call would raise an error
    progress.committed(Commit(done=1, passages=10, position=10))
    assert progress._line == "1 document, 10 passages"
    clock[0] += 10
    progress.committed(Commit(done=2, passages=40, position=185))
    assert progress._line == "2 documents, 40 passages, 3/s, about 3 min left"
    progress.embedded(5, 20)
    assert progress._line == "2 documents, 40 passages, 3/s, about 3 min left"  # that was a moment ago
    clock[0] += 20
    progress.embedded(5, 20)
    assert progress._line == "2 documents, 40 passages, 3/s, about 3 min left; embedding 5 of 20 passages"
    progress.committed(Commit(done=3, passages=41, position=400))
    assert progress._line == "3 documents, 41 passages, 1/s, about 4 min left"
    clock[0] += 3600
    progress.committed(Commit(done=4, passages=42, position=3210))
    assert progress._line == "4 documents, 42 passages, 1/min"
    assert capsys.readouterr().err == "likewise: about 3 min left; quicker: a faster computer\n"
    clock[0] += 10
    progress.committed(Commit(done=1, passages=5, position=20))  # of the sources of other options
    assert progress._line == "1 document, 5 passages"
    clock[0] += 10
    progress.committed(Commit(done=1, passages=15, position=20))
    assert progress._line == "1 document, 15 passages, 1/s"


def test_a_line_is_printed_again_only_if_it_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Steps()
    progress.step("reading the vectors")
    progress._print_line()  # as the clock does
    progress.step("naming the regions")
    progress._print_line()
    assert capsys.readouterr().err == "likewise: reading the vectors\nlikewise: naming the regions\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "5 s"), (88, "90 s"), (91, "2 min"), (7100, "118 min"), (7300, "2 h 2 min")]
)
def test_the_time_left_is_rounded(seconds: float, text: str) -> None:
    assert shown._duration(seconds) == text


def test_a_short_run_is_not_told_what_would_be_quicker(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(open_sources([str(folder)], ReadOptions(), holds_store))
    progress.quicker = lambda: "quicker: a faster computer"
    for position in (10, 3000):
        progress.committed(Commit(done=1, passages=10, position=position))
    assert capsys.readouterr().err == ""


class Seconds:
    """An event that is set after a number of waits; each wait calls an action."""

    def __init__(self, actions: dict[int, Callable[[], None]], waits: int) -> None:
        self.actions, self.waits, self.passed = actions, waits, 0

    def wait(self, seconds: float) -> bool:
        self.passed += 1
        self.actions.get(self.passed, lambda: None)()
        return self.passed > self.waits


def printed(progress: RunProgress, actions: dict[int, Callable[[], None]], capsys: pytest.CaptureFixture[str]) -> Any:
    progress._ended = Seconds(actions, 30)  # type: ignore[assignment]
    progress._print_lines()
    return capsys.readouterr().err.splitlines()


def test_without_a_terminal_there_is_a_line_after_a_second_and_then_every_ten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = RunProgress(open_sources([str(folder)], ReadOptions(), holds_store))
    progress.step("loading the model")
    actions = {
        9: lambda: progress.embedding(3),
        15: lambda: progress.committed(Commit(done=3, passages=9, position=10)),
    }
    assert printed(progress, actions, capsys) == [
        "likewise: loading the model",
        "likewise: embedding 3 documents",
        "likewise: 3 documents, 9 passages",
    ]


def test_a_run_that_only_looks_at_files_is_silent_for_ten_seconds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = RunProgress(open_sources([str(folder)], ReadOptions(), holds_store))
    lines = printed(progress, {2: lambda: progress.reading(f"{folder}/a\x1b.txt", 3, 2**20)}, capsys)
    assert lines == ["likewise: reading a\N{REPLACEMENT CHARACTER}.txt, 3 files, 1.0 MB"]


def test_a_run_shows_something_before_it_loads_the_model(
    folder: Path, tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    def recorded(name: str, owner: Any, method: str) -> None:
        original = getattr(owner, method)
        monkeypatch.setattr(owner, method, lambda *args: (events.append(name), original(*args))[1])

    recorded("shown", RunProgress, "__enter__")
    recorded("loading", VectorOptions, "settings")
    likewise("index", tmp_path / "x.index", folder).succeeded()
    assert events == ["shown", "loading"]


def indexed(sources: list[Any], index: Path, encoder: Any, listener: Listener, beside: Executor | None = None) -> None:
    options = ReadOptions()
    context = Context(listener=listener, beside=beside)
    opened = open_sources([str(source) for source in sources], options, holds_store)
    with Index.open(index, create=True, model=encoder):
        pass
    with IndexCore.open(index, encoder, context) as core, core.writer() as writer:
        index_sources(core, writer, [(options, opened)])


class Events(Listener):
    """Collects the files that are read, and the position of each commit."""

    def __init__(self) -> None:
        self.events: list[str | int] = []

    def reading(self, file: str, files: int, size: int) -> None:
        self.events.append(Path(file).name)

    def committed(self, commit: Commit) -> None:
        self.events.append(commit.position)


def test_the_first_commit_does_not_wait_for_all_files(tmp_path: Path, encoder: Any) -> None:
    (tmp_path / "w").mkdir()
    for name in "abcd":
        (tmp_path / "w" / f"{name}.txt").write_text(f"word{name} " * 1500)  # 9,000 characters
    events = Events()
    indexed([tmp_path / "w"], tmp_path / "x.index", encoder, events)
    assert events.events[:3] == ["a.txt", "b.txt", 18_000]
    assert events.events[-1] == 36_000


def test_a_commit_counts_the_bytes_up_to_its_last_document(
    tmp_path: Path, encoder: Any, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.indexing.core.BATCH_CHARACTERS", 256 + 4)  # one record
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("word")
    record = {"id": "1", "text": "word", "rest": "x" * 100}
    (tmp_path / "w" / "r.jsonl").write_text(written := lines(record, record | {"id": "2"}))
    for file in (tmp_path / "w").iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))  # the second run does not open them
    events = Events()
    indexed([tmp_path / "w"], tmp_path / "x.index", encoder, events)
    half = len(written) // 2
    assert events.events == ["a.txt", "r.jsonl", 4, 4 + half, 4 + 2 * half]
    (tmp_path / "w" / "s.txt").write_text("another")
    again = Events()
    indexed([tmp_path / "w"], tmp_path / "x.index", encoder, again)
    assert again.events == ["a.txt", "r.jsonl", "s.txt", 4 + 2 * half + 7]


def test_files_are_read_while_a_batch_is_embedded(
    tmp_path: Path, make_encoder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.indexing.ingest.BATCH_CHARACTERS", 20_000)
    (tmp_path / "w").mkdir()
    for name in "abcdefg":
        (tmp_path / "w" / f"{name}.txt").write_text(f"word{name} " * 1500)  # 9,000 characters
    read = threading.Event()

    class Waiting(Events):
        def reading(self, file: str, files: int, size: int) -> None:
            super().reading(file, files, size)
            if file.endswith("g.txt"):
                read.set()

    waited: list[bool] = []

    def wait(texts: Sequence[str]) -> None:
        if any("worde" in text for text in texts):  # a batch with the first four files is committed
            waited.append(read.wait(60))

    encoder, events = make_encoder(), Waiting()
    encoder.ask = wait
    with ThreadPoolExecutor(1) as beside:
        indexed([tmp_path / "w"], tmp_path / "x.index", encoder, events, beside)
    assert waited == [True]
    assert [event for event in events.events if isinstance(event, int)][-1] == 7 * 9000
    at_once = Events()
    indexed([tmp_path / "w"], tmp_path / "y.index", make_encoder(), at_once)
    with Index.open(tmp_path / "x.index") as index, Index.open(tmp_path / "y.index") as other:
        assert [*index.documents()] == [*other.documents()]


def test_an_error_ends_what_is_embedded_beside_it(
    tmp_path: Path, folder: Path, likewise: Callable[..., Any], encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = threading.Event()
    ended: list[bool] = []
    for name in ("BATCH_CHARACTERS", "FIRST_BATCH_CHARACTERS"):
        monkeypatch.setattr(f"indexer.indexing.ingest.{name}", 1)  # one file

    def interrupt(progress: RunProgress, file: str, files: int, size: int) -> None:
        if file.endswith("c.txt"):
            raise KeyboardInterrupt

    original = RunProgress.__exit__

    def leave(progress: RunProgress, *error: object) -> None:
        original(progress, *error)
        interrupted.set()

    def embed(texts: Sequence[str]) -> None:
        if texts[0].startswith("b "):  # not the first batch, whose speed is measured
            interrupted.wait(60)
            with pytest.raises(KeyboardInterrupt):
                tell(1)
            ended.append(True)

    monkeypatch.setattr(RunProgress, "reading", interrupt)
    monkeypatch.setattr(RunProgress, "__exit__", leave)
    encoder.ask = embed
    said = likewise("index", tmp_path / "x.index", folder)
    assert (said.code, ended) == (130, [True])


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


def test_every_writer_commits_after_some_seconds_of_embedding_that_grow(tmp_path: Path, encoder: Any) -> None:
    text = Document("a", "x" * (1000 - 256))
    with Index.create(tmp_path / "x.index", encoder) as index:
        core = index._core
        assert core.batch_characters == 16_000
        assert core._embedding is not None
        sizes = []
        for seconds in (2.0, 2.0, 2.0, 2.0, 0.0):
            core._embedding.here.measured([text], seconds)
            sizes.append(core.batch_characters)
        assert sizes == [1_500, 4_500, 5_000, 5_000, 512 * 1024]


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
            Collecting(),
            cached=lambda encoder, ready: CachedEncoder(encoder, cache, "auto", ready),
        )
        return embedding.speed

    assert embed("a") == (100 + 256) / 2
    assert embed("a", "b", "c") == (100 + 256) / 2
    assert embed("a", "b", "c") is None
    cache.close()


@pytest.mark.parametrize(("model", "expected"), [("all-MiniLM-L6-v2", [0, 1]), ("http://localhost:1/v1#m", [0, 0])])
def test_a_batch_waits_for_its_speed_and_an_endpoint_for_each_batch(
    encoder: Any, model: str, expected: list[int]
) -> None:
    """Ctrl-C reaches a request to an endpoint, which may take minutes, only in the caller's thread."""
    recipe = replace(encoder.recipe, model=model)
    embedder = SimpleNamespace(recipe=recipe, passages=PassageSettings(64))
    with ThreadPoolExecutor(1) as beside:
        embedding = IndexEmbedding(embedder, encoder, Context(beside=beside))  # type: ignore[arg-type]
        before = embedding.window(None)
        embedding.here.speed = 1000.0
        assert [before, embedding.window(None)] == expected
