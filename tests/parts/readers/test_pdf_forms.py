"""Fields of PDF forms, annotations with text, and notes on what a PDF has and nobody read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pdf_files import PIXEL, SCAN, words, write

from indexer.ledger import Code
from indexer.sources.content import Skip
from likewise.readers.formats import pdf


def field(kind: str, rectangle: str, members: str = "", drawn: str = "") -> str:
    caption = f"BT /F1 12 Tf 2 5 Td ({drawn}) Tj ET|" if drawn else ""
    return f"{caption}/Subtype/Widget/FT/{kind}/F 4/T(f{rectangle})/Rect[{rectangle}]/DA(/F1 12 Tf){members}"


def free_text(rectangle: str, text: str, members: str = "") -> str:
    return f"/Subtype/FreeText/F 4/DA(/F1 12 Tf)/Rect[{rectangle}]/Contents({text}){members}"


@pytest.fixture
def text_of(tmp_path: Path) -> Callable[..., str]:
    def read(*pages: tuple[str, Sequence[str]], **named: Any) -> str:
        content = pdf.read(str(write(tmp_path / "form.pdf", *pages, more=[PIXEL], **named)))
        return content.text.replace("\r\n", "\n")

    return read


def test_values_are_beside_the_words_of_their_row_on_every_page(text_of: Callable[..., str]) -> None:
    first = words((50, 750, "Application"), (50, 700, "Name:"), (300, 700, "Born:"), (50, 650, "Signed in Bern"))
    name = field("Tx", "100 695 280 715", "/V(Wilhelmina Oddfellow)", drawn="Wilhelmina Oddfellow")
    born = field("Tx", "340 695 500 715", "/V(1911-04-03)")
    empty = field("Tx", "100 595 280 615")
    second = words((50, 700, "Remarks"), (50, 500, "The end"))
    remarks = field("Tx", "50 600 500 680", "/Ff 4096/V(None so far.\\rAsk again.)")
    assert text_of((first, [born, empty, name]), (second, [remarks])) == (
        "Application\nName: Wilhelmina Oddfellow Born: 1911-04-03\nSigned in Bern\n\n"
        "Remarks\nNone so far.\nAsk again.\nThe end"
    )


def test_boxes_choices_buttons_and_free_text(text_of: Callable[..., str]) -> None:
    states = "/MK<</CA(4)>>/AP<</N<</Yes 4 0 R/Off 4 0 R>>>>"
    page = words((70, 700, "Married"), (70, 680, "Retired"), (50, 650, "Country:"), (50, 600, "Colours:"))
    annotations = [
        field("Btn", "50 698 62 710", f"/V/Yes/AS/Yes{states}"),
        field("Btn", "50 678 62 690", f"/V/Off/AS/Off{states}"),
        field("Ch", "110 645 200 665", "/Ff 131072/Opt[[(ch)(Switzerland)][(no)(Norway)]]/V(no)"),
        field("Ch", "110 580 200 620", "/Ff 2097152/Opt[(red)(green)(blue)]/V[(red)(blue)]"),
        field("Btn", "50 540 150 560", "/Ff 65536/MK<</CA(Send it)>>", drawn="Send it"),
        free_text("300 645 500 665", "Checked by Ada"),
        "BT /F1 12 Tf 2 5 Td (Approved) Tj ET|/Subtype/Stamp/F 4/Rect[300 540 450 560]",
    ]
    assert text_of((page, annotations)) == (
        "[x] Married\n[ ] Retired\nCountry: Norway Checked by Ada\nColours: red, blue\nSend it Approved"
    )


def test_what_is_hidden_or_in_the_page_already_is_not_written(text_of: Callable[..., str]) -> None:
    page = words((50, 700, "Name: Ada Lovelace"))
    annotations = [
        field("Tx", "80 695 300 715", "/V(Ada Lovelace)"),
        field("Tx", "300 600 400 620", "/V(a secret)").replace("/F 4", "/F 2"),
        field("Tx", "300 560 400 580", "/V(not on screen)").replace("/F 4", "/F 32"),
        field("Tx", "300 520 400 540", "/Ff 8192/V(password)"),
        field("Tx", "0 0 0 0", "/V(no place)"),
        field("Tx", "900 520 950 540", "/V(off the page)"),
        "/Subtype/Text/F 4/Rect[300 400 320 420]/Contents(a note in a window)",
        "/Subtype/Link/F 4/Rect[50 695 200 715]/Contents(a link)",
    ]
    assert text_of((page, annotations)) == "Name: Ada Lovelace"


def test_a_form_without_other_text_has_the_text_of_its_fields(text_of: Callable[..., str]) -> None:
    fields = [field("Tx", "50 600 200 620", "/V(below)"), field("Tx", "50 700 200 720", "/V(above)")]
    assert text_of(("", fields)) == "above\nbelow"


def test_fields_in_rows_without_words_have_their_names(text_of: Callable[..., str]) -> None:
    """A name that a program gave ("topmostSubform[0].f1_2[0]", "Text7") says nothing, and is left out."""
    page = words((50, 760, "Application"), (50, 600, "Born:"))
    names = ("/T(Family name)", "/T(form.x12)/TU(Town: )", "/T(a[0].Text7[0])", "/T(Birthday)")
    values = ("Oddfellow", "Bern", "twice", "1911-04-03")
    places = ("100 700 280 720", "100 670 280 690", "100 640 280 660", "100 595 280 615")
    fields = [
        f"/Subtype/Widget/FT/Tx/F 4/Rect[{place}]/DA(/F1 12 Tf)/V({value}){name}"
        for place, value, name in zip(places, values, names, strict=True)
    ]
    assert text_of((page, fields)) == "Application\nFamily name: Oddfellow\nTown: Bern\ntwice\nBorn: 1911-04-03"


def test_pages_without_text_are_noted(tmp_path: Path) -> None:
    written, scan, blank = (words((50, 700, "A page of text")), []), (SCAN, []), ("", [])
    stamped = (f"{SCAN} {words((50, 20, 'Page 6'))}", [])
    path = write(tmp_path / "a.pdf", written, scan, blank, scan, scan, stamped, more=[PIXEL])
    content = pdf.read(str(path))
    assert content.unread == (Code.PAGES_WITHOUT_TEXT(3, 6, "2, 4-5"), Code.PICTURE_PAGES(1, 6, "6"))
    assert [section.page for section in content.sections] == [1, 6]
    with_picture = (
        f"q 600 0 0 500 0 0 cm /Im1 Do Q {words((50, 700, 'A title under which there is a picture only'))}",
        [],
    )
    assert pdf.read(str(write(tmp_path / "b.pdf", written, with_picture, blank, more=[PIXEL]))).unread == ()
    with pytest.raises(Skip):
        pdf.read(str(write(tmp_path / "c.pdf", scan, more=[PIXEL])))


def test_files_inside_are_noted(tmp_path: Path) -> None:
    inside = "/Names<</EmbeddedFiles<</Names[(b.csv) 5 0 R]>>>>"
    more = [PIXEL, "<</Type/Filespec/F(b.csv)/UF(b.csv)/EF<</F 6 0 R>>>>", "<</Length 1>>stream\nx\nendstream"]
    path = write(tmp_path / "a.pdf", (words((50, 700, "See the file")), []), root=inside, more=more)
    assert pdf.read(str(path)).unread == (Code.FILES_INSIDE("1 file", "b.csv"),)


def test_a_folder_with_such_files_is_listed(tmp_path: Path, likewise: Any) -> None:
    folder, index = tmp_path / "in", tmp_path / "x.index"
    folder.mkdir()
    write(folder / "scan.pdf", (words((50, 700, "A page of text")), []), (SCAN, []), more=[PIXEL])
    (folder / "a.txt").write_text("a text")
    said = likewise("index", index, folder, "--json")
    said.reported(0, indexed=2, noted=1)
    assert f"1 file not read whole: likewise info {index} --ledger noted" in said.err
    assert likewise("info", index, "--ledger", "noted").out == (
        f"indexed   {folder}/scan.pdf  {Code.PAGES_WITHOUT_TEXT(1, 2, '2').text()}\n"
    )
