"""Formats that are extracted: every file is made here, with the library of its format or byte by byte."""

from __future__ import annotations

import datetime
import json
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import docx
import openpyxl
import pptx
import pytest
from hardware import needs_memory_limit
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI

from indexer.ledger import Code
from indexer.passages.markup import VisibleText
from indexer.records import Document
from indexer.sources import Entry

Collect = Callable[..., list[Entry]]
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def one(collect: Collect, path: Path) -> Document:
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    text = entry.document.text
    starts = [section.start for section in entry.document.sections]
    assert starts == sorted(set(starts))
    assert not starts or (starts[0] == 0 and starts[-1] < len(text))
    return entry.document


def cuts(document: Document) -> list[tuple[str, int | None, str]]:
    """Return heading, page and text of each section."""
    ends = [section.start for section in document.sections[1:]] + [len(document.text)]
    return [
        (section.heading, section.page, document.text[section.start : end].strip())
        for section, end in zip(document.sections, ends, strict=True)
    ]


def pdf(*pages: str, info: str = "", trailer: str = "") -> bytes:
    """A PDF with one line of Helvetica a page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"]
    objects += ["<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for at, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET" if text else ""
        resources = f"/Resources<</Font<</F1 3 0 R>>>>/Contents {5 + 2 * at} 0 R"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]{resources}>>")
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    objects.append(f"<<{info}>>")
    out = "%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj{body}endobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    start = out.index("xref")
    out += f"trailer<</Size {len(objects) + 1}/Root 1 0 R/Info {len(objects)} 0 R{trailer}>>\n"
    out += f"startxref\n{start}\n%%EOF"
    return out.encode("latin-1")


def test_pdf(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf("First page", "", "Third page", info="/Title(A paper)/Author(Ada)"))
    document = one(collect, path)
    assert (document.title, document.format, document.text) == ("A paper", "pdf", "First page\n\nThird page")
    assert cuts(document) == [("", 1, "First page"), ("", 3, "Third page")]
    assert document.metadata == {"pages": 3, "author": "Ada", "size": path.stat().st_size}
    nameless = tmp_path / "no-extension"
    nameless.write_bytes(pdf("Known by its first bytes"))
    assert (one(collect, nameless).format, one(collect, nameless).title) == ("pdf", "no-extension")


@pytest.mark.parametrize(
    ("content", "state", "reason"),
    [
        (pdf(""), "skipped", Code.NO_TEXT_IN_PAGES().text()),
        (b"%PDF-1.4\nbroken", "failed", "damaged: not a readable PDF"),
        (b"no pdf at all", "failed", "damaged: not a readable PDF"),
        (
            pdf(
                "x",
                trailer=f"/ID[<{'00' * 16}><{'00' * 16}>]/Encrypt<</Filter/Standard/V 1/R 2/Length 40/P -4"
                f"/O<{'41' * 32}>/U<{'42' * 32}>>>",
            ),
            "failed",
            "encrypted: save it without a password",
        ),
    ],
)
def test_bad_pdf(tmp_path: Path, collect: Collect, content: bytes, state: str, reason: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    (entry,) = collect(path)
    assert (entry.state, entry.reason.text()[: len(reason)]) == (state, reason)


def test_docx(tmp_path: Path, collect: Collect) -> None:
    file = docx.Document()
    file.core_properties.author = "Ada"
    file.core_properties.title = ""
    file.add_paragraph("Before.")
    file.add_heading("Guide", 1)
    file.add_paragraph("Intro\twith tab.")
    table = file.add_table(2, 2)
    for at, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = f"c{at}"
    file.add_heading("Setup", 2)
    paragraph = file.add_paragraph("Kept ")
    for tag, inner in (("ins", "<w:t>inserted</w:t>"), ("del", "<w:delText>deleted</w:delText>")):
        names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        paragraph._p.append(docx.oxml.parse_xml(f"<w:{tag} {names}><w:r>{inner}</w:r></w:{tag}>"))
    control = docx.oxml.parse_xml(
        f"<w:sdt {names}><w:sdtContent><w:p><w:r><w:t>In a control</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    )
    file.element.body.insert(-1, control)
    path = tmp_path / "guide.docx"
    file.save(path)
    document = one(collect, path)
    assert (document.title, document.format) == ("Guide", "docx")
    assert cuts(document) == [
        ("", None, "Before."),
        ("Guide", None, "Guide\n\nIntro\twith tab.\n\nc0\tc1\nc2\tc3"),
        ("Guide > Setup", None, "Setup\n\nKept inserted\n\nIn a control"),
    ]
    assert document.metadata == {"author": "Ada", "size": path.stat().st_size}


def test_pptx(tmp_path: Path, collect: Collect) -> None:
    file = pptx.Presentation()
    slide = file.slides.add_slide(file.slide_layouts[1])
    slide.shapes.title.text = "Opening"
    slide.placeholders[1].text = "Point one\nPoint two"
    slide.notes_slide.notes_text_frame.text = "Say hello"
    second = file.slides.add_slide(file.slide_layouts[6])
    cells = second.shapes.add_table(1, 2, 0, 0, 100, 100).table
    cells.cell(0, 0).text, cells.cell(0, 1).text = "left", "right"
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 10, 10).text_frame.text = "grouped"
    path = tmp_path / "talk.pptx"
    file.save(path)
    document = one(collect, path)
    assert (document.title, document.format, document.metadata["slides"]) == ("Opening", "pptx", 2)
    assert cuts(document) == [
        ("Opening", 1, "Opening\n\nPoint one\nPoint two\n\nSay hello"),
        ("", 2, "left\tright\n\ngrouped"),
    ]


def parts(document: Document) -> list[tuple[str, str]]:
    """Return the sections of comments and charts."""
    return sorted((heading, text) for heading, _, text in cuts(document) if heading in {"Comments", "Chart"})


def test_comments_and_charts_of_word_and_excel(tmp_path: Path, collect: Collect) -> None:
    letter = docx.Document()
    letter.add_comment(letter.add_paragraph("The rent is due.").runs, "Ask the landlord")
    letter.save(str(tmp_path / "a.docx"))
    assert parts(one(collect, tmp_path / "a.docx")) == [("Comments", "Ask the landlord")]

    book = openpyxl.Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for row in (["fruit", "kilos"], ["apples", 5], ["pears", 7]):
        sheet.append(row)
    sheet["B2"].comment = Comment("weighed twice", "Ada")
    chart = BarChart()
    chart.title = "Harvest"
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart, "D1")
    book.save(tmp_path / "a.xlsx")
    assert parts(one(collect, tmp_path / "a.xlsx")) == [("Chart", "Harvest"), ("Comments", "weighed twice")]


def test_comments_and_charts_of_powerpoint(tmp_path: Path, collect: Collect) -> None:
    slides = pptx.Presentation()
    data = CategoryChartData()
    data.categories = ["north", "south"]
    data.add_series("rain", (1, 2))
    where = (XL_CHART_TYPE.PIE, 0, 0, 9000, 9000)
    slides.slides.add_slide(slides.slide_layouts[6]).shapes.add_chart(*where, data)
    path = tmp_path / "a.pptx"
    comments = b"<p:cmLst xmlns:p='p'><p:cm><p:text>Too wet</p:text></p:cm></p:cmLst>"
    part = Part(PackURI("/ppt/comments/comment1.xml"), "application/xml", slides.part.package, comments)
    slides.slides[0].part.relate_to(part, f"{RELATIONSHIPS}/comments")
    slides.save(str(path))
    assert parts(one(collect, path)) == [("Chart", "rain\nnorth\nsouth"), ("Comments", "Too wet")]


def test_xlsx(tmp_path: Path, collect: Collect) -> None:
    book = openpyxl.Workbook()
    first, second = book.active, book.create_sheet("Prices")
    assert first is not None
    first.title = "People"
    first.append(["name", "born", None, "alive"])
    first.append(["Ada", datetime.date(1815, 12, 10), None, False])
    second["B3"] = 2.5
    second["C3"] = "two\nlines"
    path = tmp_path / "book.xlsx"
    book.save(path)
    document = one(collect, path)
    assert (document.title, document.format, document.metadata["sheets"]) == ("book", "xlsx", 2)
    assert cuts(document) == [
        ("People", 1, "People\nname\tborn\t\talive\nAda\t1815-12-10\t\tFALSE"),
        ("Prices", 2, "Prices\n2.5\ttwo lines"),
    ]


def test_formulas_that_no_program_has_computed_are_noted(tmp_path: Path, collect: Collect) -> None:
    """openpyxl writes formulas without values."""
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(["total", "=SUM(1,2)", "=A1", 7])
    path = tmp_path / "book.xlsx"
    book.save(path)
    (entry,) = collect(path)
    assert entry.document is not None
    assert entry.document.text == "total\t\t\t7"
    said = "for which no value is stored: open it in a spreadsheet program, and save it"
    assert [note.text() for note in entry.notes] == [f"without 2 formulas {said}"]
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = members["xl/worksheets/sheet1.xml"]
    members["xl/worksheets/sheet1.xml"] = sheet.replace(b"<f>SUM(1,2)</f><v></v>", b"<f>SUM(1,2)</f><v>3</v>")
    assert members["xl/worksheets/sheet1.xml"] != sheet
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    (entry,) = collect(path)
    assert [note.text() for note in entry.notes] == [f"without 1 formula {said}"]


def with_sheet(path: Path, sheet: str) -> Path:
    """A workbook whose only sheet is this XML."""
    openpyxl.Workbook().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (members | {"xl/worksheets/sheet1.xml": sheet.encode()}).items():
            archive.writestr(name, data)
    return path


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


@pytest.mark.parametrize(("prefix", "xmlns"), [("", "xmlns"), ("x:", "xmlns:x")])
def test_formulas_are_counted_as_programs_write_them(tmp_path: Path, collect: Collect, prefix: str, xmlns: str) -> None:
    cells = (
        '<c r="A1"><f>C1</f></c>'
        '<c r="B1"><f t="shared" si="0"/><v/></c>'
        '<c r="C1"><f>D1</f><v xml:space="preserve">1</v></c>'
        "<c r='D1' t='str'><f>A1</f><v></v></c>"
        '<c r="E1" s="0"/>'
        '<c r="F1"><!-- <f>A1</f> --><v>5</v></c>'
    )
    sheet = re.sub("<(/?)(?=[a-z])", rf"<\1{prefix}", f"<sheetData><row>{cells}</row></sheetData>")
    path = tmp_path / "a.xlsx"
    (entry,) = collect(with_sheet(path, f'<{prefix}worksheet {xmlns}="{_MAIN}">{sheet}</{prefix}worksheet>'))
    assert entry.document is not None
    assert entry.document.text == "1\t\t\t5"
    assert [note.arguments for note in entry.notes] == [("2 formulas",)]


_COUNT = """
import sys
from likewise.readers.formats import xlsx

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024

