"""Keeping an index like its sources: events are a hint, a scan is the truth.

Events of the file system say that something has changed, never what: each leads to the same run as `likewise index`,
which compares every file with the ledger. A scan on a timer finds what no event told: changes on network mounts, events
that were lost, folders beyond the system's limits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from indexer.core import IndexCore
from indexer.errors import IndexLocked, LikewiseError
from indexer.listener import Commit, Listener
from indexer.runs import Outcome, index_sources
from indexer.sources import ReadOptions, open_sources
from indexer.stores.open import is_uri
from indexer.stores.port import Writer

QUIET_S = 0.5
"""Seconds without an event after which a scan begins, so that a burst of changes is one run."""
SETTLING_S = 3.0
"""Seconds after the last event until one more scan. Files younger than 2 s may change again without another time, and
the events of a burst's end may be lost."""
_LONGEST_BURST_S = 10.0
"""Seconds after which a scan begins although events still come."""
_POLL_S = 1.0
_LOCKED_S = 0.2
"""Seconds between two attempts to get the lock that another writer holds."""


class _Stopped(Exception):
    """The watch was told to stop in the middle of a run."""


class _Scanning(Listener):
    """The listener of all scans: it passes each note on once, and ends a scan after a commit if the watch stops."""

    def __init__(self, listener: Listener, stop: threading.Event) -> None:
        self._listener, self._stop = listener, stop
        self._notes: set[str] = set()

    def note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.add(text)
            self._listener.note(text)

    def committed(self, commit: Commit) -> None:
        if self._stop.is_set():
            raise _Stopped


