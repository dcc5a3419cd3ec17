"""The front matter of Markdown: members in YAML or TOML above the text. Readers and passages follow the same rule."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

_FRONT_MATTER = re.compile(
    r"(?:(---)|\+\+\+)[ \t]*(?:\r\n|\r|\n)(.{0,65536}?(?:\r\n|\r|\n))"
    r"(?:(?(1)(?:---|\.\.\.)|\+\+\+))[ \t]*(?:\r\n|\r|\n|$)",
    re.DOTALL,
)
"""YAML between lines of hyphens, or TOML between lines of plus signs, as Hugo and Zola have it. Only YAML may end with
three dots."""

_MEMBER = re.compile(r"\s*[\w-]+:(?:\s|$)|\s*[\w.\"-]+[ \t]*=")
_MAX_VALUES = 10_000  # aliases of YAML can make billions of values of 64 kB
_MAX_DEPTH = 50
NEWLINE = re.compile(r"\r\n|\r|\n")
"""The line ends that markdown-it counts."""


class FrontMatter(NamedTuple):
    """The front matter of a text.

    Attributes:
        end: where it ends in the text.
        members: its members with their nested ones; empty if they cannot be read.
        language: YAML or TOML.
        error: why the members cannot be read.
    """

    end: int
    members: Mapping[str, Any]
    language: str
    error: Exception | None = None

    def blanked(self, text: str) -> str:
        """Return the text with empty lines for its front matter: its last line would turn the line before into a
        heading."""
        return "\n" * len(NEWLINE.findall(text, 0, self.end)) + text[self.end :]


def read_front_matter(text: str) -> FrontMatter | None:
    """Return the front matter of a text; None without one. Two horizontal rules are not front matter."""
    if (front := _FRONT_MATTER.match(text)) is None:
        return None
    language = "YAML" if front[1] else "TOML"
    members, error = _members(front[2], language)
    return None if members is None else FrontMatter(front.end(), members, language, error)


@lru_cache(16)
def _members(block: str, language: str) -> tuple[Mapping[str, Any] | None, Exception | None]:
    """Return the members of a front matter, or none and why they cannot be read; None if it is not one.

    It is asked for several times while a document is cut and shown.
    """
    import tomllib

    try:
        members = _parse(block) if language == "YAML" else tomllib.loads(block.replace("\r\n", "\n"))
        return (_JsonValues().of(members, 0) or {}, None) if isinstance(members, dict) else (None, None)
    except Exception as error:  # noqa: BLE001 - TOMLDecodeError, YAMLError, and what PyYAML's constructors raise on a wrong tag
        return ({}, error) if _MEMBER.match(block) else (None, None)


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
