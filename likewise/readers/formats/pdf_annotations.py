"""Texts on a page of a PDF that are not in its content: form fields, buttons, and annotations with text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import byref, cast, create_string_buffer
from dataclasses import dataclass
from typing import Any

import pypdfium2
from pypdfium2 import raw

_WITH_TEXT = {raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_WATERMARK}
"""Annotations whose text is on the page. The text of other annotations is in a separate window, or belongs to the
page."""

_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13  # a flag of text fields (ISO 32000-1, table 228)
_BOXES = {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}
_CHOICES = {raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
_NAME = re.compile(r"[^\W\d][^\W\d]+(?:[ -][^\W\d]+)*")
_WORD_END, _WORD_START = re.compile(r"\s|$"), re.compile(r"\S*\Z")


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle on a page, whose y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def middle(self) -> float:
        return (self.bottom + self.top) / 2

    def gap_to(self, other: Rectangle) -> float:
        """Return the horizontal gap to another rectangle; 0 if they have an x in common."""
        return max(self.left - other.right, other.left - self.right, 0.0)


@dataclass(frozen=True, slots=True)
class PlacedText:
    """The text of a field or annotation, its place, and its text with the field's name for a row without words."""

    text: str
    place: Rectangle
    named: str


def placed_texts(document: pypdfium2.PdfDocument, number: int, content: pypdfium2.PdfTextPage) -> list[PlacedText]:
    """Return the texts of a page's fields and annotations, row by row. Texts that are also in the page's content are
    left out.

    Args:
        number: number of the page, counted from 0.
        content: the text of its content.
    """
    page, placed, drawn = content.page, list[PlacedText](), list[Rectangle]()
    for index in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        with _annotation(page, index) as annotation:
            place = _place(page, annotation)
            text = None if place is None else _text_of(document.formenv, annotation)
            name = "" if place is None else _name_of(document.formenv, annotation)
        if place is not None and text is None:
            drawn.append(place)
        elif place is not None and text and _squeezed(text) not in _squeezed(_inside(content, place)):
            placed.append(PlacedText(text, place, f"{name}: {text}" if name else text))
    if drawn:
        placed += _drawn_texts(document, number, content, drawn)
    return sorted(placed, key=lambda each: (-each.place.middle, each.place.left))


def insertions(
    text: str, characters: Mapping[int, Rectangle], placed: Sequence[PlacedText]
) -> Iterator[tuple[int, str]]:
    """Yield the offsets at which texts are to be inserted into the text of a page, in order, and what to insert.

    A text is put beside the nearest word of its row, or else below the row that is above it.

    Args:
        characters: the places of characters of the text, by their offsets.
        placed: in the order of `placed_texts`.
    """
    found: list[tuple[int, int, str]] = []
    row_below: dict[int, Rectangle] = {}
    for each in placed:
        place = each.place
        row = [(offset, box) for offset, box in characters.items() if box.bottom <= place.middle <= box.top]
        above = [(offset, box) for offset, box in characters.items() if box.bottom > place.middle]
        if row:
            offset, box = min(row, key=lambda item: (item[1].gap_to(place), item[1].left))
            is_after = box.left + box.right <= place.left + place.right
            word = _WORD_END.search(text, offset) if is_after else _WORD_START.search(text, 0, offset)
            assert word is not None
            found.append((word.start(), 0, f" {each.text}") if is_after else (word.start(), 2, f"{each.text} "))
        elif above:
            offset, _ = min(above, key=lambda item: (item[1].gap_to(place) > 0, item[1].bottom, -item[0]))
            end = re.compile(r"[\r\n]|$").search(text, offset)
            assert end is not None
            before = row_below.get(end.start())
            in_row = before is not None and before.bottom <= place.middle <= before.top
            row_below[end.start()] = place
            found.append((end.start(), 1, f"{' ' if in_row else chr(10)}{each.named}"))
        else:
            found.append((0, 1, f"{each.named}\n"))
    for offset, _, inserted in sorted(found, key=lambda item: item[:2]):
        yield offset, inserted


