"""What is shown of a passage: not again its title, its heading, and a header whose fields are metadata."""

from __future__ import annotations

from indexer.lazy_pattern import lazy_pattern
from indexer.passages.markup import Range, VisibleText
from indexer.records import RECORD_FORMATS

_MAIL_HEADER = lazy_pattern(
    r"(?:\A|(?<=\n\n))(?:Subject: .*\n)?(?=From: )(?:(?:Subject|From|Sent|To|Cc|Bcc|Date|Attachments): .*(?:\n|\Z))+"
)
"""The lines that the reader of mails writes above each message."""
_PEP_HEADER = lazy_pattern(r"\A(?=(?:.+\n)*Title:)(?:.+(?:\n|\Z))+")
_HEADERS = {"rst": _PEP_HEADER, **dict.fromkeys(("eml", "mbox", "maildir"), _MAIL_HEADER)}


def shown_ranges(text: str, format_: str | None, title: str, heading: str = "") -> list[Range]:
    """Return the ranges of a passage to show, in order: all of it if nothing else has a letter or digit.

    Left out are headers of mails and PEPs and, at the beginning, lines that are the title or the heading, with their
    underlines. The line "column: title" of a record is such a line. A passage of headings alone is shown.

    Args:
        title: the title that is shown, which may be the uri.
        heading: as in `Hit`.
    """
    pattern = _HEADERS.get(format_ or "")
    headers = [match.span() for match in pattern.finditer(text)] if pattern else []
    names = {letters_of(name) for name in (title, heading, *heading.split(" > "))} - {""}
    begin = end = place = headers.pop(0)[1] if headers and not headers[0][0] else 0
    for line in text[begin:].splitlines(keepends=True):
        place += len(line)
        visible = VisibleText.read(line, format_).text
        letters = letters_of((visible.partition(": ")[2] if format_ in RECORD_FORMATS else "") or visible)
        if letters and letters not in names:
            break
        if letters or (end > begin and not line.lstrip().startswith(("`", "~"))):  # which open code
            end = place
    else:
        end = begin
    borders = [end, *(border for header in headers for border in header), len(text)]
    ranges = list(zip(borders[::2], borders[1::2], strict=True))
    return ranges if any(map(str.isalnum, "".join(text[start:end] for start, end in ranges))) else [(0, len(text))]


def letters_of(line: str) -> str:
    """Return a line in the form in which titles are compared: letters and digits in one case."""
    return "".join(filter(str.isalnum, line.casefold()))
