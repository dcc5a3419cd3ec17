"""Notes on what a file inside a file, or a page inside a file, does not give: none of them is lost on the way."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Unreadable
from indexer.sources.files.extractor import EXTRACTOR
from likewise.readers.formats import docx, eml, epub, html, rtf, xml

HEAD = b"From: ann@example.org\nMIME-Version: 1.0\nSubject: Hi\n"
SHOWN = b"The otter came back to the estuary."
HIDDEN = b"<p style='display:none'>Four words are hidden.</p><p>" + SHOWN + b"</p>"
UNREAD = Code.CHARACTERS_UNREAD("1", "utf-8")


def book(
    path: Path,
    pages: Mapping[str, bytes],
    spine: str = "",
    manifest: str = "",
    members: Mapping[str, bytes] | None = None,
) -> Content:
    """Return what is read of an EPUB of these pages.

    Args:
        spine, manifest: elements beside those of the pages.
        members: further members of its META-INF folder.
    """
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in pages)
    order = "".join(f'<itemref idref="{name}"/>' for name in pages)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata/>'
        f"<manifest>{items}{manifest}</manifest><spine>{order}{spine}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="p.opf"/>'
        "</rootfiles></container>"
    )
    with zipfile.ZipFile(path / "a.epub", "w") as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("p.opf", package)
        for name, data in {**pages, **{f"META-INF/{name}": data for name, data in (members or {}).items()}}.items():
            archive.writestr(name, data)
    return epub.read(str(path / "a.epub"))


def package(document: str, parts: Mapping[str, bytes]) -> bytes:
    """Return a DOCX with this body, and the parts that it imports, whose relationships have their names."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    namespaces = f'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="{office}"'
    related = "".join(f'<Relationship Id="{name}" Type="{office}/aFChunk" Target="{name}"/>' for name in parts)
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {namespaces}><w:body>{document}</w:body></w:document>")
        archive.writestr("word/_rels/document.xml.rels", f"<Relationships>{related}</Relationships>")
        for name, data in parts.items():
            archive.writestr(f"word/{name}", data)
    return file.getvalue()


def test_a_book_notes_what_its_pages_hide_and_what_cannot_be_read(tmp_path: Path) -> None:
    content = book(
        tmp_path, {"a.xhtml": b"<meta charset=utf-8><p>Caf\xc3\xa9s \xc3\xa0 \xff la carte", "b.xhtml": HIDDEN}
    )
    assert content.text == f"Cafés à \ufffd la carte\n\n{SHOWN.decode()}"
    assert content.unread == (UNREAD, Code.HIDDEN_WORDS("4 words"))


@pytest.mark.parametrize(
    ("kind", "body", "unread"),
    [
        (b"text/plain; charset=utf-8", b"Caf\xc3\xa9s \xc3\xa0 \xff la carte", (UNREAD,)),
        (b"text/html; charset=utf-8", b"<p>Caf\xc3\xa9s \xc3\xa0 \xff la carte", (UNREAD,)),
        (b"text/html", HIDDEN, (Code.HIDDEN_WORDS("4 words"),)),
        (
            b"multipart/alternative; boundary=b",
            b"--b\nContent-Type: text/plain\n\n" + SHOWN + b"\n--b\nContent-Type: text/html\n\n" + HIDDEN + b"\n--b--",
            (),
        ),
        (
            b"multipart/mixed; boundary=b",
            b"--b\n\n" + SHOWN + b"\n--b\nContent-Type: text/html; name=a.html\nContent-Disposition: attachment\n\n"
            + HIDDEN + b"\n--b--",
            (Code.HIDDEN_WORDS("4 words"),),
        ),
    ],
)  # fmt: skip
def test_mail_notes_what_it_hides_and_what_cannot_be_read(kind: bytes, body: bytes, unread: tuple[object, ...]) -> None:
    content = eml.read(HEAD + b"Content-Type: " + kind + b"\n\n" + body)
    assert content.text.endswith("la carte" if UNREAD in unread else SHOWN.decode())
    assert content.unread == unread


