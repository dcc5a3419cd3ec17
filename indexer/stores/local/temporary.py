"""Temporary folders of readers, which go with the object that asked for them, in the process that made them.

All folders of a process are inside of one, which the process holds an flock on. The system takes the lock back when the
process ends, however it ends: a folder whose lock can be had belongs to nobody, and the next process removes it.
Only on the same host: a shared file system may keep the locks of each host apart, so the folder's name says the host.
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
"""The name of the running kernel, which keeps the locks: the containers of one host have it in common."""


@functools.cache
def _prefix() -> str:
    """How the names of this host's folders begin: those may be removed when their lock can be had."""
    try:
        host = _BOOT_ID.read_bytes().strip()
    except OSError:  # only Linux has it
        host = os.uname().nodename.encode()
    return f"{_PREFIX}{hashlib.sha256(host).hexdigest()[:16]}-"


class _Home:
    """The folder of this process in one place for temporary files, with how many use it."""

    def __init__(self, place: str) -> None:
        self.users = 0
        self.folder = Path(tempfile.mkdtemp(prefix="likewise-new-", dir=place))
        self._lock = -1
        try:
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # on a file system without locks it keeps this name, and is never swept
                fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                # Only now, as others would take a folder of that name without a lock for a dead one.
                self.folder = self.folder.rename(self.folder.with_name(f"{_prefix()}{secrets.token_hex(8)}"))
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        # Not unlocked, only closed: a forked child shares the lock, and may hold on to what is in there.
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class _Homes:
    """The homes of this process by the place they are in."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.RLock()  # collecting garbage may remove one folder while another is made
        self.known: dict[str, _Home] = {}


_homes = _Homes()


def temporary(owner: object, prefix: str) -> tuple[Path, Callable[[], object]]:
    """A new folder, and what removes it; called when `owner` is collected or the process ends, if not before.

    A forked child has the object too, and leaves the folder to its parent. A process that is killed removes nothing:
    the next one of the same user on the same host does, once the forked children of the killed one have ended too.
    """
    homes, place = _mine(), tempfile.gettempdir()
    with homes.lock:
        try:
            home, folder = _made(homes, place, prefix)
        except FileNotFoundError:  # somebody has emptied the system's temporary folder
            homes.known.pop(place, None)
            home, folder = _made(homes, place, prefix)
    return folder, weakref.finalize(owner, _remove, folder, homes, home)


def _made(homes: _Homes, place: str, prefix: str) -> tuple[_Home, Path]:
    """A new folder in the home that is in `place`, and that home."""
    home = homes.known.get(place)
    if home is None:
        home = homes.known[place] = _Home(place)
        with suppress(OSError):  # a place that may not be listed
            _sweep(Path(place))
    home.users += 1
    try:
        return home, Path(tempfile.mkdtemp(prefix=prefix, dir=home.folder))
    except BaseException:
        _let_go(homes, home)
        raise


def _mine() -> _Homes:
    """The homes of this process: a forked child begins with none, and keeps its parent's locks until it ends."""
    global _homes  # noqa: PLW0603
    if _homes.process != os.getpid():
        _homes = _Homes()
    return _homes


def _remove(folder: Path, homes: _Homes, home: _Home) -> None:
    if homes.process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
        _let_go(homes, home)


def _let_go(homes: _Homes, home: _Home) -> None:
    with homes.lock:
        home.users -= 1
        if not home.users:
            home.remove()
            for place in [place for place, known in homes.known.items() if known is home]:
                del homes.known[place]


def _sweep(place: Path) -> None:
    """Remove the folders that processes of this user have left behind on this host, since it was started."""
    left = re.compile(f"{_prefix()}[0-9a-f]{{16}}")
    with os.scandir(place) as entries:
        names = [entry.name for entry in entries if left.fullmatch(entry.name)]
    for name in names:
        with suppress(OSError):  # held by its process, another user's, or removed by somebody else meanwhile
            _remove_if_left(place / name)


def _remove_if_left(folder: Path) -> None:
    if folder.lstat().st_uid != os.geteuid():
        return
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_uid == os.geteuid() and os.path.samestat(os.fstat(file), folder.lstat()):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(file)
