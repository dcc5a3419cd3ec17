"""Markdown: the text as it is, with headings from the line map of markdown-it-py, and front matter in YAML or TOML."""

from __future__ import annotations

import datetime
import re
import tomllib
from dataclasses import replace
from itertools import pairwise
from typing import Any

from indexer.ledger import Code, Reason
from indexer.records import Section
from indexer.sources.content import Content, Headings, lead_in

_NEWLINE = re.compile(r"\r\n|\r|\n")  # the line ends that markdown-it counts
_FRONT_MATTER = re.compile(
    r"(---|\+\+\+)[ \t]*(?:\r\n|\r|\n)(.{0,65536}?(?:\r\n|\r|\n))(?:\1|\.\.\.)[ \t]*(?:\r\n|\r|\n|$)", re.DOTALL
)
"""YAML between lines of hyphens, or TOML between lines of plus signs, as Hugo and Zola have it."""

_MEMBER = re.compile(r"\s*[\w-]+:(?:\s|$)|\s*[\w.\"-]+[ \t]*=")
_MAX_VALUES = 10_000  # aliases of YAML can make billions of values of 64 kB
_MAX_DEPTH = 50


def read(text: str) -> Content:
    """Read a text. Sections begin at headings; the title is the front matter's, or else the first top heading."""
    from markdown_it import MarkdownIt

    front = _FRONT_MATTER.match(text)
    metadata, unread = _front_matter(front[2], is_toml=front[1] == "+++") if front else (None, ())
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
    title = None if isinstance(metadata.get("title"), dict) else metadata.pop("title", None)
    return Content(text, str(title) if title else first_heading, tuple(lead_in(sections)), metadata, unread=unread)


def _front_matter(text: str, *, is_toml: bool) -> tuple[dict[str, Any] | None, tuple[Reason, ...]]:
    """Return the members with their nested ones, and a note if they cannot be read.

    The members are None if this is not a mapping: two horizontal rules are not front matter.
    """
    try:
        members = tomllib.loads(text.replace("\r\n", "\n")) if is_toml else _parse(text)
        if not isinstance(members, dict):
            return None, ()
        return _JsonValues().of(members, 0) or {}, ()
    except Exception as error:  # noqa: BLE001 - TOMLDecodeError, YAMLError, and what PyYAML's constructors raise on a wrong tag
        return ({}, (_broken(error, "TOML" if is_toml else "YAML"),)) if _MEMBER.match(text) else (None, ())


def _broken(error: Exception, language: str) -> Reason:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    # The text begins in the second line of the file.
    return replace(Code.FRONT_MATTER_BROKEN(language, problem), line=mark.line + 2 if mark else 1)


class _JsonValues:
    """Makes JSON of what PyYAML has read, without the members that are null or no JSON."""

    def __init__(self) -> None:
        self._values = 0

    def of(self, value: object, depth: int) -> Any:
        """Return a value as JSON; None for one that is left out."""
        self._values += 1
        if self._values > _MAX_VALUES or depth > _MAX_DEPTH:
            raise ValueError(f"it has more than {_MAX_VALUES:,} values or {_MAX_DEPTH} levels")
        if isinstance(value, dict):
            members = {str(name): self.of(each, depth + 1) for name, each in value.items()}
            return {name: each for name, each in members.items() if each is not None} or None
        if isinstance(value, list):
            elements = [self.of(each, depth + 1) for each in value]
            return [each for each in elements if each is not None] or None
        return _scalar(value)


def _parse(yaml_text: str) -> object:
    import yaml  # type: ignore[import-untyped, unused-ignore]

    class Loader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
        """A loader without merges (<<). PyYAML copies the members that a merge names, so a few nested merges would
        never end."""

        def flatten_mapping(self, node: Any) -> None:
            node.value = [pair for pair in node.value if pair[0].tag != "tag:yaml.org,2002:merge"]

    return yaml.load(yaml_text, Loader)


def _scalar(value: object) -> str | int | float | bool | None:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, int) and abs(value) >= 2**63:
        return None  # more than 64 bits
    return value if isinstance(value, str | int | float) else None
