"""The text of PDFs: words at the ends of lines, numbers of narrow tables, and every word of a page."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pdf_files import write

from likewise.readers.formats import pdf

DIGIT_WIDTH, POINT_WIDTH, LETTER_WIDTHS = (
    556,
    278,
    {"m": 833, "i": 222, "l": 222, "t": 278, "a": 556, "e": 556, "n": 556},
)
"""Advance widths of Helvetica, in thousandths of its size."""


def lines(*texts: str) -> str:
    """Return a content stream with one line of text below the other."""
    return "BT /F1 12 Tf 50 750 Td " + " 0 -14 Td ".join(f"({text}) Tj" for text in texts) + " ET"


def cells(*placed: tuple[float, str], size: float = 12, y: float = 700) -> str:
    """Return a content stream with texts on one line, each at its x."""
    return "".join(f"BT /F1 {size} Tf {x:.3f} {y} Td ({text}) Tj ET " for x, text in placed)


def width(text: str, size: float) -> float:
    each = (LETTER_WIDTHS.get(char, POINT_WIDTH if char == "." else DIGIT_WIDTH) for char in text)
    return size / 1000 * sum(each)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (["It is a well-", "known fact."], "It is a well-known fact."),
        (["Pain and ill-", "ness."], "Pain and illness."),
        (["An exam-", "ple."], "An example."),
        # The document has the joined word, or the one with a hyphen, elsewhere.
        (["A well-", "ness hotel, for wellness."], "A wellness hotel, for wellness."),
        (["The co-", "operation is a co-operation."], "The co-operation is a co-operation."),
        # Both parts are words of the document, as they are written.
        (["A client-", "server system: one server, one client."],
         "A client-server system: one server, one client."),
        (["Die Haus-", "meister haben ein Haus und einen Meister."],
         "Die Hausmeister haben ein Haus und einen Meister."),
        # What hyphenation never does.
        (["An e-", "mail, an X-", "ray, non-", "European, COVID-", "19, 8-", "10 days, state-of-", "the-art."],
         "An e-mail, an X-ray, non-European, COVID-19, 8-\n10 days, state-of-the-art."),
    ],
)  # fmt: skip
def test_hyphens_at_line_ends(tmp_path: Path, page: list[str], expected: str) -> None:
    assert pdf.read(str(write(tmp_path / "a.pdf", lines(*page)))).text == expected


def test_words_of_other_pages_count_and_soft_hyphens_go(tmp_path: Path) -> None:
    content = pdf.read(str(write(tmp_path / "a.pdf", lines("A long-", "bow."), lines("The longbow."))))
    assert content.text == "A longbow.\n\nThe longbow."
    assert list(
        pdf.join_lines(["a soft\xadly broken exam\ufffeple", "cut\x02\r\nting", "mis\x02under\x02standing"])
    ) == [
        "a softly broken example",
        "cutting",
        "misunderstanding",
    ]


@pytest.mark.parametrize("gap", [0.104, 0.2, 0.3, 1, 5])
@pytest.mark.parametrize("size", [6, 10, 12])
def test_numbers_of_neighbouring_cells(tmp_path: Path, gap: float, size: float) -> None:
    x = 50 + width("17.25", size) + gap * size
    page = cells((50, "17.25"), (x, "8"), (x + width("8", size) + gap * size, "120"), size=size)
    assert pdf.read(str(write(tmp_path / "a.pdf", page))).text == "17.25 8 120"


def test_one_number_stays_one(tmp_path: Path) -> None:
    single = [(50 + width("1234.5"[:at], 12), character) for at, character in enumerate("1234.5")]
    spaced = "BT /F1 12 Tf 2 Tc 50 600 Td (Chapter 12 of 3) Tj 0 Tc ET"
    kerned = "BT /F1 12 Tf 50 500 Td [(In 2) 40 (02) -60 (4, H) 20 (2) -30 (O)] TJ ET"
    text = pdf.read(str(write(tmp_path / "a.pdf", cells(*single) + spaced + " " + kerned))).text
    assert text == "1234.5\nChapter 12 of 3\nIn 2024, H2O"


def test_text_outside_the_page_is_left_out_and_does_not_move_the_gaps(tmp_path: Path) -> None:
    x = 50 + width("17.25", 12) + 1.6
    page = cells((900, "printer mark 1"), y=720) + cells((50, "17.25"), (x, "8"))
    assert pdf.read(str(write(tmp_path / "a.pdf", page))).text == "17.25 8"


def test_every_word_of_a_page_is_in_its_text(tmp_path: Path) -> None:
    """The words are drawn one by one, in any order of the lines, and are what the text has."""
    source = random.Random(11)
    pages, expected = [], []
    for _ in range(40):
        size, y, page, words = source.choice([7, 9, 12]), 760.0, "", []
        for _ in range(12):
            x = 40.0
            for _ in range(source.randint(1, 6)):
                letters = "".join(source.choices("mniltae", k=source.randint(2, 9)))
                word = source.choice([letters, f"{source.uniform(0, 900):.2f}", str(source.randint(0, 9999))])
                page += cells((x, word), size=size, y=y)
                words.append(word)
                x += width(word, size) + size * source.uniform(0.26, 3)
            y -= 2 * size
        pages.append(page)
        expected.append(words)
    content = pdf.read(str(write(tmp_path / "a.pdf", *pages)))
    ends = [section.start for section in content.sections[1:]] + [len(content.text)]
    texts = [content.text[section.start : end] for section, end in zip(content.sections, ends, strict=True)]
    assert [text.split() for text in texts] == expected


HEBREW = {chr(code): chr(0x5D0 + code - ord("A")) for code in range(ord("A"), ord("A") + 26)}
"""The letter that a font for Hebrew shows for each letter of A to Z."""


def right_to_left(path: Path, content: str) -> str:
    """Return the text of a page in a font that shows Hebrew for capital letters, and other characters as they are."""
    pairs = "".join(f"<{ord(code):02X}> <{ord(letter):04X}>\n" for code, letter in HEBREW.items())
    cmap = f"1 begincodespacerange <00> <FF> endcodespacerange {len(HEBREW)} beginbfchar\n{pairs}endbfchar"
    font = "<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding/ToUnicode 4 0 R>>"
    write(path, content, font=font, more=[f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream"])
    return pdf.read(str(path)).text


def hebrew(text: str) -> str:
    return "".join(HEBREW.get(letter, letter) for letter in text)


@pytest.mark.parametrize("order", ["placed", "read", "words turned", "any"])
def test_lines_from_right_to_left_are_as_they_are_read(tmp_path: Path, order: str) -> None:
    """A file may draw the letters in any order. The line reads ABCD EFG 24/10/2022 HI, then Latin, then JKL."""
    words = [".LKJ", "ada and eve", "IH", "24/10/2022", "GFE", "DCBA"]  # from the left
    letters = [(at, letter) for at, letter in enumerate(" ".join(words)) if letter != " "]
    if order == "read":
        letters.reverse()
    elif order == "words turned":
        letters = sorted(letters, key=lambda each: (-sum(at < each[0] for at in (5, 17, 20, 31, 35)), each[0]))
    elif order == "any":
        random.Random(5).shuffle(letters)
    drawn = cells(*((50 + 7.2 * at, letter) for at, letter in letters))
    expected = hebrew("ABCD EFG 24/10/2022 HI ada and eve JKL.")
    assert right_to_left(tmp_path / "a.pdf", drawn) == expected


def test_a_word_from_right_to_left_in_a_line_of_latin(tmp_path: Path) -> None:
    text = right_to_left(tmp_path / "a.pdf", lines("the word GFE DCBA is two.", "next line 12.5"))
    assert text == hebrew("the word ABCD EFG is two.\nnext line 12.5")
