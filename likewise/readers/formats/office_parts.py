"""Comments and charts of Office files, which are parts of their own beside the text, the sheets and the slides."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from indexer.errors import count_of
from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly
from likewise.readers.formats import xml

_COMMENTS = re.compile(r"word/comments\.xml|(?:xl|ppt)/(?:comments/)?\w*comment\w*\.xml", re.IGNORECASE)
_SHEET_NAME = re.compile(r"(?:sheet|tabelle|feuil(?:le)?|hoja|foglio|blad|planilha|table)[ _]?\d*", re.IGNORECASE)
"""Names that Excel and LibreOffice give to a new sheet."""
_CHART = re.compile(r"(?:word|xl|ppt)/charts/chart(?:Ex)?\d*\.xml", re.IGNORECASE)


def add_sheet(into: Assembly, name: str, number: int, rows: Iterable[str]) -> None:
    """Add a sheet as a section: its name, unless a program gave it ("Sheet1"), and one line per row. A sheet without
    cells is left out."""
    into.section(name, number)
    heading = "" if _SHEET_NAME.fullmatch(name) else name
    for row in rows:
        if heading and row.strip():
            into.add(heading)
            heading = ""
        into.add(row, newlines=1)


def formulas_without_value(count: int) -> tuple[Reason, ...]:
    """Return the note on the formulas of a workbook that no program has computed."""
    return (Code.FORMULAS_WITHOUT_VALUE(count_of(count, "formula")),) if count else ()


def add_comments_and_charts(path: str, into: Assembly) -> None:
    """Add each part that holds comments, and the words of each chart, as a section. The numbers of charts are left out.

    Threaded comments of Excel are not read, because Excel writes their text into its plain comments too.
    """
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if _COMMENTS.fullmatch(name):
                into.section("Comments")
                texts = _comments(xml.parse(archive.read(name)))
            elif _CHART.fullmatch(name):
                into.section("Chart")
                texts = iter(dict.fromkeys(_chart_words(xml.parse(archive.read(name)))))
            else:
                continue
            for text in texts:
                into.add(text, newlines=1)


def _comments(root: Any) -> Iterator[str]:
    for element in root.iter():
        if _local_name(element) in {"comment", "cm"}:
            yield " ".join(_runs(element).split())


def _chart_words(root: Any) -> Iterator[str]:
    """Yield the title, the names of axes and series, and the categories."""
    for element in root.iter():
        name = _local_name(element)
        if name == "p":
            yield " ".join(_runs(element).split())
        elif name in {"strCache", "strLit"}:
            yield from (value.text or "" for value in element.iter() if _local_name(value) == "v")


def _runs(element: Any) -> str:
    """Return the text of an element, whose words may be cut into runs, with a blank before each paragraph."""
    names = ((_local_name(part), part.text or "") for part in element.iter())
    return "".join(" " if name == "p" else text for name, text in names if name in {"p", "t", "text"})


def _local_name(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
