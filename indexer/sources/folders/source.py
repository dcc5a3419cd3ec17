"""SOURCE arguments: resolved to files and folders, so that no file is read twice."""

# ruff: noqa: PTH100, PTH112, PTH116, PTH118, PTH120, PTH206
from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile

from indexer.errors import SourceError
from indexer.ledger import Code
from indexer.sources.entry import ReadOptions
from indexer.sources.folders.globs import Globs, parse_glob
from indexer.sources.folders.ignores import IGNORE_FILES, Ignores, reason_to_ignore
from indexer.sources.folders.maildir import gone_message_paths, is_maildir, maildir_of, message_files, renamed_message
from indexer.sources.folders.walk import IsIndex, Walk, WalkedFile, file_to_read, is_own_output, special_kind

STDIN = "-"


class Source:
    """One SOURCE argument, resolved.

    Attributes:
        argument: as the user gave it.
        root: absolute path of the file or folder (of a glob, the folder before its wildcards), "-" for stdin.
        pattern: the rest of a glob; empty for other arguments.
    """

    def __init__(self, argument: str, root: str, pattern: str, options: ReadOptions, is_index: IsIndex) -> None:
        self.argument, self.root, self.pattern, self._is_index = argument, root, pattern, is_index
        parts = takewhile(lambda part: part != "**", pattern.split("/"))
        self._parts = [parse_glob("/" + part) for part in parts if part]
        self._pattern = Globs(["/" + pattern]) if pattern else None
        self._glob = Globs(options.glob) if options.glob else None
        self._ignore = options.ignore
        self.folders: dict[str, Ignores | None] = {}  # that the latest `files` has listed, with the rules in each
        self._claimed: frozenset[str] = frozenset()
        self._files_read: set[str] | None = None  # by all SOURCEs of the run, if some may share files
        self._messages: dict[str, dict[str, str] | None] = {}  # of each Maildir, see `_paths`

    def covers(self, file: str) -> bool:
        """Return whether reading the SOURCE would come to this absolute path, if it existed."""
        if self.root == STDIN:
            return False
        below = self.root.rstrip(os.sep) + os.sep
        return any(
            path == self.root or (path.startswith(below) and self._wanted(path[len(below) :]))
            for path in self._paths(file)
        )

    def _paths(self, file: str) -> list[str]:
        """Return the paths that a file of the ledger may have: several if it may be a message that is gone."""
        maildir = os.path.dirname(file)
        if maildir not in self._messages:
            self._messages[maildir] = None
            with suppress(OSError):  # a folder that cannot be listed: the walk reports it
                self._messages[maildir] = dict(message_files(maildir)) if is_maildir(maildir) else None
        messages = self._messages[maildir]
        if messages is None:
            return [file]
        return [messages[file]] if file in messages else [file, *gone_message_paths(file)]

    def take_name(self, names: Mapping[str, str]) -> None:
        """Name the root as below the first file or folder of `names` that really holds it, given with its real path."""
        if self.root in names:
            return
        real = os.path.realpath(self.root)
        for name, folder in names.items():
            if real == folder or real.startswith(folder.rstrip(os.sep) + os.sep):
                root = name + real[len(folder) :]
                if root != self.root:
                    self.root, self.argument = root, os.sep.join(filter(None, (root, self.pattern)))
                return

    def files(self, *, claim: bool = False) -> Iterator[WalkedFile]:
        """Yield the files to read and the files left out, except files that other SOURCEs of the run read.

        Args:
            claim: let later SOURCEs of the run leave these files out.
        """
        for file in self._files(claim):
            # A file whose name is not UTF-8 has failed, because its path cannot be the uri of a document.
            name = file.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            yield file if name == file.path else WalkedFile(name, None, "failed", Code.NAME_NOT_UTF_8())

    def _files(self, claim: bool) -> Iterator[WalkedFile]:
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
                yield file_to_read(self.root, status, maildir_of(os.path.dirname(self.root)))
            return
        filtered = self._pattern is not None or self._glob is not None
        wanted, reaches = self._wanted if filtered else None, self._reaches if self._parts else None
        walk = Walk(self.root, self._claimed, wanted, reaches, self._is_index, ignore=self._ignore)
        self.folders = walk.folders
        for file in walk.run():
            if claim and self._files_read is not None:
                if file.path in self._files_read:
                    continue
                self._files_read.add(file.path)
            yield file

    def may_read(self, path: str) -> bool:
        """Return whether a change of this path can change the result of `files`, by the folders and rules of the latest
        call.

        The path may be one that no longer exists.
        """
        folder, name = os.path.split(path)
        if path in self.folders:
            return True
        if folder not in self.folders or (name[:1] == "." and name not in IGNORE_FILES):
            return False
        if name in IGNORE_FILES:
            return self._ignore
        status: os.stat_result | None = None
        with suppress(OSError):  # it no longer exists
            status = os.lstat(path)
        is_folder = status is not None and stat.S_ISDIR(status.st_mode)
        if self._ignore and reason_to_ignore(self.folders[folder], path, is_folder):
            return False
        return status is None or is_folder or not is_own_output(status)

    def _wanted(self, relative: str) -> bool:
        return all(globs is None or globs.match(relative) for globs in (self._pattern, self._glob))

    def _reaches(self, relative: str) -> bool:
        """Return whether a folder can hold matches of the pattern, or matches itself."""
        for name, part in zip(relative.split(os.sep), self._parts, strict=False):
            if part is None or not part.matches(name, is_folder=True):
                return False
        return True


