"""Runs the examples of README, the tutorial and "Asking". `python -m docs.examples` writes their output into the pages.

A `console` block has commands after "$ ", each with its output; a `text` block has the output of the `python` block
before it. A command that ends with "&" runs until the end of the page, and its first line is its output; port
8765 stands for one that is free. All run in one empty folder with a copy of data/. No progress is printed, because it
depends on the machine. Tests compare the pages with the program line by line.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from likewise.shell import main
from likewise.shell.terminal import progress

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/tutorial.md", "docs/asking.md")
PORT = "8765"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEEDS_A_SHELL = frozenset("|<>&;*$(")


def refreshed(page: str) -> str:
    """Return the text of a page with the output of its examples in the working folder."""
    python = ""
    port = _free_port()
    running: list[subprocess.Popen[str]] = []

    def run(block: re.Match[str]) -> str:
        nonlocal python
        language, body = block.groups()
        before, python = python, body if language == "python" else ""
        if language == "console":
            commands = re.findall(r"^\$ (.*)\n", body, re.MULTILINE)
            body = "".join(f"$ {command}\n{shell(command)}" for command in commands)
        elif language == "text":
            body = _python(before.replace(PORT, port))
        return f"```{language}\n{body.rstrip()}\n```"

    def shell(command: str) -> str:
        asked = command.replace(PORT, port)
        return (_started(asked, running, port) if asked.endswith("&") else _shell(asked)).replace(port, PORT)

    try:
        return _BLOCK.sub(run, page)
    finally:
        for process in running:
            process.terminate()
            process.communicate()


def _free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def _started(command: str, running: list[subprocess.Popen[str]], port: str) -> str:
    """Start a command that goes on, and return the line that says it is ready."""
    arguments = [sys.executable, "-c", "from likewise.shell import main; main()", *shlex.split(command)[1:-1]]
    process = subprocess.Popen(
        [*arguments, "--port", port], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    running.append(process)
    assert process.stderr is not None
    return process.stderr.readline()


def _shell(command: str) -> str:
    """Return standard output and error of a command in order. likewise itself runs in this process, which is faster."""
    if command.startswith("likewise ") and not _NEEDS_A_SHELL & set(command):
        return _captured(lambda: main(shlex.split(command)[1:]))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "LIKEWISE_INDEX"} | {"PATH": path}
    return subprocess.run(
        ["bash", "-c", command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    ).stdout


def _python(code: str) -> str:
    return _captured(lambda: exec(compile(code, "example", "exec"), {"__name__": "example"}))


def _captured(run: Callable[[], object]) -> str:
    out = io.StringIO()
    progress.LOOK_S = 3600.0
    with redirect_stdout(out), redirect_stderr(out), warnings.catch_warnings():
        warnings.simplefilter("default")
        with suppress(SystemExit):  # main() always exits
            run()
    return out.getvalue()


if __name__ == "__main__":
    os.environ["LIKEWISE_RUNTIME"] = "torch"  # pages show the same on every machine
    for name in PAGES:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            shutil.copytree(ROOT / "data", "data")
            text = refreshed((ROOT / name).read_text(encoding="utf-8"))
        (ROOT / name).write_text(text, encoding="utf-8")
