"""Keeping an index like its sources: the run of `likewise update` again and again, which events wake.

An event of the file system is a hint that something has changed. What has changed is found by the run, which compares
every file with the ledger. A run on a timer finds changes without an event: on network mounts, after lost events, in
folders beyond the system's limits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import BadInput, IndexLocked, LikewiseError
from indexer.indexing.core import IndexCore
from indexer.indexing.runs import Outcome, index_sources
from indexer.listener import Commit, Listener
from indexer.sources import ReadOptions, Source, open_sources
from indexer.stores.addresses.open import holds_store, is_uri
from indexer.stores.reading.store import Writer

if TYPE_CHECKING:
    from watchfiles import Change

QUIET_MS = 500
"""Milliseconds without a further event after which a scan begins, so that a burst of changes is one run."""
SETTLING_S = 3.0
"""Seconds between a scan after an event and one more scan. Files younger than 2 s may change again without a new time,
and the last events of a burst may be lost."""
_LONGEST_BURST_MS = 10_000
"""Maximum milliseconds of a burst of events before a scan begins."""
_LOCKED_S = 0.2
"""Seconds between two attempts to get the lock that another writer holds."""

Groups = Sequence[tuple[ReadOptions, Sequence[Source]]]
"""The sources of a scan, grouped by the options for reading them."""


class _Stopped(Exception):
    """The watch was stopped in the middle of a scan."""


class _Scanning(Listener):
    """The listener of a scan: it passes the notes on, and ends the scan after a commit if the watch stops."""

    def __init__(self, tell: Callable[[str], None], listener: Listener, stop: threading.Event) -> None:
        self._tell, self._listener, self._stop = tell, listener, stop

    def note(self, text: str) -> None:
        self._tell(text)

    def chosen(self, text: str) -> None:
        self._listener.chosen(text)

    def committed(self, commit: Commit) -> None:
        if self._stop.is_set():
            raise _Stopped


class Watch:
    """Scans sources at the start, after changes and on a timer."""

    def __init__(
        self,
        groups: Sequence[tuple[ReadOptions, Sequence[str]]],
        open_index: Callable[[Listener, Groups], AbstractContextManager[IndexCore]],
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
            groups: SOURCE arguments, with the options that the sources of each group are read with.
            open_index: opens the index for one scan of these sources with this listener, creating it if there is none.
            address: where the index is; changes in its folder are no reason to scan.
            every_s: seconds between two scans on the timer.
            prune, yes: see `index_sources`; an empty or missing source prunes nothing.
            report: called after each scan.
            listener: receives notes about the watch and its scans.
        """
        self._groups, self._open, self._address = groups, open_index, address
        self._every_s, self._prune, self._yes = every_s, prune, yes
        self._report, self._listener = report, listener
        self._stop = threading.Event()
        self._sources: list[Source] = []  # of the latest scan
        self._files: set[str] = set()  # SOURCEs that are files
        self._events: Iterator[set[tuple[Change, str]]] | None = None
        self._is_settling = True  # files that were written shortly before may change without an event
        self._told: set[str] = set()  # notes of the latest scan
        self._told_before: set[str] = set()  # notes of the scan before it

    def stop(self) -> None:
        """End the watch after the commit in progress. Safe to call from a signal handler."""
        self._stop.set()

    def run(self) -> None:
        """Watch until `stop`.

        Raises:
            SourceError: at the start, a source does not exist. Later, the watch reports it and continues.
            LikewiseError: at the start, the index cannot be written.
        """
        is_first = True
        while not self._stop.is_set():
            try:
                self.scan()
            except LikewiseError as error:
                if is_first:
                    raise
                # A source that is unmounted, a full disk: the next scan may find it repaired.
                self._tell(f"{error}; the watch continues")
            is_first = False
            self._is_settling = self._wait(min(SETTLING_S, self._every_s) if self._is_settling else self._every_s)

    def scan(self) -> None:
        """Begin to listen, and run once over the sources."""
        self._told_before, self._told = self._told, set()
        groups = [(options, open_sources(arguments, options, holds_store)) for options, arguments in self._groups]
        self._sources = [source for _, sources in groups for source in sources]
        # Each source is walked to its end, because the walk also finds the folders to listen to.
        counts = [sum(file.status is not None for file in source.files()) for source in self._sources]
        roots = [source.root for source in self._sources if not source.folders]
        self._files = {*roots, *map(os.path.realpath, roots)}
        folders = self._folders()
        self._listen(folders)
        empty = [source.argument for source, count in zip(self._sources, counts, strict=True) if not count]
        refused = BadInput(f"{', '.join(empty)}: empty, so nothing is pruned") if empty and self._prune else None
        try:
            with ExitStack() as held:
                index = held.enter_context(self._open(_Scanning(self._tell, self._listener, self._stop), groups))
                writer = self._writer(index, held)
                outcome = index_sources(index, writer, groups, prune=self._prune and not empty, yes=self._yes)
        except _Stopped:
            return
        if refused := refused or outcome.refused:
            self._tell(str(refused))
        for note in outcome.notes:
            self._tell(note)
        # The run has walked the sources again: a folder that was made since the first walk is not listened to yet.
        self._is_settling |= self._folders() != folders
        self._report(replace(outcome, refused=refused, notes=()))

    def _tell(self, note: str) -> None:
        """Pass on a note at once, unless this scan or the scan before had it."""
        if note not in self._told | self._told_before:
            self._listener.note(note)
        self._told.add(note)

    def _folders(self) -> set[str]:
        """Return the folders that the latest walk has listed, and the folder of each SOURCE that is a file."""
        # Editors replace files, which ends the events of a file: its folder is listened to.
        folders = {os.path.dirname(file) for file in self._files}  # noqa: PTH120
        return folders.union(*(source.folders for source in self._sources))

    def _writer(self, index: IndexCore, held: ExitStack) -> Writer:
        """Return the writer of an index, locked until the end of the stack. Stopping the watch ends waiting."""
        is_told = False
        while True:
            try:
                return held.enter_context(index.store.writer(wait=False))
            except IndexLocked:
                if not is_told:
                    self._listener.waiting(
                        f"{self._address} is being written by another process: waiting until it is done"
                    )
                is_told = True
            if self._stop.wait(_LOCKED_S):
                raise _Stopped

    def _listen(self, folders: set[str]) -> None:
        """Listen to these folders, and to no folder below them. Tell if the system gives no events."""
        from watchfiles import watch

        # watchfiles takes only names in UTF-8, and ends at an event of another name. A scan lists each folder, which is
        # an event of the folder above it.
        unnamed = {folder for folder in folders if folder.encode(errors="ignore").decode() != folder}
        if unnamed:
            self._tell(
                f"{min(unnamed).encode(errors='replace').decode()}: its name is not valid UTF-8, so changes in the "
                f"folder above are found by the scan every {self._every_s:g} seconds: rename it"
            )
        self._events = watch(
            *sorted(folders - unnamed - {os.path.dirname(folder) for folder in unnamed}),  # noqa: PTH120
            watch_filter=None,  # with a filter, many events that do not matter would keep the timer from ending
            debounce=_LONGEST_BURST_MS,
            step=QUIET_MS,
            rust_timeout=1,  # with the value below, the iterator also returns after `step` without an event
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
            recursive=False,  # a recursive watch follows links, also out of the folder
            ignore_permission_denied=True,
        )
        try:
            changes = next(self._events, ())  # which begins to listen
            self._is_settling |= any(self._matters(path) for _, path in changes)
        except (OSError, RuntimeError) as error:
            self._events = None
            # A folder was removed since the walk, or an event has a name that is not UTF-8: listen again soon.
            if isinstance(error, FileNotFoundError) or "decode path" in str(error):
                self._is_settling = True
                return
            self._tell(
                f"the system gives no events ({str(error)[:200]}): changes are found by the scan every "
                f"{self._every_s:g} seconds; on Linux, fs.inotify.max_user_watches and fs.inotify.max_user_instances "
                "are the limits"
            )

    def _wait(self, seconds: float) -> bool:
        """Wait for an event, and return True; False if these seconds have passed or the watch is stopped."""
        deadline = time.monotonic() + seconds
        try:
            for changes in self._events or ():
                if any(self._matters(path) for _, path in changes):
                    return True
                if time.monotonic() >= deadline:
                    return False
        except (OSError, RuntimeError):  # Events were lost: the next scan finds what they were about and listens again.
            self._stop.wait(min(SETTLING_S, max(0.0, deadline - time.monotonic())))
            return True
        self._stop.wait(max(0.0, deadline - time.monotonic()))
        return False

    def _matters(self, path: str) -> bool:
        """Return whether an event can come from a file that a scan reads, and does not come from the index itself."""
        if not is_uri(self._address):
            folder = str(Path(self._address).absolute())
            if path == folder or path.startswith((folder + os.sep, folder + "-", folder + ".")):
                return False
        return path in self._files or any(source.may_read(path) for source in self._sources)
