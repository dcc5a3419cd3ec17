"""Reads reStructuredText: the text as it is, headings by a light scan of adornments, a PEP's header block.

Not docutils: it would build a tree without offsets, run directives, and take a hundred times as long.
"""

from __future__ import annotations

import re

from indexer.records import Section
from indexer.sources.content import Content, Headings, lead_in

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*$", re.ASCII)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_HEADER = re.compile(r"([A-Z][A-Za-z-]*):(?:[ \t](.*))?$")


def read(text: str) -> Content:
    """Sections begin at headings (with their overline); the title is the PEP's, or else the first heading."""
    spans = [(line.start(), line[0].rstrip()) for line in _LINE.finditer(text)]
    lines = [line for _, line in spans]
    metadata = _pep_header(lines)
    levels: dict[tuple[str, bool], int] = {}
    headings, sections, first = Headings(), [], ""
    at = 0
    while at < len(lines) - 1:
        found = _heading(lines, at)
        if found is None:
            at += 1
            continue
        heading, style = found
        level = levels.setdefault(style, len(levels))
        first = first or heading
        sections.append(Section(spans[at][0], headings.enter(level, heading)))
        at += 3 if style[1] else 2
    title = metadata.pop("title", first)
    return Content(text, str(title), tuple(lead_in(sections)), metadata)


def _heading(lines: list[str], at: int) -> tuple[str, tuple[str, bool]] | None:
    """The heading that begins at this line, and its style: the character, and whether it has an overline."""
    line, below = lines[at], lines[at + 1]
    if not line or (at and lines[at - 1] and not _ADORNMENT.match(lines[at - 1])):
        return None
    over = _ADORNMENT.match(line)
    if over:
        under = lines[at + 2] if at + 2 < len(lines) else ""
        fits = len(line) >= min(len(below.strip()), 4)
        return (below.strip(), (over[1], True)) if below and under == line and fits else None
    under_line = _ADORNMENT.match(below)
    if under_line and not line[0].isspace() and len(below) >= min(len(line), 4):
        return line, (under_line[1], False)
    return None


def _pep_header(lines: list[str]) -> dict[str, str | int]:
    """The RFC 822 block at the top, where it has a Title: names in lower case, "-" as "_"."""
    header: dict[str, str] = {}
    name = ""
    for line in lines:
        if not line:
            break
        if line[0] in " \t" and name:
            header[name] = f"{header[name]} {line.strip()}".strip()
        elif found := _HEADER.match(line):
            name = found[1].lower().replace("-", "_")
            header[name] = (found[2] or "").strip()
        else:
            return {}
    if "title" not in header:
        return {}
    return {
        name: int(value) if value.isdecimal() and len(value) <= 18 and name != "title" else value
        for name, value in header.items()
        if value
    }
