"""OpenDocument files, made by hand: text with headings, sheets with rows, slides with notes."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from indexer.ledger import Code
from indexer.records import Document
from indexer.sources import Entry
from indexer.sources.formats import ODP, format_of
from likewise.readers.formats import odf, odf_styles

Collect = Callable[..., list[Entry]]

NAMES = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in odf_styles.NAMES.items())
META = (
    "<meta:initial-creator>Ada</meta:initial-creator><dc:creator>Ben</dc:creator>"
    "<dc:title>{}</dc:title><meta:keyword>no text</meta:keyword>"
)


def write(path: Path, body: str, title: str = "", styles: str = "", automatic: str = "", **members: str) -> Path:
    parts = {
        "content": f"<office:automatic-styles>{automatic}</office:automatic-styles><office:body>{body}</office:body>",
        "styles": styles,
        "meta": f"<office:meta>{META.format(title)}</office:meta>",
    }
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        for name, part in parts.items():
            file.writestr(f"{name}.xml", f"<office:document-{name} {NAMES}>{part}</office:document-{name}>")
        for name, member in members.items():
            file.writestr(name.replace("__", "/").replace("_xml", ".xml"), member)
    return path


def one(collect: Collect, path: Path) -> Document:
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    return entry.document


def cuts(document: Document) -> list[tuple[str, int | None, str]]:
    """Return heading, page and text of each section."""
    ends = [section.start for section in document.sections[1:]] + [len(document.text)]
    return [
        (section.heading, section.page, document.text[section.start : end].strip())
        for section, end in zip(document.sections, ends, strict=True)
    ]


TEXT = """<office:text>
<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p></text:deletion>
</text:changed-region></text:tracked-changes>
<text:p text:style-name="P1">The keeper</text:p>
<text:p>Before<text:s text:c="3"/>the<text:tab/>lamp,<text:line-break/>a <text:span>long</text:span>
night.<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>
<text:p>Of winter.</text:p></text:note-body></text:note> Then<office:annotation><dc:creator>Ben</dc:creator>
<dc:date>2020</dc:date><text:p>Check this.</text:p></office:annotation> day.</text:p>
<text:h text:outline-level="1">Guide</text:h>
<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>inner</text:p></text:list-item>
</text:list></text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list>
<text:section><text:h text:outline-level="2">Parts</text:h></text:section>
<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Part</text:p></table:table-cell>
<table:table-cell><text:p>Price</text:p></table:table-cell></table:table-row></table:table-header-rows>
<table:table-row><table:table-cell><text:p>Bolt</text:p><text:p>of brass</text:p></table:table-cell>
<table:table-cell><text:p>17.25</text:p></table:table-cell></table:table-row></table:table>
<text:p>See
<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box><svg:desc>alt</svg:desc></draw:frame></text:p>
</office:text>"""
MARGINS = (
    "<office:master-styles><style:master-page><style:header><text:p>Harbour office</text:p></style:header>"
    "<style:footer><text:p>Page</text:p></style:footer></style:master-page>"
    "<style:master-page><style:header><text:p>Harbour office</text:p></style:header></style:master-page>"
    "</office:master-styles>"
)
TITLE_STYLE = '<style:style style:name="P1" style:parent-style-name="Title"/>'


def test_odt(tmp_path: Path, collect: Collect) -> None:
    document = one(collect, write(tmp_path / "a.odt", TEXT, styles=MARGINS, automatic=TITLE_STYLE))
    assert (document.title, document.format, document.metadata["author"]) == ("The keeper", "odt", "Ada")
    assert cuts(document) == [
        ("The keeper", None, "The keeper\n\nBefore   the\tlamp,\na long night. Then day."),
        ("The keeper > Guide", None, "Guide\n\none\ninner\ntwo"),
        ("The keeper > Guide > Parts", None, "Parts\n\nPart\tPrice\nBolt of brass\t17.25\n\nSee\nIn a box"),
        ("Footnotes", None, "Of winter."),
        ("Comments", None, "Check this."),
        ("", None, "Harbour office\n\nPage"),
    ]
    assert one(collect, write(tmp_path / "b.ott", TEXT, title="A guide")).title == "A guide"


def test_ods(tmp_path: Path, collect: Collect) -> None:
    def row(*cells: str, repeated: int = 1) -> str:
        return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(cells)}</table:table-row>'

    def cell(text: str = "", repeated: int = 1, value: str = "") -> str:
        paragraph = f"<text:p>{text}</text:p>" if text else ""
        attributes = f'table:number-columns-repeated="{repeated}" {value}'
        return f"<table:table-cell {attributes}>{paragraph}</table:table-cell>"

    note = "2.50<office:annotation><dc:date>x</dc:date><text:p>Dear!</text:p></office:annotation>"
    body = (
        f'<office:spreadsheet><table:table table:name="People">{row(cell("name"), cell("born"), cell(), cell("alive"))}'
        f"{row(cell('Ada'), cell('1815-12-10'), cell('x', 2))}{row(cell(repeated=16384), repeated=1048573)}"
        f'</table:table><table:table table:name="Prices"><table:table-row-group>'
        f"{row(cell(note), cell(value='office:value=&quot;3&quot;'.replace('&quot;', chr(34))), cell(repeated=1000))}"
        f"</table:table-row-group></table:table></office:spreadsheet>"
    )
    document = one(collect, write(tmp_path / "a.ods", body))
    assert (document.title, document.format, document.metadata["sheets"]) == ("a", "ods", 2)
    assert cuts(document) == [
        ("People", 1, "People\nname\tborn\t\talive\nAda\t1815-12-10\tx\tx"),
        ("Prices", 2, "Prices\n2.50\t3\n\nDear!"),
    ]


def test_formulas_of_ods_that_no_program_has_computed_are_noted(tmp_path: Path, collect: Collect) -> None:
    cells = (
        '<table:table-cell table:formula="of:=SUM(1;2)"/>',
        '<table:table-cell table:formula="of:=1+2" office:value-type="float" office:value="3"/>',
        '<table:table-cell table:formula="of:=A1" office:value-type="string"/>',
        '<table:table-cell table:formula="of:=A2"><text:p>total</text:p></table:table-cell>',
    )
    rows = f"<table:table-row>{''.join(cells)}</table:table-row>"
    body = f'<office:spreadsheet><table:table table:name="a">{rows}</table:table></office:spreadsheet>'
    (entry,) = collect(write(tmp_path / "a.ods", body))
    assert entry.document is not None
    assert entry.document.text == "a\n3\t\ttotal"
    assert [(note.code, note.arguments) for note in entry.notes] == [(Code.FORMULAS_WITHOUT_VALUE, ("1 formula",))]


def test_repeated_cells_and_rows_are_written_up_to_a_length(tmp_path: Path, collect: Collect) -> None:
    cell = '<table:table-cell table:number-columns-repeated="99999"><text:p>word</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="99999">{cell}</table:table-row>'
    body = f'<office:spreadsheet><table:table table:name="a">{row * 2}</table:table></office:spreadsheet>'
    line = "\t".join(["word"] * 1000)
    assert one(collect, write(tmp_path / "a.ods", body)).text == "\n".join(["a", *[line] * 6])


def test_odp(tmp_path: Path, collect: Collect) -> None:
    def box(text: str, kind: str = "outline") -> str:
        box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
        return f'<draw:frame presentation:class="{kind}">{box}</draw:frame>'

    table = (
        "<draw:frame><table:table><table:table-row><table:table-cell><text:p>left</text:p></table:table-cell>"
        "<table:table-cell><text:p>right</text:p></table:table-cell></table:table-row></table:table></draw:frame>"
    )
    body = (
        f'<office:presentation><draw:page draw:name="page1">{box("Opening", "title")}{box("Point one")}'
        f"<draw:g><draw:custom-shape><text:p>grouped</text:p></draw:custom-shape></draw:g>"
        f"<presentation:notes>{box('Say hello', 'notes')}</presentation:notes></draw:page>"
        f"<draw:page>{table}</draw:page></office:presentation>"
    )
    document = one(collect, write(tmp_path / "a.odp", body))
    assert (document.title, document.format, document.metadata["slides"]) == ("Opening", "odp", 2)
    assert cuts(document) == [("Opening", 1, "Opening\n\nPoint one\n\ngrouped\n\nSay hello"), ("", 2, "left\tright")]


def test_a_drawing(tmp_path: Path, collect: Collect) -> None:
    shapes = "<draw:ellipse><text:p>Start</text:p></draw:ellipse><draw:connector><text:p>yes</text:p></draw:connector>"
    path = write(tmp_path / "a.odg", f"<office:drawing><draw:page>{shapes}</draw:page></office:drawing>")
    assert one(collect, path).text.split() == ["Start", "yes"]
    drawing = path.read_bytes().replace(b"opendocument.text", b"opendocument.graphics")
    assert format_of("drawing", drawing) is ODP


def test_a_flat_file(tmp_path: Path, collect: Collect) -> None:
    body = (
        "<office:body><office:text><text:p>Flat words<draw:frame><draw:image>"
        "<office:binary-data>iVBORw0KGgo</office:binary-data></draw:image></draw:frame></text:p></office:text></office:body>"
    )
    meta = f"<office:meta>{META.format('Flat')}</office:meta>"
    (tmp_path / "a.fodt").write_text(f'<?xml version="1.0"?><office:document {NAMES}>{meta}{body}</office:document>')
    document = one(collect, tmp_path / "a.fodt")
    assert (document.title, document.text, document.format) == ("Flat", "Flat words", "odt")


WORD = st.text("abcé", min_size=1, max_size=4)
INLINE = st.recursive(
    WORD,
    lambda inner: st.builds(
        "<{0}>{1}</{0}>".format, st.sampled_from(["text:span", "text:a"]), st.lists(inner, max_size=3).map(" ".join)
    ),
    max_leaves=4,
)
CELL = "<table:table-cell>{}</table:table-cell>"
BLOCK = st.recursive(
    INLINE.map("<text:p>{}</text:p>".format) | INLINE.map("<text:h>{}</text:h>".format),
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda blocks: st.sampled_from(
            [
                f"<text:section>{''.join(blocks)}</text:section>",
                f"<text:list><text:list-item>{'</text:list-item><text:list-item>'.join(blocks)}</text:list-item></text:list>",
                f"<table:table><table:table-row>{''.join(map(CELL.format, blocks))}</table:table-row></table:table>",
                f"<text:p><draw:frame><draw:text-box>{''.join(blocks)}</draw:text-box></draw:frame></text:p>",
            ]
        )
    ),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(BLOCK, min_size=1, max_size=4).map("".join))
def test_every_word_of_odt_is_in_the_text(tmp_path_factory: pytest.TempPathFactory, body: str) -> None:
    path = write(tmp_path_factory.mktemp("odf") / "a.odt", f"<office:text>{body}</office:text>")
    words = " ".join(etree.fromstring(f"<r {NAMES}>{body}</r>").itertext()).split()
    assert odf.read(str(path)).text.split() == words


def test_damaged_and_encrypted_files(tmp_path: Path, collect: Collect) -> None:
    def reason(path: Path) -> str:
        (entry,) = collect(path)
        assert entry.state == "failed"
        return entry.reason.text()

    manifest = "<manifest:manifest><manifest:encryption-data/></manifest:manifest>"
    locked = write(tmp_path / "a.odt", TEXT, **{"META-INF__manifest_xml": manifest})
    assert reason(locked) == "encrypted: save it without a password"
    assert reason(write(tmp_path / "b.ods", "")) == "damaged: no OpenDocument body in it"
    assert reason(write(tmp_path / "c.odp", "<office:text>")).startswith("damaged: not well-formed XML (")
    (tmp_path / "d.odt").write_bytes(b"PK\x03\x04 cut off")
    assert reason(tmp_path / "d.odt").startswith("damaged: not a readable zip file")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("letter.doc", "Word 97-2003: save it as .docx"),
        ("talk.PPT", "PowerPoint 97-2003: save it as .pptx"),
        ("mail.msg", "an Outlook message: save it as .eml"),
        ("scan.png", Code.IMAGE().text()),
        ("all.tar.gz", "an archive: unpack it and index the folder"),
        ("song.mp3", "audio or video: index a transcript"),
        ("other.bin", "a binary file, of no format that likewise reads"),
    ],
)
def test_other_files_are_named_with_what_to_do(tmp_path: Path, collect: Collect, name: str, reason: str) -> None:
    (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0")
    (entry,) = collect(tmp_path / name)
    assert (entry.state, entry.reason.text()) == ("skipped", reason)


@pytest.mark.parametrize("name", ["letter.doc", "talk.PPT", "book.xls", "mail.msg", "other.bin"])
def test_plain_text_is_read_under_the_names_of_other_formats(tmp_path: Path, collect: Collect, name: str) -> None:
    (tmp_path / name).write_text("Plain text of any name")
    assert one(collect, tmp_path / name).text == "Plain text of any name"


MATH = (
    '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mi>E</mi>'
    '<annotation encoding="StarMath 5.0">E = m c^2</annotation></semantics></math>'
)
CHART = f"""<office:document-content {NAMES} xmlns:chart="chart"><office:body><office:chart><chart:chart><chart:title>
<text:p>Harvest of oats</text:p></chart:title><table:table><table:table-row>
<table:table-cell office:value-type="string">
<text:p>north</text:p></table:table-cell>
<table:table-cell office:value-type="float" office:value="5"><text:p>5.25</text:p>
</table:table-cell></table:table-row></table:table></chart:chart></office:chart></office:body></office:document-content>"""


def frame(href: str, kind: str = "object") -> str:
    return f'<draw:frame><draw:{kind} xlink:href="{href}"/></draw:frame>'


def test_objects_are_read_at_their_places(tmp_path: Path, collect: Collect) -> None:
    inner = f"<office:text><text:p>inside</text:p><text:p>{frame('./Object 3')}</text:p></office:text>"
    objects = {
        "Object 1__content_xml": MATH,
        "Object 2__content_xml": f"<x {NAMES}><office:body>{inner}</office:body></x>",
        "Object 2__Object 3__content_xml": MATH.replace("E = m c^2", "a over b"),
        "Object 4__content_xml": CHART,
        "Object 5": "binary",
    }
    text = (
        f"<office:text><text:p>Mass {frame('./Object%201')} is energy.</text:p><text:p>{frame('Object 2')}</text:p>"
        f"<text:p>{frame('./Object 4')}</text:p><text:p>{frame('./Object 5', 'object-ole')}</text:p>"
        f"<text:p>{frame('./Object 6')}</text:p>"
        f"<text:p>{frame('https://example.org/x')}</text:p></office:text>"
    )
    (entry,) = collect(write(tmp_path / "a.odt", text, **objects))
    assert entry.document is not None
    assert " ".join(entry.document.text.split()) == ("Mass E = m c^2 is energy. inside a over b Harvest of oats north")
    assert [note.text() for note in entry.notes] == [
        "without the text of 1 file inside it (Object 5): save it next to this file",
        "parts that it refers to are not in it (Object 6)",
    ]
    slides = f"<office:presentation><draw:page>{frame('./Object 4')}</draw:page></office:presentation>"
    assert one(collect, write(tmp_path / "b.odp", slides, **objects)).text == "Harvest of oats\n\nnorth"


def test_margins_and_shapes_of_sheets_and_slides(tmp_path: Path, collect: Collect) -> None:
    styles = (
        "<office:master-styles><style:master-page><style:header><style:region-left><text:p>Plan Albatross"
        '</text:p></style:region-left></style:header><style:header-left style:display="false"><text:p>hidden</text:p>'
        "</style:header-left><style:footer>"
        "<text:p><text:sheet-name>???</text:sheet-name> (<text:title>?</text:title>)</text:p>"
        "<text:p>Page <text:page-number>1</text:page-number></text:p></style:footer>"
        "<draw:frame><draw:text-box><text:p>Click to edit</text:p></draw:text-box></draw:frame>"
        "</style:master-page></office:master-styles>"
    )
    box = "<draw:frame><draw:text-box><text:p>Prices rise.</text:p></draw:text-box></draw:frame>"
    sheet = (
        f'<office:spreadsheet><table:table table:name="Oats"><table:shapes>{box}</table:shapes><table:table-row>'
        "<table:table-cell><text:p>7</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>"
    )
    assert one(collect, write(tmp_path / "a.ods", sheet, styles=styles)).text == (
        "Oats\n7\nPrices rise.\n\nPlan Albatross\n\nPage"
    )
    slides = (
        "<office:presentation><presentation:footer-decl>Draft of May</presentation:footer-decl>"
        "<draw:page><office:annotation><dc:creator>Ben</dc:creator><text:p>Too long</text:p></office:annotation>"
        f"{box}<presentation:notes><draw:frame><draw:text-box><text:p>Say it</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page></office:presentation>"
    )
    text = one(collect, write(tmp_path / "b.odp", slides, styles=styles)).text
    assert sorted(text.split("\n\n")) == [
        "Draft of May",
        "Page",
        "Plan Albatross",
        "Prices rise.",
        "Say it",
        "Too long",
    ]


def test_a_damaged_part_costs_that_part_and_a_note(tmp_path: Path, collect: Collect) -> None:
    body = "<office:text><text:p>oats</text:p></office:text>"
    for name, broken in (("styles", "<style:x"), ("meta", "<x></y>")):
        path = write(tmp_path / f"{name}.odt", body)
        with zipfile.ZipFile(path) as archive:
            members = {each: archive.read(each) for each in archive.namelist()} | {f"{name}.xml": broken.encode()}
        with zipfile.ZipFile(path, "w") as archive:
            for each, data in members.items():
                archive.writestr(each, data)
        (entry,) = collect(path)
        assert entry.document is not None
        assert entry.document.text == "oats"
        (note,) = entry.notes
        assert (note.code, note.arguments[0]) == (Code.PART_DAMAGED, f"{name}.xml")


def test_numbers_of_headings_and_of_levels_with_words(tmp_path: Path, collect: Collect) -> None:
    outline = (
        '<text:outline-style style:name="Outline"><text:outline-level-style text:level="1" style:num-format="I" '
        'style:num-suffix="."/><text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>'
        '<text:outline-level-style text:level="3" style:num-format=""/></text:outline-style>'
    )
    styles = (
        '<text:list-style style:name="A"><text:list-level-style-number text:level="1" style:num-format="1" '
        'style:num-prefix="Article " text:start-value="2"/><text:list-level-style-number text:level="2" '
        'style:num-format="a" style:num-list-format="letter %2% of %1%"/><text:list-level-style-bullet text:level="3"/>'
        '</text:list-style><text:list-style style:name="N"><text:list-level-style-number text:level="1" '
        'style:num-format="1" style:num-suffix="."/></text:list-style>'
    )

    def items(*several: str, style: str = 'text:style-name="A"') -> str:
        inside = "".join(f"<text:list-item>{each}</text:list-item>" for each in several)
        return f"<text:list {style}>{inside}</text:list>"

    def p(text: str) -> str:
        return f"<text:p>{text}</text:p>"

    def h(text: str, level: int, more: str = "") -> str:
        return f'<text:h text:outline-level="{level}" {more}>{text}</text:h>'

    body = (
        h("Rent", 1)
        + h("Term", 2)
        + h("Deep", 3)
        + items(p("pays") + p("on time"), p("repairs") + items(p("roof"), p("wall") + items(p("paint")), style=""))
        + items(items(p("only below"), style=""), style='text:style-name="A" text:continue-numbering="true"')
        + items(p("again"), style='text:style-name="A" text:continue-list="x"')
        + items(p("new"))
        + items(p("step"), style='text:style-name="N"')
        + h("Roof", 1)
        + h("Free", 1, 'text:is-list-header="true"')
        + h("<text:number>9.</text:number>Given", 1)
        + "<table:table><table:table-row><table:table-cell>"
        + items(p("cell"))
        + "</table:table-cell></table:table-row></table:table>"
    )
    path = write(tmp_path / "a.odt", f"<office:text>{body}</office:text>", styles=outline, automatic=styles)
    document = one(collect, path)
    assert document.text.split("\n") == [
        *("I. Rent", "", "I.1 Term", "", "Deep", "", "Article 2 pays", "on time", "Article 3 repairs"),
        *("letter a of 3 roof", "letter b of 3 wall", "paint", "", "letter c of 3 only below", "", "Article 4 again"),
        *("", "Article 2 new", "", "step", "", "II. Roof", "", "Free", "", "9. Given", "", "Article 2 cell"),
    ]
    assert document.title == "Rent"
    assert document.sections[1].heading == "I. Rent > I.1 Term"


def test_what_is_hidden_is_noted(tmp_path: Path, collect: Collect) -> None:
    styles = (
        '<style:style style:name="H"><style:text-properties text:display="none"/></style:style>'
        '<style:style style:name="I" style:parent-style-name="H"/><style:style style:name="S" '
        'style:parent-style-name="H"><style:text-properties text:display="true"/></style:style>'
        '<style:style style:name="T"><style:table-properties table:display="false"/></style:style>'
        '<style:style style:name="D"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )
    text = (
        '<text:p>Seen <text:span text:style-name="H">not this</text:span>too.</text:p><text:p text:style-name="H">Nor'
        '</text:p><text:section text:display="none"><text:p>a <text:span text:style-name="H">section</text:span>'
        '</text:p></text:section><text:p text:style-name="I">nor this</text:p><text:p text:style-name="S">And</text:p>'
    )
    row = "<table:table-row {}><table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>".format
    rows = row("", "a") + row('table:visibility="filter"', "b")
    sheet = f'<table:table/><table:table table:style-name="T">{rows}</table:table>'
    deck = "<draw:frame><text:p>Deck</text:p></draw:frame>"
    slides = f'<draw:page draw:style-name="D" draw:master-page-name="M">{deck}</draw:page>'
    shapes = (
        '<draw:frame presentation:class="title"><text:p>Edit</text:p></draw:frame><draw:g><draw:frame><text:p>Acme Inc.'
        "</text:p></draw:frame></draw:g>"
    )
    masters = "".join(f'<style:master-page style:name="{name}">{shapes}</style:master-page>' for name in "MN")
    bodies = {"text": text, "spreadsheet": sheet, "presentation": slides}
    read = []
    for kind, body in bodies.items():
        path = write(
            tmp_path / f"{kind}.odt", f"<office:{kind}>{body}</office:{kind}>", styles=masters, automatic=styles
        )
        (entry,) = collect(path)
        assert entry.document is not None
        read.append((entry.document.text, *entry.notes))
    assert read == [
        ("Seen too.\n\nAnd", Code.HIDDEN_PARTS("7 words", "left out")),
        ("a\nb", Code.HIDDEN_PARTS("1 sheet (2), 1 cell", "read too")),
        ("Deck\n\nAcme Inc.", Code.HIDDEN_PARTS("1 slide (1)", "read too")),
    ]
