"""RTF and XML are read as their text, not as markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from indexer.records import Document
from indexer.sources import Entry
from likewise.readers.formats import rtf, xml

Collect = Callable[..., list[Entry]]

FILES = Path(__file__).parent / "files"


def entry_of(collect: Collect, path: Path, content: str | bytes) -> Entry:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (entry,) = collect(path)
    return entry


def one(collect: Collect, path: Path, content: str | bytes) -> Document:
    entry = entry_of(collect, path, content)
    assert entry.document is not None, entry.reason.text()
    return entry.document


@pytest.mark.parametrize(("name", "title"), [("letter.rtf", "The härbour letter"), ("article.xml", "The lamp")])
def test_a_file_has_the_text_that_is_written_beside_it(collect: Collect, name: str, title: str) -> None:
    (entry,) = collect(FILES / name)
    assert entry.document is not None
    assert entry.document.text == (FILES / name).with_suffix(".txt").read_text().strip()
    assert (entry.document.title, entry.document.format, entry.reason.text()) == (title, name.partition(".")[2], "")


WORD = st.text("abcäß語😀", min_size=1, max_size=5)


def escaped(word: str) -> str:
    units = word.encode("utf-16-le")
    pairs = (int.from_bytes(units[start : start + 2], "little") for start in range(0, len(units), 2))
    return "".join(chr(unit) if unit < 128 else f"\\u{unit - 65536 * (unit > 32767)}?" for unit in pairs)


WORDS = st.lists(WORD, min_size=1, max_size=3)
PARTS = st.lists(st.tuples(st.sampled_from(["par", "row", "header", "footnote", "group", "link"]), WORDS), max_size=6)


@settings(max_examples=40, deadline=None)
@given(PARTS)
def test_every_word_of_rtf_is_in_the_text(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, list[str]]]
) -> None:
    forms = {
        "par": "\\pard %s\\par\n",
        "row": "\\trowd\\cellx9\\pard\\intbl %s\\par x\\cell y\\cell\\row\n",
        "header": "{\\header\\pard %s\\par}",
        "footnote": "{\\footnote %s}",
        "group": "{\\b %s}\\line ",
        "link": '{\\field{\\*\\fldinst{HYPERLINK "http://a"}}{\\fldrslt{\\ul %s}}} ',
    }
    source = "".join(forms[kind] % " ".join(map(escaped, words)) for kind, words in parts)
    path = tmp_path_factory.mktemp("rtf") / "a.rtf"
    path.write_text("{\\rtf1\\ansi\\ansicpg1252 " + source + "}")
    content = rtf.read(str(path))
    written = [word for kind, words in parts for word in (*words, *["x", "y"] * (kind == "row"))]
    assert sorted(content.text.split()) == sorted(written)
    assert content.text.count("\ty") == sum(kind == "row" for kind, _ in parts)
    assert not content.note


def test_rtf_of_any_encoding(tmp_path: Path, collect: Collect) -> None:
    for page, declared in (("cp1251", "\\ansi\\ansicpg1251"), ("utf-8", "\\ansi"), ("mac_roman", "\\mac")):
        words = "Съешь ещё" if page != "mac_roman" else "café"
        info = b"{\\info{\\title " + words.encode(page) + b"}}"
        raw = b"{\\rtf1" + declared.encode() + info + words.encode(page) + b"}"
        assert (one(collect, tmp_path / "a.rtf", raw).text, one(collect, tmp_path / "a.rtf", raw).title) == (
            words,
            words,
        )


def test_damaged_rtf(tmp_path: Path, collect: Collect) -> None:
    entry = entry_of(collect, tmp_path / "a.rtf", "plain text")
    assert (entry.state, entry.reason.text()) == ("failed", "damaged: not an RTF file, which begins with {\\rtf")
    entry = entry_of(collect, tmp_path / "b.rtf", "{\\rtf1 one {\\b two {\\footnote three")
    assert entry.document is not None
    assert entry.document.text == "one two\n\nthree"
    assert [note.text() for note in entry.notes] == ["its end is missing: it was read as far as it goes"]
    assert one(collect, tmp_path / "old.doc", "{\\rtf1 Named doc}").format == "rtf"


NAME = st.sampled_from(["a", "p:b", "tr", "td", "title", "content"])
XML = st.recursive(
    st.text("xyz<& é", max_size=6).map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    lambda inner: st.builds("<{0}>{1}</{0}>".format, NAME, st.lists(inner, max_size=4).map(" <!-- c --> ".join)),
    max_leaves=12,
).map('<r xmlns:p="urn:p">{}</r>'.format)


@settings(max_examples=60, deadline=None)
@given(XML)
def test_every_word_of_xml_is_in_the_text(tmp_path_factory: pytest.TempPathFactory, source: str) -> None:
    path = tmp_path_factory.mktemp("xml") / "a.xml"
    path.write_text(source)
    words = " ".join(etree.fromstring(source, etree.XMLParser(remove_comments=True)).itertext()).split()
    assert xml.read(str(path)).text.split() == (words or source.split())


def test_svg_has_its_words(tmp_path: Path, collect: Collect) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><style>.a {{}}</style><metadata>m</metadata>{}</svg>'
    words = "<title>Lamp</title><g><desc>A lamp</desc><text>oil <tspan>and</tspan><tspan>wick</tspan></text></g>"
    document = one(collect, tmp_path / "a.svg", drawing.format(words))
    assert (document.title, document.text) == ("Lamp", "Lamp\nA lamp\noil and wick")
    entry = entry_of(collect, tmp_path / "b.svg", drawing.format('<path d="M0 0"/>'))
    assert (entry.state, entry.reason.text()) == ("skipped", "a drawing without words")


def test_feeds_hold_pages(tmp_path: Path, collect: Collect) -> None:
    item = "<title>News</title><description>&lt;p&gt;One&lt;/p&gt;&lt;p&gt;two &amp;amp; three&lt;/p&gt;</description>"
    document = one(collect, tmp_path / "a.rss", f"<rss><channel><item>{item}</item></channel></rss>")
    assert (document.title, document.text) == ("News", "News\n\nOne\n\ntwo & three")


def test_pictures_in_xml_are_not_its_text(tmp_path: Path, collect: Collect) -> None:
    book = (
        '<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><description><book-title>Otters</book-title>'
        '</description><body><p>They swim.</p></body><binary id="a.png">iVBORw0KGgo</binary></FictionBook>'
    )
    document = one(collect, tmp_path / "a.fb2", book)
    assert (document.title, document.text, document.format) == ("Otters", "Otters\nThey swim.", "xml")
    other = "<a><binary>no</binary><b:binData xmlns:b='b'>iVBORw0KGgo</b:binData><b>yes</b></a>"
    assert one(collect, tmp_path / "a.xml", other).text == "no\nyes"


@pytest.mark.parametrize("name", ["a.xml", "a.rss", "a.svg"])
@pytest.mark.parametrize("text", ["&x;", "before &x; after", "&z;"])
def test_xml_whose_text_needs_an_entity_fails(tmp_path: Path, collect: Collect, name: str, text: str) -> None:
    root = "svg" if name == "a.svg" else "a"
    source = f'<!DOCTYPE {root} SYSTEM "a.dtd" [<!ENTITY x "y">]><{root}><text>{{}}</text></{root}>'
    entry = entry_of(collect, tmp_path / name, source.format(text))
    reason = "it declares XML entities, which are not expanded"
    assert (entry.state, entry.document, entry.reason.text()) == ("failed", None, reason)
    assert one(collect, tmp_path / name, source.format("&eacute;t&#233; &lt;")).text == "été <"


def test_xml_without_text_or_with_faults_is_indexed_as_its_source(tmp_path: Path, collect: Collect) -> None:
    layout = '<layout><button label="Light the lamp"/></layout>'
    assert one(collect, tmp_path / "a.xml", layout).text == layout
    entry = entry_of(collect, tmp_path / "b.xml", "<a>one<b>two</a>")
    assert entry.document is not None
    assert entry.document.text == "<a>one<b>two</a>"
    assert re.match(r"not well-formed XML, its source is indexed \(.* line 1", entry.reason.text())
    assert one(collect, tmp_path / "c.xml", "<a>naïve</a>".encode("utf-16")).text == "naïve"
    schema = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>'
    assert (one(collect, tmp_path / "d.xsd", schema).text, one(collect, tmp_path / "d.xsd", schema).format) == (
        schema,
        "xsd",
    )


def test_chinese_in_xml_has_no_blanks_between_elements_and_lines(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<p>我们在北<b>京</b>和\n  上海。<b>Not</b> here.</p>", encoding="utf-8")
    (entry,) = collect(path)
    assert entry.document is not None
    assert entry.document.text == "我们在北京和上海。 Not here."
