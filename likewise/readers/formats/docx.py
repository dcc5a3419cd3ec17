"""DOCX: paragraphs and tables in the order of the body, with headings as sections; then the notes, each distinct page
header and footer once, comments and the words of charts.

Insertions that are not accepted yet are read, and deletions are left out. Text boxes, SmartArt and imported parts are
read at their places. Hidden words are left out and counted in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from indexer.errors import count_of
from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Content, Headings, Refused
from indexer.sources.encoding import decode
from indexer.sources.formats import format_of
from likewise.readers import inside
from likewise.readers.formats.docx_styles import Numbers, Styles, chosen, symbol
from likewise.readers.formats.office_package import OfficePackage, add_comments_and_charts, diagram_words, qn

_OMITTED = {qn("w:del"), qn("w:moveFrom")}
_WRITTEN = {qn("w:tab"): "\t", qn("w:ptab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_P, _TBL, _TR, _TC, _RUBY = map(qn, ("w:p", "w:tbl", "w:tr", "w:tc", "w:ruby"))
_TEXTS = {qn("w:t"), qn("m:t"), qn("a:t")}  # also in equations and drawings
_SHOWN: dict[str, Callable[[Any], str]] = {
    **{qn("w:sym"): symbol, qn("w:ddList"): chosen},
    qn("v:textpath"): lambda art: f"\n{art.get('string') or ''}",
}
_BEFORE = {qn("m:den"): "/"}
_PARAGRAPHS = {_P, qn("a:p")}
_CHUNK, _EQUATION, _DIAGRAM, _RUN, _FIELD = map(qn, ("w:altChunk", "m:oMathPara", "dgm:relIds", "w:r", "w:fldChar"))


def read(path: str) -> Content:
    """Read a file. Its title is the document's property, or else its first title or heading."""
    with OfficePackage(path) as package:
        return _Document(package).content()


