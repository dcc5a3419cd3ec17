"""How a command ends: 0 done, 1 something failed, 2 wrong usage, 3 could not run, 130 interrupted.

Most are asked of this process; what needs a process of its own (signals, pipes, limits, another user) gets one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hardware import needs_full_device, needs_root
from opened import snapshot_of

from indexer import Index
from indexer.sources.formats import READER_VERSIONS

ROOT = Path(__file__).parents[3]

# The command line with the word encoder in place of any model, and what is to happen before it.
PROGRAM = """
import os, resource, signal, sys
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
import indexer.encoders, indexer.index, indexer.indexing.ingest, indexer.sources.files.extractor, word_encoder
import indexer.stores.local.catalog.catalog
import likewise.shell, likewise.shell.commands.index, likewise.shell.commands.search, likewise.shell.snippets
import search.searcher
import likewise.shell.indexing.runs, likewise.shell.arguments.configuration, likewise.shell.arguments.default_index
import likewise.shell.terminal.progress, likewise.shell.terminal.terminal
likewise.shell.terminal.progress.LOOK_S = 3600.0  # no lines about the time that a test takes
from indexer.encoders import registry
encoder = word_encoder.WordEncoder()
registry._loaded[encoder.recipe.identity] = encoder
registry._load_spec = lambda spec, runtime: encoder
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
{before}
likewise.shell.main(sys.argv[1:])
"""


def start(before: str, *arguments: str | Path, **settings: Any) -> subprocess.Popen[str]:
    program = PROGRAM.format(root=str(ROOT), before=before)
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=110)
    assert "Traceback" not in err, err
    return process.returncode, out, err


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Files enough for a run of several commits."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:02}.txt").write_text(f"word{number} " * 400)
    return folder


def test_done(likewise: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.bin").write_bytes(bytes(2000))
    assert likewise("index", tmp_path / "x.index", tmp_path / "a.txt", tmp_path / "b.bin").code == 0  # one is skipped
    for arguments in (["search", "text"], ["info"], ["list"], ["check"], ["compact"], ["show", tmp_path / "a.txt"]):
        assert likewise(arguments[0], tmp_path / "x.index", *arguments[1:]).code == 0
    assert likewise("--help").code == likewise("search", "--help").code == likewise("--version").code == 0
    assert likewise("help").out == likewise("--help").out
    assert likewise("help", "search").out == likewise("search", "--help").out
    assert likewise("-V").out == likewise("--version").out


def test_failures_are_1_once_for_each_state_of_a_file_and_its_reader(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, records, table = tmp_path / "x.index", tmp_path / "a.jsonl", tmp_path / "b.pdf"
    records.write_text('{"id": "a", "text": "text"}\nnot json\n')
    assert likewise("index", index, records).code == 1
    known = likewise("index", index, records, "--rehash", "--json").reported(0, failed=1, unchanged=1)
    assert "1 failed as before: likewise status" in known.err
    table.write_bytes(b"%PDF-1.4 broken")
    new = likewise("index", index, records, table, "--json").reported(1, failed=2)
    assert "1 failed, damaged: not a readable PDF" in new.err
    assert "1 failed as before" in new.err
    assert likewise("update", index, "--json").reported(0, failed=2).err.count("failed") == 1
    os.utime(records, (1, 1))
    likewise("update", index, "--json").reported(1, failed=2)
    monkeypatch.setitem(READER_VERSIONS, "pdf", 99)
    likewise("update", index, "--json").reported(1, failed=2)
    likewise("update", index, "--json").reported(0, failed=2)
    records.write_text("not json\n")  # its other record
    likewise("update", index, "--json").reported(1, failed=2)


def test_a_folder_that_cannot_be_listed_fails_newly_once(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes" / "closed").mkdir(parents=True)
    (tmp_path / "notes" / "a.txt").write_text("text")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert [likewise("index", tmp_path / "x.index", tmp_path / "notes").code for _ in range(2)] == [1, 0]
    (failed,) = likewise("status", tmp_path / "x.index").out.splitlines()[:1]
    assert failed.endswith("notes/closed: cannot be listed: Permission denied")


def test_standard_input_that_fails_is_always_new(likewise: Callable[..., Any], tmp_path: Path) -> None:
    assert [likewise("index", tmp_path / "x.index", "-", stdin="not json\n").code for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("arguments", [[], ["index"], ["index", "INDEX"], ["search", "INDEX", "a", "--nonsense"]])
def test_wrong_usage(likewise: Callable[..., Any], arguments: list[str]) -> None:
    assert likewise(*arguments).code == 2


def test_an_internal_error_is_one_line_and_3(likewise: Callable[..., Any], encoder: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")

    def fail(texts: Any) -> None:
        raise RuntimeError("two\nlines")

    encoder.ask = fail
    said = likewise("index", tmp_path / "x.index", tmp_path / "a.txt")
    assert said.code == 3
    assert "internal error: RuntimeError" in said.err
    assert "LIKEWISE_DEBUG" in said.err


@pytest.mark.parametrize(
    "error, detail",
    [
        (MemoryError(), ""),
        (MemoryError("Unable to allocate 7 GiB"), " (Unable to allocate 7 GiB)"),
        (ImportError("libx.so: failed to map segment from shared object"),
         " (libx.so: failed to map segment from shared object)"),
        (OSError(12, "Cannot allocate memory"), " ([Errno 12] Cannot allocate memory)"),
        (RuntimeError("Exception from request.cpp:224:\nFailed to allocate 2359296 bytes of memory\n\n"),
         " (Failed to allocate 2359296 bytes of memory)"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), " (DefaultCPUAllocator: can't allocate memory)"),
    ],
)  # fmt: skip
def test_too_little_memory_is_one_line_and_3(
    likewise: Callable[..., Any], encoder: Any, tmp_path: Path, error: Exception, detail: str
) -> None:
    (tmp_path / "a.txt").write_text("text")

    def fail(texts: Any) -> None:
        raise error

    encoder.ask = fail
    said = likewise("index", tmp_path / "x.index", tmp_path / "a.txt")
    expected = f"there is too little memory{detail}: close other programs, or allow this program more"
    assert said.failed(3).startswith(expected)


def test_a_newer_index_and_a_folder_that_cannot_be_made(likewise: Callable[..., Any], tmp_path: Path) -> None:
    import sqlite3

    (tmp_path / "a.txt").write_text("text")
    likewise("index", tmp_path / "x.index", tmp_path / "a.txt")
    with sqlite3.connect(tmp_path / "x.index" / "catalog.db") as catalog:
        catalog.execute("PRAGMA user_version = 99")
    catalog.close()
    for command in (["search", "text"], ["index", tmp_path / "a.txt"], ["check"], ["remove", "a"]):
        likewise(command[0], tmp_path / "x.index", *command[1:]).failed(3, "upgrade likewise")
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("work")
    likewise("index", full, tmp_path / "a.txt").failed(2, "is there already")
    assert likewise("index", tmp_path / "a.txt", tmp_path / "a.txt").code == 2
    assert [path.name for path in full.iterdir()] == ["thesis.txt"]


def test_a_folder_without_permission(
    likewise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("text")
    index = tmp_path / "x.index"
    likewise("index", index, tmp_path / "a.txt")
    stat = os.stat

    def refuse(path: Any, *arguments: Any, **settings: Any) -> os.stat_result:
        if isinstance(path, str | os.PathLike) and Path(path).parent == index:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **settings)

    monkeypatch.setattr(os, "stat", refuse)  # root may enter every folder
    for command in (["search", "text"], ["info"], ["check"], ["index", tmp_path / "a.txt"], ["remove", "a"]):
        said = likewise(command[0], index, *command[1:])
        refused = f"{index}: cannot be opened (Permission denied): ask the owner for permission"
        said.failed(3, refused)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_by_a_signal(tmp_path: Path, many: Path, number: signal.Signals) -> None:
    waits = "import time\nencoder.ask = lambda texts: (print('embedding', flush=True), time.sleep(30))"
    process = start(waits, "index", tmp_path / "x.index", many)
    assert process.stdout is not None
    assert process.stdout.readline() == "embedding\n"
    process.send_signal(number)
    code, _, err = finish(process)
    assert code == 130
    assert "interrupted; what was committed is kept" in err
    with Index.open(tmp_path / "x.index") as index:
        assert (len(index), index.check().ok) == (0, True)


@pytest.mark.slow
def test_a_rebuild_ended_by_sigterm_leaves_the_index_and_nothing_else(
    tmp_path: Path, many: Path, likewise: Callable[..., Any]
) -> None:
    likewise("index", tmp_path / "x.index", many)
    waits = "import time\nencoder.ask = lambda texts: (print('embedding', flush=True), time.sleep(30))"
    process = start(waits, "index", tmp_path / "x.index", many, "--rebuild", "--max-tokens", "16")
    assert process.stdout is not None
    assert process.stdout.readline() == "embedding\n"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)  # as `timeout` does
    code, _, err = finish(process)
    assert code == 130
    assert "interrupted; what was committed is kept" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many", "x.index"]
    with Index.open(tmp_path / "x.index") as index:
        assert (len(index), index.check().ok) == (60, True)


@pytest.mark.slow
def test_killed_and_continued(tmp_path: Path, many: Path, likewise: Callable[..., Any]) -> None:
    slow = (
        "indexer.indexing.core.BATCH_CHARACTERS = 20_000\n"
        "encoder.ask = lambda texts: len(encoder.seen) > 300 and os.kill(os.getpid(), signal.SIGKILL)"
    )
    process = start(slow, "index", tmp_path / "x.index", many)
    assert finish(process)[0] == -signal.SIGKILL
    with Index.open(tmp_path / "x.index") as index:
        there = len(index)
        assert 0 < there < 60
        assert index.check().ok
    said = likewise("index", tmp_path / "x.index", many, "--json", "--no-wait")
    said.reported(0, unchanged=there, indexed=60 - there)


@pytest.mark.slow
def test_a_full_disk_keeps_what_was_committed(tmp_path: Path, many: Path, likewise: Callable[..., Any]) -> None:
    full = (
        "indexer.indexing.core.BATCH_CHARACTERS = 20_000\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))"
    )
    code, _, err = finish(start(full, "index", tmp_path / "x.index", many))
    assert code == 3, err
    assert "what was committed before is kept" in err, err
    with Index.open(tmp_path / "x.index") as index:
        there = len(index)
        assert 0 < there < 60
        assert index.check().ok
    likewise("index", tmp_path / "x.index", many, "--json").reported(0, unchanged=there, indexed=60 - there)


def without_reader(*arguments: str | Path, before: str = "") -> tuple[int, str]:
    """The exit code and errors of a command whose output nobody reads."""
    ends, begins = os.pipe()
    os.close(ends)
    program = PROGRAM.format(root=str(ROOT), before=before)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=begins, stderr=subprocess.PIPE, text=True
    )
    os.close(begins)
    _, err = process.communicate(timeout=110)
    return process.returncode, err


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_a_command_quietly(
    tmp_path: Path, many: Path, likewise: Callable[..., Any]
) -> None:
    likewise("index", tmp_path / "x.index", many)
    for arguments in (["search", tmp_path / "x.index", "word1"], ["search", tmp_path / "x.index", "word1", "--json"],
                      ["list", tmp_path / "x.index"], ["check", tmp_path / "x.index"], ["search", "--help"],
                      ["--help"]):  # fmt: skip
        assert without_reader(*arguments) == (141, ""), arguments


@pytest.mark.slow
def test_a_command_that_works_finishes_without_a_reader_and_keeps_its_exit_code(
    tmp_path: Path, many: Path, likewise: Callable[..., Any]
) -> None:
    small = "indexer.indexing.core.BATCH_CHARACTERS = 20_000"
    code, err = without_reader("index", tmp_path / "x.index", many, "--stream", before=small)
    assert code == 0, err
    assert "error" not in err, err
    with Index.open(tmp_path / "x.index") as index:
        assert (len(index), index.check().ok) == (60, True)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "text": "text"}\nnot json\n')
    code, err = without_reader("index", tmp_path / "x.index", tmp_path / "bad.jsonl", "--stream")
    assert code == 1
    assert "1 failed" in err
    for path in (tmp_path / "x.index" / "segments").iterdir():
        path.write_bytes(b"damaged")
    assert likewise("check", tmp_path / "x.index").code == 1
    assert without_reader("check", tmp_path / "x.index") == (1, "")
    assert without_reader("check", tmp_path / "x.index", "--json") == (1, "")


def in_a_shell(arguments: str, *, cwd: Path, **environment: str) -> tuple[int, str, str]:
    """A command line with redirections, as sh runs it."""
    program = cwd / "program.py"
    program.write_text(PROGRAM.format(root=str(ROOT), before=""))
    ended = subprocess.run(
        ["sh", "-c", f"{sys.executable} {program} {arguments}"],
        cwd=cwd, env=os.environ | environment, capture_output=True, timeout=110, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stdout.decode("latin-1"), ended.stderr.decode("latin-1")


@pytest.mark.slow
def test_closed_standard_streams(tmp_path: Path, likewise: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text("text")
    assert in_a_shell("index x.index a.txt >&- 2>&- <&-", cwd=tmp_path) == (0, "", "")
    with Index.open(tmp_path / "x.index") as index:
        assert (len(index), index.check().ok) == (1, True)
    refused = "likewise: error: standard output is closed, so nothing can be printed: give it a file or a pipe\n"
    for arguments in ("search x.index text", "list x.index", "info x.index --json", "show x.index a.txt", "--help"):
        assert in_a_shell(f"{arguments} >&-", cwd=tmp_path) == (3, "", refused)
    assert in_a_shell("list x.index >&- 2>&-", cwd=tmp_path) == (3, "", "")
    assert in_a_shell("mcp x.index >&- </dev/null", cwd=tmp_path) == (3, "", refused)
    (tmp_path / "b.txt").write_text("another text")
    for arguments in ("index x.index b.txt", "update x.index", "check x.index", "remove x.index b.txt"):
        assert in_a_shell(f"{arguments} >&-", cwd=tmp_path) == (0, "", "")  # it has done what was asked for
    code, out, err = in_a_shell("search x.index text <&-", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "a.txt" in out
    closed = "likewise: error: standard input is closed, so - has nothing to read: give it a pipe or a file\n"
    for arguments in ("search x.index -", "index x.index -", "index new.index -"):
        assert in_a_shell(f"{arguments} <&-", cwd=tmp_path) == (2, "", closed)


@pytest.mark.slow
def test_an_output_that_cannot_write_every_character(tmp_path: Path, likewise: Callable[..., Any]) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": "caf\u00e9", "title": "\u6578\u64da", "text": "\u6578\u64da"}\n')
    assert likewise("index", tmp_path / "x.index", tmp_path / "r.jsonl").code == 0
    said = in_a_shell("list x.index", cwd=tmp_path, PYTHONIOENCODING="latin-1")
    assert said == (0, "caf\u00e9\t\\u6578\\u64da\n", "")
    assert in_a_shell("search x.index a", cwd=tmp_path, PYTHONIOENCODING="ascii")[0] == 0


@needs_full_device
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_takes_nothing_is_said(unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(root=str(ROOT), before=""), "--help"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=110, check=False,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    said = "likewise: error: standard output or a file: No space left on device; solve this and run again\n"
    assert (ended.returncode, ended.stderr) == (3, said)


@pytest.mark.slow
@needs_root
def test_what_another_user_may_not_read_or_write(open_path: Path, likewise: Callable[..., Any]) -> None:
    source = open_path / "source"
    (source / "deep").mkdir(parents=True)
    for name in ("a.txt", "secret.txt", "deep/c.txt", "d.txt"):
        (source / name).write_text(f"text {name}")
    likewise("index", open_path / "x.index", source)
    own = open_path / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    # Imports first: the interpreter may lie where nobody else may read.
    nobody = "import conftest, mmap, urllib.parse, charset_normalizer, openvino, torch, transformers\n"
    nobody += "os.setuid(65534)\nos.chdir('/')"

    code, out, err = finish(start(nobody, "search", open_path / "x.index", "text", "--json"))
    assert (code, err) == (0, "")
    assert '"matched": 4' in out
    code, _, err = finish(start(nobody, "index", open_path / "x.index", source / "a.txt"))
    assert code == 3, err
    assert "x.index" in err, err

    code, _, err = finish(start(nobody, "index", own / "y.index", source))
    assert code == 0, err
    assert "error" not in err, err
    (source / "secret.txt").chmod(0)
    (source / "deep").chmod(0)
    (source / "d.txt").unlink()
    code, out, err = finish(start(nobody, "index", own / "y.index", source, "--prune", "--yes", "--rehash", "--json"))
    assert code == 1, (out, err)
    assert '"failed": 2' in out, (out, err)
    assert '"pruned": 1' in out, (out, err)
    with Index.open(own / "y.index") as index:
        assert len(index) == 3
        reasons = {Path(row.uri).name: row.reason.text() for row in snapshot_of(index).ledger("failed")}
    assert set(reasons) == {"secret.txt", "deep"}
    assert [reason for reason in reasons.values() if "ermission denied" not in reason] == []
