"""Markdown: the text as it is, with headings from the line map of markdown-it-py, and YAML front matter."""

from __future__ import annotations

import datetime
import re
from itertools import pairwise
from typing import Any

from indexer.records import Section
from indexer.sources.content import Content, Headings, lead_in

_NEWLINE = re.compile(r"\r\n|\r|\n")  # the line ends that markdown-it counts
_FRONT_MATTER = re.compile(
    r"---[ \t]*(?:\r\n|\r|\n)(.{0,65536}?(?:\r\n|\r|\n))(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|$)", re.DOTALL
)

_MEMBER = re.compile(r"\s*[\w-]+:(?:\s|$)")


def read(text: str) -> Content:
    """Read a text. Sections begin at headings; the title is the front matter's, or else the first top heading."""
    from markdown_it import MarkdownIt

    front = _FRONT_MATTER.match(text)
    metadata = _front_matter(front[1]) if front else None
    body = text
    if (
        front and metadata is not None
    ):  # replaced by blank lines: its last line would turn the line before into a heading
        body = "\n" * len(_NEWLINE.findall(front[0])) + text[front.end() :]
        offset = front.end() - len(_NEWLINE.findall(front[0]))
    else:
        offset = 0
    starts = [0, *(newline.end() for newline in _NEWLINE.finditer(body))]
    parser = MarkdownIt("commonmark").disable("inline")  # inline markup of paragraphs is most of the work
    inline = MarkdownIt("commonmark")
    metadata = metadata or {}
    headings, sections, first_heading = Headings(), [], ""
    tokens = parser.parse(body)
    for opening, content in pairwise(tokens):
        if opening.type != "heading_open" or opening.level or not opening.map:
            continue
        parts = inline.parseInline(content.content)[0].children or []
        heading = "".join(part.content if part.type != "softbreak" else " " for part in parts)
        level = int(opening.tag[1])
        if level == 1 and not first_heading:
            first_heading = " ".join(heading.split())
        sections.append(Section(starts[opening.map[0]] + offset, headings.enter(level, heading)))
    title = metadata.pop("title", None)
    return Content(text, str(title) if title else first_heading, tuple(lead_in(sections)), metadata)


def _front_matter(yaml_text: str) -> dict[str, Any] | None:
    """Return the members that are scalars or lists of scalars. The others are only in the text.

    It is None if this is not a mapping: two horizontal rules are not front matter.
    """
    try:
        members = _parse(yaml_text)
    except Exception:  # noqa: BLE001 - YAMLError, and anything else that PyYAML's constructors raise on a wrong tag
        return {} if _MEMBER.match(yaml_text) else None
    if not isinstance(members, dict):
        return None
    kept: dict[str, Any] = {}
    for name, value in members.items():
        values = [_scalar(each) for each in (value if isinstance(value, list) else [value])]
        if values and None not in values:
            kept[str(name)] = values if isinstance(value, list) else values[0]
    return kept


def _parse(yaml_text: str) -> object:
    import yaml  # type: ignore[import-untyped, unused-ignore]

    class Loader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
        """A loader without merges (<<): PyYAML copies the members that they name, so a few nested merges never end."""

        def flatten_mapping(self, node: Any) -> None:
            node.value = [pair for pair in node.value if pair[0].tag != "tag:yaml.org,2002:merge"]

    return yaml.load(yaml_text, Loader)


def _scalar(value: object) -> str | int | float | bool | None:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, int) and abs(value) >= 2**63:
        return None  # more than 64 bits
    return value if isinstance(value, str | int | float) else None
