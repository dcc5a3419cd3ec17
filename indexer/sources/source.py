"""SOURCE arguments: resolved to files and folders, so that no file is read twice."""

# ruff: noqa: PTH100, PTH112, PTH116, PTH118, PTH206
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from indexer.errors import SourceError
from indexer.ledger import Code
from indexer.sources.entry import ReadOptions
from indexer.sources.walk import WalkedFile, special_kind, walk

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

STDIN = "-"


class Source:
    """One SOURCE argument, resolved.

    Attributes:
        argument: as the user gave it.
        root: absolute path of the file or folder (of a glob, the folder before its wildcards), "-" for stdin.
        whole: True once it was read to the end and no document under it can have been missed: every folder could be
            listed and every record read. A failed file of one document does not count, because the ledger names it.
    """

    def __init__(self, argument: str, root: str, pattern: str, options: ReadOptions) -> None:
        self.argument, self.root, self.whole = argument, root, False
        self._parts = pattern.split("/") if pattern else []
        self._pattern = _spec(["/" + pattern]) if pattern else None
        self._glob = _spec(options.glob) if options.glob else None
        self._ignore = options.ignore
        self._claimed: frozenset[str] = frozenset()
        self._files_read: set[str] | None = None  # by all SOURCEs of the run, if some may share files

    def covers(self, file: str) -> bool:
        """Return whether reading the SOURCE would come to this absolute path, if it existed."""
        if self.root == STDIN:
            return False
        if file == self.root:
            return True
        below = self.root.rstrip(os.sep) + os.sep
        return file.startswith(below) and self._wanted(file[len(below) :])

    def files(self, *, claim: bool = False) -> Iterator[WalkedFile]:
        """Yield the files to read and those that are left out, without those that other SOURCEs of the run read.

        Args:
            claim: let later SOURCEs of the run leave these files out.
        """
        try:
            status = os.stat(self.root)
            is_folder = os.path.isdir(self.root)
        except OSError as error:
            yield WalkedFile(self.root, None, "failed", Code.CANNOT_BE_READ(error.strerror))
            return
        if not is_folder:
            if kind := special_kind(status):
                yield WalkedFile(self.root, None, "skipped", kind)
            else:
                yield WalkedFile(self.root, status)
            return
        filtered = self._pattern is not None or self._glob is not None
        for file in walk(
            self.root,
            self._claimed,
            self._wanted if filtered else None,
            self._reaches if self._parts else None,
            ignore=self._ignore,
        ):
            if claim and self._files_read is not None:
                if file.path in self._files_read:
                    continue
                self._files_read.add(file.path)
            yield file

    def _wanted(self, relative: str) -> bool:
        return all(spec is None or spec.match_file(relative) for spec in (self._pattern, self._glob))

    def _reaches(self, relative: str) -> bool:
        """Return whether a folder can hold matches of the pattern, or matches itself."""
        for name, part in zip(relative.split(os.sep), self._parts, strict=False):
            if part == "**":
                return True
            if not fnmatchcase(name, part):
                return False
        return True


def open_sources(arguments: Sequence[str], options: ReadOptions) -> list[Source]:
    """Resolve SOURCE arguments in the order given. An argument that is given twice is resolved once.

    Raises:
        SourceError: names all paths that do not exist and all patterns that match nothing. Nothing was read.
    """
    sources: dict[tuple[str, str], Source] = {}
    missing: list[str] = []
    globs = False
    for argument in arguments:
        root, pattern = _resolve(argument)
        source = Source(argument, root, pattern, options)
        if (root, pattern) in sources:
            continue
        if not argument or (root != STDIN and not _exists(root)) or (pattern and not any(source.files())):
            missing.append(argument)
        globs = globs or bool(pattern)
        sources[root, pattern] = source
    if missing:
        named = ", ".join(f'"{argument}"' for argument in missing)
        raise SourceError(
            f"no such file or folder, and no file that matches: {named}; nothing was read, check the path"
        )
    claimed = frozenset(root for root, pattern in sources if not pattern)
    files_read: set[str] | None = set() if globs and len(sources) > 1 else None
    for source in sources.values():
        source._claimed, source._files_read = claimed - {source.root}, files_read
    return list(sources.values())


def _resolve(argument: str) -> tuple[str, str]:
    """Return an absolute path, and the pattern below it if the argument has wildcards and is not a path itself."""
    if argument == STDIN:
        return STDIN, ""
    if not any(character in argument for character in "*?[") or _exists(argument):
        return os.path.abspath(argument), ""
    parts = argument.split(os.sep)
    first = next(index for index, part in enumerate(parts) if any(character in part for character in "*?["))
    folder = os.sep.join(parts[:first]) or (os.sep if argument.startswith(os.sep) else ".")
    return os.path.abspath(folder), "/".join(part for part in parts[first:] if part not in {"", "."})


def _exists(path: str) -> bool:
    """Return whether a path exists. A path without permission counts as existing: it fails when it is read."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)