def test_mail_notes_headers_and_messages_that_it_does_not_read() -> None:
    headers = HEAD.replace(b"Hi", b"=?utf-8?q?caf=C3=A9s_=C3=A0_=FF?=")
    assert eml.read(headers + b"\nText.").unread == (Code.CHARACTERS_UNREAD("1", "the encoding of its headers"),)
    message = b"Subject: last\n\nThe innermost words."
    for number in range(22):
        head = b"Subject: %d\nContent-Type: multipart/mixed; boundary=b%d\n\n" % (number, number)
        message = head + b"--b%d\nContent-Type: message/rfc822\n\n" % number + message
    content = eml.read(message)
    assert content.text.count("Subject") == 20
    assert content.unread == (Code.INSIDE_NOT_WHOLE("message/rfc822", "inside more than 20 other files"),)


def test_feeds_note_what_their_pages_hide(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b"<rss><item><description><![CDATA[" + HIDDEN + b"]]></description></item></rss>")
    content = xml.read(str(tmp_path / "a.xml"))
    assert (content.text, content.unread) == (SHOWN.decode(), (Code.HIDDEN_WORDS("4 words"),))


def test_documents_inside_documents_are_read_to_a_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = package("<w:p><w:r><w:t>Within.</w:t></w:r></w:p>", {})
    outer = package('<w:altChunk r:id="b.docx"/>', {"b.docx": inner})
    (tmp_path / "a.docx").write_bytes(
        package('<w:altChunk r:id="c.docx"/><w:altChunk r:id="d.bin"/>', {"c.docx": outer, "d.bin": bytes(range(256))})
    )
    content = docx.read(str(tmp_path / "a.docx"))
    assert (content.text, content.unread) == ("Within.", (Code.FILES_INSIDE("1 file", "d.bin"),))
    monkeypatch.setattr(EXTRACTOR, "depth", 4)
    content = docx.read(str(tmp_path / "a.docx"))
    assert content.text == ""
    assert content.unread[0] == Code.INSIDE_NOT_WHOLE("c.docx", "inside more than 3 other files")


def test_a_chapter_that_cannot_be_read_costs_that_chapter(tmp_path: Path) -> None:
    pages = {"a.xhtml": b"<p>First words.", "b.xhtml": b"<p>Secret words.", "c.xhtml": b"<p>Last words."}
    locked = (
        b'<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>'
        b'<enc:CipherReference URI="b.xhtml"/></enc:CipherData></enc:EncryptedData></encryption>'
    )
    manifest = '<item id="g" href="gone.xhtml"/><item id="i" href="i.jpg" media-type="image/jpeg"/>'
    content = book(tmp_path, pages, '<itemref idref="g"/><itemref idref="i"/>', manifest, {"encryption.xml": locked})
    assert content.text == "First words.\n\nLast words."
    assert content.unread == (Code.PARTS_MISSING("gone.xhtml"), Code.FILES_INSIDE("2 files", "b.xhtml, i.jpg"))
    page = '<item id="%s" href="%s.xhtml" media-type="application/xhtml+xml" properties="%s"/>'
    linked = page % ("n", "META-INF/n", "") + page % ("t", "t", "nav") + page % ("u", "a", "")
    content = book(tmp_path, {"a.xhtml": b"<p>Text."}, "", linked, {"n.xhtml": b"<p>A note."})
    assert content.text == "Text.\n\nA note."
    data = (tmp_path / "a.epub").read_bytes()
    (tmp_path / "a.epub").write_bytes(data.replace(b"<p>Text", b"<p>Next"))
    content = epub.read(str(tmp_path / "a.epub"))
    assert content.text == "A note."
    assert content.unread == (Code.PART_DAMAGED("a.xhtml", "Bad CRC-32 for file 'a.xhtml'"),)
    with pytest.raises(Unreadable, match=r"its chapter gone.xhtml is not in it"):
        book(tmp_path, {}, '<itemref idref="g"/>', manifest)


XHTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>%s</body></html>'


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<body><p>in</p></body></html><p>after</p>tail", "in\n\nafter\n\ntail"),
        ("<html><body><p>a</p></body></html><html><body><p>b</p></body></html>", "a\n\nb"),
        ('<p>x</p><iframe srcdoc="&lt;p&gt;in a frame&lt;/p&gt;">none</iframe>', "x\n\nin a frame"),
        ("<iframe hidden srcdoc='never'></iframe><p>x</p>", "x"),
        ("<p>By <input value=Ada><input type=hidden value=7><input type=submit value=Send></p>", "By Ada"),
        ("<p><img alt=T>he quick fox <img alt='😀'><img alt='a long description'></p>", "The quick fox 😀"),
        ("<a href=x><img alt='Sale ends tonight'></a><img alt='Shop now'>", "Sale ends tonight\n\nShop now"),
        (XHTML % "<p><![CDATA[a < b]]></p><script>//<![CDATA[\nf()\n//]]></script>", "a < b"),
        ("<math><mfrac><mi>profit</mi><mi>cost</mi></mfrac></math>", "profit / cost"),
        ("<math><mtr><mtd>1</mtd><mtd>2</mtd></mtr></math>", "1 2"),
        ("<svg><text><tspan x=0>first line</tspan><tspan dy=1>2<tspan>nd</tspan></tspan></svg>", "first line 2nd"),
        ('<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:p>one</h:p><h:p>two</h:p></h:html>', "one\n\ntwo"),
        ("<p>nul\0l</p>", "null"),
    ],
)  # fmt: skip
def test_what_browsers_show_is_read(page: str, text: str) -> None:
    html.write_page(page, assembly := Assembly())
    assert assembly.content().text == text


def mixed(kind: bytes, *parts: bytes) -> bytes:
    return (
        b"Content-Type: multipart/%s; boundary=b\n\n" % kind
        + b"".join(b"--b\n%s\n" % part for part in parts)
        + b"--b--"
    )


PLAIN = b"Content-Type: text/plain\n\nShort."


@pytest.mark.parametrize(
    ("mail", "text"),
    [
        (b"Bcc: carl@example.org\n\nShort.", "Bcc: carl@example.org\n\nShort."),
        (b"Content-Type: multipart/mixed; boundary=lost\n\nA text without its parts.", "\nA text without its parts."),
        (mixed(b"digest", b"Content-Type: message/news\n\nSubject: in\n\nNews."), "\nSubject: in\n\nNews."),
        (b"Content-Type: message/partial; id=a; number=1\n\nSubject: in\n\nPart one.", "\nSubject: in\n\nPart one."),
        (
            mixed(b"alternative", PLAIN, b"Content-Type: text/x-amp-html\n\n<p>Many other words for one program.</p>"),
            "\nShort.",
        ),
        (mixed(b"alternative", b"Content-Type: text/watch-html\n\n<p>For a watch.</p>"), "\nFor a watch."),
        ("Content-Type: text/html\n\n<meta charset=koi8-r><p>Да".encode("koi8-r"), "\nДа"),
        (
            b"Content-Type: text/plain; format=flowed; delsp=yes\n\nOne wo \nrd,  \nthen\n-- \nAnn",
            "\nOne word, then\n-- \nAnn",
        ),
        (b"Content-Type: text/html\n\n<img alt='Sale ends tonight'>", "\nSale ends tonight"),
    ],
)
def test_mail_is_read_as_mail_programs_show_it(mail: bytes, text: str) -> None:
    content = eml.read(HEAD + mail)
    assert (content.text.strip("\n"), content.unread) == (f"From: ann@example.org\n{text}", ())


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"{\rtf1 {\pntext\f0 2.\tab}Second\par}", "2.\tSecond"),
        (r"{\rtf1 {\object{\*\objdata 0102}{\result {\pict 0102}As shown.}}\par}", "As shown."),
        (r"{\rtf1 If {\mmath{\*\moMath{\mr x=2}{\mf{\mnum{\mr a}}{\mden{\mr b}}}}}{\mmathPict 1}.\par}", "If x=2ab."),
        (r"{\rtf1\ansi\ansicpg9999 \'e9t\'e9\par}", "été"),
    ],
)  # fmt: skip
def test_rtf_is_read_as_word_processors_show_it(tmp_path: Path, source: str, text: str) -> None:
    (tmp_path / "a.rtf").write_text(source)
    content = rtf.read(str(tmp_path / "a.rtf"))
    assert (content.text, content.unread) == (text, ())


def test_rtf_notes_bytes_that_its_code_page_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text(r"{\rtf1\ansi\ansicpg1252 a\'81b\par}")
    content = rtf.read(str(tmp_path / "a.rtf"))
    assert (content.text, content.unread) == ("a\ufffdb", (Code.CHARACTERS_UNREAD("1", "cp1252"),))
