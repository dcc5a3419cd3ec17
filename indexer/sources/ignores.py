"""What .gitignore files leave out, as git sees it: deeper files decide before outer ones, "!" takes back.

Own patterns, since pathspec answers for a whole path at once: there, a folder that "!*/" takes back takes
back its files too, while git asks about each folder by itself on the way down, as the walk does.
"""

# ruff: noqa: PTH110, PTH113, PTH118, PTH120, PTH123, PTH206
from __future__ import annotations

import os
import re
from dataclasses import dataclass

_CLASS = re.compile(r"\[([!^]?)(\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]")


@dataclass(frozen=True, slots=True)
class _Pattern:
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class Ignores:
    """The patterns of one .gitignore, the last first since it decides, and those of the folders above it."""

    folder: str
    patterns: tuple[_Pattern, ...]
    outer: Ignores | None

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether this file or folder is left out. Folders above it are taken to be kept."""
        rules: Ignores | None = self
        while rules is not None:
            below = path[len(rules.folder.rstrip(os.sep)) + 1 :]
            for pattern in rules.patterns:
                if (is_folder or not pattern.folders_only) and pattern.regex.fullmatch(below):
                    return pattern.ignores
            rules = rules.outer
        return False


def add_folder(outer: Ignores | None, folder: str) -> Ignores | None:
    """The rules inside `folder`, which may have a .gitignore. One that cannot be read raises OSError."""
    path = os.path.join(folder, ".gitignore")
    if not os.path.isfile(path):
        return outer
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as lines:
        patterns = [pattern for line in lines if (pattern := _pattern(line.rstrip("\r\n")))]
    return Ignores(folder, tuple(reversed(patterns)), outer)


def enclosing(folder: str) -> Ignores | None:
    """The rules that a surrounding git repository has for what lies in `folder`.

    None outside a repository, and where it ignores the folder itself: who names that folder wants it read.
    """
    above = folder
    while not os.path.exists(os.path.join(above, ".git")):
        above, below = os.path.dirname(above), above
        if above == below:
            return None
    rules: Ignores | None = None
    while above != folder:
        rules = add_folder(rules, above)
        above = os.path.join(above, os.path.relpath(folder, above).split(os.sep)[0])
        if rules and rules.ignores(above, is_folder=True):
            return None
    return rules


def _pattern(line: str) -> _Pattern | None:
    """One line of a .gitignore (gitignore(5)); None for a blank one, a comment and what can match nothing."""
    line = re.sub(r"(?<!\\)((?:\\\\)*) +$", r"\1", line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    glob = line if ignores else line[1:]
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    anywhere = "/" not in glob
    try:
        regex = re.compile(("(?:.*/)?" if anywhere else "") + _translate(glob.removeprefix("/")), re.DOTALL)
    except re.error:  # such as the range z-a
        return None
    return _Pattern(regex, ignores, folders_only) if glob else None


def _translate(glob: str) -> str:
    """A glob as git's wildmatch reads it, as a regular expression for a whole path."""
    parts: list[str] = []
    at = 0
    while at < len(glob):
        rest = glob[at:]
        begins = at == 0 or glob[at - 1] == "/"
        if begins and rest.startswith("**/"):
            parts.append("(?:.*/)?")
            at += 3
        elif begins and rest == "**":
            parts.append(".+")
            at += 2
        elif rest[0] == "*":
            parts.append("[^/]*")
            at += len(rest) - len(rest.lstrip("*"))
        elif rest[0] == "[" and (found := _CLASS.match(rest)):
            members = re.sub(r"\\(.)|([\[&~|])", lambda each: re.escape(each[1] or each[2]), found[2])
            members = "\\" + members if members.startswith("]") else members
            parts.append(f"(?!/)[{'^' if found[1] else ''}{members}]")
            at += found.end()
        elif rest[0] == "\\" and len(rest) > 1:
            parts.append(re.escape(rest[1]))
            at += 2
        else:
            parts.append("[^/]" if rest[0] == "?" else re.escape(rest[0]))
            at += 1
    return "".join(parts)
