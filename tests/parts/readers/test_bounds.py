"""Bombs, endless files and crashes: each fails with its reason, in time, and the next file is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import openpyxl
import pytest
from hardware import is_running, needs_memory_limit

from indexer import doors
from indexer.sources import Entry
from indexer.sources.content import Assembly, Unreadable
from indexer.sources.files import extractor, worker
from indexer.sources.files.extractor import EXTRACTOR

Collect = Callable[..., list[Entry]]

TOO_SLOW = "reading it takes longer than 2 seconds: split it, or save it as plain text"

LAUGHS = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "' + "ha" * 50 + '">'
LAUGHS += "".join(f'<!ENTITY {chr(98 + at)} "{f"&{chr(97 + at)};" * 10}">' for at in range(9)) + "]>"


def reason(collect: Collect, path: Path, **options: float) -> str:
    (entry,) = collect(path, **options)
    assert entry.state == "failed", entry
    return entry.reason.text()


def replaced(path: Path, member: str, content: bytes | str) -> Path:
    """The zip file with one member's content replaced or added."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, old in {**members, member: content}.items():
            archive.writestr(name, old)
    return path


@pytest.fixture
def word(tmp_path: Path) -> Path:
    file = docx.Document()
    file.add_paragraph("Some words.")
    file.save(tmp_path / "a.docx")
    return tmp_path / "a.docx"


