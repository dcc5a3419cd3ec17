"""Programs of the user for files that no reader knows, or that hold no text: what they get, and their limits."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from hardware import needs_memory_limit
from pdf_files import PIXEL, SCAN, words, write

from indexer.errors import BadInput
from indexer.ledger import Code, Reason
from indexer.records import KnownFile, Stamp
from indexer.settings import RecordedSource
from indexer.sources import Entry, ExtractorProgram, ReadOptions, open_sources
from indexer.sources.folders.recorded import groups, record
from indexer.sources.formats import reader_of
from indexer.stores.addresses.open import holds_store

Collect = Callable[..., list[Entry]]
Make = Callable[..., ExtractorProgram]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a program from lines of Python, and one line for the configuration."""

    def program(lines: str, kind: str = ".png", **limits: float) -> ExtractorProgram:
        path = tmp_path / "bin" / "ocr"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{os.path.realpath(sys.executable)} -S\nimport os, sys, time\n{lines}\n")
        path.chmod(0o755)
        return ExtractorProgram(kind, (str(path), "--in", "{file}"), **limits)

    return program


def one(collect: Collect, path: Path, program: ExtractorProgram) -> Entry:
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_bytes(b"\x89PNG\0\0")
    (entry,) = collect(path, extractors=(program,))
    return entry


def test_what_a_program_writes_is_the_text(tmp_path: Path, collect: Collect, make: Make) -> None:
    program = make("print('A note\\n\\nby', sys.argv[1:], sorted(os.environ), sys.stdin.read())")
    path = tmp_path / "docs" / "-rf.png"
    entry = one(collect, path, program)
    assert entry.document is not None, entry
    names = ["HOME", "LC_ALL", "PATH", "TMPDIR"]
    assert entry.document.text == f"A note\n\nby ['--in', '{path}'] {names}"
    assert (entry.document.title, entry.document.format) == ("-rf", "png")
    assert entry.document.metadata == {"extracted_by": "ocr", "size": 6}
    assert entry.reader == program.reader
    assert entry.reader.startswith("ocr/")


def test_form_feeds_divide_pages(tmp_path: Path, collect: Collect, make: Make) -> None:
    entry = one(collect, tmp_path / "a.png", make("print('one\\f\\ftwo\\f')"))
    assert entry.document is not None, entry
    assert entry.document.text == "one\n\ntwo"
    assert [(each.start, each.page) for each in entry.document.sections] == [(0, 1), (5, 3)]


def test_other_files_are_read_as_before(tmp_path: Path, collect: Collect, make: Make) -> None:
    program = make("sys.exit(1)")
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.jpg").write_bytes(b"\0")
    (tmp_path / "c.png").write_bytes(b"%PDF-1.4 broken")
    states = {Path(each.file).name: each.reason.text() for each in collect(tmp_path, extractors=(program,))}
    assert states["a.txt"] == ""
    assert states["b.jpg"] == Code.IMAGE().text()
    assert states["c.png"].startswith("damaged: not a readable PDF")


def test_a_format_is_read_by_a_program_only_without_a_text(tmp_path: Path, collect: Collect, make: Make) -> None:
    scan = pypdfium2.PdfDocument.new()
    scan.new_page(100, 100)
    scan.save(tmp_path / "scan.pdf")
    (tmp_path / "page.html").write_text("<p>words")
    program = make("print('scanned')", "pdf")
    entry = one(collect, tmp_path / "scan.pdf", program)
    assert entry.document is not None, entry
    assert (entry.document.text, entry.document.format) == ("scanned", "pdf")
    page = one(collect, tmp_path / "page.html", make("print('scanned')", "html"))
    assert page.document is not None
    assert (page.document.text, page.reader) == ("words", reader_of("html"))


def page(text: str) -> str:
    return words((50, 700, text))


