"""The progress bar of an indexing run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from search.cli.output import count_of, number, on_terminal, printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from indexer.ingest import Summary
    from indexer.sources import Source

_REDRAW_S = 0.1
_NAME_CHARACTERS = 40


class Progress:
    """A bar on a terminal: documents, passages, rate and time left, by bytes read. Elsewhere it draws nothing."""

    def __init__(self, sources: list[Source]) -> None:
        self._bar = _bar() if on_terminal() else None
        self._counts = ""  # of the commits so far
        self._shown = 0.0  # when a file was shown last
        if self._bar is not None:
            self._task = self._bar.add_task("reading", total=_size(sources))

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: Summary, read: int) -> None:
        if self._bar is not None:
            rate = done.indexed / max(self._bar.tasks[0].elapsed or 0, 1e-9)
            rated = f", {rate:.0f} documents/s" if rate >= 1 else f", {rate * 60:.0f} documents/min" if rate else ""
            self._counts = f"{number(done.indexed)} documents, {number(done.passages)} passages{rated}"
            self._bar.update(self._task, completed=read, description=self._counts)

    def reading(self, file: str | None, count: int, size: int) -> None:
        """Show what is read and embedded between two commits, of which the first may take minutes.

        Args:
            file, count, size: as `indexer.ingest.Reading`.
        """
        if self._bar is None:
            return
        from rich.markup import escape

        now = time.monotonic()
        if file is None:
            text = f"embedding {count_of(count, 'document')}"
        elif now - self._shown < _REDRAW_S:
            return
        else:
            name = printable(os.path.basename(file))  # noqa: PTH119
            text = f"reading {name[:_NAME_CHARACTERS]}, {number(count)} files, {size / 2**20:,.1f} MB"
        self._shown = now
        counts = f"{self._counts}; " if self._counts else ""
        self._bar.update(self._task, description=escape(f"{counts}{text}"))

    def note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=text)


@contextmanager
def counted_documents(action: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar on a terminal; yield what is told how many documents are done, and how many there are."""
    if not on_terminal():
        yield lambda done, total: None
        return
    with _bar() as bar:
        task = bar.add_task(action, total=None)

        def show(done: int, total: int) -> None:
            counts = f"{action}: {number(done)} of {number(total)} documents"
            bar.update(task, completed=done, total=total, description=counts)

        yield show


class DocumentProgress:
    """A bar on a terminal: documents that were compared, passages that were embedded. Elsewhere it draws nothing."""

    def __init__(self) -> None:
        self._bar = _bar() if on_terminal() else None
        if self._bar is not None:
            self._task = self._bar.add_task("comparing documents", total=None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def committed(self, compared: int, documents: int, passages: int) -> None:
        """Show how far it is; the arguments are those of `indexer.follow.Committed`."""
        if self._bar is not None:
            rate = passages / max(self._bar.tasks[0].elapsed or 0, 1e-9)
            text = f"{number(compared)} of {number(documents)} documents, {number(passages)} passages, {rate:,.0f}/s"
            self._bar.update(self._task, total=documents, completed=compared, description=text)

    def step(self, text: str) -> None:
        """Show which long step begins."""
        if self._bar is not None:
            self._bar.update(self._task, description=text)


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


def _size(sources: list[Source]) -> int | None:
    """Return the size in bytes of all files of the run; None where it is not known, as with standard input."""
    if any(source.root == "-" for source in sources):
        return None
    try:
        statuses = (file.status for source in sources for file in source.files())
        return sum(status.st_size for status in statuses if status is not None) or None
    except OSError:  # the run itself will report it
        return None
