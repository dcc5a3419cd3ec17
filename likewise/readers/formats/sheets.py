"""Sheets of workbooks as sections, and the note on formulas without a value."""

from __future__ import annotations

import re
from collections.abc import Iterable

from indexer.errors import count_of
from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly

_SHEET_NAME = re.compile(r"(?:sheet|tabelle|feuil(?:le)?|hoja|foglio|blad|planilha|table)[ _]?\d*", re.IGNORECASE)
"""Names that Excel and LibreOffice give to a new sheet."""


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
