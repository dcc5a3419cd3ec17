"""What commands show while they work: notes on standard error, and a bar on a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from indexer.listener import Commit, Listener
from search.cli.output import count_of, number, on_terminal, printable, say, say_json, warn

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

    def waiting(self, text: str) -> None:
        warn(text)


class _WithBar(Console):
    """A bar on a terminal; elsewhere it draws nothing."""

    def __init__(self, description: str) -> None:
        super().__init__()
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
        if self._bar is not None:
            self._bar.update(self._task, description=text)


class RunProgress(_WithBar):
    """The console of an indexing run, with a bar: documents, passages, rate and time left, by bytes read."""

    def __init__(self, sources: Sequence[Source], *, stream: bool = False) -> None:
        """Prepare to show a run; the bar is drawn for the length of a block.

        Args:
            stream: whether to print the uris of each commit as a line of JSON.
        """
        super().__init__("reading")
        self._stream = stream
        self._counts = ""  # of the commits so far
        self._shown = 0.0  # when a file was shown last
        if self._bar is not None:
            self._bar.update(self._task, total=_size(sources))

    def committed(self, commit: Commit) -> None:
        if self._bar is not None:
            rate = commit.done / max(self._bar.tasks[0].elapsed or 0, 1e-9)
            rated = f", {rate:.0f} documents/s" if rate >= 1 else f", {rate * 60:.0f} documents/min" if rate else ""
            self._counts = f"{number(commit.done)} documents, {number(commit.passages)} passages{rated}"
            self._bar.update(self._task, completed=commit.position, description=self._counts)
        uris = [*commit.changes.added, *commit.changes.replaced, *commit.changes.updated]
        if self._stream and uris:
            say_json({"committed": uris})

    def reading(self, file: str, files: int, size: int) -> None:
        """Show the files that are read before the first commit, which may take minutes."""
        if self._bar is None or time.monotonic() - self._shown < _REDRAW_S:
            return
        name = printable(os.path.basename(file))  # noqa: PTH119
        self._show(f"reading {name[:_NAME_CHARACTERS]}, {number(files)} files, {size / 2**20:,.1f} MB")

    def embedding(self, documents: int) -> None:
        self._show(f"embedding {count_of(documents, 'document')}")

    def _show(self, text: str) -> None:
        if self._bar is None:
            return
        from rich.markup import escape

        self._shown = time.monotonic()
        counts = f"{self._counts}; " if self._counts else ""
        self._bar.update(self._task, description=escape(f"{counts}{text}"))


class CopyProgress(_WithBar):
    """The console of a copy, with a bar: documents that are in the copy."""

    def __init__(self) -> None:
        super().__init__("copying")

    def committed(self, commit: Commit) -> None:
        if self._bar is not None:
            text = f"copying: {number(commit.position)} of {number(commit.total or 0)} documents"
            self._bar.update(self._task, total=commit.total, completed=commit.position, description=text)


class MigrationProgress(_WithBar):
    """The console of a change of the model, with a bar: documents that were compared, passages that were embedded."""

    def __init__(self) -> None:
        super().__init__("comparing documents")

    def committed(self, commit: Commit) -> None:
        if self._bar is not None:
            rate = commit.passages / max(self._bar.tasks[0].elapsed or 0, 1e-9)
            documents = f"{number(commit.position)} of {number(commit.total or 0)} documents"
            text = f"{documents}, {number(commit.passages)} passages, {rate:,.0f}/s"
            self._bar.update(self._task, total=commit.total, completed=commit.position, description=text)


class Steps(Console):
    """The console of a command without a bar: it prints each long step as a line."""

    def step(self, text: str) -> None:
        say(f"{text} …", err=True)


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
    """Return the size in bytes of all files of the run; None where it is not known, as with standard input."""
    if any(source.root == "-" for source in sources):
        return None
    try:
        statuses = (file.status for source in sources for file in source.files())
        return sum(status.st_size for status in statuses if status is not None) or None
    except OSError:  # the run itself will report it
        return None
