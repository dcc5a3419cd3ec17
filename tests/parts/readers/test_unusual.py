"""Files that are sound but unusual, or slightly damaged: read rightly, or failed with a reason; never in silence."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from itertools import pairwise
from pathlib import Path

import docx
import pptx
import pytest

from indexer.passages import front_matter
from indexer.passages.cut import left_out_ranges, visible_text
from indexer.records import Document
from indexer.sources import Entry, encoding
from indexer.sources.content import Unreadable
from indexer.sources.files import markdown
from indexer.sources.files.worker import call_reader
from likewise.readers.formats import html, rst

Collect = Callable[..., list[Entry]]

FRENCH = "Les élèves étaient occupés à préparer la fête du château, où l’on dégustait des crêpes."
SWEDISH = "Räksmörgås är gott på sommaren när älgarna går över ån i Småland."
FINNISH = "Hyvää päivää, tämä on yöllinen sää ja hän lähtee töihin äitinsä kanssa."
PORTUGUESE = "A informação não está disponível; as opções são três e o coração é português."
POLISH = "Zażółć gęślą jaźń, a potem pójdź do łóżka i śpij spokojnie całą noc."
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy a šel večer domů přes řeku."
HUNGARIAN = "Árvíztűrő tükörfúrógép, és a nő elment a földről örökre a hegyekbe."
TURKISH = "Türkçe öğrenmek için her gün çalışıyorum, şimdi ağaç ve ışık gördüm."
LITHUANIAN = "Lietuvių kalba yra graži, ąžuolas ir šaltinis prie mūsų namų, čia gyvenu."
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. Её моё твоё."
GREEK = "Ο γρήγορος καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί σήμερα."
CHINESE = "今天天气很好，我们一起去公园散步，然后回家吃饭看书。"


def entry_of(collect: Collect, path: Path, content: str | bytes | None = None) -> Entry:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (entry,) = collect(path)
    return entry


def one(collect: Collect, path: Path, content: str | bytes | None = None) -> Document:
    entry = entry_of(collect, path, content)
    assert entry.document is not None, entry.reason.text()
    return entry.document


@pytest.mark.parametrize("repeated", [1, 20])
@pytest.mark.parametrize(
    ("text", "page"),
    [
        *((text, "cp1252") for text in (FRENCH, SWEDISH, FINNISH, PORTUGUESE, "Grüße", "It costs £5, or £3 for two.")),
        *((text, page) for text in (POLISH, CZECH, HUNGARIAN) for page in ("cp1250", "iso8859_2")),
        *((TURKISH, "cp1254"), (LITHUANIAN, "cp1257"), (GREEK, "cp1253"), (RUSSIAN, "cp1251"), (RUSSIAN, "cp866")),
        *((CHINESE, "gb18030"), (CHINESE, "gb2312")),
    ],
)
def test_code_pages(text: str, page: str, repeated: int) -> None:
    text = f"{text}\n" * repeated
    assert encoding.decode(text.encode(page)) == text


def test_a_late_latin_1_byte() -> None:
    for ascii_part in ("x = 1\n" * 60_000, "x = 1 " * 60_000):  # short lines, and one long one
        text = f"{ascii_part}le café fermé\n"
        assert encoding.decode(text.encode("latin-1")) == text


def test_damaged_utf_8_is_not_taken_for_another_encoding(tmp_path: Path, collect: Collect) -> None:
    log = "2024 Müller läuft über die Straße\n".encode() * 20
    entry = entry_of(collect, tmp_path / "a.txt", f"\n{CHINESE}{CHINESE}".encode()[:-1])
    assert entry.document is not None
    assert entry.document.text == f"\n{CHINESE}{CHINESE[:-1]}\ufffd"
    assert [note.text() for note in entry.notes] == ["1 of its characters cannot be read as utf-8: save it as UTF-8"]
    assert encoding.decode(log + b"\xfe\xff M\xc3\xbcll\xc3\xa4\n") is None
    assert encoding.guess(log + b"\xff cut\n") is None  # what tables ask
    entry = entry_of(collect, tmp_path / "c.txt", "café, fermé, naïve\n".encode() + b"caf\xe9\n")
    assert entry.document is not None
    assert entry.document.text == "café, fermé, naïve\ncafé\n"
    assert [note.text() for note in entry.notes] == [
        "encoding guessed: cp1252 (bytes beyond ASCII: 1): save it as UTF-8 if its text looks wrong"
    ]


def test_cookies_come_after_utf_8_and_only_in_code(tmp_path: Path, collect: Collect) -> None:
    for text in ("# Encoding: latin-1 and friends\n\nÜber naïve café\n", "# coding: koi8-r\ns = 'ж'\n"):
        assert one(collect, tmp_path / "a.md", text).text == text
        assert one(collect, tmp_path / "a.py", text).text == text
    text = f"# Encoding: koi8-r and friends\n\n{FRENCH}\n"
    assert one(collect, tmp_path / "a.md", text.encode("cp1252")).text == text
    code = "# coding: iso-2022-jp\ns = '吾輩'\n"
    assert one(collect, tmp_path / "a.py", code.encode("iso-2022-jp")).text == code
    assert encoding.decode(b"# coding: utf-16\n# na\xefve") == "# coding: utf-16\n# naïve"


@pytest.mark.parametrize("charset", ["utf-16", "UTF-16LE", "utf-32"])
def test_a_page_that_declares_utf_16_is_utf_8(tmp_path: Path, collect: Collect, charset: str) -> None:
    page = f'<meta charset="{charset}"><p>naïve café</p>'
    assert one(collect, tmp_path / "a.html", page).text == "naïve café"


@pytest.mark.parametrize("value", ["!!timestamp soon", "!!bool maybe", '!!int ""', f"!!int {'9' * 5000}"])
def test_front_matter_that_does_not_parse(tmp_path: Path, collect: Collect, value: str) -> None:
    text = f"---\ntitle: T\nupdated: {value}\n---\n# Heading\n\ntext\n"
    document = one(collect, tmp_path / "a.md", text)
    assert (document.text, document.title, list(document.metadata)) == (text, "Heading", ["size"])
    assert [section.heading for section in document.sections] == ["", "Heading"]
    (note,) = markdown.read(text).unread
    assert note.text().startswith("line 1: its front matter is not read, because it is not valid YAML (")


def test_front_matter_with_a_mistake_has_a_note_that_names_the_line() -> None:
    content = markdown.read("---\ndate: 2024-01-01\ntitle: Broken: colon\n---\n# Body\n")
    assert (content.title, content.metadata) == ("Body", {})
    assert [note.text() for note in content.unread] == [
        "line 3: its front matter is not read, because it is not valid YAML (mapping values are not allowed here): "
        "repair it"
    ]


def test_front_matter_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = front_matter._parse
    monkeypatch.setattr(front_matter, "_parse", lambda block: parsed.append(block) or parse(block))
    text = "---\ntitle: Once upon a time\nkind: tale\n---\nA [link](u) in the text."
    document = Document("a.md", text, format="markdown")
    content = markdown.read(text)
    assert (content.title, content.metadata) == ("Once upon a time", {"kind": "tale"})
    assert markdown.read(text).title == "Once upon a time"
    assert visible_text(document.text, "markdown").endswith("A link in the text.")
    assert left_out_ranges(text, "markdown") == [(0, text.index("A [link]"))]
    assert parsed == ["title: Once upon a time\nkind: tale\n"]


def test_nested_members_of_front_matter_are_fields() -> None:
    front = "author:\n  name: Anna Berg\n  born: 1980-05-01\n  died:\npeople: [{name: A}, {name: B}]\nnone: {}\n"
    content = markdown.read(f"---\n{front}---\nText\n")
    people = [{"name": "A"}, {"name": "B"}]
    assert content.metadata == {"author": {"name": "Anna Berg", "born": "1980-05-01"}, "people": people}
    assert content.unread == ()


@pytest.mark.parametrize("front", ["a: &a [*a]\n", f"a: {'[' * 60}{']' * 60}\n"])
def test_front_matter_without_an_end_is_not_read(front: str) -> None:
    content = markdown.read(f"---\n{front}---\nText\n")
    assert content.metadata == {}
    assert "(it has more than 10,000 values or 50 levels)" in content.unread[0].text()


def test_merges_and_large_numbers_in_front_matter() -> None:
    names = "abcdefghijklmnop"
    merges = "a: &a {x: 1}\n" + "".join(
        f"{name}: &{name} {{<<: [{','.join(['*' + before] * 30)}]}}\n" for before, name in pairwise(names)
    )
    content = markdown.read(f"---\n{merges}year: 2024\nbig: 0x{'F' * 60}\nlist: [1, 2]\n---\ntext\n")
    assert content.metadata == {"a": {"x": 1}, "year": 2024, "list": [1, 2]}


def test_a_rule_is_no_front_matter() -> None:
    text = "---\n# One\n\nfirst\n\n---\n\n# Two\n\nsecond\n"
    content = markdown.read(text)
    assert (content.title, content.metadata) == ("One", {})
    assert [(part.heading, text[part.start :][:5]) for part in content.sections] == [
        ("", "---\n#"),
        ("One", "# One"),
        ("Two", "# Two"),
    ]


def test_a_long_number_in_a_pep_header(tmp_path: Path, collect: Collect) -> None:
    digits = "7" * 5000
    text = f"PEP: 8\nTitle: Guide\nNumber: {digits}\n\nText\n"
    assert one(collect, tmp_path / "a.rst", text).metadata == {"pep": 8, "number": digits, "size": len(text)}


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ValueError("out of\nrange"), "ValueError: out of range"),
        (IndexError("out of\nrange"), "something in it is missing, or not as its format asks"),
    ],
)
def test_a_reader_that_raises_fails_its_file_alone(
    error: Exception, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str) -> None:
        raise error

    monkeypatch.setattr(rst, "read", broken)
    with pytest.raises(Unreadable, match=rf"^damaged, or no rst file \({problem}\)$"):
        call_reader("rst", "text")


def mail(text: str = "", rich: str = "", charset: str = "utf-8") -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = "News"
    if text:
        message.set_content(text)
    if rich:
        add = message.add_alternative if text else message.set_content
        add(rich, subtype="html", charset=charset)
    return message


def test_the_html_of_mail_is_decoded_once(tmp_path: Path, collect: Collect) -> None:
    page = '<html><head><meta charset="{}"></head><body><p>Grüße aus Köln</p></body></html>'
    for declared, charset in (("iso-8859-1", "utf-8"), ("utf-8", "iso-8859-1"), ("koi8-r", "utf-8")):
        message = mail(rich=page.format(declared), charset=charset)
        assert one(collect, tmp_path / "a.eml", bytes(message)).text == "Grüße aus Köln"


def test_the_texts_of_mail(tmp_path: Path, collect: Collect) -> None:
    blank = mail("\n", "<p>Rich words.</p>")
    assert one(collect, tmp_path / "a.eml", bytes(blank)).text == "Rich words."
    several = mail("Before.")
    several.add_attachment(b"\0", maintype="image", subtype="png", filename="a.png", disposition="inline")
    several.add_attachment("After.", disposition="inline")
    several.add_attachment("Attached.", filename="notes.txt")
    document = one(collect, tmp_path / "b.eml", bytes(several))
    assert document.text == "Attachments: a.png, notes.txt\n\nBefore.\n\nAfter.\n\nAttached."
    assert [section.heading for section in document.sections] == ["", "notes.txt"]
    assert document.metadata["attachments"] == ["a.png", "notes.txt"]


@pytest.mark.parametrize("header", ["", "Content-Type: text/plain\n", "Content-Type: text/plain; charset=x-none\n"])
def test_8_bit_mail_without_a_charset(tmp_path: Path, collect: Collect, header: str) -> None:
    for page in ("cp1252", "utf-8"):
        raw = f"Subject: a\n{header}Content-Transfer-Encoding: 8bit\n\n{FRENCH}\n".encode(page)
        assert one(collect, tmp_path / "a.eml", raw).text == FRENCH


WORDS = "The keeper of lighthouse {} climbed the winding stairs every evening to light the great lamp."


@pytest.mark.parametrize(
    "large",
    [
        f'<img src="data:image/png;base64,{"A" * 11_000_000}">',
        f"<script>{'a = 1;' * 2_100_000}</script>",
        "<div>" * 600 + "deep" + "</div>" * 600,
    ],
    ids=["image", "script", "depth"],
)
def test_html_is_not_cut(tmp_path: Path, collect: Collect, large: str) -> None:
    path = tmp_path / "a.html"
    path.write_text(f"<body><p>{WORDS.format(1)}</p>{large}<p>{WORDS.format(2)}</p></body>")
    text = one(collect, path).text
    assert WORDS.format(1) in text
    assert text.endswith(WORDS.format(2))


def test_html_that_the_parser_gives_up_fails(tmp_path: Path, collect: Collect) -> None:
    entry = entry_of(collect, tmp_path / "a.html", "<p>before</p>" + "<div>" * 5000 + "<p>after</p>")
    assert (entry.state, entry.reason.text()[:31]) == ("failed", "damaged: read as far as line 1 ")


def test_a_page_within_a_form(tmp_path: Path, collect: Collect) -> None:
    paragraphs = "".join(f"<p>{WORDS.format(number)}</p>" for number in range(8))
    page = f"<body><form action='.'><h1>Report</h1>{paragraphs}<button>Send</button></form></body>"
    text = one(collect, tmp_path / "a.html", page).text
    assert [number for number in range(8) if WORDS.format(number) not in text] == []
    assert "Send" not in text
    short = "<body><form><div>Opening hours</div><div>Monday to Friday</div></form></body>"
    assert one(collect, tmp_path / "a.html", short).text == "Opening hours\n\nMonday to Friday"


def test_the_longer_text_of_a_page(tmp_path: Path, collect: Collect) -> None:
    article = "".join(f"<p>{WORDS.format(number)}</p>" for number in range(8))
    page = f"<body><div aria-hidden='true'><article>{article}</article></div><p>Short.</p></body>"
    assert WORDS.format(7) in one(collect, tmp_path / "a.html", page).text


def test_the_title_of_a_page_without_one(tmp_path: Path, collect: Collect) -> None:
    page = f"<title> </title><h2>The <i>lamp</i></h2><p>{WORDS.format(1)}</p><h1>Later</h1>"
    assert one(collect, tmp_path / "a.html", page).title == "The lamp"
    assert html.parse("") is None


def rewritten(path: Path, name: str, old: str, new: str) -> Path:
    """A copy of a zip file with another content type."""
    copy = path.with_name(name)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for member in source.namelist():
            target.writestr(member, source.read(member).replace(old.encode(), new.encode()))
    return copy


def test_office_files_of_related_kinds(tmp_path: Path, collect: Collect) -> None:
    word, slides = docx.Document(), pptx.Presentation()
    word.add_heading("Guide", 1)
    word.save(str(tmp_path / "a.docx"))
    slides.slides.add_slide(slides.slide_layouts[5]).shapes.title.text = "Opening"
    slides.save(str(tmp_path / "a.pptx"))
    kind = "vnd.openxmlformats-officedocument.{}.main+xml"
    for name, new in (
        ("b.docm", "vnd.ms-word.document.macroEnabled.main+xml"),
        ("b.dotx", kind.format("wordprocessingml.template")),
    ):
        copy = rewritten(tmp_path / "a.docx", name, kind.format("wordprocessingml.document"), new)
        assert (one(collect, copy).text, one(collect, copy).format) == ("Guide", "docx")
    for name, new in (
        ("b.pptm", "vnd.ms-powerpoint.presentation.macroEnabled.main+xml"),
        ("b.ppsx", kind.format("presentationml.slideshow")),
    ):
        copy = rewritten(tmp_path / "a.pptx", name, kind.format("presentationml.presentation"), new)
        assert (one(collect, copy).text, one(collect, copy).format) == ("Opening", "pptx")
    exotic = rewritten(tmp_path / "a.docx", "c.docx", kind.format("wordprocessingml.document"), "x")
    assert one(collect, exotic).text == "Guide"
    wrong = (tmp_path / "a.pptx").rename(tmp_path / "d.docx")
    assert (one(collect, wrong).text, one(collect, wrong).format) == ("Opening", "pptx")


def test_controls_equations_and_nested_tables_in_docx(tmp_path: Path, collect: Collect) -> None:
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    names += ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'

    def cell(text: str) -> str:
        return f"<w:tc><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"

    def control(inner: str) -> str:
        return f"<w:sdt><w:sdtContent>{inner}</w:sdtContent></w:sdt>"

    nested = f"<w:tbl><w:tr>{cell('n1')}{cell('n2')}</w:tr></w:tbl>"
    math = "<m:oMath><m:r><m:t>E=mc</m:t></m:r></m:oMath>"
    file = docx.Document()
    for xml in (
        f"<w:tbl {names}><w:tr>{cell('a')}{control(cell('b'))}</w:tr>"
        + control(f"<w:tr><w:tc>{nested}<w:p/></w:tc>{cell('d')}</w:tr>")
        + "</w:tbl>",
        f"<w:p {names}><w:r><w:t>So </w:t></w:r>{math}</w:p>",
        f"<m:oMathPara {names}>{math}</m:oMathPara>",
    ):
        file.element.body.insert(-1, docx.oxml.parse_xml(xml))
    file.save(str(tmp_path / "a.docx"))
    assert one(collect, tmp_path / "a.docx").text == "a\tb\nn1 n2\td\n\nSo E=mc\n\nE=mc"


def book(path: Path, listed: str, stored: str) -> Path:
    with zipfile.ZipFile(path, "w") as target:
        target.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="b.opf"/></rootfiles></container>',
        )
        target.writestr(
            "b.opf",
            f'<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="{listed}"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
        )
        target.writestr(stored, "<html><body><p>It began.</p></body></html>")
    return path


def test_chapters_by_another_spelling_of_their_name(tmp_path: Path, collect: Collect) -> None:
    for listed, stored in (("Text/One.xhtml", "text/one.xhtml"), ("e\u0301t%C3%A9.xhtml", "été.xhtml")):
        assert one(collect, book(tmp_path / "a.epub", listed, stored)).text == "It began."
    entry = entry_of(collect, book(tmp_path / "b.epub", "two.xhtml", "one.xhtml"))
    assert (entry.state, entry.reason.text()) == ("failed", "damaged: its chapter two.xhtml is not in it")
