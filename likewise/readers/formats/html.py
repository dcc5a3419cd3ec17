"""HTML: every word of the body that a browser shows, in blocks, without navigation and form controls.

A row of a table is a line, headings begin sections. Navigation is what the page itself declares to be navigation; no
heuristic looks for "the main text", because such heuristics lose tables, lists and the ends of pages.

resiliparse 2.0 is ten times as fast, but loses 2,493 of the 191,441 words of 68 pages of Rust's documentation, such as
all programs in a `<figure>`. This file loses none.

Before the page is written, `html_arrangement.py` makes its tree what a person sees: shadow roots, opened blocks, ruby.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from indexer.errors import count_of
from indexer.ledger import NO_REASON, Code, Reason
from indexer.sources.content import Assembly, Content, Headings, Unreadable
from indexer.sources.encoding import Decoded, decode_labelled
from indexer.stores.words.analysis import close_up
from likewise.readers.formats import html_arrangement as arrangement
from likewise.readers.formats.html_arrangement import BLOCKS, CELLS, CONTROLS, HEADINGS, VERBATIM, words_in

_CHARSET = re.compile(rb"<meta[^>]+?charset\s*=\s*[\"']?([-\w.:]+)|<\?xml[^>]+?encoding=[\"']([-\w.]+)", re.IGNORECASE)
_ENDS = re.compile("</(?:body|html)\\s*>", re.IGNORECASE)
_PREFIX = re.compile("xmlns:([-\\w]+)=[\"']http://www.w3.org/1999/xhtml[\"']")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_LINES = {"dd", "dt", "li", "option", "text", "tr"}  # these have one newline before them, not a blank line
_GROUPS = {"dir", "dl", "menu", "ol", "table", "ul"}  # a blank line is before the first line of these

NOTE_SHARE = 0.01
"""Maximum share of a page's visible words that are left out without a note in the ledger."""

_LONG_CELL_WORDS = 100
"""Minimum words of a cell with several blocks that is a part of the page's layout and not a value of a table."""
_LONG_HEADING_WORDS = 60
"""Minimum words of a heading that counts as not closed."""
_MENU_WORDS = 4
"""Maximum words outside links in navigation: "Menu", "You are here"."""


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of writing a page.

    Attributes:
        heading: its first heading.
        words: number of its visible words.
        left_out: number of words of navigation and form controls that were not written.
        hidden: number of words that the page hides and that were not written.
        notes: notes on its encoding.
    """

    heading: str = ""
    words: int = 0
    left_out: int = 0
    hidden: int = 0
    notes: tuple[Reason, ...] = ()

    def __add__(self, other: Written) -> Written:
        return Written(
            self.heading or other.heading,
            self.words + other.words,
            self.left_out + other.left_out,
            self.hidden + other.hidden,
            (*self.notes, *other.notes),
        )


def with_notes(content: Content, written: Written) -> Content:
    """Return the content of a page with notes on what is left out, if that is more than NOTE_SHARE of its words."""
    note = Code.PAGE_WITHOUT_NAVIGATION() if written.left_out > NOTE_SHARE * written.words else NO_REASON
    hidden = (
        (Code.HIDDEN_WORDS(count_of(written.hidden, "word")),) if written.hidden > NOTE_SHARE * written.words else ()
    )
    return replace(content, note=note, unread=tuple(dict.fromkeys((*written.notes, *content.unread, *hidden))))


def read(path: str) -> Content:
    """Read a file. Its title is the page's title, its og:title or its first heading."""
    with open(path, "rb") as file:
        decoded = decode_page(file.read())
    tree = parse(decoded.text)
    if tree is None:
        return Content("")
    assembly = Assembly()
    written = replace(write_body(tree, assembly), notes=decoded.notes)
    metadata = {name: value for name in ("description", "author", "keywords") if (value := _meta(tree, name))}
    if language := tree.get("lang"):
        metadata["lang"] = language
    titles = (tree.findtext(".//title"), _meta(tree, "og:title"), written.heading)
    title = next((text for title in titles if (text := " ".join((title or "").split()))), "")
    return with_notes(assembly.content(close_up(title), metadata), written)


def parse(page: str) -> Any:
    """Return the root element of a page; None if the page is empty.

    Raises:
        Unreadable: the page is damaged.
    """
    from lxml import etree, html

    parser = html.HTMLParser(
        encoding="utf-8",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,  # without it libxml2 silently cuts long scripts, inline images and deep trees
    )
    if not page.strip():
        return None
    page = _ENDS.sub(" ", page).replace("\0", "")  # browsers show what follows the end of the body
    if page.lstrip("\ufeff \r\n").startswith("<?xml"):
        page = _CDATA.sub(lambda section: escape(section[1]), page)
    if (prefix := _PREFIX.search(page)) is not None:
        page = re.sub(f"(</?){prefix[1]}:", r"\1", page)
    try:
        tree = html.document_fromstring(page.encode("utf-8", errors="replace"), parser=parser)
    except etree.ParserError:  # nothing but comments
        return None
    if fatal := [error for error in parser.error_log if error.level == etree.ErrorLevels.FATAL]:
        raise Unreadable(Code.HTML_CUT_OFF(f"{fatal[0].line:,}", fatal[0].message))
    return tree


