"""The picture of a page of a PDF, with places of its text marked: by the boxes that PDFium has for the characters."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref
from io import BytesIO
from math import sqrt
from typing import Any

import pypdfium2
from pypdfium2 import raw

from indexer.ledger import Code
from indexer.sources.content import Unreadable

_SCALE = 2.0
"""Pixels per point (1/72 inch): 144 pixels per inch."""
_MAX_PIXELS = 4_000_000
_COLOURS = ((255, 244, 180), (255, 213, 79))
"""Colours of the marks, which are multiplied with the page: of the passage, and of the sentence in it."""
_LEFT_OUT = re.compile(r"[\s\x00-\x1f\x7f\xad\ufffe‐-]+")
"""Blanks and hyphens: where a line ends, the index may have them otherwise than the page."""

Box = tuple[float, float, float, float]


def answer(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """Answer a request of original.py in the worker process. Raises Unreadable if the file cannot be opened."""
    try:
        png, is_marked, pages = draw(data, request["page"], request["text"], request["marks"])
    except MemoryError:
        raise
    except Exception as error:  # parsers raise anything on damaged files
        raise Unreadable(Code.NOT_PDF(error)) from error
    return {"png": b64encode(png).decode(), "is_marked": is_marked, "pages": pages}


def draw(data: bytes, number: int, text: str, marks: Sequence[Sequence[int]]) -> tuple[bytes, bool, int]:
    """Return a page as PNG, whether the marks are drawn, and how many pages there are. Without the page, b"".

    Args:
        number: of the page, from 1.
        text: the text of the page in the index. If the page has another text, nothing is marked.
        marks: start and end of each mark in this text; a later mark is drawn over an earlier one.

    Raises:
        pypdfium2.PdfiumError: it cannot be opened.
    """
    document = pypdfium2.PdfDocument(data)
    pages = len(document)
    if not 1 <= number <= pages:
        return b"", False, pages
    page = document[number - 1]
    places = _places(page, text) if marks else None
    for (start, end), colour in zip(marks, _COLOURS, strict=False):
        for box in _lines([places[at] for at in range(start, end) if at in places]) if places else ():
            _paint(page, box, colour)
    width, height = page.get_size()
    scale = min(_SCALE, sqrt(_MAX_PIXELS / max(1.0, width * height)), _MAX_PIXELS / 400 / max(1.0, width, height))
    file = BytesIO()
    page.render(scale=scale).to_pil().save(file, "PNG")
    return file.getvalue(), bool(places), pages


def _places(page: pypdfium2.PdfPage, text: str) -> dict[int, Box] | None:
    """Return the box of each character of the text; None if the page has another text."""
    text_page = page.get_textpage()
    offsets = [offset for offset, character in enumerate(text) if not _LEFT_OUT.match(character)]
    indexes = [
        index
        for index in range(text_page.count_chars())
        if not _LEFT_OUT.match(chr(raw.FPDFText_GetUnicode(text_page.raw, index)))
    ]
    if len(offsets) != len(indexes) or any(
        text[offset] != chr(raw.FPDFText_GetUnicode(text_page.raw, index))
        for offset, index in zip(offsets, indexes, strict=True)
    ):
        return None
    return {offset: _box(text_page, index) for offset, index in zip(offsets, indexes, strict=True)}


def _box(page: pypdfium2.PdfTextPage, index: int) -> Box:
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(page.raw, index, byref(box))
    return box.left, box.bottom, box.right, box.top


def _lines(boxes: Sequence[Box]) -> Iterator[Box]:
    """Yield the boxes of neighbours in a line as one box."""
    line: Box | None = None
    for box in boxes:
        if line is not None and abs(box[1] - line[1]) < (line[3] - line[1]) / 2 and line[0] <= box[0]:
            line = (line[0], min(line[1], box[1]), max(line[2], box[2]), max(line[3], box[3]))
            continue
        if line is not None:
            yield line
        line = box
    if line is not None:
        yield line


def _paint(page: pypdfium2.PdfPage, box: Box, colour: tuple[int, int, int]) -> None:
    """Lay a colour over a part of the page, under which black stays black."""
    left, bottom, right, top = box
    painted = raw.FPDFPageObj_CreateNewRect(left, bottom, right - left, top - bottom)
    raw.FPDFPageObj_SetFillColor(painted, *colour, 255)
    raw.FPDFPath_SetDrawMode(painted, raw.FPDF_FILLMODE_ALTERNATE, False)
    raw.FPDFPageObj_SetBlendMode(painted, b"Multiply")
    raw.FPDFPage_InsertObject(page.raw, painted)
