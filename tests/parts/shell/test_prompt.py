"""The prompt of `likewise search` on a terminal, in a process of its own behind a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

# The command line with the word encoder in place of any model. The terminal controls the process: Ctrl-C reaches it.
PROGRAM = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
import word_encoder
from indexer.encoders import registry
encoder = word_encoder.WordEncoder()
registry._loaded[encoder.recipe.identity] = encoder
registry._load_spec = lambda spec, runtime: encoder
from likewise.shell import main
main(sys.argv[1:])
"""
_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z=>])")

UP, CTRL_C, CTRL_D = "\x1b[A", "\x03", "\x04"


class Terminal:
    """A process whose standard streams are a pseudo-terminal."""

    def __init__(self, *arguments: str, cwd: Path, **environment: str) -> None:
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(root=str(ROOT)), *arguments],
            stdin=slave, stdout=slave, stderr=slave, cwd=cwd, start_new_session=True,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "80"} | environment,
        )  # fmt: skip
        os.close(slave)
        self._unread = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read(self, until: str, again: str = "") -> str:
        """Return what is written up to a text, and the text. Type `again` every second until the text comes."""
        deadline = time.monotonic() + 30
        typed = time.monotonic()
        while until not in self._unread:
            assert time.monotonic() < deadline, f"{until!r} does not come after {self._unread!r}"
            if again and time.monotonic() > typed + 1:
                self.type(again)
                typed = time.monotonic()
            ready, _, _ = select.select([self._master], [], [], 0.2)
            if ready:
                try:
                    self._unread += _ESCAPE.sub("", os.read(self._master, 65536).decode("utf-8", "replace"))
                except OSError:  # the process has closed the other end
                    assert until in self._unread, f"{until!r} does not come after {self._unread!r}"
        before, found, self._unread = self._unread.partition(until)
        return before + found

    def ask(self, text: str, until: str) -> str:
        self.type(text)
        return self.read(until)

    def end(self) -> int:
        """Type Ctrl-D until the process ends, because between two prompts the terminal itself takes it."""
        for _ in range(100):
            self.type(CTRL_D)
            try:
                return self.process.wait(0.3)
            except subprocess.TimeoutExpired:
                continue
        raise AssertionError("Ctrl-D does not end the prompt")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


@pytest.fixture
def here(tmp_path: Path, likewise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an index of six notes."""
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    for number in range(6):
        own = " ".join(f"{word}{number}" for word in ("a", "b", "c", "d"))
        (tmp_path / "notes" / f"{number}.txt").write_text("moon " * (number + 1) + "pear " * (6 - number) + own)
    assert likewise("index", "notes").code == 0
    return tmp_path


@pytest.fixture
def terminal(here: Path) -> Iterator[Terminal]:
    opened = Terminal("search", "-k", "2", "--mode", "words", cwd=here)
    try:
        opened.read("Ctrl-D ends")
        yield opened
    finally:
        opened.close()


def test_questions_pages_modes_filters_and_hits(terminal: Terminal, here: Path) -> None:
    answer = terminal.ask("moon\r", " 2  ") + terminal.read("\n")
    assert "notes/5.txt:1" in answer
    assert "notes/4.txt:1" in answer
    answer = terminal.ask(":next\r", " 4  ") + terminal.read("\n")
    assert " 3  " in answer
    assert "notes/3.txt:1" in answer
    assert "moon moon moon moon pear pear pear a3" in terminal.ask("3\r", "d3")
    assert "moon moon moon moon moon moon pear a5" in terminal.ask("1\r", "d5")
    answer = terminal.ask("moon -5 +notfound\r", "no hits")
    assert "read as conditions: -5, +notfound; --literal asks for the text as it stands" in answer
    terminal.ask("moon\r", " 2  ")
    terminal.ask("9\r", "there is no hit 9")
    terminal.ask(":filter size > 99\r", "no hits")
    terminal.read("words, size > 99? ")
    terminal.ask(":filter sizes > 1\r", "no document has a field")  # an error is a line, and the earlier filter stays
    terminal.read("words, size > 99? ")
    terminal.ask(":filter size >\r", "expected a value")
    terminal.read("words, size > 99? ")
    terminal.ask(":filter\r", " 2  ")
    terminal.ask(":mode\r", " 2  ")  # words, then dense or hybrid
    assert terminal.read("\n")
    terminal.ask(":similar 1\r", " 2  ")
    terminal.ask(":filter size < 1\r", "no ")
    terminal.ask(":nonsense\r", "not a command")
    terminal.read("? ")
    terminal.ask("half typed", "half typed")  # earlier, Ctrl-C would discard the prompt itself
    terminal.read("? ", again=CTRL_C)  # Python notices it only if it waits for a key already
    terminal.ask("half" + "\x08" * 4 + ":next\r", "there is no next page")
    assert terminal.end() == 0
    history = here / "STATE" / "likewise" / "history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "moon\n" in history.read_text()


@pytest.mark.slow
def test_earlier_questions_come_back(terminal: Terminal, here: Path) -> None:
    terminal.ask("pear\r", " 2  ")
    assert terminal.end() == 0
    again = Terminal("search", ".likewise", "-k", "1", "--mode", "words", cwd=here)
    try:
        again.read("Ctrl-D ends")
        assert "notes/0.txt" in again.ask(UP + "\r", "notes/0.txt")
        again.type(":quit\r")
        assert again.process.wait(30) == 0
    finally:
        again.close()


@pytest.mark.slow
def test_two_prompts_at_once_keep_their_questions_also_if_one_is_killed(terminal: Terminal, here: Path) -> None:
    other = Terminal("search", ".likewise", "-k", "1", "--mode", "words", cwd=here)
    try:
        other.read("Ctrl-D ends")
        terminal.ask("pear\r", " 2  ")
        other.ask("moon\r", " 1  ")
        other.process.kill()
        terminal.ask("\rmoon pear\r", " 2  ")
        assert terminal.end() == 0
    finally:
        other.close()
    assert (here / "STATE" / "likewise" / "history").read_text().split("\n") == ["pear", "moon", "moon pear", ""]


@pytest.mark.slow
def test_a_question_that_cannot_be_kept_is_answered(terminal: Terminal, here: Path) -> None:
    history = here / "STATE" / "likewise" / "history"
    terminal.read("? ")
    history.unlink()
    history.mkdir()
    assert "this question is not kept" in terminal.ask("pear\r", " 2  ")
    assert terminal.end() == 0


def test_without_a_terminal_a_question_is_needed(likewise: Callable[..., Any], here: Path) -> None:
    said = likewise("search")
    assert said.code == 2
    assert "Missing argument 'QUERY'" in said.err
    dumb = Terminal("search", cwd=here, TERM="dumb")
    try:
        dumb.read("Missing argument 'QUERY'")
        assert dumb.process.wait(30) == 2
    finally:
        dumb.close()


def test_the_prompt_is_imported_only_by_the_prompt(here: Path) -> None:
    program = (
        "import sys, likewise.shell\n"
        "try:\n    likewise.shell.main(['search', 'moon', '--mode', 'words'])\n"
        "except SystemExit:\n    print('readline' in sys.modules, 'torch' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=here,
        capture_output=True, text=True, timeout=110, check=True,
    )  # fmt: skip
    assert said.stdout.splitlines()[-1] == "False False"