def write_page(page: str, into: Assembly) -> Written:
    """Write the visible text of a page that is a part of a file. Raises Unreadable if the page is damaged."""
    tree = parse(page)
    return Written() if tree is None else write_body(tree, into)


def write_body(tree: Any, into: Assembly) -> Written:
    """Write the visible text of a page in blocks, with a section at each heading."""
    headings, first = Headings(), ""
    body = tree.find(".//body")
    body = tree if body is None else body
    _show_frames(body)
    arrangement.separate(body)
    arrangement.show_attributes(body)
    arrangement.show_shadow_roots(body)
    arrangement.open_hidden_blocks(body)
    arrangement.move_readings(body)
    walk = _Walk(body)
    for level, block, newlines in walk.blocks():
        if level:
            first = first or " ".join(block.split())
            into.section(headings.enter(level, block))
        into.add(block, newlines)
    if not walk.words:  # pages and mails of nothing but pictures
        for picture in body.iter("img"):
            into.add(picture.get("alt") or "")
    return Written(first, walk.words, walk.left_out, walk.hidden)


def _show_frames(body: Any) -> None:
    """Put the pages that frames have as their attribute into them."""
    roots = [body]
    for root in roots:  # it grows during the walk: a frame may have frames
        for frame in list(root.iter("iframe")):
            if (page := parse(frame.get("srcdoc") or "")) is not None:
                frame.tag, frame.text = "div", ""
                frame[:] = [page]
                roots.append(page)


