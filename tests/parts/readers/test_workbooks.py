"""Workbooks as programs write them: parts of any name, both namespaces, what is beside the cells, and broken parts."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from indexer.sources import Entry

Collect = Callable[..., list[Entry]]

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT_MAIN, STRICT = (
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
    "http://purl.oclc.org/ooxml/officeDocument/relationships",
)
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'


def relationships(*targets: str, types: str = OFFICE) -> str:
    """Each target is `kind path`; its id is r0, r1, ..."""
    each = "".join(
        f'<Relationship Id="r{number}" Type="{types}/{target.split()[0]}" Target="{target.split()[1]}"/>'
        for number, target in enumerate(targets)
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{each}</Relationships>'


def write(
    path: Path,
    rows: str,
    *,
    after: str = "",
    beside: tuple[str, ...] = (),
    main: str = MAIN,
    types: str = OFFICE,
    properties: str = "",
    **parts: str,
) -> Path:
    """A workbook with one sheet, `Stock`. Names of parts have `__` for a slash."""
    members = {
        "_rels/.rels": relationships("officeDocument xl/workbook.xml", types=types),
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{types}"><workbookPr {properties}/><sheets>'
        '<sheet name="Stock" sheetId="1" r:id="r0"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relationships(
            "worksheet sheets/one.xml", "sharedStrings strings.xml", "styles styles.xml", types=types
        ),
        "xl/sheets/one.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData>{after}</worksheet>',
        "xl/strings.xml": f'<sst xmlns="{main}"/>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"/>',
        "xl/sheets/_rels/one.xml.rels": relationships(*beside, types=types),
        **{name.replace("__", "/") + ".xml": part for name, part in parts.items()},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return path


def read(collect: Collect, path: Path) -> tuple[str, list[str]]:
    """Return the text of a file and the notes on it."""
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    return entry.document.text, [note.text() for note in entry.notes]


def cell(value: object, style: int = 0, kind: str = "n", place: str = "") -> str:
    reference = f'r="{place}"' if place else ""
    return f'<c {reference} s="{style}" t="{kind}"><v>{value}</v></c>'


CODES = ["0.0%", "&quot;€&quot; #,##0.00", "0.00", "[h]:mm", "00000", "yyyy-mm-dd", "h:mm:ss", "&quot;Room &quot;@"]
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts>'
    + "".join(f'<numFmt numFmtId="{200 + number}" formatCode="{code}"/>' for number, code in enumerate(CODES))
    + '</numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/>'
    + "".join(f'<xf numFmtId="{200 + number}"/>' for number in range(len(CODES)))
    + '<xf numFmtId="14"/><xf numFmtId="30"/><xf numFmtId="46"/></cellXfs></styleSheet>'
)


def test_cells_are_as_the_sheet_shows_them(tmp_path: Path, collect: Collect) -> None:
    numbers = [(0.075, 1), (1234.5, 2), (1 / 3, 3), (1.104166666666667, 4), (1067, 5), (45352.9, 6), (0.50001620, 7)]
    cells = "".join(cell(value, style) for value, style in numbers)
    others = cell(45352, 9) + cell(45352, 10) + cell(1.5, 11) + cell("7b", 8, "str") + cell(1, 0, "b")
    others += cell("#N/A", 0, "e") + cell("2024-03-01T00:00:00", 0, "d") + cell("1e3") + cell("x") + cell(5, 99)
    path = write(tmp_path / "a.xlsx", f"<row>{cells}</row><row>{others}</row>", xl__styles=STYLES)
    assert read(collect, path) == (
        "Stock\n7.5%\t€ 1,234.50\t0.33\t26:30\t01067\t2024-03-01\t12:00:01\n"
        "2024-03-01\t2024-03-01\t36:00:00\tRoom 7b\tTRUE\t#N/A\t2024-03-01\t1000\tx\t5",
        [],
    )
    write(path, f"<row>{cell(43890, 9)}</row>", xl__styles=STYLES, properties='date1904="1"')
    assert read(collect, path) == ("Stock\n2024-03-01", [])


def test_shared_strings(tmp_path: Path, collect: Collect) -> None:
    strings = (
        f'<sst xmlns="{MAIN}"><si><t>line_x000D_\nwith caf_x00E9_, _x005F_x000D_ and _xD83D__xDE00_</t></si>'
        "<si><r><t>ca</t></r>"
        '<r><rPr><b/></rPr><t xml:space="preserve">ke </t></r><r/><rPh sb="0" eb="1"><t>reading</t></rPh></si></sst>'
    )
    cells = cell(0, kind="s", place="B1") + cell(1, kind="s", place="D1") + cell(9, kind="s") + cell(1, kind="s")
    path = write(tmp_path / "a.xlsx", f"<row>{cells}</row>", xl__strings=strings)
    text, notes = read(collect, path)
    assert text == "Stock\nline with café, _x000D_ and 😀\t\tcake\t\tcake"
    assert notes == ["its part xl/sheets/one.xml is damaged, and is read as far as possible (no shared string 9)"]


BOX = f"""<d:wsDr xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" {A}
xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">
<d:sp><d:txBody><a:p><a:r><a:t>Prices ri</a:t></a:r><a:r><a:t>se.</a:t></a:r></a:p>
<a:p><a:r><a:t>Twice</a:t></a:r><a:br/><a:r><a:t>a year</a:t></a:r></a:p></d:txBody></d:sp>
<mc:AlternateContent><mc:Choice Requires="x"><d:sp><d:txBody><a:p><a:r><a:t>Area = 5</a:t></a:r></a:p></d:txBody></d:sp>
</mc:Choice><mc:Fallback><a:p><a:r><a:t>Area = 5</a:t></a:r></a:p></mc:Fallback></mc:AlternateContent></d:wsDr>"""
MARGINS = (
    "<headerFooter>"
    "<oddHeader>&amp;L&amp;&quot;Arial,Bold&quot;&amp;14&amp;KFF0000Plan&amp;C R&amp;&amp;D of &amp;D</oddHeader>"
    "<oddFooter>&amp;RPage &amp;P of &amp;N</oddFooter>"
    "<evenFooter>&amp;RPage &amp;P of &amp;N</evenFooter></headerFooter>"
)


def test_text_boxes_headers_and_footers(tmp_path: Path, collect: Collect) -> None:
    drawing = {"beside": ("drawing ../drawings/d1.xml", "vmlDrawing ../drawings/v1.xml")}
    vml = '<xml xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox><div><font>Start\n it</font></div></v:textbox></xml>'
    path = write(
        tmp_path / "a.xlsx",
        f"<row>{cell('corn', kind='str')}</row>",
        after=MARGINS,
        xl__drawings__d1=BOX,
        xl__drawings__v1=vml,
        **drawing,  # type: ignore[arg-type]
    )
    assert read(collect, path) == (
        "Stock\ncorn\nPlan R&D of\nPage of\nPrices rise.\nTwice a year\nArea = 5\nStart it",
        [],
    )


def test_comments_in_threads(tmp_path: Path, collect: Collect) -> None:
    plain = "<comments><comment><text><t>{}</t></text></comment></comments>"
    thread = "<ThreadedComments><threadedComment><text>{}</text></threadedComment>{}</ThreadedComments>"
    advice = "[Threaded comment] Your version of Excel lets you read this. Comment: Weigh it. Reply: Done."
    parts = {
        "xl__c1": plain.format(advice),
        "xl__c2": plain.format("A plain one."),
        "xl__t1": thread.format("Weigh it.", "<threadedComment><text>Done.</text></threadedComment>"),
    }
    beside = ("comments ../c1.xml", "comments ../c2.xml", "threadedComment ../t1.xml")
    path = write(tmp_path / "a.xlsx", "<row/>", beside=beside, **parts)  # type: ignore[arg-type]
    assert read(collect, path) == ("A plain one.\n\nWeigh it.\nDone.", [])


def test_strict_files_and_backslashes(tmp_path: Path, collect: Collect) -> None:
    rows = f"<row>{cell('windmills', kind='str')}</row>"
    strict = write(tmp_path / "a.xlsx", rows, main=STRICT_MAIN, types=STRICT)
    assert read(collect, strict) == ("Stock\nwindmills", [])
    with zipfile.ZipFile(strict) as archive, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as other:
        for name in archive.namelist():
            other.writestr(name.replace("/", "\\").upper(), archive.read(name))
    assert read(collect, tmp_path / "b.xlsx") == ("Stock\nwindmills", [])


def test_a_broken_part_costs_that_part_and_a_note(tmp_path: Path, collect: Collect) -> None:
    good = f"<row>{cell('oats', kind='str')}</row>"
    said = "its part {} is damaged, and is read as far as possible"
    cut = write(tmp_path / "a.xlsx", f"{good}<row><c t='str'><v>rye</v></c></row><row><c")
    text, notes = read(collect, cut)
    assert text.startswith("Stock\noats\nrye")
    assert [note.partition(" (")[0] for note in notes] == [said.format("xl/sheets/one.xml")]
    missing = write(tmp_path / "b.xlsx", good, beside=("drawing ../gone.xml", "comments NULL"))
    assert read(collect, missing) == ("Stock\noats", ["parts that it refers to are not in it (../gone.xml, NULL)"])
    styles = write(tmp_path / "c.xlsx", good, xl__styles="<styleSheet", xl__strings="no XML")
    text, notes = read(collect, styles)
    assert text == "Stock\noats"
    assert [note.partition(" (")[0] for note in notes] == [said.format("xl/strings.xml"), said.format("xl/styles.xml")]
    validation = '<dataValidations count="x"><dataValidation type="whatever" sqref="??"/></dataValidations>'
    assert read(collect, write(tmp_path / "d.xlsx", good, after=validation)) == ("Stock\noats", [])
    (entry,) = collect(write(tmp_path / "e.xlsx", "", xl__sheets__one="no XML"))
    assert entry.state == "failed"
    assert entry.reason.text().startswith("damaged, or no XLSX file (its part xl/sheets/one.xml is damaged")


def test_impossible_properties(tmp_path: Path, collect: Collect) -> None:
    core = (
        '<p:coreProperties xmlns:p="p" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:t="http://purl.org/dc/terms/">'
        "<t:created>2021-13-45T99:00</t:created><dc:title>Kettles</dc:title><dc:creator>Ada</dc:creator></p:coreProperties>"
    )
    package = relationships("officeDocument xl/workbook.xml", "core-properties docProps/core.xml")
    path = write(tmp_path / "a.xlsx", f"<row>{cell(17)}</row>", docProps__core=core)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | {"_rels/.rels": package.encode()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.document.title, entry.document.text, entry.document.metadata["author"]) == (
        "Kettles",
        "Stock\n17",
        "Ada",
    )
    assert entry.notes == ()


@pytest.mark.parametrize("place", ["", "A0", "ZZZZ9", "XFE1", "é"])
def test_cells_without_a_place_follow_the_cell_before_them(tmp_path: Path, collect: Collect, place: str) -> None:
    rows = f"<row>{cell(1, place='B1')}{cell(2, place=place if place != 'A0' else '')}</row>"
    assert read(collect, write(tmp_path / "a.xlsx", rows)) == ("Stock\n1\t2", [])


def test_what_is_hidden_is_read_and_noted(tmp_path: Path, collect: Collect) -> None:
    def rows(columns: str) -> str:
        return f'{columns}<row>{cell("a")}{cell("b")}</row><row hidden="1">{cell("c")}{cell("d")}</row>'

    columns = '<cols><col min="2" max="16384" hidden="true"/><col min="1" max="x" hidden="1"/></cols>'
    path = write(tmp_path / "a.xlsx", rows(columns))
    note = "it hides {}: read too"
    assert read(collect, path) == ("Stock\na\tb\nc\td", [note.format("3 cells")])
    sheet = '<sheet name="Lists" state="veryHidden" r:id="r0"/>'
    book = f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{sheet}</sheets></workbook>'
    assert read(collect, write(path, rows(""), xl__workbook=book))[1] == [note.format("1 sheet (1), 2 cells")]
