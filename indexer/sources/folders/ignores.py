"""The files that are left out of folders: files named by .gitignore and .likewiseignore, and a default list.

The rules apply as in git: deeper files decide before outer ones, and "!" reverses a rule. In one folder .likewiseignore
decides before .gitignore. The default list decides last, so a "!" in either file takes back a name of it.

Each folder is decided about by itself on the way down, as git does: "!*/" takes back a folder, and not its files.
"""

# ruff: noqa: PTH110, PTH113, PTH118, PTH119, PTH120, PTH123, PTH206
from __future__ import annotations

import os
import re
from dataclasses import dataclass

from indexer.ledger import NO_REASON, Code, Reason
from indexer.sources.folders.globs import Glob, parse_glob, translate

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
    # the indexes that mail programs and mail servers keep beside mailboxes
    *("*.msf", "dovecot-uidlist", "dovecot-keywords", "dovecot.index*", "courierimap*", "maildirfolder"),
)
"""Names of files and folders that are ignored in every folder, in the syntax of .gitignore: programs wrote them."""


@dataclass(frozen=True, slots=True)
class Ignores:
    """The rules of one folder's files with rules, and of the folders above it.

    Attributes:
        patterns: each with the name of its file, the last one first, because it decides.
    """

    folder: str
    patterns: tuple[tuple[Glob, str], ...]
    outer: Ignores | None


def reason_to_ignore(rules: Ignores | None, path: str, is_folder: bool) -> Reason:
    """Return why this file or folder is left out, if the folders above it are not; `NO_REASON` if it is read."""
    while rules is not None:
        below = path[len(rules.folder.rstrip(os.sep)) + 1 :]
        for glob, file in rules.patterns:
            if glob.matches(below, is_folder):
                return NO_REASON if glob.negated else Code.IGNORED_BY_FILE(file)
        rules = rules.outer
    return Code.IGNORED_BY_DEFAULT() if _DEFAULT.fullmatch(os.path.basename(path)) else NO_REASON


def add_folder(outer: Ignores | None, folder: str) -> Ignores | None:
    """Return the rules inside a folder, which may have files with rules. Raises OSError if one cannot be read."""
    patterns: list[tuple[Glob, str]] = []
    for name in IGNORE_FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as lines:
                globs = (parse_glob(_TRAILING_BLANKS.sub(r"\1", line.rstrip("\r\n"))) for line in lines)
                patterns += [(glob, name) for glob in globs if glob is not None]
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


_TRAILING_BLANKS = re.compile(r"(?<!\\)((?:\\\\)*) +$")

# One expression for the name alone, because every file of a folder is compared with it.
_DEFAULT = re.compile("|".join(filter(None, map(translate, DEFAULT_PATTERNS))), re.DOTALL)
