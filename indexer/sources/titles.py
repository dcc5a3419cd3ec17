"""The title of a file: the title that its reader found, without markup, unless this title says nothing about the whole
file."""

# ruff: noqa: PTH119, PTH122
from __future__ import annotations

import os
import re
from html import unescape
from itertools import islice

from indexer.sources.content import Content
from indexer.sources.formats import DOCX, ODS, ODT, PDF, XLSX, Format

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
_NOTHING = re.compile(
    r"(?:microsoft |ms |new |neues |nouveau )*(?:office )?"
    r"(?:(?:word|excel|power ?point|libre ?office|open ?office)(?:[ -]?(?:document|dokument|workbook|spreadsheet|"
    r"presentation|präsentation|file))?"
    r"|(?:un|no )(?:titled|title|benannt|named)(?:[ -]?(?:document|spreadsheet|presentation|form|page|file|drawing))?"
    r"|(?:document|dokument|présentation|presentation|präsentation|workbook|spreadsheet|tabelle|book|mappe|doc)"
    r"|(?:slide|folie|sheet|page|seite|diapositive|layout)"
    r"|(?:document )?sans (?:titre|nom)|sin título|senza titolo|ohne titel"
    r"|title|titel|titre|presentation title|click to (?:add|edit) (?:master )?title(?: style)?"
    r"|none|null|unknown|undefined|n/?a)"
    r"[ _-]*\(?\d*\)?(?:\.\w{1,5})?",
    re.IGNORECASE,
)
_FILE_NAME = re.compile(
    r"\S*\w\.(?:html?|txt|tex|dvi|e?ps|prn|tmp|pdf|ai)|.*\w\.(?:docx?|rtf|xlsx?|pptx?|od[tps]|indd|qxd|fm|wpd|pub|pages|cdr)"
    r"|(?:file:|https?:/|\\\\|[a-z]:[\\/]).*|/\S+|about:\w+|print",
    re.IGNORECASE,
)
"""A title that programs which print to a PDF make of the name of a file. In other formats a person wrote it."""

_NUMBER = re.compile(r"[-+]?[$£€]? ?(?:\d+|\d{1,3}(?:[ ,.'’\u00a0]\d{3})+)(?:[.,]\d+)+ ?[$£€%]?")
"""A number with a decimal point. Whole numbers may be titles ("1984"), and so may dates."""

_TIMES = re.compile(r"(?:\d+:)+\d+(?:[.,]\d+)?\s*-->.*|\d+:\d\d:\d\d(?:[.,:;]\d+)?")
"""The line with the times of a subtitle, or a time with seconds."""

_PEOPLE = r"printed|print|full|first|last|middle|family|given|legal|maiden|your|company|customer|client|patient|student"
_FORM_FIELD = re.compile(
    rf"""(?:(?:{_PEOPLE}|employee|applicant|contact|authori[sz]ed)(?:['’]s)?\ )*
    (?: (?:name|signature|signed\ by|vorname|nachname|unterschrift|nom|prénom|nombre|apellidos?)\s?:.*
      | (?:date|date\ of\ birth|datum|geburtsdatum|fecha)\s?:.*\d.*
      | (?:phone|phone\ number|telephone|fax|mobile|telefon|téléphone|teléfono)\s?:\s*[+(]*\d.*
      | e-?mail(?:\ address)?\s?:\s*\S+@\S+ )""",
    re.IGNORECASE | re.VERBOSE,
)
"""A label of a form with its value, such as "Printed Name: Jane Doe"."""

_OF_A_PART = re.compile(
    r"(?:chapter|chapitre|kapitel|capítulo|part|teil|book|section|lesson|unit)\s+(?:\d+|[ivxlc]+|one|first)\b.*"
    r"|(?:introduction|preface|foreword|prologue|abstract|summary|cover|copyright|dedication|acknowledge?ments"
    r"|(?:table of )?contents|vorwort|einleitung|inhalt(?:sverzeichnis)?|avant-propos|sommaire|prólogo|índice)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:\d{1,3}|[IVXLC]{1,6})(?:[.):]|\s|$)")
_OF_READERS = {"Footnotes", "Endnotes", "Comments", "Header", "Footer", "Headers", "Footers", "Headers and footers"}
"""Headings that readers of Office files give to parts outside of the text."""
_TITLE_LINE_CHARACTERS = 120
_MAX_HEADINGS = 20
"""Maximum headings that are examined. Two headings decide, and a page may have a hundred thousand."""
_LONG_TITLE_CHARACTERS = 2000
"""Maximum characters of a title. A longer title is a page whose title was not closed, and the patterns would take
quadratic time."""


def title_of(content: Content, format_: Format, path: str) -> str:
    """Return the title of a file: the title from its reader, its first real heading or title line, or its name."""
    title = without_markup(content.title)
    is_chapter = _is_first_chapter(content, format_, title)
    is_from_a_program = format_.kind == "extracted"  # in Markdown and its like a person wrote it
    is_file_name = format_ is PDF and _FILE_NAME.fullmatch(title) is not None
    if title and not is_chapter and not (is_from_a_program and (is_file_name or says_nothing(title))):
        return title
    has_headings = format_ not in (XLSX, ODS)  # theirs are the names of sheets, and their lines are rows
    if title and is_from_a_program and has_headings:
        headings = [] if is_chapter else _headings(content)
        if headings and not says_nothing(headings[0]):
            return headings[0]
        if line := _title_line(content):
            return title if line.casefold() == title.casefold() else line
    return os.path.splitext(os.path.basename(path))[0]


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


def says_nothing(title: str) -> bool:
    """Return whether a text cannot be a title.

    Programs give it to every file ("Word Document", "Slide 1"), or it is a number, a time, or a field of a form.
    """
    title = title.strip()
    patterns = (_NOTHING, _NUMBER, _TIMES, _FORM_FIELD)
    return not any(map(str.isalnum, title)) or any(pattern.fullmatch(title) for pattern in patterns)


def _headings(content: Content) -> list[str]:
    """Return the first of the outermost headings, without markup, each once."""
    written = dict.fromkeys(section.heading.split(" > ")[0] for section in content.sections if section.heading)
    outer = map(without_markup, islice(written, _MAX_HEADINGS))
    return [heading for heading in dict.fromkeys(outer) if heading and heading not in _OF_READERS]


def _is_first_chapter(content: Content, format_: Format, title: str) -> bool:
    """Return whether a title is the heading of the first of several chapters.

    DOCX and ODT have a style for titles, so if there are several headings, the first belongs to a chapter. In other
    formats the title must look like a heading of a chapter: "Chapter 1", "2. Salt", "Preface".
    """
    headings = _headings(content)
    if len(headings) < 2 or headings[0] != title:
        return False
    is_numbered = all(map(_NUMBERED.match, headings[:2]))
    return format_ in (DOCX, ODT) or is_numbered or _OF_A_PART.fullmatch(title) is not None


def _title_line(content: Content) -> str:
    """Return the first line, if it looks like a title."""
    line = next((line.strip() for line in content.text.split("\n", 20) if line.strip()), "")
    is_title = len(line) <= _TITLE_LINE_CHARACTERS and "\t" not in line and not line.endswith((".", ",", ";", ":"))
    chapters = _headings(content)[:1]
    return line if is_title and not says_nothing(line) and line not in chapters else ""
