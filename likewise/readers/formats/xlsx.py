"""XLSX: one section per sheet, with its number and name; one line per row, with tabs. Cells are as a sheet shows them.

The headers, footers and text boxes of a sheet follow its rows. The comments and the words of charts are sections of
their own. Rows are read one at a time. openpyxl would read values without their formats, no text box and no file of the
Strict namespace, and refuse a workbook for a wrong date among its properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Unreadable
from likewise.readers.formats.number_formats import BUILT_IN, shown, shown_text
from likewise.readers.formats.office_package import (
    OfficePackage,
    add_comments_and_charts,
    diagram_words,
    local_name,
    qn,
)
from likewise.readers.formats.sheets import add_sheet, formulas_without_value, hidden_parts

_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_MARGIN_CODE = re.compile(r'&(?:(&)|"[^"]*"|K(?:[0-9A-F]{6}|\d\d[+-]\d{3})|\d+|[BEIUSXYOH]|[A-Z])', re.IGNORECASE)
_COLUMN = re.compile("[A-Z]{1,3}")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_MAX_COLUMNS = 16_384
_TRUE = {"1", "true", "on"}


def read(path: str) -> Content:
    """Read the values as they were last computed, not formulas, without empty rows and trailing empty cells."""
    with OfficePackage(path) as package:
        book = _Workbook(package)
        assembly = Assembly()
        sheets = book.root.findall("{*}sheets/{*}sheet")
        hidden = [number for number, sheet in enumerate(sheets, 1) if sheet.get("state", "visible") != "visible"]
        for number, sheet in enumerate(sheets, 1):
            part = package.target(package.main, sheet.get(qn("r:id")))
            add_sheet(assembly, sheet.get("name") or "", number, book.lines(part))
        add_comments_and_charts(package, assembly)
        author = package.property("creator")
        metadata = {"sheets": len(sheets), **({"author": author} if author not in {"", "openpyxl"} else {})}
        content, notes = assembly.content(package.property("title"), metadata), package.notes()
    if notes and not content.text:
        raise Unreadable(Code.READER_FAILED("XLSX", notes[0].text()))
    unread = *notes, *formulas_without_value(book.formulas_without_value)
    return replace(content, unread=(*unread, *hidden_parts("sheet", hidden, book.hidden_cells)))


class _Workbook:
    """A workbook with what all of its sheets share.

    Attributes:
        root: the root of its main part.
        formulas_without_value: cells with a formula that no program has computed, of the sheets that were read so far.
        hidden_cells: cells with a text in hidden rows and columns of these sheets.
    """

    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self.root = package.main_root("workbook", Code.NOT_XLS)
        self.formulas_without_value = self.hidden_cells = 0
        properties = self.root.find("{*}workbookPr")
        self._from_1904 = properties is not None and properties.get("date1904") in _TRUE
        self._strings = [
            _rich_text(string)
            for part in package.related(package.main, "sharedStrings")
            for string in package.elements(part, "si")
        ]
        styles = next(map(package.xml, package.related(package.main, "styles")), None)
        codes, formats = {str(number): code for number, code in BUILT_IN.items()}, []
        if styles is not None:
            formats = styles.findall("{*}cellXfs/{*}xf")
            codes.update((each.get("numFmtId"), each.get("formatCode") or "") for each in styles.iter("{*}numFmt"))
        self._codes = [codes.get(each.get("numFmtId"), "") for each in formats]

    def lines(self, part: str) -> Iterator[str]:
        """Yield the rows of a sheet, its headers and footers, and the paragraphs of its text boxes."""
        margins: dict[str, None] = {}
        hidden: list[range] = []
        for element in self._package.elements(part, "col", "row", "headerFooter"):
            if local_name(element) == "row":
                yield self._row(element, part, hidden)
            elif local_name(element) == "col":
                first, last = element.get("min", ""), element.get("max", "")
                if element.get("hidden") in _TRUE and first.isdecimal() and last.isdecimal():
                    hidden.append(range(int(first), int(last) + 1))
            else:
                margins.update((_margin(each.text or ""), None) for each in element)
        yield from margins
        for drawing in self._package.related(part, "drawing"):
            yield from _drawn(self._package, drawing)
        for drawing in self._package.related(part, "vmlDrawing"):
            root = self._package.xml(drawing)
            for box in () if root is None else root.iter(qn("v:textbox")):
                yield " ".join("".join(box.itertext()).split())

    def _row(self, row: Any, part: str, hidden: Sequence[range]) -> str:
        cells: dict[int, str] = {}
        column = 0
        for cell in row.iterchildren("{*}c"):
            column = _column(cell.get("r") or "") or column + 1
            if text := self._cell(cell, part):
                cells[column] = " ".join(text.split())
        is_hidden = row.get("hidden") in _TRUE
        self.hidden_cells += sum(is_hidden or any(column in each for each in hidden) for column in cells)
        return "\t".join(cells.get(place, "") for place in range(1, max(cells, default=0) + 1))

    def _cell(self, cell: Any, part: str) -> str:
        inside = {local_name(each): each for each in cell}
        kind, value = cell.get("t") or "n", (inside["v"].text or "").strip() if "v" in inside else ""
        if kind == "inlineStr":
            value = _rich_text(inside["is"]) if "is" in inside else ""
        elif not value:
            self.formulas_without_value += kind != "str" and "f" in inside
            return ""
        style = cell.get("s") or ""
        code = self._codes[int(style)] if style.isdecimal() and int(style) < len(self._codes) else ""
        if kind == "n" and _NUMBER.fullmatch(value):
            return shown(float(value), code, self._from_1904)
        if kind == "b":
            return "TRUE" if value in _TRUE else "FALSE"
        if kind == "d":
            return re.sub(r"\.\d+", "", value).removesuffix("T00:00:00")
        if kind == "s":
            return shown_text(self._string(value, part), code)
        return shown_text(_unescaped(value) if kind == "str" else value, code)

    def _string(self, number: str, part: str) -> str:
        if number.isdecimal() and int(number) < len(self._strings):
            return self._strings[int(number)]
        self._package.note_damage(part, f"no shared string {number}")
        return ""


def _column(reference: str) -> int:
    """Return the number of a column from a reference such as "AB12"; 0 if it has none."""
    letters = _COLUMN.match(reference.upper())
    number = 0
    for letter in letters[0] if letters else "":
        number = number * 26 + ord(letter) - 64
    return number if number <= _MAX_COLUMNS else 0


def _rich_text(string: Any) -> str:
    """Return the text of a string, whose words may be cut into runs, without readings of East Asian words."""
    runs = (run if local_name(run) == "t" else run.find("{*}t") for run in string if local_name(run) in {"t", "r"})
    return _unescaped("".join(run.text or "" for run in runs if run is not None))


def _unescaped(text: str) -> str:
    """Return a text without escapes: `_x000D_` is the character of this number, in UTF-16."""
    if "_x" not in text:
        return text
    text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _margin(coded: str) -> str:
    """Return the words of a header or footer without fonts, and without fields such as the number of the page."""
    return " ".join(_MARGIN_CODE.sub(lambda match: match[1] or " ", _unescaped(coded)).split())


def _drawn(package: OfficePackage, part: str) -> Iterator[str]:
    """Yield the paragraphs of the shapes in a drawing."""
    root = package.xml(part)
    for element in () if root is None else root.iter(qn("a:p"), qn("dgm:relIds")):
        if element.tag == qn("a:p"):
            pieces = (" " if local_name(each) == "br" else each.text or "" for each in element.iter("{*}t", "{*}br"))
            yield " ".join("".join(pieces).split())
        else:
            yield diagram_words(package, part, element)