class Watch:
    """Scans sources at the start, after changes and on a timer."""

    def __init__(
        self,
        sources: Sequence[str],
        options: ReadOptions,
        open_index: Callable[[Listener], AbstractContextManager[IndexCore]],
        address: str,
        *,
        every_s: float,
        prune: bool,
        yes: bool,
        report: Callable[[Outcome], None],
        listener: Listener,
    ) -> None:
        """Prepare to watch; `run` does it.

        Args:
            sources: SOURCE arguments.
            open_index: opens the index for one scan with this listener, creating it if there is none.
            address: where the index is; changes in its folder are no reason to scan.
            every_s: seconds between the scans of the timer.
            prune, yes: see `Run.prune`; an empty or missing source prunes nothing.
            report: called after each scan.
            listener: receives notes about the watch and its scans.
        """
        self._sources, self._options, self._open, self._address = tuple(sources), options, open_index, address
        self._every_s, self._prune, self._yes = every_s, prune, yes
        self._report, self._listener = report, listener
        self._stop, self._changed = threading.Event(), threading.Event()
        self._scanning = _Scanning(listener, self._stop)

    def stop(self) -> None:
        """End the watch after the commit in progress. Safe to call from a signal handler."""
        self._stop.set()
        self._changed.set()

    def run(self) -> None:
        """Watch until `stop`.

        Raises:
            SourceError: at the start, a source does not exist. Later the watch goes on and says so.
            LikewiseError: at the start, the index cannot be written.
        """
        open_sources(self._sources, self._options)
        with self._events():
            self._scan()
            next_scan = time.monotonic() + self._every_s
            while not self._stop.is_set():
                if self._changed.wait(max(0.0, next_scan - time.monotonic())):
                    self._await_quiet()
                    next_scan = time.monotonic() + min(SETTLING_S, self._every_s)
                else:
                    next_scan = time.monotonic() + self._every_s
                if not self._stop.is_set():
                    self._scan_and_go_on()

    def _await_quiet(self) -> None:
        """Wait until no event has come for a while, or for so long that a scan is due anyway."""
        latest = time.monotonic() + _LONGEST_BURST_S
        while self._changed.is_set() and time.monotonic() < latest and not self._stop.is_set():
            self._changed.clear()
            self._stop.wait(QUIET_S)
        self._changed.clear()

    def _scan_and_go_on(self) -> None:
        try:
            self._scan()
        except LikewiseError as error:  # a source that is unmounted, a full disk: the next scan may find it mended
            self._listener.note(f"{error}; the watch goes on")

    def _scan(self) -> None:
        """Run once over the sources."""
        sources = open_sources(self._sources, self._options)
        empty = [source.argument for source in sources if not any(file.status for file in source.files())]
        if empty and self._prune:
            self._listener.note(f"{', '.join(empty)}: empty, so nothing is pruned")

        try:
            with self._open(self._scanning) as index, self._writer(index) as writer:
                outcome = index_sources(
                    index,
                    writer,
                    sources,
                    self._options,
                    prune=self._prune and not empty,
                    yes=self._yes,
                )
        except _Stopped:
            return
        self._report(outcome)
        if outcome.refused is not None:
            self._listener.note(str(outcome.refused))

    @contextmanager
    def _writer(self, index: IndexCore) -> Iterator[Writer]:
        """Hold the lock of the index for the length of a block. Waiting for another writer ends when told to stop."""
        with ExitStack() as held:
            writer: Writer | None = None
            waits = False
            while writer is None:
                try:
                    writer = held.enter_context(index.store.writer(wait=False))
                except IndexLocked:
                    if not waits:
                        self._listener.waiting(
                            f"{self._address} is being written by another process: waiting until it is done"
                        )
                    waits = True
                    if self._stop.wait(_LOCKED_S):
                        raise _Stopped from None
            yield writer

    @contextmanager
    def _events(self) -> Iterator[None]:
        """Set `_changed` when something changes, for the length of a block."""
        listeners = [
            threading.Thread(target=self._listen, name="likewise events", daemon=True),
            threading.Thread(target=self._look_at_files, name="likewise files", daemon=True),
        ]
        for listener in listeners:
            listener.start()
        try:
            yield
        finally:
            self.stop()
            for listener in listeners:
                listener.join(2)

    def _listen(self) -> None:
        """Listen to the events under the folders among the sources."""
        from watchfiles import watch

        folders = [root for root in self._roots() if os.path.isdir(root)]  # noqa: PTH112
        if not folders:
            return
        try:
            for _ in watch(
                *folders,
                watch_filter=self._matters,
                debounce=200,
                step=100,
                stop_event=self._stop,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._changed.set()
        except (OSError, RuntimeError) as error:
            self._listener.note(
                f"{_why_no_events(error)}: changes are found by the scan every {self._every_s:g} seconds"
            )

    def _matters(self, change: object, path: str) -> bool:
        """Return whether an event is not of the index itself."""
        if is_uri(self._address):
            return True
        folder = str(Path(self._address).absolute())
        return path != folder and not path.startswith((folder + os.sep, folder + "-", folder + "."))

    def _look_at_files(self) -> None:
        """Look once a second whether a file among the sources has changed: editors replace files, which ends events."""
        files = [root for root in self._roots() if not os.path.isdir(root)]  # noqa: PTH112
        seen = [_stamp(file) for file in files]
        while files and not self._stop.wait(_POLL_S):
            now = [_stamp(file) for file in files]
            if now != seen:
                seen = now
                self._changed.set()

    def _roots(self) -> list[str]:
        return [source.root for source in open_sources(self._sources, self._options)]


def _stamp(file: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _why_no_events(error: Exception) -> str:
    """Return why the system gives no events, and which limit to raise."""
    text = str(error)
    limits = Path("/proc/sys/fs/inotify")
    if "limit" in text.lower() or "os error 28" in text or "os error 24" in text:
        name = "max_user_instances" if "os error 24" in text else "max_user_watches"
        file = limits / name
        value = file.read_text().strip() if file.exists() else "?"
        return f"the system gives no more events, because fs.inotify.{name} is {value} (sysctl raises it)"
    return f"the system gives no events ({text[:200]})"
