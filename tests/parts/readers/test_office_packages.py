"""Office files whose parts are found by relationships: parts with other names, damaged ones, and parts in parts."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from indexer.ledger import Code
from indexer.sources.content import Unreadable
from likewise.readers.formats import docx, pptx

SCHEMAS = "http://schemas.openxmlformats.org"
OFFICE = f"{SCHEMAS}/officeDocument/2006"
NAMESPACES = " ".join(
    f'xmlns:{prefix}="{uri}"'
    for prefix, uri in {
        "w": f"{SCHEMAS}/wordprocessingml/2006/main",
        "p": f"{SCHEMAS}/presentationml/2006/main",
        "a": f"{SCHEMAS}/drawingml/2006/main",
        "dgm": f"{SCHEMAS}/drawingml/2006/diagram",
        "m": f"{OFFICE}/math",
        "mc": f"{SCHEMAS}/markup-compatibility/2006",
        "r": f"{OFFICE}/relationships",
        "v": "urn:schemas-microsoft-com:vml",
    }.items()
)
Relations = Mapping[str, tuple[str, str]]
"""Kind and target of relationships, by their ids."""


def relationships(several: Relations) -> str:
    lines = (
        f'<Relationship Id="{name}" Type="{OFFICE}/relationships/{kind}" Target="{target}"/>'
        for name, (kind, target) in several.items()
    )
    return f'<Relationships xmlns="{SCHEMAS}/package/2006/relationships">{"".join(lines)}</Relationships>'


def word(folder: Path, body: str, related: Relations, parts: Mapping[str, str], name: str = "a.docx") -> str:
    """Write a document whose main part is `word/text.xml`, and return its path."""
    members = {
        "_rels/.rels": relationships({"r0": ("officeDocument", "word/text.xml")}),
        "word/text.xml": f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>",
        "word/_rels/text.xml.rels": relationships(related),
        **parts,
    }
    with zipfile.ZipFile(folder / name, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return str(folder / name)


def slides(folder: Path, slide: str, related: Relations, parts: Mapping[str, str]) -> str:
    """Write a presentation of one slide, `ppt/first.xml`, and return its path."""
    members = {
        "_rels/.rels": relationships({"r0": ("officeDocument", "/ppt/show.xml")}),
        "ppt/show.xml": f'<p:presentation {NAMESPACES}><p:sldIdLst><p:sldId r:id="r1"/><p:sldId r:id="r2"/>'
        "</p:sldIdLst></p:presentation>",
        "ppt/_rels/show.xml.rels": relationships({"r1": ("slide", "first.xml"), "r2": ("slide", "gone.xml")}),
        "ppt/first.xml": page("sld", slide),
        "ppt/_rels/first.xml.rels": relationships(related),
        **parts,
    }
    with zipfile.ZipFile(folder / "a.pptx", "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return str(folder / "a.pptx")


def page(kind: str, shapes: str) -> str:
    return f"<p:{kind} {NAMESPACES}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{kind}>"


def shape(*paragraphs: str, kind: str = "") -> str:
    placeholder = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
    return f"<p:sp>{placeholder}<p:txBody>{''.join(map(drawn, paragraphs))}</p:txBody></p:sp>"


def drawn(text: str) -> str:
    return f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def listed(text: str, number: int, level: int = 0) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def level(at: int, text: str, kind: str = "decimal", more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>{more}<w:lvlText w:val="{text}"/></w:lvl>'
    )


def lists(*abstract: str, more: str = "") -> str:
    """Return a part of numbering in which list 1 has the first levels."""
    levels = "".join(
        f'<w:abstractNum w:abstractNumId="{at}">{each}</w:abstractNum>' for at, each in enumerate(abstract)
    )
    numbers = (f'<w:num w:numId="{at + 1}"><w:abstractNumId w:val="{at}"/></w:num>' for at in range(len(abstract)))
    return f"<w:numbering {NAMESPACES}>{levels}{''.join(numbers)}{more}</w:numbering>"


def test_parts_with_other_names_and_slashes(tmp_path: Path) -> None:
    notes = f"<w:footnotes {NAMESPACES}><w:footnote>{paragraph('Badgers sleep.')}</w:footnote></w:footnotes>"
    comments = f"<w:comments {NAMESPACES}><w:comment>{paragraph('Count the hedgehogs.')}</w:comment></w:comments>"
    related = {"r1": ("footnotes", "notes/any.xml"), "r2": ("comments", "\\Word\\Said%20here.xml")}
    parts = {"word\\notes\\ANY.xml": notes, "/word/said here.xml": comments}
    content = docx.read(word(tmp_path, paragraph("The wood."), related, parts))
    assert content.text == "The wood.\n\nBadgers sleep.\n\nCount the hedgehogs."
    assert [section.heading for section in content.sections] == ["", "Footnotes", "Comments"]
    assert content.unread == ()


def test_a_strict_document(tmp_path: Path) -> None:
    path = word(tmp_path, paragraph("Strict words."), {"r1": ("header", "h.xml")}, {})
    copy = tmp_path / "strict.docx"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            data = (
                source.read(name).replace(b"/2006/main", b"/main").replace(b"/2006/relationships/", b"/relationships/")
            )
            target.writestr(name, data.replace(f"{SCHEMAS}/w".encode(), b"http://purl.oclc.org/ooxml/w"))
    assert docx.read(str(copy)).text == "Strict words."
    wide = tmp_path / "wide.docx"
    with zipfile.ZipFile(copy) as source, zipfile.ZipFile(wide, "w") as target:
        for name in source.namelist():
            text = source.read(name).decode()
            target.writestr(name, f'<?xml version="1.0" encoding="UTF-16"?>{text}'.encode("utf-16"))
    assert docx.read(str(wide)).text == "Strict words."


@pytest.mark.parametrize("broken", ["no xml", "", " "])
def test_a_damaged_or_missing_part_costs_that_part(tmp_path: Path, broken: str) -> None:
    related = {"r1": ("footnotes", "f.xml"), "r2": ("comments", "c.xml"), "r3": ("image", "../NULL")}
    related["r4"] = ("subDocument", "file:///chapter2.docx")
    comments = f"<w:comments {NAMESPACES}><w:comment>{paragraph('Kept.')}</w:comment><w:comment>"
    path = word(tmp_path, paragraph("Body."), related, {"word/f.xml": broken, "word/c.xml": comments})
    content = docx.read(path)
    assert content.text == "Body.\n\nKept."
    damaged, cut_off, missing = content.unread
    assert (damaged.code, damaged.arguments[0]) == (Code.PART_DAMAGED, "word/f.xml")
    assert (cut_off.code, cut_off.arguments[0]) == (Code.PART_DAMAGED, "word/c.xml")
    assert missing == Code.PARTS_MISSING("../NULL, file:///chapter2.docx")


def test_a_member_that_does_not_unpack_costs_that_part(tmp_path: Path) -> None:
    notes = f"<w:footnotes {NAMESPACES}>{paragraph('A note to be damaged.')}</w:footnotes>"
    path = Path(word(tmp_path, paragraph("Body."), {"r1": ("footnotes", "f.xml")}, {"word/f.xml": notes}))
    path.write_bytes(path.read_bytes().replace(b"A note to be", b"A note to bf"))
    content = docx.read(str(path))
    assert content.text == "Body."
    assert content.unread == (Code.PART_DAMAGED("word/f.xml", "Bad CRC-32 for file 'word/f.xml'"),)


def test_a_package_without_relationships_or_main_part(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {NAMESPACES}>{paragraph('Found.')}</w:document>")
    assert docx.read(str(path)).text == "Found."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("words.xml", "<words/>")
    with pytest.raises(Unreadable) as error:
        docx.read(str(path))
    assert error.value.reason == Code.NO_MAIN_PART()


def test_one_alternate_is_read(tmp_path: Path) -> None:
    def alternate(choice: str, fallback: str) -> str:
        both = f'<mc:Choice Requires="x">{choice}</mc:Choice><mc:Fallback>{fallback}</mc:Fallback>'
        return f"<w:p><w:r><mc:AlternateContent>{both}</mc:AlternateContent></w:r></w:p>"

    def box(text: str) -> str:
        return f"<w:drawing><w:txbxContent>{paragraph(text)}</w:txbxContent></w:drawing>"

    art = '<w:pict><v:shape><v:textpath string="DRAFT"/></v:shape></w:pict>'
    body = alternate(box("Once."), box("Twice.")) + alternate("<w:ink/>", box("Only here.")) + alternate("", art)
    assert docx.read(word(tmp_path, body, {}, {})).text == "Once.\n\nOnly here.\n\nDRAFT"


def test_diagrams_and_imported_parts_are_at_their_places(tmp_path: Path) -> None:
    shapes = "".join(
        f"<dgm:pt><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>" for text in ("Malt", "Brew")
    )
    body = (
        f'{paragraph("Before.")}<w:p><w:r><w:drawing><dgm:relIds r:dm="r1"/></w:drawing></w:r></w:p>'
        f'<w:altChunk r:id="r2"/><w:sdt><w:sdtContent><w:altChunk r:id="r3"/></w:sdtContent></w:sdt>'
        f'<w:altChunk r:id="r4"/>{paragraph("After.")}'
    )
    inner = word(
        tmp_path, '<w:altChunk r:id="r1"/>' + paragraph("Inner."), {"r1": ("aFChunk", "c.txt")}, {}, "inner.docx"
    )
    with zipfile.ZipFile(inner, "a") as archive:
        archive.writestr("word/c.rtf", r"{\rtf1 x}")
    parts = {
        "word/d.xml": f"<dgm:dataModel {NAMESPACES}>{shapes}</dgm:dataModel>",
        "word/c.txt": "Plain.",
        "word/c.bin": "\0\1",
    }
    related = {
        "r1": ("diagramData", "d.xml"),
        "r2": ("aFChunk", "c.txt"),
        "r3": ("aFChunk", "c.docx"),
        "r4": ("aFChunk", "gone.html"),
    }
    path = word(tmp_path, body, related, parts)
    with zipfile.ZipFile(path, "a") as archive:
        archive.write(inner, "word/c.docx")
    content = docx.read(path)
    assert content.text == "Before.\n\nMalt\nBrew\n\nPlain.\n\nInner.\n\nAfter."
    assert content.unread == (
        Code.PARTS_MISSING("gone.html"),
        Code.INSIDE_NOT_WHOLE("c.docx", "parts that it refers to are not in it (c.txt)"),
    )


def test_embedded_files_are_noted(tmp_path: Path) -> None:
    related = {"r1": ("package", "in/Sheet.xlsx"), "r2": ("oleObject", "in/o.bin"), "r3": ("chart", "chart.xml")}
    chart = f"<c><a:p {NAMESPACES}><a:t>Rain</a:t></a:p></c>"
    parts = {
        "word/in/Sheet.xlsx": "x",
        "word/in/o.bin": "x",
        "word/chart.xml": chart,
        "word/data.xlsx": "x",
        "word/_rels/chart.xml.rels": relationships({"r1": ("package", "data.xlsx")}),
    }
    content = docx.read(word(tmp_path, paragraph("Body."), related, parts))
    assert content.text == "Body.\n\nRain"
    assert content.unread == (Code.FILES_INSIDE("2 files", "Sheet.xlsx, o.bin"),)


def test_ruby_stays_out_of_the_word(tmp_path: Path) -> None:
    def ruby(base: str, reading: str) -> str:
        both = ((reading, "rt"), (base, "rubyBase"))
        runs = "".join(f"<w:{tag}><w:r> <w:t>{text}</w:t></w:r></w:{tag}>" for text, tag in both)
        return f"<w:r><w:ruby>{runs}</w:ruby></w:r>"

    body = f"<w:p>{ruby('東', 'とう')}{ruby('京', 'きょう')}<w:r><w:t>へ</w:t></w:r>{ruby('行', 'い')}</w:p>"
    assert docx.read(word(tmp_path, body, {}, {})).text == "東京(とうきょう)へ行(い)"


def test_numbers_of_headings_and_of_levels_with_words(tmp_path: Path) -> None:
    style = '<w:pStyle w:val="H1"/>'
    styles = (
        f'<w:styles {NAMESPACES}><w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style><w:style w:type="paragraph" w:styleId="H2"><w:basedOn '
        'w:val="H1"/><w:name w:val="heading 2"/><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr></w:style>'
        "</w:styles>"
    )
    headings = level(0, "%1.", "upperRoman", '<w:pStyle w:val="H1"/>') + level(1, "%1.%2", more="<w:isLgl/>")
    articles = level(0, "Article %1") + level(1, "(%2)", "lowerLetter") + level(2, "第%3章", "chineseCounting")
    numbering = lists(
        headings,
        articles,
        level(0, "%1."),
        more=(
            '<w:num w:numId="9"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/>'
            "</w:lvlOverride></w:num>"
        ),
    )
    body = (
        paragraph("Rent", style)
        + paragraph("Term", '<w:pStyle w:val="H2"/>')
        + listed("pays", 2)
        + listed("", 2)
        + listed("dog", 2, 1)
        + "".join(listed("deep", 2, 2) for _ in range(12))
        + listed("repairs", 2)
        + paragraph("Roof", style)
        + paragraph("Plain", '<w:pStyle w:val="H2"/><w:numPr><w:numId w:val="0"/></w:numPr>')
        + listed("steps", 3)
        + listed("new", 9)
        + f"<w:tbl><w:tr><w:tc>{listed('cell', 9)}</w:tc></w:tr></w:tbl>"
    )
    related = {"r1": ("numbering", "n.xml"), "r2": ("styles", "s.xml")}
    content = docx.read(word(tmp_path, body, related, {"word/n.xml": numbering, "word/s.xml": styles}))
    lines = content.text.split("\n\n")
    assert lines[:4] == ["I. Rent", "1.1 Term", "Article 1 pays", "dog"]
    assert lines[4:16:11] == ["第一章 deep", "第十二章 deep"]
    assert lines[16:] == ["Article 3 repairs", "II. Roof", "Plain", "steps", "Article 7 new", "Article 8 cell"]
    assert content.title == "Rent"
    assert [section.heading for section in content.sections] == [
        "I. Rent",
        "I. Rent > 1.1 Term",
        "II. Roof",
        "II. Roof > Plain",
    ]


def test_a_list_style_and_damaged_numbering_are_no_obstacle(tmp_path: Path) -> None:
    styles = (
        f'<w:styles {NAMESPACES}><w:style w:type="numbering" w:styleId="L"><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>'
    )
    numbering = lists(
        level(0, "Part %1", "upperLetter"),
        '<w:numStyleLink w:val="L"/>',
        level(0, "§ %1 a", more="<w:lvlRestart w:val='x'/>"),
    )
    body = listed("one", 2) + listed("two", 2) + listed("none", 77) + listed("nine", 3, 8) + listed("three", 3)
    related = {"r1": ("numbering", "n.xml"), "r2": ("styles", "s.xml")}
    content = docx.read(word(tmp_path, body, related, {"word/n.xml": numbering, "word/s.xml": styles}))
    assert content.text == "Part A one\n\nPart B two\n\nnone\n\nnine\n\n§ 1 a three"


def test_a_level_counts_on_unless_its_own_level_restarts_it(tmp_path: Path) -> None:
    levels = (
        level(0, "Chapter %1"),
        level(1, "Listing %1-%2"),
        level(2, "Figure %1-%3", more='<w:lvlRestart w:val="1"/>'),
        level(3, "Note %4", more='<w:lvlRestart w:val="0"/>'),
    )
    places = (0, 1, 2, 3, 1, 2, 0, 1, 2, 3)
    numbering = {"word/n.xml": lists("".join(levels))}
    content = docx.read(
        word(tmp_path, "".join(listed(".", 1, at) for at in places), {"r1": ("numbering", "n.xml")}, numbering)
    )
    assert content.text.replace(" .", "").split("\n\n") == [
        *("Chapter 1", "Listing 1-1", "Figure 1-1", "Note 1", "Listing 1-2", "Figure 1-2"),
        *("Chapter 2", "Listing 2-1", "Figure 2-1", "Note 2"),
    ]


def test_drawings_of_word_hold_text(tmp_path: Path) -> None:
    body = f"<w:p><w:r><w:t>Canvas:</w:t><w:drawing><a:sp>{drawn('one')}{drawn('two')}</a:sp></w:drawing></w:r></w:p>"
    assert docx.read(word(tmp_path, body, {}, {})).text == "Canvas:\none\ntwo"


def test_shapes_of_a_slide_and_its_notes_page(tmp_path: Path) -> None:
    equation = (
        "<a:p><mc:AlternateContent><mc:Choice Requires='a14'><m:oMath><m:t>m</m:t><m:t>3</m:t></m:oMath></mc:Choice>"
    )
    equation = f"{equation}<mc:Fallback><a:r><a:t>picture</a:t></a:r></mc:Fallback></mc:AlternateContent></a:p>"
    slide = (
        shape("Body", "Second<a:x/>")
        + shape("The", "title", kind="ctrTitle")
        + f"<p:grpSp><p:grpSp>{shape('In groups')}</p:grpSp></p:grpSp>"
        + f"<mc:AlternateContent><mc:Choice Requires='a14'><p:sp><p:txBody>{equation}</p:txBody></p:sp></mc:Choice>"
        + f"<mc:Fallback>{shape('Never')}</mc:Fallback></mc:AlternateContent>"
        + f"<p:graphicFrame><a:tbl><a:tr><a:tc>{drawn('a')}{drawn('b')}</a:tc><a:tc/></a:tr>"
        + f"<a:tr><a:tc>{drawn('c')}</a:tc><a:tc>{drawn('d')}</a:tc></a:tr></a:tbl></p:graphicFrame>"
        + '<p:graphicFrame><dgm:relIds r:dm="r1"/></p:graphicFrame>'
    )
    notes = shape("Say this.", kind="body") + shape("7", kind="sldNum") + shape("A box.") + shape("Hall 3", kind="ftr")
    comments = f"<p:cmLst {NAMESPACES}><p:cm><p:txBody>{drawn('Too')}{drawn('wet')}</p:txBody></p:cm></p:cmLst>"
    parts = {
        "ppt/d.xml": f"<dgm:dataModel {NAMESPACES}><dgm:pt><dgm:t>{drawn('Malt')}</dgm:t></dgm:pt></dgm:dataModel>",
        "ppt/n.xml": page("notes", notes),
        "ppt/c.xml": comments,
        "ppt/o.xlsx": "x",
    }
    related = {
        **{"r1": ("diagramData", "d.xml"), "r2": ("notesSlide", "n.xml")},
        **{"r3": ("comments", "c.xml"), "r4": ("package", "o.xlsx"), "r5": ("notesSlide", "gone")},
    }
    content = pptx.read(slides(tmp_path, slide, related, parts))
    assert content.text.split("\n\n") == [
        *("Body\nSecond", "The\ntitle", "In groups", "m3", "a b\t\nc\td", "Malt"),
        *("Say this.", "A box.", "Hall 3", "Too wet"),
    ]
    assert (content.title, content.metadata) == ("The title", {"slides": 2})
    assert [(section.heading, section.page) for section in content.sections] == [("The title", 1), ("Comments", None)]
    assert content.unread == (Code.PARTS_MISSING("gone.xml, gone"), Code.FILES_INSIDE("1 file", "o.xlsx"))


def test_tables_within_hundreds_of_tables(tmp_path: Path) -> None:
    body = "<w:tbl><w:tr><w:tc>" * 400 + paragraph("Deep.") + "</w:tc></w:tr></w:tbl>" * 400
    assert docx.read(word(tmp_path, body + paragraph("After."), {}, {})).text == "Deep.\n\nAfter."


def test_the_fallback_of_a_drawing_with_a_pen_is_read(tmp_path: Path) -> None:
    inner = f"<mc:Choice Requires='b'><p:contentPart r:id='x'/></mc:Choice><mc:Fallback>{shape('Inner.')}</mc:Fallback>"
    group = f"<p:grpSp><mc:AlternateContent>{inner}</mc:AlternateContent>{shape('Outer.')}</p:grpSp>"
    slide = f"<mc:AlternateContent><mc:Choice Requires='a'>{group}</mc:Choice></mc:AlternateContent>"
    assert pptx.read(slides(tmp_path, slide, {}, {})).text == "Inner.\n\nOuter."


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr>{text}</w:r>"


def t(text: str) -> str:
    return f"<w:t>{text}</w:t>"


def test_words_of_a_document_at_unusual_places(tmp_path: Path) -> None:
    field = (
        f"{run('<w:fldChar/>')}"
        f"{run('<w:instrText>REF x</w:instrText>')}{run('<w:fldChar/>')}{run(t('Result'))}{run('<w:fldChar/>')}"
    )
    symbols = (
        '<w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="Wingdings" w:char="F0FC"/>'
        '<w:sym w:font="Times" w:char="20AC"/><w:sym w:char="x"/><w:sym w:font="Wingdings 2" w:char="0052"/>'
    )
    form = (
        '<w:fldChar><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Yes"/><w:listEntry w:val="No"/>'
        "</w:ddList></w:ffData></w:fldChar>"
    )
    half = "<m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>"
    wrapped = f"<w:smartTag><w:customXml><w:hyperlink>{run(t('link'))}</w:hyperlink></w:customXml></w:smartTag>"
    control = f"<w:sdt><w:sdtContent><w:tc>{paragraph('cell')}</w:tc></w:sdtContent></w:sdt>"
    rows = f"<w:sdt><w:sdtContent><w:tr>{control}<w:tc><w:p>{run(t('two'))}</w:p></w:tc></w:tr></w:sdtContent></w:sdt>"
    changed = (
        f"<w:p><w:moveFrom>{run(t('moved away'))}</w:moveFrom><w:moveTo>{run(t('moved here'))}</w:moveTo></w:p>"
        f"<w:p><w:ins>{run(t('new'))}<w:del>{run(t('gone'))}</w:del></w:ins></w:p>"
    )
    hyphens = run(f"{t('co')}<w:noBreakHyphen/>{t('op')}<w:softHyphen/>{t('eration')}<w:ptab/>{t('right')}")
    body = (
        f"<w:p>{field}{run(symbols)}{run(form)}</w:p><w:p>{half}</w:p><w:p>{wrapped}</w:p><w:tbl>{rows}</w:tbl>{changed}"
        f"<w:p>{hyphens}</w:p>"
    )
    content = docx.read(word(tmp_path, body, {}, {}))
    assert content.text.split("\n\n") == [
        *("Resultα€No", "1/2", "link", "cell\ttwo", "moved here", "new", "co-operation\tright")
    ]
    assert content.unread == ()


def test_results_within_the_instruction_of_a_field_are_not_read(tmp_path: Path) -> None:
    begin, separate, end = (run(f'<w:fldChar w:fldCharType="{kind}"/>') for kind in ("begin", "separate", "end"))
    merged = f"{begin}{run('<w:instrText>MERGEFIELD x</w:instrText>')}{separate}{run(t('Mr'))}{end}"
    body = f"<w:p>{begin}{merged}{separate}{run(t('Dear '))}{merged}{end}{run(t(' Otter'))}{separate}{end}</w:p>"
    assert docx.read(word(tmp_path, f"{body}{paragraph('Next')}", {}, {})).text == "Dear Mr Otter\n\nNext"


def test_hidden_words_of_a_document_are_left_out_and_counted(tmp_path: Path) -> None:
    styles = (
        '<w:style w:styleId="P" w:type="paragraph"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:styleId="R" w:type="character"><w:basedOn w:val="P"/></w:style>'
        '<w:style w:styleId="S" w:type="character"><w:basedOn w:val="P"/><w:rPr><w:vanish w:val="0"/></w:rPr></w:style>'
    )
    of_style = '<w:rStyle w:val="{}"/>'.format
    runs = (
        run(t("Seen "))
        + run(t("not this "), "<w:vanish/>")
        + run(t("nor"), of_style("R"))
        + run(t("and this "), of_style("S"))
        + run(t("too."), '<w:vanish w:val="false"/><w:webHidden/>')
    )
    form = '<w:p><w:pPr><w:pStyle w:val="P"/></w:pPr>{}</w:p>'.format
    shown = run(t("Shown."), '<w:vanish w:val="0"/>')
    body = f"<w:p>{runs}</w:p>{form(run(t('Top of Form')))}{form(shown)}"
    part = f"<w:styles {NAMESPACES}>{styles}</w:styles>"
    content = docx.read(word(tmp_path, body, {"r1": ("styles", "s.xml")}, {"word/s.xml": part}))
    assert content.text == "Seen and this too.\n\nShown."
    assert content.unread == (Code.HIDDEN_PARTS("6 words", "left out"),)


def test_masters_and_layouts_have_words_of_their_own(tmp_path: Path) -> None:
    number = "<a:p><a:fld><a:t>‹#›</a:t></a:fld></a:p>"
    layout = (
        shape("Click to edit", kind="body") + shape("Plan Albatross") + f"<p:sp><p:txBody>{number}</p:txBody></p:sp>"
    )
    fraction = "<a:p><m:den><m:t>2</m:t></m:den></a:p>"
    master = f"<p:grpSp>{shape('Acme Inc.')}</p:grpSp>{shape('Plan Albatross')}{shape('Edit', kind='ftr')}"
    parts = {
        "ppt/layout.xml": page("sldLayout", layout),
        "ppt/master.xml": page("sldMaster", master),
        "ppt/_rels/layout.xml.rels": relationships({"r1": ("slideMaster", "master.xml")}),
        "ppt/_rels/master.xml.rels": relationships({"r1": ("slideLayout", "layout.xml")}),
    }
    related = {"r1": ("slideLayout", "layout.xml")}
    slide = shape("Body.") + f"<p:sp>{fraction}</p:sp>"
    content = pptx.read(slides(tmp_path, slide, related, parts))
    assert content.text == "Body.\n\n/2\n\nPlan Albatross\n\nAcme Inc."
    assert [section.heading for section in content.sections] == ["", "Slide master"]
    parts["ppt/first.xml"] = page("sld", slide).replace(" ", ' showMasterSp="0" show="0" ', 1)
    content = pptx.read(slides(tmp_path, slide, related, parts))
    assert content.text == "Body.\n\n/2"
    assert content.unread[1:] == (Code.HIDDEN_PARTS("1 slide (1)", "read too"),)


def test_names_of_a_chart_that_refer_to_no_cell(tmp_path: Path) -> None:
    series = (
        "<c:ser><c:tx><c:v>Rain</c:v></c:tx><c:cat><c:strLit><c:pt><c:v>May</c:v></c:pt></c:strLit></c:cat></c:ser>"
    )
    newer = "<cx:strDim><cx:f>A1</cx:f><cx:lvl><cx:pt>North</cx:pt></cx:lvl></cx:strDim><cx:tx><cx:txData><cx:v>Sales"
    parts = {
        "word/c.xml": f'<c:chart xmlns:c="{SCHEMAS}/drawingml/2006/chart">{series}<c:v>7</c:v></c:chart>',
        "word/x.xml": f'<cx:chart xmlns:cx="urn:cx">{newer}</cx:v></cx:txData></cx:tx></cx:chart>',
    }
    related = {"r1": ("chart", "c.xml"), "r2": ("chartEx", "x.xml")}
    assert docx.read(word(tmp_path, "", related, parts)).text == "Rain\nMay\n\nNorth\nSales"
