"""PPTX with python-pptx: one section per slide, with its number and title, tables and notes included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pptx.package import Package
from pptx.parts.presentation import PresentationPart

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Unreadable
from likewise.readers import archive
from likewise.readers.formats.office_package import OfficePackage, add_comments_and_charts

_NO_TITLES = {"", "PowerPoint Presentation"}  # the defaults of PowerPoint and python-pptx


def read(path: str) -> Content:
    """Read a file. Its title is the presentation's property, or else the title of the first slide."""
    archive.check(path)
    main = Package.open(path).main_document_part  # pptx.Presentation refuses .ppsx, which has the same content
    if not isinstance(main, PresentationPart):
        raise Unreadable(Code.NOT_PPTX(main.content_type))
    presentation = main.presentation
    assembly, first = Assembly(), ""
    for number, slide in enumerate(presentation.slides, 1):
        title = slide.shapes.title
        heading = " ".join(title.text_frame.text.split()) if title is not None else ""
        first = first or heading
        assembly.section(heading, number)
        for text in _texts(slide.shapes):
            assembly.add(text)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            assembly.add(notes.text)
    with OfficePackage(path) as package:
        add_comments_and_charts(package, assembly)
    properties = presentation.core_properties
    metadata: dict[str, str | int] = {"slides": len(presentation.slides)}
    if properties.author:
        metadata["author"] = properties.author
    title_property = (properties.title or "").strip()
    return assembly.content(first if title_property in _NO_TITLES else title_property, metadata)


def _texts(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _texts(shape.shapes)
        elif shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            rows = (("\t".join(" ".join(cell.text.split()) for cell in row.cells)) for row in shape.table.rows)
            yield "\n".join(rows)
