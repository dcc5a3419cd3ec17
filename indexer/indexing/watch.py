"""Keeping an index like its sources: events are a hint, a scan is the truth.

Events of the file system say that something has changed, never what: each leads to the same run as `likewise index`,
which compares every file with the ledger. A scan on a timer finds changes without an event: on network mounts, after
lost events, in folders beyond the system's limits.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from indexer.errors import IndexLocked, LikewiseError
from indexer.indexing.core import IndexCore
from indexer.indexing.runs import Outcome, index_sources
from indexer.listener import Commit, Listener
from indexer.sources import ReadOptions, Source, open_sources
from indexer.stores.addresses.open import is_uri
from indexer.stores.reading.store import Writer

QUIET_S = 0.5
"""Seconds without an event after which a scan begins, so that a burst of changes is one run."""
SETTLING_S = 3.0
"""Seconds between the last event and one more scan. Files younger than 2 s may change again without a new time, and the
last events of a burst may be lost."""
_LONGEST_BURST_S = 10.0
"""Maximum seconds of a burst of events before a scan begins."""
_LONGEST_WAIT_S = 60.0
"""Maximum seconds between scans that changed nothing and had failures, without an event."""
_POLL_S = 1.0
_LOCKED_S = 0.2
"""Seconds between two attempts to get the lock that another writer holds."""


class _Stopped(Exception):
    """The watch was stopped in the middle of a run."""


class _Scanning(Listener):
    """The listener of all scans: it passes each note on once, and ends a scan after a commit if the watch stops.

    Attributes:
        passed_on: the notes so far.
    """

    def __init__(self, listener: Listener, stop: threading.Event) -> None:
        self._listener, self._stop = listener, stop
        self.passed_on: set[str] = set()

    def note(self, text: str) -> None:
        if text not in self.passed_on:
            self.passed_on.add(text)
            self._listener.note(text)

    def committed(self, commit: Commit) -> None:
        if self._stop.is_set():
            raise _Stopped


class Watch:
    """Scans sources at the start, after changes and on a timer."""

    def __init__(
        self,
        groups: Sequence[tuple[ReadOptions, Sequence[str]]],
        open_index: Callable[[Listener], AbstractContextManager[IndexCore]],
        address: str,
        *,
        every_s: float,
        prune: bool,
        yes: bool,
        report: Callable[[Outcome, Sequence[str]], None],
        listener: Listener,
    ) -> None:
        """Prepare to watch; `run` does it.

        Args:
            groups: SOURCE arguments, with the options that the sources of each group are read with.
            open_index: opens the index for one scan with this listener, creating it if there is none.
            address: where the index is; changes in its folder are no reason to scan.
            every_s: seconds between two scans on the timer.
            prune, yes: see `index_sources`; an empty or missing source prunes nothing.
            report: called after each scan, with the failures that the scan before did not have.
            listener: receives notes about the watch and its scans.
        """
        self._groups, self._open, self._address = groups, open_index, address
        self._every_s, self._prune, self._yes = every_s, prune, yes
        self._report, self._listener = report, listener
        self._stop, self._changed, self._relisten = threading.Event(), threading.Event(), threading.Event()
        self._walked: list[Source] = []  # by the latest scan: what they have listed is listened to
        self._folder_changed = False  # one that is listened to was removed or replaced
        self._fruitless = 0  # scans after events, one after the other, that changed nothing and had failures
        self._failures: set[str] = set()
        self._told: set[str] = set()  # by the latest scan
        self._scanning = _Scanning(listener, self._stop)

    def stop(self) -> None:
        """End the watch after the commit in progress. Safe to call from a signal handler."""
        self._stop.set()
        self._changed.set()
        self._relisten.set()

    def run(self) -> None:
        """Watch until `stop`.

        Raises:
            SourceError: at the start, a source does not exist. Later, the watch reports it and continues.
            LikewiseError: at the start, the index cannot be written.
        """
        self._walked = [source for _, sources in self._open_sources() for source in sources]
        for source in self._walked:
            deque(source.files(), 0)
        with self._events():
            next_scan = self._scan(after_event=False)
            while not self._stop.is_set():
                after_event = self._changed.wait(max(0.0, next_scan - time.monotonic()))
                if after_event:
                    self._await_quiet()
                if not self._stop.is_set():
                    next_scan = self._scan_and_continue(after_event)

    def _await_quiet(self) -> None:
        """Wait until no event has come for a while, or until a scan is due anyway."""
        quiet = min(QUIET_S * 2**self._fruitless, _LONGEST_WAIT_S)
        latest = time.monotonic() + _LONGEST_BURST_S
        while self._changed.is_set() and time.monotonic() < latest and not self._stop.is_set():
            self._changed.clear()
            self._stop.wait(quiet)
        self._changed.clear()

    def _scan_and_continue(self, after_event: bool) -> float:
        try:
            return self._scan(after_event)
        except LikewiseError as error:  # a source that is unmounted, a full disk: the next scan may find it repaired
            self._tell([f"{error}; the watch continues"])
            return self._next(after_event)

    def _next(self, soon: bool) -> float:
        """Return the time of the next scan."""
        return time.monotonic() + (min(SETTLING_S, self._every_s) if soon else self._every_s)

    def _tell(self, notes: Iterable[str]) -> None:
        """Pass on the notes that the scan before did not have."""
        told = dict.fromkeys(notes)
        for note in told:
            if note not in self._told and note not in self._scanning.passed_on:
                self._listener.note(note)
        self._told = set(told)

    def _open_sources(self) -> list[tuple[ReadOptions, list[Source]]]:
        return [(options, open_sources(arguments, options)) for options, arguments in self._groups]

    def _scan(self, after_event: bool) -> float:
        """Run once over the sources. Return the time of the next scan."""
        groups = self._open_sources()
        opened = [source for _, sources in groups for source in sources]
        empty = [source.argument for source in opened if not any(file.status for file in source.files())]
        notes = [f"{', '.join(empty)}: empty, so nothing is pruned"] if empty and self._prune else []
        try:
            with self._open(self._scanning) as index, self._writer(index) as writer:
                outcome = index_sources(index, writer, groups, prune=self._prune and not empty, yes=self._yes)
                with index.store.snapshot() as snapshot:
                    failures = {f"{row.uri}: {row.reason.text()}" for row in snapshot.ledger("failed")}
        except _Stopped:
            return time.monotonic()
        if outcome.refused is not None:
            notes.append(str(outcome.refused))
        has_changed = bool(outcome.summary.indexed or outcome.summary.updated or outcome.pruned)
        self._fruitless = 0 if has_changed or not failures else self._fruitless + after_event
        self._tell((*notes, *outcome.notes))
        self._report(replace(outcome, notes=()), sorted(failures - self._failures))
        self._failures = failures
        return self._next(soon=self._listen_to(opened) or after_event)

    def _listen_to(self, sources: list[Source]) -> bool:
        """Listen to the folders that a scan has listed. Return whether these folders have changed."""
        before, folders = sorted(_folders(self._walked)), sorted(_folders(sources))
        is_new = before != folders or self._folder_changed
        self._walked = sources
        if is_new:
            self._folder_changed = False
            self._relisten.set()
        return is_new

    @contextmanager
    def _writer(self, index: IndexCore) -> Iterator[Writer]:
        """Hold the lock of the index for the length of a block. Waiting for another writer ends when the watch is
        stopped."""
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
        """Listen to the events in every folder that the latest scan has listed, and in no other folder."""
        while not self._stop.is_set():
            self._relisten.clear()
            if self._stop.is_set():  # it may have been set before the line above
                return
            folders = sorted(_folders(self._walked))
            try:
                if not self._has_listened(folders):
                    self._relisten.wait()
            except (OSError, RuntimeError) as error:
                self._listener.note(
                    f"{_why_no_events(error)}: changes are found by the scan every {self._every_s:g} seconds"
                )
                return

    def _has_listened(self, folders: Sequence[str]) -> bool:
        """Listen to folders until the folders change; return whether listening was possible."""
        from watchfiles import watch

        if not folders:
            return False
        try:
            for changes in watch(
                *folders,
                watch_filter=self._matters,
                debounce=200,
                step=100,
                stop_event=self._relisten,
                raise_interrupt=False,
                recursive=False,  # a recursive watch follows links, also out of the folder
                ignore_permission_denied=True,
            ):
                self._folder_changed |= any(path in folders for _, path in changes)
                self._changed.set()
        except FileNotFoundError:  # a folder that was removed since the scan: the next one lists the others
            self._folder_changed = True
            self._changed.set()
            return False
        return True

    def _matters(self, change: object, path: str) -> bool:
        """Return whether an event can come from a file that a scan reads, and does not come from the index itself."""
        if not is_uri(self._address):
            folder = str(Path(self._address).absolute())
            if path == folder or path.startswith((folder + os.sep, folder + "-", folder + ".")):
                return False
        return any(source.may_read(path) for source in self._walked)

    def _look_at_files(self) -> None:
        """Check once a second whether a file among the sources has changed. Editors replace files, which ends their
        events."""
        files = [source.root for source in self._walked if not os.path.isdir(source.root)]  # noqa: PTH112
        seen = [_stamp(file) for file in files]
        while files and not self._stop.wait(_POLL_S):
            now = [_stamp(file) for file in files]
            if now != seen:
                seen = now
                self._changed.set()


def _folders(sources: Iterable[Source]) -> set[str]:
    """Return the folders that the latest walk over these sources has listed."""
    return {path for source in sources for path in source.folders}


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
