"""Lists the files of a folder: what is read, and what is left out and why. Opens no file but .gitignore.

Written on plain strings and one `stat` a file: 100,000 unchanged files are walked in about a second.
"""

# ruff: noqa: PTH116, PTH118
from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from operator import attrgetter

from indexer.sources.entry import State
from indexer.sources.ignores import Ignores, add_folder, enclosing
from indexer.stores.open import holds_store


@dataclass(slots=True)
class Found:
    """A file with its status, or a file or folder that is left out (skipped) or cannot be listed (failed)."""

    path: str
    status: os.stat_result | None = None
    state: State = "read"
    reason: str = ""


_NAME = attrgetter("name")
_SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


def walk(
    root: str,
    claimed: Container[str] = (),
    wanted: Callable[[str], bool] | None = None,
    reaches: Callable[[str], bool] | None = None,
) -> Iterator[Found]:
    """Every file below `root` in sorted order, links last.

    Args:
        root: absolute path of a folder.
        claimed: paths that another SOURCE names: they are its business.
        wanted: of a path below root, whether a file belongs to the SOURCE; None for all.
        reaches: of a path below root, whether a folder can hold wanted files; None for all.
    """
    return _Walk(root, claimed, wanted, reaches).run()


def special(status: os.stat_result) -> str:
    """What a file is that is neither a file, a folder nor a link; empty for those."""
    return next((name for test, name in _SPECIAL if test(status.st_mode)), "")


class _Walk:
    def __init__(
        self,
        root: str,
        claimed: Container[str],
        wanted: Callable[[str], bool] | None,
        reaches: Callable[[str], bool] | None,
    ) -> None:
        self.root, self.real_root = root, os.path.realpath(root)
        self.claimed, self.wanted, self.reaches = claimed, wanted, reaches
        self.cut = len(root.rstrip(os.sep)) + 1
        self.walked: dict[str, Ignores | None] = {}  # real path of each folder and the rules inside it
        self.links: list[tuple[str, Ignores | None]] = []

    def run(self) -> Iterator[Found]:
        yield from self.folder(self.root, self.real_root, enclosing(self.root))
        while self.links:  # after everything else, so that what is reached both ways keeps its own name
            links, self.links = self.links, []
            for path, rules in links:
                yield from self.link(path, rules)

    def folder(self, top: str, real_top: str, outer: Ignores | None) -> Iterator[Found]:
        """Depth first without recursion: no tree is too deep. A folder's files come before its folders."""
        waiting = [(top, real_top, outer)]
        while waiting:
            folder, real, rules = waiting.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=_NAME)
                names = {entry.name for entry in entries}
                if holds_store(names):
                    yield Found(folder, None, "skipped", "an index of likewise")
                    continue
                if ".gitignore" in names:
                    rules = add_folder(rules, folder)
            except OSError as error:
                yield Found(folder, None, "failed", f"cannot be listed: {error.strerror}")
                continue
            self.walked[real] = rules
            below: list[tuple[str, str, Ignores | None]] = []
            for entry in entries:
                path, name = entry.path, entry.name
                if path in self.claimed:
                    continue
                is_folder, is_link = entry.is_dir(follow_symlinks=False), entry.is_symlink()
                if not self.belongs(path, is_folder) and not (is_link and self.leads_on(path)):
                    continue
                if name[0] == ".":
                    yield Found(path, None, "skipped", "hidden folder" if is_folder else "hidden file")
                elif rules is not None and rules.ignores(path, is_folder):
                    yield Found(path, None, "skipped", "ignored by .gitignore")
                elif is_link:
                    self.links.append((path, rules))
                elif not is_folder:
                    yield self.file(path, entry)
                elif (inner := real + os.sep + name) not in self.walked:
                    below.append((path, inner, rules))
            waiting.extend(reversed(below))

    def belongs(self, path: str, is_folder: bool) -> bool:
        test = self.reaches if is_folder else self.wanted
        return test is None or test(path[self.cut :])

    def leads_on(self, path: str) -> bool:
        """Whether a link leads to a folder that can hold wanted files."""
        return os.path.isdir(path) and self.belongs(path, is_folder=True)  # noqa: PTH112

    def file(self, path: str, entry: os.DirEntry[str]) -> Found:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            return Found(path, None, "failed", f"cannot be read: {error.strerror}")
        if stat.S_ISREG(status.st_mode):
            return Found(path, status)
        return Found(path, None, "skipped", f"{special(status)}, not a file")

    def link(self, path: str, rules: Ignores | None) -> Iterator[Found]:
        """A link that stays below the root is followed, unless what it leads to is read anyhow."""
        real = os.path.realpath(path)
        inside = os.path.relpath(real, self.real_root)
        try:
            status = os.stat(path)
        except OSError:
            yield Found(path, None, "skipped", "a link that leads nowhere")
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        if not self.belongs(path, is_folder):
            return
        if inside == ".." or inside.startswith(".." + os.sep):
            yield Found(path, None, "skipped", f"a link that leaves the folder, to {real}")
        elif self.reached(real, inside, is_folder):
            yield Found(path, None, "skipped", f"a link to {inside}, which is read itself")
        elif is_folder:
            yield from self.folder(path, real, rules)
        elif what := special(status):
            yield Found(path, None, "skipped", f"{what}, not a file")
        else:
            self.walked[real] = None
            yield Found(path, status)

    def reached(self, real: str, inside: str, is_folder: bool) -> bool:
        """Whether the walk has come to this real path under a name of its own."""
        folder, name = os.path.split(real)
        if real in self.walked or is_folder or folder not in self.walked:
            return real in self.walked
        path = os.path.join(self.root, inside)
        rules = self.walked[folder]
        hidden = name[0] == "." or (rules is not None and rules.ignores(path, is_folder=False))
        return not hidden and self.belongs(path, is_folder=False)
