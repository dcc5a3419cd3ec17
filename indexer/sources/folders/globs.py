"""Globs in the syntax of .gitignore, translated so that matching never goes back over a star.

Each star is an atomic group that takes the first place where the text up to the next star fits. A later place could
only leave less for the rest, so the first one decides, and no name makes a pattern slow. The syntax is that of git's
wildmatch, except that "?" and a class match one character, where git matches one byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LITERAL = re.compile(r"[^*?\[\\]*")
_STARS = re.compile(r"\*+")
_CLASS_NAME = re.compile(r"\[:([^\]]*):\]")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern.

    Attributes:
        regex: matches a whole path below the folder that the pattern belongs to.
        negated: it began with "!".
        folders_only: it ended with "/".
    """

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool

    def matches(self, path: str, is_folder: bool) -> bool:
        """Return whether this file or folder itself matches."""
        return (is_folder or not self.folders_only) and self.regex.fullmatch(path) is not None


class Globs:
    """Patterns that choose files. A pattern that matches a folder chooses everything below it.

    The last pattern that matches the file itself decides, or else the last one that matches a folder above it.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._globs = [glob for pattern in patterns if (glob := parse_glob(pattern)) is not None][::-1]

    def match(self, path: str) -> bool:
        """Return whether a file is chosen, by its path without a leading slash."""
        for glob in self._globs:
            if glob.matches(path, is_folder=False):
                return not glob.negated
        folders = [path[: slash.start()] for slash in re.finditer("/", path)]
        for glob in self._globs:
            if any(glob.matches(folder, is_folder=True) for folder in folders):
                return not glob.negated
        return False


def parse_glob(line: str) -> Glob | None:
    """Parse one pattern (gitignore(5)); None if it is blank, a comment, or can match nothing."""
    negated, pattern = line.startswith("!"), line.removeprefix("!")
    folders_only, pattern = pattern.endswith("/"), pattern.removesuffix("/")
    anywhere = "/" not in pattern
    translated = translate(pattern.removeprefix("/"))
    if not pattern or line.startswith("#") or translated is None:
        return None
    return Glob(re.compile(("(?:.*/)?+" if anywhere else "") + translated, re.DOTALL), negated, folders_only)


def translate(glob: str) -> str | None:
    """Return a regular expression for a whole path; None for a glob that can match nothing, such as "[a".

    A group is what is between two "**/", and a segment what is between two stars of a group.
    """
    literal = _LITERAL.match(glob)[0] if "/" in glob else ""  # type: ignore[index]
    rest, position = glob[len(literal) :], 0
    groups = [[re.escape(literal)]]
    while position < len(rest):
        begins = position == 0 or rest[position - 1] == "/"
        stars = _STARS.match(rest, position)
        if stars is None:
            one, position = _one_character(rest, position)
            if not one:
                return None
            groups[-1][-1] += one
            continue
        position = stars.end()
        is_deep = begins and len(stars[0]) > 1
        slash = next((each for each in ("/", "\\/") if rest.startswith(each, position)), "")
        if is_deep and position == len(rest):
            return _before(groups) + ".*"
        if is_deep and slash:
            groups.append([""])
            position += len(slash)
        else:
            groups[-1].append("")
    *before, last = groups
    end = last[0] if len(last) == 1 else f"{_segments(last[:-1])}[^/]*{last[-1]}"
    return (_before(before) + _FOLDERS if before else "") + end


_FOLDERS = "(?:[^/]*/)*?"


def _before(groups: list[list[str]]) -> str:
    """Return the expression of the groups before a "**", each in the first place where it fits."""
    return _segments(groups[0]) + "".join(f"(?>{_FOLDERS}{_segments(group)})" for group in groups[1:])


def _segments(group: list[str]) -> str:
    return group[0] + "".join(f"(?>[^/]*?{segment})" for segment in group[1:])


def _one_character(glob: str, position: int) -> tuple[str, int]:
    """Return the expression of the character at a position, empty if nothing matches it, and the next position."""
    character = glob[position]
    if character == "?":
        return "[^/]", position + 1
    if character == "[":
        return _class(glob, position + 1)
    if character == "\\":
        return re.escape(glob[position + 1 : position + 2]), position + 2
    return re.escape(character), position + 1


def _class(glob: str, position: int) -> tuple[str, int]:
    """Return the expression of a class such as "[!a-z]", whose members begin at a position, and the next position."""
    negated = glob[position : position + 1] in {"!", "^"}
    position += negated
    members, last, begin = "", "", position
    while position < len(glob):
        character = glob[position]
        if character == "]" and position > begin:
            inside = f"[^{members}]" if negated else f"[{members}]"
            return f"(?!/){inside if members else '[^/]' if negated else '(?!)'}", position + 1
        if name := _CLASS_NAME.match(glob, position):
            if name[1] not in _CLASSES:
                return "", position
            members, last, position = members + _CLASSES[name[1]], "", name.end()
            continue
        is_range = character == "-" and last != "" and glob[position + 1 : position + 2] not in {"", "]"}
        position += is_range
        position += glob[position] == "\\"
        end = glob[position : position + 1]
        if is_range and last <= end:
            members += f"{re.escape(last)}-{re.escape(end)}"
        elif not is_range:
            members += re.escape(end)
        last = "" if is_range else end
        position += 1
    return "", position
