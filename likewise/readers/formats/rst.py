"""reStructuredText: the text as it is, with headings found by their adornments, and the header block of a PEP.

docutils is not used: it would build a tree without offsets, run directives, and take a hundred times as long.
"""

from __future__ import annotations

import re

from indexer.records import Section
from indexer.sources.content import Content, Headings, lead_in

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*$", re.ASCII)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_HEADER = re.compile(r"([A-Z][A-Za-z-]*):(?:[ \t](.*))?$")


def read(text: str) -> Content:
    """Read a text. Sections begin at headings or their overlines; the title is the PEP's, or else the first heading."""
    spans = [(line.start(), line[0].rstrip()) for line in _LINE.finditer(text)]
    lines = [line for _, line in spans]
    metadata = _pep_header(lines)
    levels: dict[tuple[str, bool], int] = {}
    headings, sections, first_heading = Headings(), [], ""
    number = 0
    while number < len(lines) - 1:
        heading_and_style = _heading(lines, number)
        if heading_and_style is None:
            number += 1
            continue
        heading, style = heading_and_style
        level = levels.setdefault(style, len(levels))
        first_heading = first_heading or heading
        sections.append(Section(spans[number][0], headings.enter(level, heading)))
        number += 3 if style[1] else 2
    title = metadata.pop("title", first_heading)
    return Content(text, str(title), tuple(lead_in(sections)), metadata)


def _heading(lines: list[str], number: int) -> tuple[str, tuple[str, bool]] | None:
    """Return the heading that begins at a line, and its style: the character, and whether it has an overline."""
    line, below = lines[number], lines[number + 1]
    if not line or (number and lines[number - 1] and not _ADORNMENT.match(lines[number - 1])):
        return None
    over = _ADORNMENT.match(line)
    if over:
        under = lines[number + 2] if number + 2 < len(lines) else ""
        fits = len(line) >= min(len(below.strip()), 4)
        return (below.strip(), (over[1], True)) if below and under == line and fits else None
    under_line = _ADORNMENT.match(below)
    if under_line and not line[0].isspace() and len(below) >= min(len(line), 4):
        return line, (under_line[1], False)
    return None


def _pep_header(lines: list[str]) -> dict[str, str | int]:
    """Return the RFC 822 block at the top if it has a Title, with names in lower case and "_" for "-"."""
    header: dict[str, str] = {}
    name = ""
    for line in lines:
        if not line:
            break
        if line[0] in " \t" and name:
            header[name] = f"{header[name]} {line.strip()}".strip()
        elif match := _HEADER.match(line):
            name = match[1].lower().replace("-", "_")
            header[name] = (match[2] or "").strip()
        else:
            return {}
    if "title" not in header:
        return {}
    return {
        name: int(value) if value.isdecimal() and len(value) <= 18 and name != "title" else value
        for name, value in header.items()
        if value
    }
