"""Sheets of workbooks as sections, and the notes on formulas without a value and on what is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from indexer.errors import count_of
from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly
from likewise.readers.page_numbers import page_ranges

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


def hidden_parts(noun: str, numbers: Sequence[int], cells: int = 0) -> tuple[Reason, ...]:
    """Return the note on hidden sheets or slides, by their numbers, and on the cells in hidden rows and columns."""
    numbered = [f"{count_of(len(numbers), noun)} ({page_ranges(numbers)})"] if numbers else []
    hidden = [*numbered, *([count_of(cells, "cell")] if cells else [])]
    return (Code.HIDDEN_PARTS(", ".join(hidden), "read too"),) if hidden else ()


def formulas_without_value(count: int) -> tuple[Reason, ...]:
    """Return the note on the formulas of a workbook that no program has computed."""
    return (Code.FORMULAS_WITHOUT_VALUE(count_of(count, "formula")),) if count else ()