def open_sources(arguments: Sequence[str], options: ReadOptions, is_index: IsIndex) -> list[Source]:
    """Resolve SOURCE arguments in the order given. An argument that is given twice is resolved once.

    Args:
        is_index: recognizes the folders of indexes. They are left out. Pass `holds_store` of the stores.

    Raises:
        SourceError: a path does not exist or a pattern matches nothing. The error names all of them, and nothing was
            read.
    """
    sources: dict[tuple[str, str], Source] = {}
    missing: list[str] = []
    globs = False
    for argument in arguments:
        root, pattern = _resolve(argument)
        source = Source(argument, root, pattern, options, is_index)
        if (root, pattern) in sources:
            continue
        if not argument or (root != STDIN and not may_exist(root)) or (pattern and not any(source.files())):
            missing.append(argument)
        globs = globs or bool(pattern)
        sources[root, pattern] = source
    if missing:
        named = ", ".join(f'"{argument}"' for argument in missing)
        raise SourceError(
            f"no such file or folder, and no file that matches: {named}; nothing was read, check the path"
        )
    opened = by_one_name(sources.values())
    files_read: set[str] | None = set() if globs and len(opened) > 1 else None
    for source in opened:
        source._files_read = files_read
    return opened


def by_one_name(sources: Iterable[Source], known: Iterable[str] = ()) -> list[Source]:
    """Return the sources, each once: what is reached by two names, through a link, has the name that was given first.

    Args:
        known: roots of sources that were given before.
    """
    names = {root: os.path.realpath(root) for root in known if root != STDIN}
    named: dict[tuple[str, str], Source] = {}
    for source in sources:
        if source.root != STDIN:
            source.take_name(names)
            names.setdefault(source.root, os.path.realpath(source.root))
        named.setdefault((source.root, source.pattern), source)
    claimed = frozenset(path for root, pattern in named if not pattern for path in (root, names.get(root, root)))
    for source in named.values():
        source._claimed = claimed - {source.root}
    return list(named.values())


def root_of(argument: str) -> str:
    """Return the absolute path of the file or folder of a SOURCE. For a glob, return the folder before its
    wildcards."""
    return _resolve(argument)[0]


def _resolve(argument: str) -> tuple[str, str]:
    """Return an absolute path, and the pattern below it if the argument has wildcards and is not a path itself."""
    if argument == STDIN:
        return STDIN, ""
    if not any(character in argument for character in "*?[") or may_exist(argument):
        return renamed_message(os.path.abspath(argument)), ""
    parts = argument.split(os.sep)
    first = next(index for index, part in enumerate(parts) if any(character in part for character in "*?["))
    folder = os.sep.join(parts[:first]) or (os.sep if argument.startswith(os.sep) else ".")
    return os.path.abspath(folder), "/".join(part for part in parts[first:] if part not in {"", "."})


def may_exist(path: str) -> bool:
    """Return whether a path exists. A path without permission counts as existing: it fails when it is read."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