before = peak()
content = xlsx.read(sys.argv[1])
print(content.unread[0].arguments[0].partition(" ")[0], peak() - before)
"""


@pytest.mark.slow
@needs_memory_limit
def test_one_row_of_a_sheet_is_in_memory(tmp_path: Path) -> None:
    """Cells without a value that stay in memory would be searched again and again."""
    row = '<row><c s="1"/><c s="1"/><c s="1"/></row>'
    rows = row * (2**23 // len(row)) + "<row><c><f>A1</f></c></row>"
    path = with_sheet(tmp_path / "a.xlsx", f'<worksheet xmlns="{_MAIN}">{rows}</worksheet>')
    answer = subprocess.run([sys.executable, "-c", _COUNT, path], capture_output=True, check=True, text=True).stdout
    count, megabytes = map(int, answer.split())
    assert count == 1
    assert megabytes < 6, "the sheet has 8 MB"


CONTAINER = """<?xml version="1.0"?><container version="1.0"
xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OPS/book.opf"/>
</rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>The Book</dc:title>
<dc:creator>Ada</dc:creator><dc:language>en</dc:language></metadata>
<manifest><item id="two" href="text/2%20b.xhtml"/><item id="one" href="text/1.xhtml"/>
<item id="css" href="a.css"/></manifest>
<spine><itemref idref="one"/><itemref idref="two"/><itemref idref="gone"/></spine></package>"""


def epub(path: Path, **extra: str) -> Path:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{}</title></head><body>{}</body></html>'
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        members = {
            "META-INF/container.xml": CONTAINER,
            "OPS/book.opf": PACKAGE,
            "OPS/text/1.xhtml": page.format("Preface", "<p>Dear reader.</p>"),
            "OPS/text/2 b.xhtml": page.format("x", "<h1>One</h1><p>It began.</p><h2>Later</h2><p>It &eacute;nded.</p>"),
        }
        for name, content in {**members, **extra}.items():
            book.writestr(name, content)
    return path


def test_epub(tmp_path: Path, collect: Collect) -> None:
    document = one(collect, epub(tmp_path / "b.epub"))
    assert (document.title, document.format) == ("The Book", "epub")
    assert cuts(document) == [
        ("Preface", None, "Dear reader."),
        ("One", None, "One\n\nIt began."),
        ("One > Later", None, "Later\n\nIt énded."),
    ]
    assert {"author": "Ada", "lang": "en"}.items() <= document.metadata.items()


@pytest.mark.parametrize("address", ["My%20Book/book.opf", "my book/Book.OPF"])
def test_the_package_of_an_epub_has_an_address(tmp_path: Path, collect: Collect, address: str) -> None:
    page = "<html><body><p>A new beginning.</p></body></html>"
    members = {
        "META-INF/container.xml": CONTAINER.replace("OPS/book.opf", address),
        "My Book/book.opf": PACKAGE,
        "My Book/text/1.xhtml": page,
    }
    assert "A new beginning." in one(collect, epub(tmp_path / "a.epub", **members)).text


def test_bad_epub(tmp_path: Path, collect: Collect) -> None:
    locked = (
        '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>'
        '<enc:CipherReference URI="OPS/text/1.xhtml"/></enc:CipherData></enc:EncryptedData></encryption>'
    )
    (entry,) = collect(epub(tmp_path / "a.epub", **{"META-INF/encryption.xml": locked}))
    assert (entry.state, entry.reason.text()) == ("failed", "encrypted (DRM)")
    with zipfile.ZipFile(tmp_path / "b.epub", "w") as book:
        book.writestr("mimetype", "application/epub+zip")
    (entry,) = collect(tmp_path / "b.epub")
    assert (entry.state, entry.reason.text()) == ("failed", "damaged: no EPUB package in it")


def notebook(path: Path, *cells: dict[str, Any], **members: Any) -> Path:
    metadata = {"language_info": {"name": "python"}}
    path.write_text(json.dumps({"metadata": metadata, "nbformat": 4, "cells": cells, **members}), encoding="utf-8")
    return path


def test_notebook(tmp_path: Path, collect: Collect) -> None:
    picture = {"text/plain": ["<Figure size 640x480>"], "image/png": "iVBORw0KGgo" * 1000}
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["mean \x1b[31m4200\x1b[0m\n"]},
        {"output_type": "stream", "name": "stderr", "text": ["100%|####| 5/5"]},
        {"output_type": "display_data", "data": picture},
        {"output_type": "execute_result", "data": {"text/plain": "Adelie  152", "text/html": "<table>"}},
        {"output_type": "error", "ename": "KeyError", "evalue": "'mass'", "traceback": ["long"]},
    ]
    cells = (
        {"cell_type": "markdown", "source": ["# Penguins\n", "Their [weights](https://example.org/w.csv)."]},
        {"cell_type": "code", "source": ["import pandas\n", "print(1)"], "outputs": outputs},
        {"cell_type": "code", "source": [], "outputs": []},
        {"cell_type": "markdown", "source": "## Results\nGentoo is heavier."},
        {"cell_type": "code", "source": 'help = """\n```\n# no heading\n```\n"""', "outputs": []},
    )
    document = one(collect, notebook(tmp_path / "study.ipynb", *cells))
    assert (document.title, document.format) == ("Penguins", "ipynb")
    assert [heading for heading, _, _ in cuts(document)] == ["Penguins", "Penguins > Results"]
    assert document.text == (
        "# Penguins\nTheir [weights](https://example.org/w.csv).\n\n```python\nimport pandas\nprint(1)\n```\n\n"
        "```\nmean 4200\n```\n\n```\nAdelie  152\n```\n\n```\nKeyError: 'mass'\n```\n\n"
        '## Results\nGentoo is heavier.\n\n````python\nhelp = """\n```\n# no heading\n```\n"""\n````'
    )
    assert "example.org" not in VisibleText.read(document.text, document.format).text


def test_notebook_of_an_old_version_or_damaged(tmp_path: Path, collect: Collect) -> None:
    outputs = [{"output_type": "pyout", "text": ["2"]}, {"output_type": "stream", "stream": "stderr", "text": ["slow"]}]
    cells = [{"cell_type": "code", "input": ["1 + 1"], "outputs": outputs}, {"cell_type": "raw", "source": "plain"}]
    old = {"worksheets": [{"cells": cells}], "nbformat": 3, "metadata": {}}
    assert one(collect, notebook(tmp_path / "old.ipynb", **old)).text == "```\n1 + 1\n```\n\n```\n2\n```\n\nplain"
    (tmp_path / "cut.ipynb").write_text('{"cells": [{"cell', encoding="utf-8")
    (entry,) = collect(tmp_path / "cut.ipynb")
    assert entry.state == "failed"
    assert "JSONDecodeError" in entry.reason.text()
    for content, place in (("[]", "its list of cells"), ("{}", "its list of cells"), ('{"cells": [{}]}', "cell 1")):
        (tmp_path / "other.ipynb").write_text(content)
        (entry,) = collect(tmp_path / "other.ipynb")
        assert entry.reason.text() == f"damaged, or no ipynb file ({place} is not as the format asks)"
    (entry,) = collect(notebook(tmp_path / "empty.ipynb"))
    assert (entry.state, entry.reason.text()) == ("skipped", "holds no text")


def test_web_page_saved_as_mhtml(tmp_path: Path, collect: Collect) -> None:
    page = tmp_path / "page.mhtml"
    page.write_text(
        'Subject: Herons\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary="B"; type="text/html"\n\n'
        "--B\nContent-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n<p>It st=C3=A4nds.</p>\n"
        "--B\nContent-Type: text/css\n\np { color: red }\n--B--\n",
        encoding="ascii",
    )
    document = one(collect, page)
    assert (document.title, document.format, document.text) == ("Herons", "eml", "It ständs.")


MAIL_TEXT = """From: Ada <ada@example.org>
To: b@example.org
Date: Tue, 02 Jan 2024 03:04:05 +0100
Attachments: data.bin