@pytest.fixture
def broken_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A file whose reader runs the given line: the worker imports it in place of the real one."""

    def make(line: str, reader: str = "pdf", extension: str = "pdf") -> Path:
        EXTRACTOR.close()
        module = doors.TABLE["readers"][reader].partition(":")[0]
        hook = tmp_path / "hook" / "sitecustomize.py"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(
            "import os, sys, time, types\n"
            f"module = types.ModuleType('{module}')\n"
            f"def read(path):\n    {line}\n"
            "module.read = read\n"
            f"sys.modules['{module}'] = module\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(hook.parent))
        path = tmp_path / f"a.{extension}"
        path.write_bytes(b"%PDF-1.4" if reader == "pdf" else b"words")
        return path

    yield make
    EXTRACTOR.close()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(word: Path, collect: Collect) -> None:
    replaced(word, "word/document.xml", b"0" * 60_000_000)
    assert reason(collect, word) == "a zip bomb: word/document.xml unpacks to 60,000,000 bytes"


def test_a_zip_of_too_many_members_is_refused(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_001):
            archive.writestr(str(number), b"")
    assert reason(collect, path).startswith("a zip bomb: 20,001 members")


def test_a_lying_zip_is_not_unpacked_beyond_what_it_declares(word: Path, collect: Collect) -> None:
    replaced(word, "word/document.xml", b"0" * 60_000_000)
    data = word.read_bytes()
    word.write_bytes(data.replace((60_000_000).to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    assert reason(collect, word).startswith("damaged")


def test_a_pdf_of_too_many_pages_is_refused_before_a_page_is_read(tmp_path: Path, collect: Collect) -> None:
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 100001 /Kids [3 0 R] >>"]
    objects.append("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>")
    body = "".join(f"{number} 0 obj\n{each}\nendobj\n" for number, each in enumerate(objects, 1))
    (tmp_path / "a.pdf").write_text(f"%PDF-1.4\n{body}trailer << /Root 1 0 R >>\n%%EOF\n")
    assert reason(collect, tmp_path) == "has 100,001 pages, over the limit of 100,000: split it"


def test_text_over_the_bound_fails(tmp_path: Path, collect: Collect) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for _ in range(60):
        book.active.append(["x" * 30_000])
    path = tmp_path / "a.xlsx"
    book.save(path)
    expected = "it unpacks to more than 1,677,720 characters: split it, or raise --max-file-mb"
    assert reason(collect, path, max_file_mb=0.2) == expected


@pytest.mark.parametrize("member", ["word/document.xml", "docProps/core.xml", "[Content_Types].xml"])
def test_billion_laughs_in_docx(word: Path, collect: Collect, member: str) -> None:
    replaced(word, member, LAUGHS + "<l>&j;</l>")
    assert reason(collect, word) == f"{member} declares XML entities, which are not expanded"


def test_billion_laughs_in_epub_and_html(tmp_path: Path, collect: Collect) -> None:
    book = tmp_path / "a.epub"
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("META-INF/container.xml", LAUGHS + "<l>&j;</l>")
    assert "EntitiesForbidden" in reason(collect, book)
    page = tmp_path / "a.xhtml"
    page.write_text(LAUGHS + "<html><body><p>before &j; after</p></body></html>")
    (entry,) = collect(page)
    assert entry.document is not None, entry
    assert entry.document.text.endswith("before &j; after")
    assert "haha" not in entry.document.text


@pytest.mark.slow
def test_an_endless_reader_is_stopped_and_the_next_file_is_read(
    broken_reader: Callable[..., Path], word: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extractor, "MAX_FILE_SECONDS", 2.0)
    path = broken_reader("while True: pass")
    assert reason(collect, path) == TOO_SLOW
    monkeypatch.setattr(extractor, "MAX_FILE_SECONDS", 60.0)
    assert collect(word)[0].state == "read"


@pytest.mark.slow
@pytest.mark.parametrize(("module", "extension"), [("markdown", "md"), ("rst", "rst")])
def test_an_endless_reader_of_text_is_stopped(
    broken_reader: Callable[..., Path], collect: Collect, monkeypatch: pytest.MonkeyPatch, module: str, extension: str
) -> None:
    monkeypatch.setattr(extractor, "MAX_FILE_SECONDS", 2.0)
    path = broken_reader("while True: pass", module, extension)
    assert reason(collect, path) == TOO_SLOW


@pytest.mark.slow
def test_an_answer_that_does_not_end_is_not_waited_for(
    broken_reader: Callable[..., Path], collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extractor, "MAX_FILE_SECONDS", 2.0)
    half = "c.Connection._send_bytes = lambda self, _: (os.write(self.fileno(), b'\\0\\0\\1\\0{'), time.sleep(60))"
    path = broken_reader(f"import multiprocessing.connection as c; {half}; raise KeyError")
    assert reason(collect, path) == TOO_SLOW


def test_a_text_is_not_assembled_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assembly, "max_characters", 10)
    assembly = Assembly()
    assembly.add("12345678")
    with pytest.raises(Unreadable, match=r"it unpacks to more than 10 characters"):
        assembly.add("9")
    assert assembly.length == 11


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("os.kill(os.getpid(), 9)", "its reader crashed (signal 9)"),
        ("os._exit(3)", "its reader crashed (exit 3)"),
        pytest.param(
            "bytearray(3 * 2**30)",
            "reading it takes more than 2 GiB of memory: split it, or save it as plain text",
            marks=needs_memory_limit,
        ),
        ("raise OSError(f'{path} is bad')", "damaged, or no pdf file (OSError: the file is bad)"),
        (
            "raise KeyError('two\\nlines')",
            "damaged, or no pdf file (something in it is missing, or not as its format asks)",
        ),
        (
            "def f(): f()\n    f()",
            "damaged, or no pdf file (RecursionError: maximum recursion depth exceeded)",
        ),
    ],
)
def test_a_reader_that_fails(
    broken_reader: Callable[..., Path], word: Path, collect: Collect, line: str, expected: str
) -> None:
    assert reason(collect, broken_reader(line)) == expected
    assert collect(word)[0].state == "read"


def test_noise_of_a_library_goes_nowhere(
    broken_reader: Callable[..., Path], collect: Collect, capfd: pytest.CaptureFixture[str]
) -> None:
    noise = "print('noise'); sys.stderr.write('noise'); os.write(1, b'noise'); raise ValueError"
    assert reason(collect, broken_reader(noise)) == "damaged, or no pdf file (ValueError:)"
    assert "noise" not in "".join(capfd.readouterr())


def test_a_killed_worker_is_started_again(word: Path, collect: Collect) -> None:
    assert collect(word)[0].state == "read"
    (first,) = EXTRACTOR._idle
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    assert collect(word)[0].state == "read"
    assert [worker.is_running for worker in EXTRACTOR._idle] == [True]
    assert EXTRACTOR._idle != [first]


def test_the_worker_ends_with_its_parent_and_needs_no_main_guard(word: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from indexer.sources import ReadOptions, open_sources, read\n"
        "from indexer.stores.addresses.open import holds_store\n"
        "from indexer.sources.files.extractor import EXTRACTOR\n"
        "options = ReadOptions()\n"
        "(source,) = open_sources([sys.argv[1]], options, holds_store)\n"
        "states = [entry.state for entry in read(source, options, lambda _: None)]\n"
        "print(*states, EXTRACTOR._idle[0].process.pid, flush=True)\n"
        "os._exit(0)\n"  # as abruptly as a kill: nothing is cleaned up
    )
    root = str(Path(worker.__file__).parents[3])
    ran = subprocess.run(
        [sys.executable, str(script), str(word)],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
        timeout=110,
    )
    state, pid = ran.stdout.split()
    assert (state, ran.stderr) == ("read", "")
    while is_running(int(pid)):  # until the test's own limit
        time.sleep(0.05)


def test_an_interrupted_reading_is_not_taken_for_the_next(
    word: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    other = docx.Document()
    other.add_paragraph("Other words.")
    other.save(str(word.parent / "b.docx"))
    with monkeypatch.context() as patch:
        patch.setattr(extractor.Child, "ask", interrupt)
        with pytest.raises(KeyboardInterrupt):
            collect(word)
    (entry,) = collect(word.parent / "b.docx")
    assert entry.document is not None
    assert entry.document.text == "Other words."


def test_a_module_in_the_working_folder_is_not_imported(
    word: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    (word.parent / "docx.py").write_text("raise SystemExit('the wrong docx')")
    monkeypatch.chdir(word.parent)
    EXTRACTOR.close()
    assert collect(word)[0].state == "read"


def test_a_pipe_of_any_format_is_not_waited_for(tmp_path: Path, collect: Collect) -> None:
    os.mkfifo(tmp_path / "a.pdf")
    (entry,) = collect(tmp_path / "a.pdf")
    assert (entry.state, entry.reason.text()) == ("skipped", "a pipe, not a file")
