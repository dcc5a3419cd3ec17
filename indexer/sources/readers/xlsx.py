"""XLSX with openpyxl: one section per sheet, with its number and name; one line per row, with tabs."""

from __future__ import annotations

import datetime
from typing import Any

import openpyxl

from indexer.sources import archive
from indexer.sources.content import Assembly, Content
from indexer.sources.readers.office_parts import add_comments_and_charts, add_sheet


def read(path: str) -> Content:
    """Read the values as they were last computed, not formulas, without empty rows and trailing empty cells."""
    archive.check(path)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    assembly = Assembly()
    for number, sheet in enumerate(book.worksheets, 1):
        sheet.reset_dimensions()  # the declared dimensions may be wrong, and as large as the format allows
        rows = ("\t".join(map(_cell, row)).rstrip() for row in sheet.iter_rows(values_only=True))
        add_sheet(assembly, sheet.title, number, rows)
    add_comments_and_charts(path, assembly)
    metadata: dict[str, str | int] = {"sheets": len(book.worksheets)}
    if book.properties.creator and book.properties.creator != "openpyxl":
        metadata["author"] = book.properties.creator
    title = book.properties.title or ""
    book.close()
    return assembly.content(title.strip(), metadata)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).upper()
    return " ".join(str(value).split())
