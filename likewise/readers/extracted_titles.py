"""Titles of files that a program may have written. One that says nothing is replaced by a heading or the first line."""

from __future__ import annotations

import re

from indexer.sources.content import Content
from indexer.sources.files.titles import headings
from indexer.sources.formats import ODS, PDF, XLSX, Format

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

_TITLE_LINE_CHARACTERS = 120


def title_of_extracted(content: Content, format_: Format, title: str, is_chapter: bool) -> str:
    """Return the title of a file; empty if the name of the file is the best title.

    Args:
        title: the title from its reader, without markup.
        is_chapter: whether this is the heading of the first of several chapters.
    """
    is_file_name = format_ is PDF and _FILE_NAME.fullmatch(title) is not None
    if title and not is_chapter and not is_file_name and not says_nothing(title):
        return title
    if not title or format_ in (XLSX, ODS):  # their headings are the names of sheets, and their lines are rows
        return ""
    first = [] if is_chapter else headings(content)
    if first and not says_nothing(first[0]):
        return first[0]
    line = _title_line(content)
    return title if line.casefold() == title.casefold() else line


def says_nothing(title: str) -> bool:
    """Return whether a text cannot be a title.

    Programs give it to every file ("Word Document", "Slide 1"), or it is a number, a time, or a field of a form.
    """
    title = title.strip()
    patterns = (_NOTHING, _NUMBER, _TIMES, _FORM_FIELD)
    return not any(map(str.isalnum, title)) or any(pattern.fullmatch(title) for pattern in patterns)


def _title_line(content: Content) -> str:
    """Return the first line, if it looks like a title."""
    line = next((line.strip() for line in content.text.split("\n", 20) if line.strip()), "")
    is_title = len(line) <= _TITLE_LINE_CHARACTERS and "\t" not in line and not line.endswith((".", ",", ";", ":"))
    chapters = headings(content)[:1]
    return line if is_title and not says_nothing(line) and line not in chapters else ""