def letter(path: Path, *pages: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    return write(path, *pages, more=[PIXEL])


def test_pages_without_text_get_that_of_the_program(tmp_path: Path, collect: Collect, make: Make) -> None:
    path = letter(tmp_path / "in" / "a.pdf", page("typed one"), SCAN, page("typed three"), SCAN + page("4"), SCAN)
    program = make("print('one\\f the second \\fthree\\f4 the fourth\\f\\f')", "pdf")
    entry = one(collect, path, program)
    assert entry.document is not None, entry
    assert entry.document.text == "typed one\n\nthe second\n\ntyped three\n\n4 the fourth"
    assert [(each.start, each.page) for each in entry.document.sections] == [(0, 1), (11, 2), (23, 3), (36, 4)]
    assert (entry.reason, entry.notes) == (
        Code.PAGES_BY_PROGRAM(2, 5, "ocr", "2, 4"),
        (Code.PAGES_WITHOUT_TEXT(1, 5, "5"),),
    )
    assert (entry.document.metadata["extracted_by"], entry.document.metadata["pages"]) == ("ocr", 5)
    assert entry.reader == program.reader


@pytest.mark.parametrize(
    ("written", "text", "reason", "note"),
    [
        ("print('typed one and more')", "typed one and more", Code.TEXT_BY_PROGRAM("ocr", 1, 2, "2"), None),
        ("print('typed')", "typed one", Code.NONE(), Code.PROGRAM_WITHOUT_TEXT("ocr")),
        ("print('typed one, longer\\f')", "typed one", Code.NONE(), Code.PROGRAM_WITHOUT_TEXT("ocr")),
        ("sys.exit(3)", "typed one", Code.NONE(), Code.PROGRAM_FAILED("ocr", "exit", 3, "it writes no error")),
    ],
)
def test_a_program_counts_only_if_it_gives_more(
    tmp_path: Path, collect: Collect, make: Make, written: str, text: str, reason: Reason, note: Reason | None
) -> None:
    entry = one(collect, letter(tmp_path / "in" / "a.pdf", page("typed one"), SCAN), make(written, "pdf"))
    assert entry.document is not None, entry
    assert (entry.document.text, entry.reason) == (text, reason)
    assert entry.notes == (() if note is None else (Code.PAGES_WITHOUT_TEXT(1, 2, "2"), note))


def test_only_files_with_pages_left_are_read_again_for_a_program(
    tmp_path: Path, likewise: Callable[..., Any], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, index = tmp_path / "in", tmp_path / "x.index"
    for name, pages in (("mixed", (page("typed"), SCAN)), ("whole", (page("typed"),))):
        os.utime(letter(folder / f"{name}.pdf", *pages), (1_700_000_000, 1_700_000_000))

    def run(program: ExtractorProgram | None) -> tuple[int, int]:
        command = f"pdf = {list(program.command)!r}".replace("'", '"') if program else ""
        (tmp_path / "likewise" / "config.toml").write_text(f"[extractors]\n{command}\n")
        said = likewise("index", index, folder, "--json").json
        return said["indexed"], said["unchanged"]

    (tmp_path / "likewise").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run(None) == (2, 0)
    assert run(make("print('typed\\fby the program')", "pdf")) == (1, 1)
    assert likewise("search", index, "program", "--mode", "words", "-k", "1", "--json").json["hits"][0]["page"] == 2
    assert run(make("sys.exit(3)", "pdf")) == (0, 2)
    assert run(None) == (1, 1)
    assert run(make("sys.exit(3)", "pdf")) == (0, 2)
    noted = likewise("info", index, "--ledger", "noted").out
    assert "ocr failed (exit 3)" in noted
    assert "outdated" not in likewise("status", "--index", index).out
    assert run(make("print('typed\\frepaired')", "pdf")) == (1, 1)
    assert likewise("info", index, "--ledger", "noted").out == ""


@pytest.mark.parametrize(
    ("lines", "limits", "reason"),
    [
        ("print('a'); sys.stderr.write('first\\nno page\\n\\n'); sys.exit(3)", {}, "ocr failed (exit 3): no page"),
        ("os.kill(os.getpid(), 9)", {}, "ocr failed (signal 9): it writes no error"),
        ("time.sleep(60)", {"seconds": 0.5}, "ocr takes longer than 0.5 seconds: raise its seconds"),
        ("os.close(1); os.close(2); time.sleep(60)", {"seconds": 0.5}, "ocr takes longer than 0.5 seconds"),
        ("while True: print('x' * 1000)", {"output_mb": 0.1}, "ocr writes more than 0.1 MB: raise its output_mb"),
        ("sys.stdout.buffer.write(b'caf\\xe9')", {}, "ocr does not write UTF-8 (byte 4): let it write UTF-8"),
        pytest.param(
            "bytearray(2**30)", {"memory_mb": 200}, "ocr failed (exit 1): MemoryError", marks=needs_memory_limit
        ),
    ],
)
def test_a_program_that_fails(
    tmp_path: Path, collect: Collect, make: Make, lines: str, limits: dict[str, float], reason: str
) -> None:
    entry = one(collect, tmp_path / "a.png", make(lines, **limits))
    assert entry.state == "failed"
    assert entry.reason.text().startswith(reason)


def test_a_program_without_a_text_skips_the_file(tmp_path: Path, collect: Collect, make: Make) -> None:
    entry = one(collect, tmp_path / "a.png", make("print(' ')"))
    assert (entry.state, entry.reason.text()) == ("skipped", "ocr finds no text in it")


def test_what_a_program_leaves_running_is_ended(tmp_path: Path, collect: Collect, make: Make) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    program = make(
        f"held = os.open({str(pipe)!r}, os.O_WRONLY)\nif os.fork():\n    print('text')\nelse:\n    os.close(1)\n"
        "    os.close(2)\n    time.sleep(600)"
    )
    assert one(collect, tmp_path / "a.png", program).state == "read"
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end of the pipe: nobody holds it any more
    os.close(reader)


def test_a_changed_program_reads_a_file_again(tmp_path: Path, collect: Collect, make: Make) -> None:
    path, program = tmp_path / "a.png", make("print('text')")

    def known(entry: Entry) -> dict[str, KnownFile]:
        status = path.stat()
        stamp = Stamp(status.st_size, status.st_mtime_ns, status.st_ino, status.st_mtime_ns + 10**12)
        state = "indexed" if entry.state == "read" else entry.state
        assert state != "failed"
        assert state != "unchanged"
        return {str(path): KnownFile(stamp, ((entry.uri, state, entry.reason),), readers=frozenset({entry.reader}))}

    path.write_bytes(b"\0")
    (without,) = collect(path)
    assert without.state == "skipped"
    (read,) = collect(path, known=known(without), extractors=(program,))
    assert read.state == "read"
    (again,) = collect(path, known=known(read), extractors=(program,))
    assert (again.state, again.opened) == ("unchanged", False)
    changed = ExtractorProgram(".png", (*program.command, "--psm"))
    assert collect(path, known=known(read), extractors=(changed,))[0].opened
    assert collect(path, known=known(read))[0].state == "skipped"
    (blank,) = collect(path, extractors=(make("print()"),))
    assert not collect(path, known=known(blank), extractors=(program,))[0].opened


@pytest.mark.parametrize("name", ["scan.png", "scan.pdf"])
def test_an_empty_file_is_not_read_again_because_of_a_program(
    tmp_path: Path, collect: Collect, make: Make, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    program = make("print('text')", kind=".png" if name.endswith("png") else "pdf")
    (empty,) = collect(path, extractors=(program,))
    assert empty.stamp is not None
    file = KnownFile(empty.stamp, ((empty.uri, "skipped", empty.reason),), readers=frozenset({empty.reader}))
    assert not collect(path, known={str(path): file}, extractors=(program,))[0].opened


def test_programs_are_neither_stored_nor_taken_from_an_index(tmp_path: Path, make: Make) -> None:
    program = make("print('text')")
    options = ReadOptions(extractors=(program,), max_file_mb=1)
    (recorded,) = record([], open_sources([str(tmp_path)], options, holds_store), options)
    assert recorded.options == '{"max_file_mb": 1}'
    hostile = RecordedSource(str(tmp_path), '{"extractors": [{"kind": ".png", "command": ["/bin/sh", "{file}"]}]}')
    assert [asdict(read)["extractors"] for read, _ in groups([hostile])] == [()]


def test_what_cannot_be_run_is_refused(tmp_path: Path, make: Make) -> None:
    program = make("").command[0]
    link = tmp_path / "link"
    link.symlink_to(program)
    plain = tmp_path / "plain"
    plain.write_text("text")
    plain.chmod(stat.S_IRUSR)
    for kind, command, message in (
        (".png", ("ocr", "{file}"), "ocr is a relative path: give the absolute one"),
        (".png", (f"{tmp_path}/none", "{file}"), "/none does not exist: install it, or correct the path"),
        (".png", (str(link), "{file}"), f"/link is reached by a link: give the file itself, {program}"),
        (".png", (str(plain), "{file}"), "/plain cannot be executed: give the path of a program"),
        (".png", (str(tmp_path), "{file}"), "cannot be executed: give the path of a program"),
        (".png", (program, "stdout"), 'no argument has "{file}", which the path of a file replaces: add it'),
        (".png", (), "give a list of texts, the program and its arguments"),
        (
            ".pdf",
            (program, "{file}"),
            'likewise reads these files itself: name its format "pdf" for files without text',
        ),
        (".md", (program, "{file}"), "likewise reads these files itself: leave it out"),
        (".PNG", (program, "{file}"), 'give an extension in lower case such as ".png", or one of canvas, docx, eml'),
        ("png", (program, "{file}"), 'give an extension in lower case such as ".png", or one of canvas, docx, eml'),
    ):
        with pytest.raises(BadInput) as raised:
            ExtractorProgram(kind, command)
        assert message in str(raised.value)
        assert str(raised.value).startswith(f'extractor of "{kind}": ')
    with pytest.raises(BadInput, match="its limits must be above 0"):
        ExtractorProgram(".png", (program, "{file}"), seconds=0)
