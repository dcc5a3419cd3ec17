"""On an operating system that likewise cannot run on it says so at once, in Python and in the shell."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

import indexer
import search
from indexer.errors import LikewiseError, UnsupportedSystem

SAID = "likewise does not run on Windows itself: run it in the Windows Subsystem for Linux, on Linux or on macOS"

WINDOWS = """
import importlib.metadata, json, subprocess, sys, tempfile, warnings
import click  # after the standard library: on a Windows that is none they would look for its parts
sys.platform = "win32"
sys.modules["fcntl"] = sys.modules["resource"] = None
from likewise.shell import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("arguments", [[], ["--version"], ["index", "x.index", "."], ["search", "x.index", "a"]])
def test_the_shell_says_that_windows_is_not_supported(environment: SimpleNamespace, arguments: list[str]) -> None:
    ended = subprocess.run(
        [environment.python, "-c", WINDOWS, *arguments], capture_output=True, text=True, timeout=110, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", f"likewise: error: {SAID}\n")


def test_python_says_that_windows_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", "win32")
        for room, name in ((indexer, "Index"), (indexer, "load_encoder"), (search, "Searcher")):
            with pytest.raises(UnsupportedSystem) as caught:
                getattr(room, name)
            assert str(caught.value) == SAID
            assert isinstance(caught.value, LikewiseError)
        with pytest.raises(AttributeError):
            _ = indexer.nothing_of_this_name
    assert indexer.Index.__name__ == "Index"