Plain wörds."""


def test_eml(tmp_path: Path, collect: Collect) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Grüße", "Ada <ada@example.org>", "b@example.org"
    message["Date"] = "Tue, 02 Jan 2024 03:04:05 +0100"
    message.set_content("Plain wörds.\n")
    message.add_alternative("<p>Rich words.</p>", subtype="html")
    message.add_attachment(b"\0", maintype="application", subtype="octet-stream", filename="data.bin")
    path = tmp_path / "mail.eml"
    path.write_bytes(bytes(message))
    document = one(collect, path)
    assert (document.title, document.format, document.text) == ("Grüße", "eml", MAIL_TEXT)
    assert document.metadata == {
        "from": "Ada <ada@example.org>",
        "to": "b@example.org",
        "subject": "Grüße",
        "date": "2024-01-02T03:04:05+01:00",
        "attachments": ["data.bin"],
        "size": path.stat().st_size,
    }
    html = EmailMessage()
    html["Subject"] = ""
    html.set_content("<h1>Offer</h1><p>Rich <b>words</b>.</p>", subtype="html", charset="latin-1")
    path.write_bytes(bytes(html))
    document = one(collect, path)
    assert (document.title, document.text) == ("mail", "Offer\n\nRich words.")
    assert [section.heading for section in document.sections] == ["Offer"]


PROSE = "The lighthouse keeper climbed the winding stairs every evening to light the great lamp. " * 4
PAGE = f"""<!doctype html><html lang="en"><head><title>Keeper &amp; lamp</title><style>p {{}}</style>
<meta name="description" content="About a keeper"></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li></ul></nav>
<main><article><h1>The keeper</h1><p>{PROSE}</p><h2>The lamp</h2><p>{PROSE}</p>
<table><tr><td>oil</td><td>wick</td></tr></table><script>track()</script></article></main>
<footer><a href="/privacy">Privacy policy</a></footer></body></html>"""


def test_html(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.html"
    path.write_text(PAGE)
    document = one(collect, path)
    assert (document.title, document.format) == ("Keeper & lamp", "html")
    assert document.metadata == {"description": "About a keeper", "lang": "en", "size": len(PAGE)}
    for unwanted in ("About us", "Privacy", "track"):
        assert unwanted not in document.text
    assert [(heading, text.split("\n")[0]) for heading, _, text in cuts(document)] == [
        ("The keeper", "The keeper"),
        ("The keeper > The lamp", "The lamp"),
    ]
    assert document.text.count(PROSE.strip()) == 2
    assert "oil" in document.text
    assert "wick" in document.text


def test_html_with_little_main_text_is_read_whole(tmp_path: Path, collect: Collect) -> None:
    items = "".join(f"<li>Item number {number} of the list</li>" for number in range(40))
    path = tmp_path / "a.htm"
    path.write_text(
        f"<html><body><nav>Menu</nav><div><h2>Stock</h2><ul>{items}</ul></div><pre>a\n  b</pre></body></html>"
    )
    document = one(collect, path)
    assert "Item number 0 of the list\nItem number 1 of the list\n" in document.text
    assert "Menu" not in document.text
    path.write_text("<p>Tiny &lt;page&gt;</p>")
    assert one(collect, path).text == "Tiny <page>"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="shift_jis">', "shift_jis"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">', "cp1252"),
        ("", "utf-8"),
        ("", "utf-16"),
        ('<?xml version="1.0" encoding="utf-8"?>', "utf-8"),
    ],
)
def test_html_encodings(tmp_path: Path, collect: Collect, head: str, encoding: str) -> None:
    words = "吾輩は猫である。" if encoding == "shift_jis" else "naïve “café”"
    page = (
        f"{head}<html><body><p>{words}</p></body></html>"
        if head.startswith("<?")
        else f"<html><head>{head}</head><p>{words}</p>"
    )
    path = tmp_path / "a.html"
    path.write_bytes(page.encode(encoding))
    assert one(collect, path).text == words


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.epub"])
def test_no_file_of_its_format(tmp_path: Path, collect: Collect, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 wrapped")
    (entry,) = collect(path)
    assert (entry.state, entry.reason.text().split(":")[0]) == ("failed", "encrypted, or of an older format")
    path.write_bytes(b"PK\x03\x04 cut off")
    (entry,) = collect(path)
    assert (entry.state, entry.document) == ("failed", None)
    assert entry.reason.text() == "damaged: not a readable zip file (File is not a zip file)"


def test_a_page_that_is_not_html_is_read_as_the_words_in_it(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.html"
    for content, words in (
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 wrapped", "wrapped"),
        (b"PK\x03\x04 cut off", "cut off"),
    ):
        path.write_bytes(content)
        document = one(collect, path)
        assert (document.format, document.text.partition(" ")[2]) == ("html", words)


def test_each_distinct_header_and_footer_of_a_docx_once(tmp_path: Path, collect: Collect) -> None:
    file = docx.Document()
    file.add_paragraph("Body.")
    file.add_section()
    file.add_section()
    first, second, third = file.sections
    first.header.paragraphs[0].text, first.footer.paragraphs[0].text = "Quarterly report", "Confidential"
    first.header.add_table(1, 2, docx.shared.Inches(4)).rows[0].cells[1].text = "Annex"
    for section, header in ((second, "Draft"), (third, "Quarterly report")):
        section.header.is_linked_to_previous = False
        section.header.paragraphs[0].text = header
    third.header.add_table(1, 2, docx.shared.Inches(4)).rows[0].cells[1].text = "Annex"
    path = tmp_path / "a.docx"
    file.save(str(path))
    assert cuts(one(collect, path)) == [
        ("", None, "Body."),
        ("Header", None, "Quarterly report\n\nAnnex"),
        ("Header", None, "Draft"),
        ("Footer", None, "Confidential"),
    ]


def test_every_word_of_office_files_is_in_their_text(tmp_path: Path, collect: Collect) -> None:
    """The second reader takes all text of the raw XML, whatever it stands in."""
    source = random.Random(3)

    def words() -> str:
        return " ".join("".join(source.choices("abcdefg", k=9)) for _ in range(4))

    word, slides, book = docx.Document(), pptx.Presentation(), openpyxl.Workbook()
    for _ in range(6):
        word.add_heading(words(), source.randint(1, 3))
        word.add_paragraph(words(), style=source.choice(["List Bullet", "Quote", None]))
        table = word.add_table(2, 2)
        for cell in (cell for row in table.rows for cell in row.cells):
            cell.text = words()
        cell.add_table(1, 1).cell(0, 0).text = words()
        word.add_section().header.paragraphs[0].text = words()
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = words(), words()
        slide.notes_slide.notes_text_frame.text = words()
        group = slide.shapes.add_group_shape().shapes.add_group_shape()
        group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = words()
        slide.shapes.add_table(1, 1, 0, 0, 9, 9).table.cell(0, 0).text = words()
        sheet = book.create_sheet(words()[:20])
        sheet.cell(source.randint(1, 9), source.randint(1, 9)).value = words()
    for name, made, parts, tag in (
        ("a.docx", word, r"word/(document|header\d+|footer\d+)\.xml", "}t"),
        ("a.pptx", slides, r"ppt/(slides|notesSlides)/[^/]+\.xml", "}t"),
        ("a.xlsx", book, r"xl/(sharedStrings|worksheets/[^/]+)\.xml", "}t"),
    ):
        made.save(str(tmp_path / name))
        visible: set[str] = set()
        with zipfile.ZipFile(tmp_path / name) as archive:
            for member in filter(re.compile(parts).fullmatch, archive.namelist()):
                root = ElementTree.fromstring(archive.read(member))
                visible.update(*((element.text or "").split() for element in root.iter() if element.tag.endswith(tag)))
        assert len(visible) > 20
        assert visible <= set(one(collect, tmp_path / name).text.split())
