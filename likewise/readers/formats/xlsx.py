"""XLSX with openpyxl: one section per sheet, with its number and name; one line per row, with tabs."""

from __future__ import annotations

import datetime
import zipfile
from dataclasses import replace
from typing import Any

import openpyxl
from lxml import etree

from indexer.sources.content import Assembly, Content
from likewise.readers import archive
from likewise.readers.formats.office_package import OfficePackage, add_comments_and_charts
from likewise.readers.formats.sheets import add_sheet, formulas_without_value


def read(path: str) -> Content:
    """Read the values as they were last computed, not formulas, without empty rows and trailing empty cells."""
    archive.check(path)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    assembly = Assembly()
    for number, sheet in enumerate(book.worksheets, 1):
        sheet.reset_dimensions()  # the declared dimensions may be wrong, and as large as the format allows
        rows = ("\t".join(map(_cell, row)).rstrip() for row in sheet.iter_rows(values_only=True))
        add_sheet(assembly, sheet.title, number, rows)
    with OfficePackage(path) as package:
        add_comments_and_charts(package, assembly)
    notes = package.notes()
    metadata: dict[str, str | int] = {"sheets": len(book.worksheets)}
    if book.properties.creator and book.properties.creator != "openpyxl":
        metadata["author"] = book.properties.creator
    title = book.properties.title or ""
    book.close()
    content = assembly.content(title.strip(), metadata)
    return replace(content, unread=(*notes, *formulas_without_value(_formulas_without_value(path))))


def _formulas_without_value(path: str) -> int:
    """Return the number of cells with a formula that no program has computed. One row at a time is in memory."""
    count = 0
    with zipfile.ZipFile(path) as members:
        for name in members.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with members.open(name) as part:
                    for _, row in etree.iterparse(
                        part,
                        tag="{*}row",
                        resolve_entities=False,
                        remove_comments=True,
                        remove_pis=True,
                        recover=True,  # openpyxl has refused what is not well-formed
                        huge_tree=True,
                    ):
                        count += sum(not _has_value(formula.getparent()) for formula in row.iter("{*}f"))
                        while row.getprevious() is not None:
                            del row.getparent()[0]
    return count


def _has_value(cell: Any) -> bool:
    """Return whether a cell has a stored value, which may be empty if it is text."""
    return cell.get("t") in {"str", "inlineStr"} or bool(cell.findtext("{*}v"))


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
