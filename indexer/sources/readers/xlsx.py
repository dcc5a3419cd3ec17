"""XLSX with openpyxl: one section per sheet, with its number and name; one line per row, with tabs."""

from __future__ import annotations

import datetime
import re
import zipfile
from dataclasses import replace
from typing import Any

import openpyxl

from indexer.errors import count_of
from indexer.ledger import Code
from indexer.sources import archive
from indexer.sources.content import Assembly, Content
from indexer.sources.readers.office_parts import add_comments_and_charts, add_sheet

_BLOCK_BYTES = 2**20
_CELL_END = b"</c>"
_FORMULA = re.compile(rb'<c\b(?![^>]*t="str")[^>]*>\s*<f\b(?!.*<v>[^<])', re.DOTALL)
"""A formula without a value. The value of a formula for text, `t="str"`, may be empty."""


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
    content = assembly.content(title.strip(), metadata)
    formulas = _formulas_without_value(path)
    return (
        replace(content, unread=(Code.FORMULAS_WITHOUT_VALUE(count_of(formulas, "formula")),)) if formulas else content
    )


def _formulas_without_value(path: str) -> int:
    """Return the number of cells with a formula that no program has computed."""
    count = 0
    with zipfile.ZipFile(path) as members:
        for name in members.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with members.open(name) as part:
                    rest = b""
                    while block := part.read(_BLOCK_BYTES):
                        *cells, rest = (rest + block).split(_CELL_END)
                        count += sum(_FORMULA.search(cell) is not None for cell in cells)
    return count


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
