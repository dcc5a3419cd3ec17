"""Files under the name of another format: their first bytes decide."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import pytest

from indexer.ledger import NO_REASON, Code
from indexer.records import KnownFile
from indexer.sources import Entry

Collect = Callable[..., list[Entry]]

MHTML = (
    "Date: Fri, 17 May 2024 10:00:00 +0000\nSubject: Exported\nMIME-Version: 1.0\n"
    'Content-Type: multipart/related; boundary="_b"\n\n--_b\nContent-Type: text/html; charset=UTF-8\n'
    "Content-Transfer-Encoding: quoted-printable\n\n<html><body><h1>Onboarding</h1><p>A b=C3=BCro key on the=\n"
    " first day.</p></body></html>\n\n--_b--\n"
)
TABLE = '<table border="1"><tr><th>Name</th><th>Town</th></tr><tr><td>Ann</td><td>Rome</td></tr></table>'
WORD = (
    '<?xml version="1.0"?>\n<?mso-application progid="Word.Document"?>\n'
    '<w:wordDocument xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml" xmlns:o="urn:o">'
    "<o:DocumentProperties><o:Title>Bees</o:Title><o:Author>Ann</o:Author></o:DocumentProperties>"
    "<w:body><w:p><w:r><w:t>The swa</w:t></w:r><w:r><w:t>rm</w:t><w:tab/><w:t>left.</w:t></w:r></w:p>"
    "<w:p><w:r><w:t>It came back.</w:t></w:r></w:p></w:body></w:wordDocument>"
)
WORKBOOK = (
    '<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>\n'
    '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" '
    'xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"><Styles><Style><X>none</X></Style></Styles>'
    '<Worksheet ss:Name="Costs"><Table><Row><Cell><Data>roof</Data></Cell><Cell><Data>120</Data></Cell></Row></Table>'
    "<WorksheetOptions><Zoom>90</Zoom></WorksheetOptions></Worksheet></Workbook>"
)


@pytest.mark.parametrize(
    ("name", "data", "format_", "text"),
    [
        ("a.doc", MHTML, "eml", "Date: Fri, 17 May 2024 10:00:00 +0000\n\nOnboarding\n\nA büro key on the first day."),
        (
            "page.html",
            MHTML,
            "eml",
            "Date: Fri, 17 May 2024 10:00:00 +0000\n\nOnboarding\n\nA büro key on the first day.",
        ),
        ("a.xls", TABLE, "html", "Name\tTown\nAnn\tRome"),
        ("a.xlsx", TABLE, "html", "Name\tTown\nAnn\tRome"),
        ("a.XLS", "\ufeff" + TABLE, "html", "Name\tTown\nAnn\tRome"),
        ("b.xls", f"<html><body>{TABLE}</body></html>".encode("utf-16"), "html", "Name\tTown\nAnn\tRome"),
        ("a.doc", WORD, "xml", "The swarm\tleft.\n\nIt came back."),
        ("a.xls", WORKBOOK, "xml", "Costs\nroof\t120"),
        ("a.xml", WORKBOOK, "xml", "Costs\nroof\t120"),
        ("a.tmpl", "<p>{{ name }}</p>", "text", "<p>{{ name }}</p>"),
        ("a.pdf", "{\\rtf1 bees}", "rtf", "bees"),
        ("a.doc", "Only words.", "text", "Only words."),
        ("a.html", "MIME-Version is a header.<p>Two", "html", "MIME-Version is a header.\n\nTwo"),
    ],
)
def test_the_first_bytes_decide_before_the_name(
    tmp_path: Path, collect: Collect, name: str, data: str | bytes, format_: str, text: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    assert (entry.document.format, entry.document.text) == (format_, text)
    assert entry.stamp is not None
    known = {str(path): KnownFile(entry.stamp, ((str(path), "indexed", NO_REASON),), frozenset({entry.reader}))}
    (again,) = collect(path, known=known)
    assert again.state == "unchanged"


def test_a_docx_named_doc_is_read_and_a_real_doc_is_explained(tmp_path: Path, collect: Collect) -> None:
    letter = docx.Document()
    letter.add_paragraph("Water daily.")
    letter.save(str(tmp_path / "a.doc"))
    (tmp_path / "b.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    first, second = collect(tmp_path)
    assert first.document is not None
    assert (first.document.format, first.document.text) == ("docx", "Water daily.")
    assert (second.state, second.reason) == ("skipped", Code.WORD_97())


def _open_document(kind: str, body: str) -> bytes:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", f"<x {names}><office:body>{body}</office:body></x>")
    return data.getvalue()


def _ole(*streams: str) -> bytes:
    """An OLE file, whose directory is behind its first 20 sectors."""
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(30, b"\0") + b"\x09".ljust(18, b"\0") + b"\x14".ljust(464, b"\0")
    return head + bytes(20 * 512) + b"".join(each.encode("utf-16-le").ljust(128, b"\0") for each in ("Root", *streams))


def test_open_documents_have_any_name(tmp_path: Path, collect: Collect) -> None:
    text = _open_document("text", "<office:text><text:p>Open.</text:p></office:text>")
    cell = "<table:table-row><table:table-cell><text:p>corn</text:p></table:table-cell></table:table-row>"
    sheet = f"<office:spreadsheet><table:table>{cell}</table:table></office:spreadsheet>"
    names = ("a.doc", "a.txt", "b.csv", "b.xls", "c.unknown")
    for name, data in zip(names, [text, text, *[_open_document("spreadsheet", sheet)] * 2, text], strict=True):
        (tmp_path / name).write_bytes(data)
    read = [entry.document and (entry.document.format, entry.document.text) for entry in collect(tmp_path)]
    assert read == [("odt", "Open."), ("odt", "Open."), ("ods", "corn"), ("ods", "corn"), ("odt", "Open.")]


@pytest.mark.parametrize(
    ("names", "streams", "state", "reason"),
    [
        (("a.docx", "a.doc", "a.xlsx", "a.odt", "a.csv"), ("DataSpaces", "EncryptedPackage"), "failed", Code.ENCRYPTED),
        (("a.docx", "a.xls", "a.html", "a.pdf", "a"), ("WordDocument",), "skipped", Code.WORD_97),
        (("a.doc", "a.txt"), ("PowerPoint Document", "WordDocument"), "skipped", None),
        (("a.xlsx",), ("Unknown",), "failed", Code.ENCRYPTED_OFFICE),
    ],
)
def test_the_directory_of_an_ole_file_says_what_it_is(
    tmp_path: Path, collect: Collect, names: tuple[str, ...], streams: tuple[str, ...], state: str, reason: Code | None
) -> None:
    for name in names:
        (tmp_path / name).write_bytes(_ole(*streams))
    outcomes = [(entry.state, entry.reason.code) for entry in collect(tmp_path)]
    expected = [reason] * len(names) if reason else [Code.WORD_97, Code.POWERPOINT_97]
    assert outcomes == [(state, each) for each in expected]
