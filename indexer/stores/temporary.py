"""Temporary folders of readers, which are removed with the object that owns them, by the process that made them.

All folders of a process are inside one folder, on which the process holds an flock. The system releases the lock when
the process ends, however it ends: a folder that can be locked has no process, and the next process removes it. This
is done only on the same host: a shared file system may keep the locks of each host apart, so the folder's name has a
hash of the host.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PREFIX = "likewise-readers-"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""The identity of the running kernel, which keeps the locks: the containers of one host share it."""


@functools.cache
def _prefix() -> str:
    """Return the prefix of this host's folders, which may be removed if they can be locked."""
    try:
        host = _BOOT_ID.read_bytes().strip()
    except OSError:  # only Linux has it
        host = os.uname().nodename.encode()
    return f"{_PREFIX}{hashlib.sha256(host).hexdigest()[:16]}-"


class _Home:
    """The folder of this process in one parent folder for temporary files, and the number of folders inside it."""

    def __init__(self, parent: str) -> None:
        self.users = 0
        self.folder = Path(tempfile.mkdtemp(prefix="likewise-new-", dir=parent))
        self._lock = -1
        try:
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # on a file system without locks it keeps this name, and is never swept
                fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                # Renamed only now: other processes would remove a folder of that name that is not locked.
                self.folder = self.folder.rename(self.folder.with_name(f"{_prefix()}{secrets.token_hex(8)}"))
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        # Only closed, not unlocked: a forked child shares the lock, and may still use the folder.
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class _Homes:
    """The homes of this process by the folder they are in."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.RLock()  # collecting garbage may remove one folder while another is made
        self.by_parent: dict[str, _Home] = {}


_homes = _Homes()


def temporary_folder(owner: object, prefix: str) -> tuple[Path, Callable[[], object]]:
    """Make a folder; return it with a function that removes it.

    The folder is also removed when `owner` is collected or the process ends. A forked child has the owner too, and
    leaves the folder to its parent. A killed process removes nothing: the next process of the same user on the same
    host does, once the forked children of the killed one have ended too.
    """
    homes, parent = _homes_of_process(), tempfile.gettempdir()
    with homes.lock:
        try:
            home, folder = _make(homes, parent, prefix)
        except FileNotFoundError:  # the system's temporary folder was emptied
            homes.by_parent.pop(parent, None)
            home, folder = _make(homes, parent, prefix)
    return folder, weakref.finalize(owner, _remove, folder, homes, home)


def _make(homes: _Homes, parent: str, prefix: str) -> tuple[_Home, Path]:
    """Make a folder in the home that is in `parent`; return the home and the folder."""
    home = homes.by_parent.get(parent)
    if home is None:
        home = homes.by_parent[parent] = _Home(parent)
        with suppress(OSError):  # a folder that may not be listed
            _sweep(Path(parent))
    home.users += 1
    try:
        return home, Path(tempfile.mkdtemp(prefix=prefix, dir=home.folder))
    except BaseException:
        _release(homes, home)
        raise


def _homes_of_process() -> _Homes:
    """Return the homes of this process. A forked child begins with none, and keeps its parent's locks until it ends."""
    global _homes  # noqa: PLW0603
    if _homes.process != os.getpid():
        _homes = _Homes()
    return _homes


def _remove(folder: Path, homes: _Homes, home: _Home) -> None:
    if homes.process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
        _release(homes, home)


def _release(homes: _Homes, home: _Home) -> None:
    with homes.lock:
        home.users -= 1
        if not home.users:
            home.remove()
            for parent in [parent for parent, other in homes.by_parent.items() if other is home]:
                del homes.by_parent[parent]


def _sweep(parent: Path) -> None:
    """Remove folders that processes of this user left behind since this host was started."""
    pattern = re.compile(f"{_prefix()}[0-9a-f]{{16}}")
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if pattern.fullmatch(entry.name)]
    for name in names:
        with suppress(OSError):  # its process holds it, it is another user's, or another process has just removed it
            _remove_if_abandoned(parent / name)


def _remove_if_abandoned(folder: Path) -> None:
    if folder.lstat().st_uid != os.geteuid():
        return
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_uid == os.geteuid() and os.path.samestat(os.fstat(file), folder.lstat()):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(file)
