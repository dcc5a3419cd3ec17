"""Excel 97-2003 and binary workbooks, made by hand: OLE with records of BIFF8; zip files with records of BIFF12."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from indexer.sources import Entry

Collect = Callable[..., list[Entry]]
Sheets = Mapping[str, Sequence[Sequence[str | float]]]

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
WITHOUT_FORMATS = "numbers without their formats: save it as .xlsx to have them as they are shown"
SHEETS: Sheets = {"People": [["name", "share"], ["Ada  Löß", 0.075]], "Sheet2": [[4915112345678.0]]}
TEXT = "People\nname\tshare\nAda Löß\t0.075\n\n4915112345678"
PACKAGE = '<Relationship Id="a" Type="x/officeDocument" Target="xl/workbook.xml"/>'
BESIDE = '<Relationship Id="a" Type="x/comments" Target="a.xml"/>'
COMMENTS = "<comments><comment><t>A workbook of today</t></comment></comments>"


def record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def bof(kind: int) -> bytes:
    return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))


def xls_cell(row: int, column: int, value: str | float) -> bytes:
    place = struct.pack("<HHH", row, column, 0)
    if isinstance(value, str):
        return record(0x204, place + struct.pack("<HB", len(value), 1) + value.encode("utf-16-le"))
    return record(0x203, place + struct.pack("<d", value))


def xls(sheets: Sheets) -> bytes:
    bodies = [
        bof(0x10)
        + b"".join(xls_cell(r, c, value) for r, row in enumerate(rows) for c, value in enumerate(row))
        + record(0x0A)
        for rows in sheets.values()
    ]

    def globals_(starts: Sequence[int]) -> bytes:
        names = (
            record(0x85, struct.pack("<IHBB", start, 0, len(name), 1) + name.encode("utf-16-le"))
            for name, start in zip(sheets, starts, strict=True)
        )
        return bof(5) + record(0x42, b"\xb0\x04") + b"".join(names) + record(0x0A)

    first = len(globals_([0] * len(bodies)))
    starts = [first + sum(map(len, bodies[:number])) for number in range(len(bodies))]
    return in_ole(globals_(starts) + b"".join(bodies))


def in_ole(stream: bytes) -> bytes:
    stream += bytes(max(4096 - len(stream), -len(stream) % 512))
    sectors = len(stream) // 512
    table = [0xFFFFFFFD, 0xFFFFFFFE, *range(3, sectors + 2), 0xFFFFFFFE]

    def entry(name: str, kind: int, child: int, first: int, size: int) -> bytes:
        raw = f"{name}\0".encode("utf-16-le")
        rest = struct.pack("<HBBiii36xIQ", len(raw), kind, 1, -1, -1, child, first, size)
        return raw.ljust(64, b"\0") + rest

    folder = entry("Root Entry", 5, 1, 0xFFFFFFFE, 0) + entry("Workbook", 2, -1, 2, len(stream))
    header = OLE + bytes(16) + struct.pack("<5H6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<10I", 0, 1, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0, 0)
    rows = (*table, *[0xFFFFFFFF] * (128 - len(table)))
    return header.ljust(512, b"\xff") + struct.pack("<128I", *rows) + folder.ljust(512, b"\0") + stream


def part(kind: int, data: bytes = b"") -> bytes:
    """A record of BIFF12."""
    name = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
    return name + bytes([len(data)]) + data


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb_cell(column: int, value: str | float) -> bytes:
    place = struct.pack("<II", column, 0)
    if isinstance(value, str):
        return part(6, place + wide(value))
    return part(5, place + struct.pack("<d", value))


def write_xlsb(path: Path, sheets: Sheets) -> Path:
    relationships = "".join(
        f'<Relationship Id="r{number}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
        f'worksheet" Target="worksheets/sheet{number}.bin"/>'
        for number in range(len(sheets))
    )
    with zipfile.ZipFile(path, "w") as archive:
        names = (
            part(156, struct.pack("<II", 0, number + 1) + wide(f"r{number}") + wide(name))
            for number, name in enumerate(sheets)
        )
        archive.writestr("xl/workbook.bin", part(131) + part(143) + b"".join(names) + part(144) + part(132))
        archive.writestr("xl/_rels/workbook.bin.rels", f"<Relationships>{relationships}</Relationships>")
        for number, rows in enumerate(sheets.values()):
            size = struct.pack("<IIII", 0, max(0, len(rows) - 1), 0, max(map(len, rows), default=1) - 1)
            body = b"".join(
                part(0, struct.pack("<I", r) + bytes(13)) + b"".join(xlsb_cell(c, v) for c, v in enumerate(row))
                for r, row in enumerate(rows)
            )
            sheet = part(129) + part(148, size) + part(145) + body + part(146) + part(130)
            archive.writestr(f"xl/worksheets/sheet{number}.bin", sheet)
    return path


def check(collect: Collect, path: Path, format_name: str) -> None:
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    assert (entry.document.text, entry.document.format) == (TEXT, format_name)
    assert [(section.heading, section.page) for section in entry.document.sections] == [("People", 1), ("Sheet2", 2)]
    assert [note.text() for note in entry.notes] == [WITHOUT_FORMATS]


def test_excel_97(tmp_path: Path, collect: Collect) -> None:
    for name in ("a.xls", "B.XLT", "c.csv", "d.doc", "e"):
        (tmp_path / name).write_bytes(xls(SHEETS))
        check(collect, tmp_path / name, "xls")


def test_binary_workbook(tmp_path: Path, collect: Collect) -> None:
    for name in ("a.xlsb", "a.xlsx", "b.txt"):
        check(collect, write_xlsb(tmp_path / name, SHEETS), "xlsb")


def test_what_is_no_workbook_fails_or_is_read_as_what_it_is(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.xls"
    path.write_bytes(OLE + bytes(600))
    (entry,) = collect(path)
    assert entry.state == "failed"
    assert entry.reason.text().startswith("damaged: not a readable workbook (")
    members = [("_rels/.rels", f"<r>{PACKAGE}</r>"), ("xl/workbook.xml", "<workbook/>"), ("xl/a.xml", COMMENTS)]
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in (*members, ("xl/_rels/workbook.xml.rels", f"<r>{BESIDE}</r>")):
            archive.writestr(name, member)
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.document.text, entry.notes) == ("A workbook of today", ())
    path.write_bytes(b"<html><body><table><tr><td>Oats</td></tr></table></body></html>")
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.document.format, entry.document.text) == ("html", "Oats")
    path.write_bytes(b"\x09\x04\x06\x00\x00\x00\x10\x00\x00\x00")
    (entry,) = collect(path)
    assert (entry.state, entry.reason.text()) == ("skipped", "Excel of before 1993: save it as .xlsx")
