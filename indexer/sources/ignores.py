"""The files that folders are read without: those that .gitignore and .likewiseignore name, and a default list.

The rules apply as in git: deeper files decide before outer ones, and "!" reverses a rule. In one folder .likewiseignore
decides before .gitignore. The default list decides last, so a "!" in either file takes back a name of it.

The patterns are not those of pathspec, which decides about a whole path at once: there, "!*/" takes back a folder
together with its files, while git decides about each folder by itself on the way down, as the walk does.
"""

# ruff: noqa: PTH110, PTH113, PTH118, PTH119, PTH120, PTH123, PTH206
from __future__ import annotations

import os
import re
from dataclasses import dataclass

from indexer.ledger import NO_REASON, Code, Reason

IGNORE_FILES = (".gitignore", ".likewiseignore")
"""The files with rules, the deciding one last."""

DEFAULT_PATTERNS = (
    # installed packages and compiled code
    *("node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__", "*.egg-info"),
    # exact versions of dependencies, written by package managers
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "deno.lock"),
    *("poetry.lock", "Pipfile.lock", "pdm.lock", "uv.lock", "pixi.lock", "conda-lock.yml"),
    *("Cargo.lock", "Gemfile.lock", "composer.lock", "go.sum", "flake.lock", "mix.lock", "pubspec.lock"),
    *("Podfile.lock", "Package.resolved", "packages.lock.json", "gradle.lockfile"),
    # minified code and its source maps
    *("*.min.js", "*.min.mjs", "*.min.cjs", "*.min.css", "*.js.map", "*.mjs.map", "*.cjs.map", "*.css.map"),
    # what programs leave beside documents: of open Office files, and of macOS in zip archives
    *("~$*", "__MACOSX"),
)
"""Names of files and folders that are ignored in every folder, in the syntax of .gitignore: programs wrote them."""

_CLASS = re.compile(r"\[([!^]?)(\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]")


@dataclass(frozen=True, slots=True)
class _Pattern:
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool
    file: str


@dataclass(frozen=True, slots=True)
class Ignores:
    """The rules of one folder's files with rules, and of the folders above it.

    Attributes:
        patterns: the last one first, because it decides.
    """

    folder: str
    patterns: tuple[_Pattern, ...]
    outer: Ignores | None


def reason_to_ignore(rules: Ignores | None, path: str, is_folder: bool) -> Reason:
    """Return why this file or folder is left out, if the folders above it are not; `NO_REASON` if it is read."""
    while rules is not None:
        below = path[len(rules.folder.rstrip(os.sep)) + 1 :]
        for pattern in rules.patterns:
            if (is_folder or not pattern.folders_only) and pattern.regex.fullmatch(below):
                return Code.IGNORED_BY_FILE(pattern.file) if pattern.ignores else NO_REASON
        rules = rules.outer
    return Code.IGNORED_BY_DEFAULT() if _DEFAULT.fullmatch(os.path.basename(path)) else NO_REASON


def add_folder(outer: Ignores | None, folder: str) -> Ignores | None:
    """Return the rules inside a folder, which may have files with rules. Raises OSError if one cannot be read."""
    patterns: list[_Pattern] = []
    for name in IGNORE_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as lines:
                patterns += [pattern for line in lines if (pattern := _pattern(line.rstrip("\r\n"), name))]
    return Ignores(folder, tuple(reversed(patterns)), outer) if patterns else outer


def enclosing(folder: str) -> Ignores | None:
    """Return the rules of the surrounding git repository for the files in a folder.

    There are none outside a repository. If the repository or the default list ignores the folder itself, they do not
    apply either: the user named the folder in order to have it read.
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
        if reason_to_ignore(rules, above, is_folder=True):
            return None
    return rules


def _pattern(line: str, file: str) -> _Pattern | None:
    """Parse one line of a file with rules (gitignore(5)); None if it is blank, a comment, or can match nothing."""
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
    return _Pattern(regex, ignores, folders_only, file) if glob else None


def _translate(glob: str) -> str:
    """Translate a glob, with the rules of git's wildmatch, into a regular expression for a whole path."""
    parts: list[str] = []
    position = 0
    while position < len(glob):
        rest = glob[position:]
        begins = position == 0 or glob[position - 1] == "/"
        if begins and rest.startswith("**/"):
            parts.append("(?:.*/)?")
            position += 3
        elif begins and rest == "**":
            parts.append(".+")
            position += 2
        elif rest[0] == "*":
            parts.append("[^/]*")
            position += len(rest) - len(rest.lstrip("*"))
        elif rest[0] == "[" and (match := _CLASS.match(rest)):
            members = re.sub(r"\\(.)|([\[&~|])", lambda each: re.escape(each[1] or each[2]), match[2])
            members = "\\" + members if members.startswith("]") else members
            parts.append(f"(?!/)[{'^' if match[1] else ''}{members}]")
            position += match.end()
        elif rest[0] == "\\" and len(rest) > 1:
            parts.append(re.escape(rest[1]))
            position += 2
        else:
            parts.append("[^/]" if rest[0] == "?" else re.escape(rest[0]))
            position += 1
    return "".join(parts)


# One expression for the name alone, because every file of a folder is compared with it.
_DEFAULT = re.compile("|".join(map(_translate, DEFAULT_PATTERNS)), re.DOTALL)