class _Walk:
    """The blocks of an element, and how many words were seen on the way.

    Attributes:
        words: number of visible words so far.
        left_out: number of words of navigation and form controls.
        hidden: number of words that the page hides.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self.words = self.left_out = self.hidden = 0

    def blocks(self) -> Iterator[tuple[int, str, int]]:
        """Yield heading level (or 0), text and number of newlines before it, in the order of the page."""
        parts: list[str] = []
        level, newlines, preformatted, is_first_line = 0, 2, 0, False

        def take_block(as_it_is: bool = False) -> Iterator[tuple[int, str, int]]:
            nonlocal is_first_line
            block = "".join(parts) if as_it_is or preformatted else _SPACES.sub(_one_space, "".join(parts))
            block = block if preformatted else close_up(block)
            parts.clear()
            if block.strip():
                is_first_line = False
                self.words += arrangement.count(block)
                yield level, block.strip("\n"), newlines

        stack: list[tuple[Any, bool]] = [(self._root, False)]
        while stack:
            element, leaving = stack.pop()
            tag = element.tag if isinstance(element.tag, str) else ""
            whole = None if leaving or element is self._root else self._in_one_line(element, tag)
            if whole is not None:
                if whole or tag in BLOCKS:
                    yield from take_block()
                    level, newlines = _level(tag), 1 if tag in _LINES and not is_first_line else 2
                    parts.append(whole)
                    yield from take_block(as_it_is=True)
                    level = 0
                parts.append(_squeeze(element.tail, preformatted))
                continue
            if tag in BLOCKS and (tag not in CELLS or element.getparent().tag == "tr"):
                yield from take_block()
                is_first_line = is_first_line or (tag in _GROUPS and not leaving and not _is_in_a_line(element))
                level, newlines = 0 if leaving else _level(tag), 1 if tag in _LINES and not is_first_line else 2
            elif not leaving and tag == "br":
                parts.append("\n")
            elif not leaving and tag in CELLS and "".join(parts).strip():
                parts.append("\t")  # a cell outside of a row
            if leaving:
                preformatted -= tag in VERBATIM
                parts.append(_squeeze(element.tail, preformatted) if element is not self._root else "")
            else:
                preformatted += tag in VERBATIM
                parts.append(_squeeze(element.text, preformatted))
                stack.append((element, True))
                stack.extend((child, False) for child in reversed(element))
        yield from take_block()

    def _in_one_line(self, element: Any, tag: str) -> str | None:
        """Return the text of an element that is one whole line; empty for an element that is not written; None for
        others."""
        if not self._is_shown(element, tag):
            return ""
        if tag == "tr" and not _is_layout(element):
            return "\t".join(self._cells(element)).rstrip()
        if tag in HEADINGS and _is_short_heading(element):
            return " ".join(self._line(element).split())
        return None

    def _is_shown(self, element: Any, tag: str) -> bool:
        """Return whether an element is written. If a browser shows the element but it is not written, its words are
        counted."""
        if not tag or arrangement.is_invisible(element, tag):
            self.hidden += words_in(element) if tag and arrangement.is_hidden(element, tag) else 0
            return False
        if _is_control(element, tag) or _is_navigation(element, tag):
            words = words_in(element)
            self.words += words
            self.left_out += words
            return False
        # A link at a heading that leads to itself may be only a sign, such as a pilcrow.
        return tag != "a" or not (element.get("href") or "").startswith("#") or words_in(element) > 0

    def _cells(self, row: Any) -> Iterator[str]:
        """Yield the text of each cell of a row. Text between cells, which is a fault of the page, is a cell too."""
        between = [row.text or ""]
        for child in row:
            if isinstance(child.tag, str) and child.tag not in CELLS and child.find(".//td") is not None:
                yield from self._cells(child)
            elif isinstance(child.tag, str) and self._is_shown(child, child.tag):
                yield " ".join(self._line(child).split())
            between.append(child.tail or "")
        if loose := " ".join(" ".join(between).split()):
            yield loose

    def _line(self, element: Any) -> str:
        """Return the text of an element without line breaks. Blocks are separated by blanks."""
        parts: list[str] = []
        stack: list[tuple[Any, bool]] = [(element, False)]
        while stack:
            node, leaving = stack.pop()
            tag = node.tag if isinstance(node.tag, str) else ""
            if not leaving and node is not element and not self._is_shown(node, tag):
                parts.append((" " if tag in BLOCKS else "") + (node.tail or ""))
                continue
            if tag in BLOCKS or tag == "br":
                parts.append(" ")
            if leaving:
                parts.append((node.tail or "") if node is not element else "")
            else:
                parts.append(node.text or "")
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(node))
        return "".join(parts)


def _level(tag: str) -> int:
    """Return the level of a heading; 0 for other elements."""
    return int(tag[1]) if tag in HEADINGS else 0


def _is_control(element: Any, tag: str) -> bool:
    """Return whether an element is a form control. Buttons in headings open the text below them, and are its title."""
    if tag not in CONTROLS:
        return False
    return not any(above.tag in HEADINGS or above.tag in {"dt", "summary"} for above in element.iterancestors())


def _is_navigation(element: Any, tag: str) -> bool:
    """Return whether an element is navigation: declared to be, or a page header or footer of nothing but links.

    It is not if it has more than a few words outside links, or a table with such words: that is content.
    """
    declared = tag == "nav" or element.get("role") == "navigation"
    if not declared and tag not in {"header", "footer"}:
        return False
    if not declared:
        return arrangement.is_all_links(element) and next(element.iter(*HEADINGS), None) is None
    linked, total, in_cells = _linked_words(element)
    return not in_cells and total - linked <= max(_MENU_WORDS, total // 2)


def _linked_words(element: Any) -> tuple[int, int, int]:
    """Return the number of visible words in links and controls, of all words, and of words of cells outside links."""
    linked = total = in_cells = 0
    for text, in_link, in_cell in arrangement.pieces(element):
        words = arrangement.count(text)
        total += words
        linked += words * in_link
        in_cells += words * (in_cell and not in_link)
    return linked, total, in_cells


def _is_layout(row: Any) -> bool:
    """Return whether the cells of a row are parts of a page, whose blocks are kept, instead of values in a line."""
    table = next(row.iterancestors("table"), None)
    if table is not None and table.get("role") in {"presentation", "none"}:
        return True
    cells = [child for child in row if child.tag in CELLS]
    for cell in cells:
        rows = sum(1 for _ in cell.iter("tr"))
        blocks = sum(1 for _ in cell.iter("p", "div", "ul", "ol", "dl", "pre", *HEADINGS))
        is_alone = len(cells) == 1 and row.getprevious() is None and row.getnext() is None
        if rows > 1 or (is_alone and blocks + rows) or (blocks > 1 and words_in(cell) >= _LONG_CELL_WORDS):
            return True
    return False


def _is_in_a_line(group: Any) -> bool:
    """Return whether a list is a part of an item of another list."""
    return group.getparent() is not None and group.getparent().tag in {"dd", "li"}


def _is_short_heading(element: Any) -> bool:
    parts = element.iter("table", *VERBATIM, *HEADINGS)
    return all(part is element for part in parts) and words_in(element) <= _LONG_HEADING_WORDS


def _squeeze(text: str | None, preformatted: int) -> str:
    return (text or "") if preformatted else re.sub(r"[ \t\r\n\f]+", " ", text or "")


_SPACES = re.compile(r" *[ \n\t]+ *")


def _one_space(match: re.Match[str]) -> str:
    """Return a newline if the white space has one, else a tab if it has one, else a space."""
    return next((space for space in "\n\t" if space in match[0]), " ")


def _meta(tree: Any, name: str) -> str:
    contents = tree.xpath("//meta[@name=$name or @property=$name]/@content", name=name)
    return " ".join(contents[0].split()) if contents else ""


def decode_page(data: bytes) -> Decoded:
    """Return a decoded page, by the label that it declares."""
    match = _CHARSET.search(data[:4096])
    return decode_labelled(data, (match[1] or match[2]).decode() if match else None)
