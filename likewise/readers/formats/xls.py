"""Excel 97-2003 (.xls) and binary workbooks (.xlsb) with python-calamine: the cells of each sheet.

python-calamine returns values without their formats: 7.5 % is read as 0.075. A note says so. It does not read text
boxes, comments, headers and charts of these formats.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import datetime
import zipfile
from dataclasses import replace
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Unreadable
from likewise.readers import archive
from likewise.readers.formats import xlsx
from likewise.readers.formats.number_formats import shown
from likewise.readers.formats.sheets import add_sheet


def read(path: str) -> Content:
    """Read the values as they were last computed. A sheet that cannot be read is noted."""
    if zipfile.is_zipfile(path):
        archive.check(path)
        with zipfile.ZipFile(path) as members:
            if "xl/workbook.xml" in members.namelist():  # a workbook of today, whatever its name
                return xlsx.read(path)
    assembly, notes = Assembly(), [Code.NUMBERS_WITHOUT_FORMATS()]
    with open(path, "rb") as file, _workbook(file) as book:
        for number, name in enumerate(book.sheet_names, 1):
            try:
                rows = book.get_sheet_by_index(number - 1).iter_rows()
            except CalamineError as error:
                notes.append(Code.PART_DAMAGED(name, error))
                continue
            add_sheet(assembly, name, number, ("\t".join(map(_cell, row)).rstrip() for row in rows))
        content = assembly.content(metadata={"sheets": len(book.sheet_names)})
    return replace(content, unread=tuple(notes))


def _workbook(file: Any) -> CalamineWorkbook:
    try:
        return CalamineWorkbook.from_filelike(file)
    except PasswordError as error:
        raise Unreadable(Code.ENCRYPTED()) from error
    except CalamineError as error:
        raise Unreadable(Code.NOT_XLS(error)) from error


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float | int):
        return shown(float(value))
    if isinstance(value, datetime.datetime | datetime.time):
        return value.isoformat(timespec="seconds").removesuffix("T00:00:00")
    return " ".join(str(value).split())