class _Document:
    """The text of a document that is put together from its parts."""

    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._body = package.main_root("document", Code.NOT_DOCX)
        self._styles = Styles(self._related("styles"))
        self._numbers = Numbers(self._related("numbering"), self._styles)
        self._assembly = Assembly()
        self._notes: list[Reason] = []
        self._hidden_words = 0

    def _related(self, kind: str) -> Any:
        """Return the root of the first part of a kind; None without one."""
        return next(map(self._package.xml, self._package.related(self._package.main, kind)), None)

    def content(self) -> Content:
        package, assembly = self._package, self._assembly
        self._strip_hidden(self._body)
        first_heading = self._write_body()
        for kind in ("footnotes", "endnotes"):
            for part in package.related(package.main, kind):
                self._write_part(part, kind.capitalize())
        for kind in ("header", "footer"):
            # A header that changes from page to page has one part for all pages. The same one may be in many sections.
            references = self._body.iter(qn(f"w:{kind}Reference"))
            parts = (package.target(package.main, element.get(qn("r:id"))) for element in references)
            written: set[str] = set()
            for part in dict.fromkeys(parts):
                self._write_part(part, kind.capitalize(), written)
        add_comments_and_charts(package, assembly)
        author = package.property("creator")
        content = assembly.content(package.property("title") or first_heading, {"author": author} if author else {})
        hidden = count_of(self._hidden_words, "word")
        notes = [Code.HIDDEN_PARTS(hidden, "left out")] if self._hidden_words else []
        return replace(content, unread=(*package.notes(), *self._notes, *notes))

    def _write_body(self) -> str:
        """Write the body, and return its first heading."""
        headings, first_heading, main = Headings(), "", self._package.main
        for element in _blocks(self._body):
            if element.tag == _CHUNK:
                self._write_chunk(self._package.target(main, element.get(qn("r:id"))))
                continue
            text = self._block(element, main)
            level = self._styles.level(element) if element.tag == _P else None
            number = self._numbers.next(element, is_heading=level is not None)  # paragraphs without text count too
            if not text.strip():
                continue
            numbered = f"{number} {text}" if number else text
            if level is not None:
                first_heading = first_heading or " ".join(text.split())
                self._assembly.section(headings.enter(level, numbered))
            self._assembly.add(numbered)
        return first_heading

    def _write_part(self, part: str, heading: str, written: set[str] | None = None) -> None:
        """Write another part as a section, unless `written` has its text; add the text to `written`."""
        root = self._package.xml(part)
        self._strip_hidden(root)
        texts = [] if root is None else [self._block(block, part) for block in _blocks(root)]
        whole = "\n".join(texts).strip()
        if not whole or (written is not None and whole in written):
            return
        if written is not None:
            written.add(whole)
        self._assembly.section(heading)
        for text in texts:
            self._assembly.add(text)

    def _strip_hidden(self, root: Any) -> None:
        """Remove what is in hidden runs, and count its words."""
        if root is None:
            return
        may_hide = self._styles.hiding or next(root.iter(qn("w:vanish")), None) is not None
        for run in filter(self._styles.is_hidden, root.iter(_RUN) if may_hide else ()):
            self._hidden_words += len(" ".join(each.text or "" for each in run.iter(*_TEXTS)).split())
            run[:] = []

    def _write_chunk(self, part: str) -> None:
        """Write a part of another format that is imported into the document: HTML, RTF, MHTML, a document or text."""
        data = self._package.data(part) or b""
        name, format_ = part.rpartition("/")[2], format_of(part, data)
        try:
            if format_.kind == "extracted":
                content = inside.extract(data, format_, Assembly.max_characters)
                self._notes += [inside.note(name, reason) for reason in content.unread]
                text: str | None = content.text
            else:
                text = decode(data) if format_.kind == "text" else None
        except Refused as refused:
            self._notes.append(inside.note(name, refused.reason))
            return
        if text is None:
            self._notes += inside.files([name])
        else:
            self._assembly.add(text)

    def _block(self, element: Any, part: str) -> str:
        if element.tag == _TBL:
            try:
                return "\n".join(self._rows(element, part))
            except RecursionError:  # hundreds of tables within tables: their words without rows
                return self._text(element, part)
        return self._text(element, part)

    def _rows(self, table: Any, part: str) -> Iterator[str]:
        """Yield a table's rows with tabs between their cells. A table inside a cell is a part of the cell's text."""
        for row in _within(table, {_TR}):
            yield "\t".join(" ".join(self._cell(cell, part).split()) for cell in _within(row, {_TC}))

    def _cell(self, cell: Any, part: str) -> str:
        texts = []
        for block in _blocks(cell):
            number = self._numbers.next(block, is_heading=False)
            texts += [number, self._block(block, part)]
        return " ".join(texts)

    def _text(self, element: Any, part: str) -> str:
        """Return the text of an element with every change accepted.

        The readings of a word in ruby are in parentheses after all of its characters, so that the word stays whole.
        """
        pieces: list[str] = []
        readings: list[str] = []
        fields: list[bool] = []  # of the open fields, whether their instruction is being read
        stack = [element]
        while stack:
            node = stack.pop()
            piece = ""
            if node.tag in _TEXTS:
                piece = "" if any(fields) else node.text or ""
            elif node.tag in _WRITTEN:
                piece = _WRITTEN[node.tag]
            elif node.tag in _SHOWN:
                piece = _SHOWN[node.tag](node)
            elif node.tag == _DIAGRAM:
                piece = f"\n{diagram_words(self._package, part, node)}"
            elif node.tag == _RUBY:
                pieces += [self._text(base, part) for base in node.iterchildren(qn("w:rubyBase"))]
                readings += [self._text(reading, part) for reading in node.iterchildren(qn("w:rt"))]
            elif node.tag not in _OMITTED:
                if node.tag == _FIELD:
                    kind = node.get(qn("w:fldCharType"))
                    fields = [*fields, True] if kind == "begin" else fields[:-1] + [False] * (kind == "separate")
                piece = _BEFORE.get(node.tag, "")
                if node.tag in _PARAGRAPHS and pieces:
                    piece = "\n"  # a text box within a paragraph
                stack.extend(reversed(node))
            if piece or not stack:
                pieces.append(f"({''.join(readings)})" if any(readings) else "")
                readings = []
            pieces.append(piece)
        return "".join(pieces)


def _blocks(parent: Any) -> Iterator[Any]:
    """Yield paragraphs, tables, separate equations and imported parts, also those inside content controls and
    insertions."""
    return _within(parent, {_P, _TBL, _EQUATION, _CHUNK})


def _within(parent: Any, tags: set[str]) -> Iterator[Any]:
    """Yield the outermost elements with these tags, also those inside content controls."""
    for child in parent.iterchildren():
        if child.tag in tags:
            yield child
        elif isinstance(child.tag, str) and child.tag not in _OMITTED:
            yield from _within(child, tags)
