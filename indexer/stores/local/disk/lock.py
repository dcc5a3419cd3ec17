"""The lock of the one writer: an flock on INDEX/LOCK, which ends with its process. The file names the holder."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from indexer.errors import IndexLocked, Message, storage_error
from indexer.listener import SILENT, Listener


class WriterLock:
    """The lock that a writer holds during its whole work. It is re-entrant in the thread that holds it.

    An flock belongs to the open file, so threads of one process are kept apart by a lock of our own.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "LOCK"
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._threads = threading.RLock()
        self._depth = 0
        self._file: int | None = None

    @contextmanager
    def hold(self, *, wait: bool = True, listener: Listener = SILENT) -> Iterator[None]:
        """Hold the lock.

        Args:
            wait: wait for another holder; otherwise raise at once.
            listener: its `waiting` is called once before waiting for another process.

        Raises:
            IndexLocked: another writer holds it and `wait` is False.
            StorageError: the lock file cannot be written.
        """
        if self._process != os.getpid():  # a forked child holds nothing, even if its parent does
            if self._file is not None:
                os.close(self._file)
            self._reset()
        threads, process = self._threads, self._process
        if not threads.acquire(blocking=wait):
            raise IndexLocked(
                f"{self._path.parent} is being written by another thread of this process (pid {os.getpid()}): "
                "try again when it is done, or wait for it with wait=True"
            )
        try:
            if self._depth == 0:
                self._file = self._lock(wait, listener)
            self._depth += 1
            try:
                yield
            finally:
                if process == os.getpid():  # a child forked inside the block leaves it too, and holds nothing
                    self._depth -= 1
                if self._depth == 0 and self._file is not None and process == os.getpid():
                    fcntl.flock(self._file, fcntl.LOCK_UN)  # a child that was forked in between has the file open too
                    os.close(self._file)
                    self._file = None
        finally:
            threads.release()

    def _is_in_place(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False

    def _lock(self, wait: bool, listener: Listener) -> int:
        # If the folder was replaced in between, its lock is another file.
        while not self._is_in_place(file := self._acquire(wait, listener)):
            os.close(file)
        with suppress(OSError):  # on a full disk the holder is "unknown" to others
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        return file

    def _acquire(self, wait: bool, listener: Listener) -> int:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise storage_error(f"{self._path.parent}: cannot be written ({error.strerror})", error) from error
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(file, 20, 0).decode("ascii", "replace").strip() or "unknown"
                message = f"{self._path.parent} is being written by process {holder}"
                if not wait:
                    advice = "try again when it is done, or wait for it"
                    raise IndexLocked(Message(f"{message}: {advice}", " (leave out --no-wait)")) from None
                listener.waiting(Message(f"{message}: waiting until it is done", " (--no-wait does not wait)"))
                fcntl.flock(file, fcntl.LOCK_EX)
        except BaseException:
            os.close(file)
            raise
        return file
