"""Markdown: the text as it is, with headings from the line map of markdown-it-py, and front matter in YAML or TOML."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from indexer.ledger import Code, Reason
from indexer.passages.front_matter import NEWLINE, FrontMatter, read_front_matter
from indexer.records import Section
from indexer.sources.content import Content, Headings, lead_in


def read(text: str) -> Content:
    """Read a text. Sections begin at headings; the title is the front matter's, or else the first top heading, or else
    the heading with which the text begins."""
    from markdown_it import MarkdownIt

    front = read_front_matter(text)
    body = front.blanked(text) if front else text
    offset = len(text) - len(body)
    starts = [0, *(newline.end() for newline in NEWLINE.finditer(body))]
    parser = MarkdownIt("commonmark").disable("inline")  # inline markup of paragraphs is most of the work
    inline = MarkdownIt("commonmark")
    metadata = dict(front.members) if front else {}
    unread = (_broken(front),) if front and front.error else ()
    headings, sections, top_heading, opening_heading = Headings(), [], "", ""
    tokens = parser.parse(body)
    for opening, content in pairwise(tokens):
        if opening.type != "heading_open" or opening.level or not opening.map:
            continue
        parts = inline.parseInline(content.content)[0].children or []
        heading = "".join(part.content if part.type != "softbreak" else " " for part in parts)
        level = int(opening.tag[1])
        if level == 1 and not top_heading:
            top_heading = " ".join(heading.split())
        if opening is tokens[0]:
            opening_heading = " ".join(heading.split())
        sections.append(Section(starts[opening.map[0]] + offset, headings.enter(level, heading)))
    title = None if isinstance(metadata.get("title"), dict) else metadata.pop("title", None)
    title = str(title) if title else top_heading or opening_heading
    return Content(text, title, tuple(lead_in(sections)), metadata, unread=unread)


def _broken(front: FrontMatter) -> Reason:
    error = front.error
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    # The text begins in the second line of the file.
    return replace(Code.FRONT_MATTER_BROKEN(front.language, problem), line=mark.line + 2 if mark else 1)
