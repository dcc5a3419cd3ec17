"""The progress bar of an indexing run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from search.cli.output import number, on_terminal

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from indexer.ingest import Summary
    from indexer.sources import Source


class Progress:
    """A bar on a terminal: documents, passages, rate and time left, by bytes read. Elsewhere it draws nothing."""

    def __init__(self, sources: list[Source]) -> None:
        self._bar = _bar() if on_terminal() else None
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
            text = f"{number(done.indexed)} documents, {number(done.passages)} passages, {rate:.0f} documents/s"
            self._bar.update(self._task, completed=read, description=text)

    def note(self, text: str) -> None:
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
