"""PDF: letters that are drawn twice, fonts that do not say which letters they draw, and damaged pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pdf_files import words, write

from likewise.readers.formats import pdf

WIDTHS = {"H": 722, "i": 222, "l": 222, "e": 556, "o": 556, "w": 722, "r": 333, "d": 556, " ": 278, "1": 556}
LINES = ("Hello world", "Second line", "Third line of it", "A fourth", "A fifth", "A sixth", "A seventh", "An eighth")
GARBLED = (
    "the fonts of 1 of 2 pages do not say which letters they draw (1): run them through OCR, or name a program in "
    "[extractors]"
)


def lines(offset: float) -> str:
    placed = ((100 + offset, 700 - 14 * row, line) for row, line in enumerate(LINES))
    return "".join(f"BT /F1 12 Tf {x} {y} Td ({line}) Tj ET " for x, y, line in placed)


def cmap(first: int) -> str:
    pairs = " ".join(f"<{code:02x}> <{first + code:04x}>" for code in range(33, 127))
    space = "1 begincodespacerange <00> <FF> endcodespacerange"
    body = f"begincmap /CMapName /X def /CMapType 2 def {space} 94 beginbfchar {pairs} endbfchar endcmap"
    return f"<</Length {len(body)}>>stream\n{body}\nendstream"


@pytest.mark.parametrize("offset", [0, 0.4, 0.8, 1.2])
def test_a_letter_that_is_drawn_again_is_one(tmp_path: Path, offset: float) -> None:
    letters, x = "", 100.0
    for letter in "Hello world Hill 111":
        for place in (x, x + offset):
            letters += f"BT /F1 12 Tf {place:.3f} 700 Td ({letter}) Tj ET "
        x += WIDTHS[letter] * 12 / 1000
    assert pdf.read(str(write(tmp_path / "a.pdf", letters))).text == "Hello world Hill 111"
    text = pdf.read(str(write(tmp_path / "b.pdf", lines(0) + lines(offset)))).text
    assert text == "\n".join(LINES)


def test_a_word_that_is_drawn_twice_in_its_line_is_one(tmp_path: Path) -> None:
    shadowed = "".join(
        f"BT /F1 12 Tf {100 + 50 * number + offset} 700 Td ({word}) Tj ET "
        for number, word in enumerate(("the", "lazy", "lazy", "dog"))
        for offset in (0, 1.1)
    )
    assert pdf.read(str(write(tmp_path / "a.pdf", shadowed))).text == "the lazy lazy dog"


@pytest.mark.parametrize("first", [0xE000, 0x0C00], ids=["private", "Telugu and unassigned"])
def test_letters_that_nobody_can_read_are_noted(tmp_path: Path, first: int) -> None:
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 4 0 R>>"
    page = words((100, 700, "Hello world"))
    content = pdf.read(str(write(tmp_path / "a.pdf", page, "", font=font, more=[cmap(first)])))
    assert [note.text() for note in content.unread] == [GARBLED]
    assert content.unread_pages == (1,)


def test_a_font_without_unicode_is_noted(tmp_path: Path) -> None:
    font = "<</Type/Font/Subtype/Type0/BaseFont/ABCDEF+X/Encoding/Identity-H/DescendantFonts[4 0 R]>>"
    below = (
        "<</Type/Font/Subtype/CIDFontType2/BaseFont/ABCDEF+X/DW 600"
        "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>"
    )
    page = "BT /F1 12 Tf 100 700 Td <002400250026000300270028> Tj ET"
    content = pdf.read(str(write(tmp_path / "a.pdf", page, "", font=font, more=[below])))
    assert [note.text() for note in content.unread] == [GARBLED]


def test_a_damaged_page_costs_that_page(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.pdf", words((100, 700, "First")), words((100, 700, "Second")), words((100, 700, "Third"))
    )
    raw = path.read_bytes()
    start = raw.index(b"/Kids[") + 6
    first, second = raw[start : raw.index(b"]", start)].split(b" 0 R")[:2]
    broken = raw.replace(b"/Kids[" + first + b" 0 R" + second, b"/Kids[" + first + b" 0 R" + b" 3", 1)
    path.write_bytes(broken)  # the second page is a font
    content = pdf.read(str(path))
    assert (content.text, [section.page for section in content.sections]) == ("First\n\nThird", [1, 3])
    assert [note.text() for note in content.unread] == [
        "1 of 3 pages are damaged and were not read (2): print the file into a new PDF"
    ]
