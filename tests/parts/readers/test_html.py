"""HTML: every visible word is read, rows of tables stay rows, and what is left out is reported."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html as lxml_html

from indexer.ledger import Code
from indexer.sources import Entry
from indexer.sources.content import Assembly
from likewise.readers.formats import html

NOTE = Code.PAGE_WITHOUT_NAVIGATION().text()

Collect = Callable[..., list[Entry]]

FILES = Path(__file__).parent / "files"


def text_of(page: str) -> str:
    assembly = Assembly()
    html.write_body(html.parse(page), assembly)
    return assembly.content().text


@pytest.mark.parametrize(("name", "note"), [("tables", NOTE), ("layout", ""), ("navigation", NOTE)])
def test_a_page_has_the_text_that_is_written_beside_it(collect: Collect, name: str, note: str) -> None:
    (entry,) = collect(FILES / f"{name}.html")
    assert entry.document is not None
    assert entry.document.text == (FILES / f"{name}.txt").read_text().strip()
    assert entry.reason.text() == note


def test_headings_in_cells_and_summaries_are_sections(collect: Collect) -> None:
    (entry,) = collect(FILES / "tables.html")
    assert entry.document is not None
    assert [section.heading for section in entry.document.sections] == [
        "",
        "Prices",
        "Prices > How are parts ordered?",
    ]


WORD = st.text("abcdefgh", min_size=2, max_size=5)


def inline(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(children, min_size=1, max_size=3).map(" ".join)
    return st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["b", "i", "a", "code", "span", "label"]), parts)


INLINE = st.recursive(WORD, inline, max_leaves=4)


def cell(content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["td", "th"]), content)


def block(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inner = st.lists(st.one_of(children, INLINE.map(" {} ".format)), min_size=1, max_size=3).map("".join)
    names = ["div", "section", "article", "blockquote", "header", "footer", "main", "aside", "form", "details", "dl"]
    row = st.lists(cell(inner), min_size=1, max_size=3).map(lambda cells: f"<tr>{''.join(cells)}</tr>")
    return st.one_of(
        st.builds("<{0}>{1}</{0}>".format, st.sampled_from(names), inner),
        st.lists(row, min_size=1, max_size=3).map(lambda rows: f"<table>{''.join(rows)}</table>"),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: f"<ul><li>{'</li><li>'.join(items)}</li></ul>"),
    )


PARAGRAPH = st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["p", "h1", "h2", "h3", "pre", "center"]), INLINE)
PAGE = st.lists(st.recursive(PARAGRAPH, block, max_leaves=8), min_size=1, max_size=4).map("".join)


@settings(max_examples=40, deadline=None)
@given(PAGE)
def test_every_visible_word_is_in_the_text(page: str) -> None:
    """lxml's text_content is the other reader; blanks between tags are for it alone, as it writes none."""
    body = lxml_html.fromstring(f"<html><body>{page.replace('<', ' <')}</body></html>")
    for element in [*body.iter("header", "footer")]:  # of links alone, which makes them navigation
        if not re.search(r"\w", "".join(element.xpath(".//text()[not(ancestor::a) and not(ancestor::label)]"))):
            return
    visible = Counter(re.findall(r"\w+", body.text_content()))
    assert Counter(re.findall(r"\w+", text_of(f"<body>{page}</body>"))) == visible


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.lists(WORD, min_size=1, max_size=2), min_size=2, max_size=3), min_size=1, max_size=4))
def test_rows_are_lines_whatever_their_cells_hold(rows: list[list[list[str]]]) -> None:
    wraps = ["{}", "<p>{}</p>", "<div>{}</div>", "<div><p>{}</p></div>", "<ul><li>{}</li></ul>", "<h4>{}</h4>"]
    written = "".join(
        "<tr>"
        + "".join(
            f"<td>{''.join(wraps[(number + position) % len(wraps)].format(word) for word in words)}</td>"
            for position, words in enumerate(row)
        )
        + "</tr>"
        for number, row in enumerate(rows)
    )
    lines = text_of(f"<body><table><tbody>{written}</tbody></table></body>").split("\n")
    assert [[cell.replace(" ", "") for cell in line.split("\t")] for line in lines] == [
        ["".join(words) for words in row] for row in rows
    ]


def test_long_cells_with_several_blocks_are_a_page_in_columns() -> None:
    paragraph = "The keeper climbs the winding stairs every evening to light the great lamp. " * 5
    page = f"<table><tr><td><p>Links</p></td><td><h2>Lamp</h2><p>{paragraph}</p><p>{paragraph}</p></td></tr></table>"
    assert text_of(page) == f"Links\n\nLamp\n\n{paragraph.strip()}\n\n{paragraph.strip()}"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<table><td>a</td><td>b</td></table>", "a\tb"),
        ("<table><tr><form><td>a</td><td>b</td></form></tr></table>", "a\tb"),
        ("<table><tr>loose<td>a</td></tr></table>", "a\tloose"),
        ("<table><tr><td hidden>x</td><td>a</td><td>b</td></tr></table>", "a\tb"),
        ("<h1>one<p>two</p><table><tr><td>a</td><td>b</td></tr></table></h1>", "one\n\ntwo\n\na\tb"),
        ("<p>a<br>b</p><svg><title>t</title><text>c</text></svg>", "a\nb\nc"),
        ("<p>x<math><semantics><mi>y</mi><annotation>\\TeX</annotation></semantics></math></p>", "xy"),
        ("<dialog>closed</dialog><dialog open>opened</dialog>", "opened"),
        ('<div hidden="until-found">found</div>', "found"),
    ],
)
def test_unusual_pages(page: str, text: str) -> None:
    assert text_of(page) == text


def test_the_note_of_a_page_is_in_the_ledger(likewise: Callable[..., Any], tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.html").write_text("<nav><a>Home</a></nav><p>Few words.</p>")
    (pages / "b.html").write_text("<nav><a>Home</a></nav>" + "<p>Many words on the keeper of the lamp.</p>" * 20)
    for state in ("indexed", "unchanged"):
        likewise("index", tmp_path / "x.index", pages, "--rehash")
        rows = map(json.loads, likewise("info", tmp_path / "x.index", "--ledger", "--json").out.splitlines())
        assert [(row["state"], row["reason"]) for row in rows] == [(state, NOTE), (state, "")]


def test_a_book_keeps_its_tables_and_notes_what_is_left_out(tmp_path: Path, collect: Collect) -> None:
    members = {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="b.opf"/></rootfiles></container>',
        "b.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>',
        "a.xhtml": "<html><body><nav><a>Next chapter</a></nav><table><tr><td><p>oil</p></td><td><p>17.25</p></td></tr>"
        "</table></body></html>",
    }
    with zipfile.ZipFile(tmp_path / "a.epub", "w") as book:
        for name, content in members.items():
            book.writestr(name, content)
    (entry,) = collect(tmp_path / "a.epub")
    assert entry.document is not None
    assert (entry.document.text, entry.document.title, entry.reason.text()) == ("oil\t17.25", "a", NOTE)
