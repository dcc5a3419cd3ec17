"""The output of commands while they work: notes on standard error, and a bar on a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from indexer.errors import count_of, in_shell
from indexer.listener import Commit, Listener
from likewise.shell.terminal.output import number, on_terminal, printable, say, say_json, warn

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from indexer.sources import Source

_REDRAW_S = 0.1
_NAME_CHARACTERS = 40


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
    """A bar on a terminal; elsewhere it draws nothing."""

    def __init__(self, description: str) -> None:
        super().__init__()
        self._counts = self._workers = ""  # of the commits so far; workers that embed
        self._shown = 0.0  # when anything was shown last
        self._bar = _bar() if on_terminal() else None
        if self._bar is not None:
            self._task = self._bar.add_task(description, start=False, total=None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start_task(self._task)  # Opening the index and waiting for a writer do not count.
            self._bar.start()
        return self

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, text: str) -> None:
        self._show(text)

    def embedded(self, passages: int, total: int) -> None:
        if time.monotonic() - self._shown >= _REDRAW_S:
            self._show(f"embedding {number(passages)} of {count_of(total, 'passage')}")

    def _show(self, text: str) -> None:
        """Show what is being done, after the counts of the commits so far."""
        if self._bar is None:
            return
        from rich.markup import escape

        self._shown = time.monotonic()
        counts = f"{self._counts}; " if self._counts else ""
        self._bar.update(self._task, description=escape(f"{counts}{text}{self._workers}"))


class RunProgress(_WithBar):
    """The console of an indexing run, with a bar: documents, passages, rate and time left, by bytes read.

    Attributes:
        kept: documents that were embedded and committed so far.
    """

    def __init__(self, sources: Sequence[Source], *, stream: bool = False) -> None:
        """Prepare to show a run; the bar is drawn for the length of a block.

        Args:
            stream: print the uris of each commit as a line of JSON.
        """
        super().__init__("reading")
        self._stream = stream
        self.kept = 0
        if self._bar is not None:
            self._bar.update(self._task, total=_size(sources))

    def committed(self, commit: Commit) -> None:
        self.kept = commit.done
        if self._bar is not None:
            rate = commit.done / max(self._bar.tasks[0].elapsed or 0, 1e-9)
            rated = f", {rate:.0f} documents/s" if rate >= 1 else f", {rate * 60:.0f} documents/min" if rate else ""
            self._counts = f"{count_of(commit.done, 'document')}, {count_of(commit.passages, 'passage')}{rated}"
            self._bar.update(self._task, completed=commit.position, description=self._counts)
        uris = [*commit.changes.added, *commit.changes.replaced, *commit.changes.updated]
        if self._stream and uris:
            say_json({"committed": uris})

    def reading(self, file: str, files: int, size: int) -> None:
        """Show the files that are read before the first commit, which may take minutes."""
        if self._bar is None or time.monotonic() - self._shown < _REDRAW_S:
            return
        name = printable(os.path.basename(file))  # noqa: PTH119
        self._show(f"reading {name[:_NAME_CHARACTERS]}, {count_of(files, 'file')}, {size / 2**20:,.1f} MB")

    def embedding(self, documents: int) -> None:
        self._show(f"embedding {count_of(documents, 'document')}")

    def workers(self, busy: int, workers: int) -> None:
        """Show who waits: workers for documents to be read, or the run for its workers."""
        waiting = f", {number(workers - busy)} waiting" if busy < workers else ""
        self._workers = f" on {count_of(workers, 'worker')}{waiting}"


class DocumentProgress(_WithBar):
    """The console of a copy or of a change of the model, with a bar: documents and passages that are done."""

    def committed(self, commit: Commit) -> None:
        if self._bar is not None:
            self._counts = f"{number(commit.position)} of {count_of(commit.total or 0, 'document')}"
            if commit.passages:
                rate = commit.passages / max(self._bar.tasks[0].elapsed or 0, 1e-9)
                self._counts += f", {count_of(commit.passages, 'passage')}, {rate:,.0f}/s"
            self._bar.update(self._task, total=commit.total, completed=commit.position, description=self._counts)


class Steps(_WithBar):
    """The console of a command with a few long steps: a bar on a terminal, and elsewhere a line for each step."""

    def __init__(self) -> None:
        super().__init__("starting")

    def step(self, text: str) -> None:
        if self._bar is None:
            say(f"{text} …", err=True)
        else:
            self._bar.reset(self._task, total=None, description=text)

    def advanced(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, total=total, completed=done)


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _size(sources: Sequence[Source]) -> int | None:
    """Return the size in bytes of all files of the run; None if it is unknown, as with standard input."""
    if any(source.root == "-" for source in sources):
        return None
    try:
        statuses = (file.status for source in sources for file in source.files())
        return sum(status.st_size for status in statuses if status is not None) or None
    except OSError:  # the run itself will report it
        return None
