"""The title of a file: the title that its reader found, without markup, unless this title says nothing about the whole
file."""

# ruff: noqa: PTH119, PTH122
from __future__ import annotations

import os
import re
from html import unescape
from itertools import islice

from indexer import doors
from indexer.sources.content import Content
from indexer.sources.formats import DOCX, ODT, Format

_TAGS = "a|abbr|b|big|code|del|div|em|font|h[1-6]|i|ins|kbd|mark|p|q|s|small|span|strike|strong|sub|sup|tt|u"
_PAIRED_TAGS = re.compile(rf"<({_TAGS})(?:\s[^<>]*)?>(.*?)</\1\s*>", re.IGNORECASE)
_BREAK = re.compile(r"<(?:br|wbr|hr)\s*/?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_MARKUP = (
    (re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*\)"), r"\1"),  # a link of Markdown
    (re.compile(r"`([^`<>]+?)\s*<[^<>`]+>`__?"), r"\1"),  # a link of reStructuredText
    (re.compile(r":[a-z][\w:+.-]*:`~?([^`]+)`"), r"\1"),  # a role of reStructuredText
    (re.compile(r"(`+)([^`]+)\1_?(?:\\ )?"), r"\2"),
    (re.compile(r"(?<!\w)\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\w)"), r"\1"),
    (re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*]+)(?<=[^\s\\])\*(?![\w*])"), r"\1"),
    (re.compile(r"\\([*_`|])"), r"\1"),  # a mark that was escaped
)
_PROGRAM = re.compile(r"microsoft (?:office )?(?:word|excel|power ?point)\s*-\s*", re.IGNORECASE)
_OF_A_PART = re.compile(
    r"(?:chapter|chapitre|kapitel|capítulo|part|teil|book|section|lesson|unit)\s+(?:\d+|[ivxlc]+|one|first)\b.*"
    r"|(?:introduction|preface|foreword|prologue|abstract|summary|cover|copyright|dedication|acknowledge?ments"
    r"|(?:table of )?contents|vorwort|einleitung|inhalt(?:sverzeichnis)?|avant-propos|sommaire|prólogo|índice)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:\d{1,3}|[IVXLC]{1,6})(?:[.):]|\s|$)")
_OF_READERS = {"Footnotes", "Endnotes", "Comments", "Header", "Footer", "Headers", "Footers", "Headers and footers"}
"""Headings that readers of Office files give to parts outside of the text."""
_MAX_HEADINGS = 20
"""Maximum headings that are examined. Two headings decide, and a page may have a hundred thousand."""
_LONG_TITLE_CHARACTERS = 2000
"""Maximum characters of a title. A longer title is a page whose title was not closed, and the patterns would take
quadratic time."""


def title_of(content: Content, format_: Format, path: str) -> str:
    """Return the title of a file: the title from its reader, its first real heading or title line, or its name."""
    title = without_markup(content.title)
    is_chapter = _is_first_chapter(content, format_, title)
    part = doors.find("parts", "readers") if format_.kind == "extracted" else None  # otherwise a person wrote it
    if part is not None:
        title = part.title_of_extracted(content, format_, title, is_chapter)
    elif is_chapter:
        title = ""
    return title or os.path.splitext(os.path.basename(path))[0]


def without_markup(title: str) -> str:
    """Return a title without tags, entities, and the marks of Markdown and reStructuredText."""
    if len(title) > _LONG_TITLE_CHARACTERS:
        return " ".join(title.split())
    title = _ENTITY.sub(lambda entity: unescape(entity[0]), title)
    before = ""
    while before != title:  # tags within tags
        before, title = title, _PAIRED_TAGS.sub(r"\2", title)
    title = _BREAK.sub(" ", title)
    for pattern, replacement in _MARKUP:
        title = pattern.sub(replacement, title)
    return " ".join(_PROGRAM.sub("", title, count=1).split()) if _PROGRAM.match(title) else " ".join(title.split())


def headings(content: Content) -> list[str]:
    """Return the first of the outermost headings, without markup, each once."""
    written = dict.fromkeys(section.heading.split(" > ")[0] for section in content.sections if section.heading)
    outer = map(without_markup, islice(written, _MAX_HEADINGS))
    return [heading for heading in dict.fromkeys(outer) if heading and heading not in _OF_READERS]


def _is_first_chapter(content: Content, format_: Format, title: str) -> bool:
    """Return whether a title is the heading of the first of several chapters.

    DOCX and ODT have a style for titles, so if there are several headings, the first belongs to a chapter. In other
    formats the title must look like a heading of a chapter: "Chapter 1", "2. Salt", "Preface".
    """
    first = headings(content)
    if len(first) < 2 or first[0] != title:
        return False
    is_numbered = all(map(_NUMBERED.match, first[:2]))
    return format_ in (DOCX, ODT) or is_numbered or _OF_A_PART.fullmatch(title) is not None
