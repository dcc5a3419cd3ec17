"""The output of commands while they work on standard error: notes, and a bar or lines."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Self

from indexer.errors import count_of, in_shell
from indexer.listener import Commit, Listener
from likewise.shell.terminal.output import number, on_terminal, printable, say, say_json, warn

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from indexer.sources import Source

_REDRAW_S = 0.1
_NAME_CHARACTERS, _BAR_WIDTH = 40, 10
LOOK_S, _LINE_SECONDS = 1.0, 10
"""Seconds between two looks at whether a line is due off a terminal, and between two lines."""
_LONG_S = 60.0
"""Minimum seconds left of a run that is told what would make it quicker."""


class Console(Listener):
    """Prints notes on standard error at once.

    Attributes:
        printed: the notes that were printed; they are not printed again with the result.
    """

    def __init__(self) -> None:
        self.printed: set[str] = set()

    def note(self, text: str) -> None:
        self.printed.add(text)
        warn(text)

    def chosen(self, text: str) -> None:
        say(f"likewise: {in_shell(text)}", err=True)

    def waiting(self, text: str) -> None:
        warn(text)


class _WithBar(Console):
    """A bar on a terminal; elsewhere a line when work takes longer than a second, and then every ten seconds if the
    line has changed.

    Rate and time left are measured from the first commit on, before which the model is loaded.
    """

    def __init__(self, description: str = "starting") -> None:
        super().__init__()
        # Off a terminal the last line is kept, so that it is not printed twice in a row.
        self._text, self._is_at_work, self._printed = description, False, ""
        self._counts = self._workers = ""  # of the commits so far; workers that embed
        self._shown = 0.0  # when anything was shown last
        self._first: tuple[float, Commit] | None = None  # the first commit, and when it came
        self._left_s = 0.0
        self._ended = threading.Event()
        self._bar = _bar() if on_terminal() else None
        if self._bar is not None:
            self._task = self._bar.add_task(description, total=None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        else:
            threading.Thread(target=self._print_lines, daemon=True).start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.stop()

    def step(self, text: str) -> None:
        self._is_at_work = True
        self._show(text)

    def embedded(self, passages: int, total: int) -> None:
        if self._ended.is_set():  # An error has ended the run, and this thread embeds beside it.
            raise KeyboardInterrupt
        if time.monotonic() - self._shown >= _REDRAW_S:
            self._show(f"embedding {number(passages)} of {count_of(total, 'passage')}")

    def _print_lines(self) -> None:
        for second in count(1):
            if self._ended.wait(LOOK_S if second > 1 else 0.4 * LOOK_S):  # The imports before it took the rest.
                return
            if second % _LINE_SECONDS == 0 or (not self._printed and self._is_at_work):
                self._print_line()

    def _print_line(self) -> None:
        if (line := self._line) != self._printed:
            self._printed = line
            say(f"likewise: {line}", err=True)

    @property
    def _line(self) -> str:
        """What is being done, after the counts of the commits so far."""
        return "; ".join(filter(None, (self._counts, self._text))) + self._workers

    def _show(self, text: str) -> None:
        self._text, self._shown = text, time.monotonic()
        if self._bar is not None:
            from rich.markup import escape

            self._bar.update(self._task, description=escape(self._line))

    def _show_commit(self, counts: str, commit: Commit) -> None:
        """Show the counts of a commit, and from the second commit on the rate and the time that is left."""
        self._counts = f"{counts}, {count_of(commit.passages, 'passage')}" if commit.passages else counts
        now = time.monotonic()
        if self._first is None or commit.passages < self._first[1].passages:  # Other options count from 0 again.
            self._first = now, commit
        began, first = self._first
        seconds, done = now - began, commit.position - first.position
        if seconds and (rate := (commit.passages - first.passages) / seconds):
            self._counts += f", {rate:,.0f}/s" if rate >= 1 else f", {60 * rate:.0f}/min"
        if done > 0 and (left := (commit.total or 0) - commit.position) > 0:
            self._left_s = left * seconds / done
            self._counts += f", about {_duration(self._left_s)} left"
        if self._bar is not None:
            self._bar.update(self._task, total=commit.total, completed=commit.position)
        self._show("")


class RunProgress(_WithBar):
    """The console of an indexing run: documents, passages, rate and time left, by bytes of the sources.

    Attributes:
        kept: documents that were embedded and committed so far.
        quicker: returns what would make the run quicker here, which is printed once if the run is long.
    """

    def __init__(self, sources: Sequence[Source], *, stream: bool = False) -> None:
        """Prepare to show a run; the bar is drawn for the length of a block.

        Args:
            stream: print the uris of each commit as a line of JSON.
        """
        super().__init__("opening the index")
        self._stream, self._sources = stream, sources
        self.kept = 0
        self.quicker: Callable[[], str] | None = None

    def committed(self, commit: Commit) -> None:
        self.kept = commit.done
        if self._first is not None:  # Most runs with one commit are short, and need not walk their sources again.
            commit = replace(commit, total=self._total)
        self._show_commit(count_of(commit.done, "document"), commit)
        if self.quicker is not None and self._left_s > _LONG_S and (advice := self.quicker()):
            say(f"likewise: about {_duration(self._left_s)} left; {advice}", err=True)
            self.quicker = None
        uris = [*commit.changes.added, *commit.changes.replaced, *commit.changes.updated]
        if self._stream and uris:
            say_json({"committed": uris})

    def reading(self, file: str, files: int, size: int) -> None:
        """Show the files that are read before the first commit, which may take minutes."""
        if time.monotonic() - self._shown >= _REDRAW_S:
            name = printable(os.path.basename(file))  # noqa: PTH119
            self._show(f"reading {name[:_NAME_CHARACTERS]}, {count_of(files, 'file')}, {size / 2**20:,.1f} MB")

    def embedding(self, documents: int) -> None:
        self.step(f"embedding {count_of(documents, 'document')}")

    def workers(self, busy: int, workers: int) -> None:
        """Show who waits: workers for documents to be read, or the run for its workers."""
        waiting = f", {number(workers - busy)} waiting" if busy < workers else ""
        self._workers = f" on {count_of(workers, 'worker')}{waiting}"

    @cached_property
    def _total(self) -> int | None:
        return _size(self._sources)


class DocumentProgress(_WithBar):
    """The console of a copy or of a change of the model: documents and passages that are done, rate and time left."""

    def committed(self, commit: Commit) -> None:
        self._show_commit(f"{number(commit.position)} of {count_of(commit.total or 0, 'document')}", commit)


class Steps(_WithBar):
    """The console of a command with a few long steps: a bar on a terminal, and elsewhere a line for each step."""

    def step(self, text: str) -> None:
        self._text = text
        if self._bar is None:
            self._print_line()
        else:
            self._bar.reset(self._task, total=None, description=text)

    def advanced(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, total=total, completed=done)


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TimeElapsedColumn(), BarColumn(_BAR_WIDTH), TextColumn("{task.description}")
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{5 * math.ceil(seconds / 5)} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _size(sources: Sequence[Source]) -> int | None:
    """Return the size in bytes of all files of the run; None if it is unknown, as with standard input."""
    if any(source.root == "-" for source in sources):
        return None
    try:
        statuses = (file.status for source in sources for file in source.files())
        return sum(status.st_size for status in statuses if status is not None) or None
    except OSError:  # the run itself will report it
        return None