@contextmanager
def _annotation(page: pypdfium2.PdfPage, index: int) -> Iterator[Any]:
    annotation = raw.FPDFPage_GetAnnot(page.raw, index)
    try:
        yield annotation
    finally:
        raw.FPDFPage_CloseAnnot(annotation)


def _place(page: pypdfium2.PdfPage, annotation: Any) -> Rectangle | None:
    """Return the place of an annotation with text; None if it has none, is hidden, or is not on the page."""
    box = raw.FS_RECTF()
    if raw.FPDFAnnot_GetSubtype(annotation) not in _WITH_TEXT or raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
        return None
    if not raw.FPDFAnnot_GetRect(annotation, byref(box)):
        return None
    (left, right), (bottom, top) = sorted((box.left, box.right)), sorted((box.bottom, box.top))
    page_left, page_bottom, page_right, page_top = page.get_bbox()
    is_seen = page_left < right > left < page_right and page_bottom < top > bottom < page_top
    return Rectangle(left, bottom, right, top) if is_seen else None


def _text_of(form: pypdfium2.PdfFormEnv | None, annotation: Any) -> str | None:
    """Return the text of an annotation; None if only its drawing contains the text."""
    if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
        return _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents") or None
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else raw.FPDF_FORMFIELD_UNKNOWN
    if kind in _BOXES:
        return "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
    if kind in _CHOICES:
        options = range(max(0, raw.FPDFAnnot_GetOptionCount(form, annotation)))
        chosen = [index for index in options if raw.FPDFAnnot_IsOptionSelected(form, annotation, index)]
        labels = [_string(raw.FPDFAnnot_GetOptionLabel, form, annotation, index) for index in chosen]
        return ", ".join(labels) or _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    if kind == raw.FPDF_FORMFIELD_TEXTFIELD:
        if raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
            return ""
        return _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    return None


def _name_of(form: pypdfium2.PdfFormEnv | None, annotation: Any) -> str:
    """Return what a person calls a field: its description, or the last part of its name if that is made of words."""
    if form is None or raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
        return ""
    described = _string(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    name = _string(raw.FPDFAnnot_GetFormFieldName, form, annotation).rpartition(".")[2]
    return " ".join((described or (name if _NAME.fullmatch(name) else "")).rstrip(": ").split())


def _string(function: Callable[..., int], *arguments: Any) -> str:
    """Return the text that a function of PDFium writes into a buffer, in UTF-16."""
    size = function(*arguments, None, 0)
    buffer = create_string_buffer(size)
    function(*arguments, cast(buffer, function.argtypes[-2]), size)  # type: ignore[attr-defined]
    text = buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")
    return "\n".join(text.replace("\r\n", "\n").replace("\r", "\n").strip().splitlines())


def _drawn_texts(
    document: pypdfium2.PdfDocument, number: int, content: pypdfium2.PdfTextPage, places: Sequence[Rectangle]
) -> Iterator[PlacedText]:
    """Yield the texts that annotations draw at these places: the caption of a button, the words of a stamp."""
    page = document[number]  # another handle: drawing into the page would invalidate the first one
    raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY)
    page.close()
    page = document[number]  # only a new handle has what was drawn
    drawn = page.get_textpage()
    for place in places:
        before, after = _inside(content, place).split(), _inside(drawn, place).split()
        words = after[len(before) :] if after[: len(before)] == before else after
        if words:
            text = " ".join(words)
            yield PlacedText(text, place, text)
    drawn.close()
    page.close()


def _inside(page: pypdfium2.PdfTextPage, place: Rectangle) -> str:
    text: str = page.get_text_bounded(place.left, place.bottom, place.right, place.top)
    return text


def _squeezed(text: str) -> str:
    return "".join(text.split())
