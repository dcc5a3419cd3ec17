"""PPTX: one section per slide, with its number and title. It has the text of shapes, tables and SmartArt, and all boxes
of the notes page. The words of masters and layouts, comments and the words of charts follow the slides. Hidden slides
are read and noted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content
from likewise.readers.formats.office_package import OfficePackage, add_comments_and_charts, diagram_words, qn
from likewise.readers.formats.sheets import hidden_parts

_NO_TITLES = {"", "PowerPoint Presentation"}  # the defaults of PowerPoint and python-pptx
_P, _TABLE, _DIAGRAM = map(qn, ("a:p", "a:tbl", "dgm:relIds"))
_WRITTEN = {qn("a:br"): "\n", qn("a:tab"): "\t", qn("m:den"): "/"}
_OFF = {"0", "false"}


def read(path: str) -> Content:
    """Read a file. Its title is the presentation's property, or else the title of the first slide."""
    with OfficePackage(path) as package:
        presentation = package.main_root("presentation", Code.NOT_PPTX)
        assembly, first, hidden, behind = Assembly(), "", list[int](), dict[str, Any]()
        slides = list(presentation.iterfind(f"{qn('p:sldIdLst')}/{qn('p:sldId')}"))
        for number, reference in enumerate(slides, 1):
            part = package.target(package.main, reference.get(qn("r:id")))
            if (root := package.xml(part)) is not None:
                title = _add_slide(package, part, root, number, assembly)
                first = first or title
                hidden += [number] if root.get("show") in _OFF else []
                _find_behind(package, part, root, behind)
        _add_behind(package, behind, assembly)
        add_comments_and_charts(package, assembly)
        metadata: dict[str, str | int] = {"slides": len(slides)}
        if author := package.property("creator"):
            metadata["author"] = author
        title_property = package.property("title")
        content = assembly.content(first if title_property in _NO_TITLES else title_property, metadata)
        return replace(content, unread=(*package.notes(), *hidden_parts("slide", hidden)))


def _find_behind(package: OfficePackage, part: str, root: Any, behind: dict[str, Any]) -> None:
    """Add the roots of the layout and the master that a slide shows behind its own shapes."""
    for kind in ("slideLayout", "slideMaster"):
        if root is None or root.get("showMasterSp") in _OFF:
            return
        part = next(package.related(part, kind), "")
        if part not in behind:
            behind[part] = package.xml(part)
        root = behind[part]


def _add_behind(package: OfficePackage, behind: Mapping[str, Any], into: Assembly) -> None:
    """Add the words of layouts and masters, each once, as a section. A slide shows its own text for placeholders."""
    texts: dict[str, None] = {}
    for part, root in behind.items():
        for tree in () if root is None else list(root.iter(qn("p:spTree"))):
            for shape in [each for each in tree if each.find(f".//{qn('p:ph')}") is not None]:
                tree.remove(shape)
        texts.update(dict.fromkeys(() if root is None else _texts(package, part, root)))
    into.section("Slide master")
    for text in texts:
        into.add(text if re.search(r"\w", text) else "")  # the number of a slide is a sign there


def _add_slide(package: OfficePackage, part: str, root: Any, number: int, into: Assembly) -> str:
    """Add a slide and its notes as a section, and return its title."""
    titles = (shape for shape in root.iter(qn("p:sp")) if _placeholder(shape) in {"title", "ctrTitle"})
    title = " ".join("\n".join(_texts(package, part, next(titles, ()))).split())
    into.section(title, number)
    for text in _texts(package, part, root):
        into.add(text)
    for notes in package.related(part, "notesSlide"):
        if (page := package.xml(notes)) is not None:
            for shape in list(page.iter(qn("p:sp"))):
                if _placeholder(shape) == "sldNum":
                    shape.getparent().remove(shape)
            for text in _texts(package, notes, page):
                into.add(text)
    return title


def _placeholder(shape: Any) -> str | None:
    """Return the type of a placeholder; None for other shapes."""
    placeholder = shape.find(f"{qn('p:nvSpPr')}/{qn('p:nvPr')}/{qn('p:ph')}")
    return None if placeholder is None else placeholder.get("type")


def _texts(package: OfficePackage, part: str, parent: Any) -> Iterator[str]:
    """Yield the text of each shape, also of those in groups, with one line per paragraph or row of a table."""
    lines: list[str] = []
    for child in parent:
        if child.tag == _P:
            lines.append(_line(child))
        elif child.tag == _TABLE:
            rows = [[cell.iter(_P) for cell in row.iterfind(qn("a:tc"))] for row in child.iterfind(qn("a:tr"))]
            yield "\n".join("\t".join(" ".join(" ".join(map(_line, cell)).split()) for cell in row) for row in rows)
        elif child.tag == _DIAGRAM:
            yield diagram_words(package, part, child)
        elif isinstance(child.tag, str):
            yield from _texts(package, part, child)
    if lines:
        yield "\n".join(lines)


def _line(paragraph: Any) -> str:
    """Return the text of a paragraph, with its fields and equations."""
    texts = {qn("a:t"), qn("m:t")}
    return "".join(_WRITTEN.get(node.tag) or node.text or "" for node in paragraph.iter(*texts, *_WRITTEN))
