"""Mail: headers, forwarded messages, attachments, and the encodings in which mail is saved."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pytest
from pdf_files import PIXEL, SCAN, words, write

from indexer.ledger import Code
from indexer.records import Document
from indexer.sources import Entry
from likewise.readers.formats import eml

Collect = Callable[..., list[Entry]]


def mail(subject: str, body: str = "", sender: str = "Ada Byron <ada@example.org>") -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"] = subject, sender
    if body:
        message.set_content(body)
    return message


def read(collect: Collect, path: Path, content: bytes | EmailMessage) -> Document:
    path.write_bytes(bytes(content))
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    return entry.document


def cuts(document: Document) -> list[tuple[str, str]]:
    """Return heading and text of each section."""
    ends = [section.start for section in document.sections[1:]] + [len(document.text)]
    return [
        (section.heading, document.text[section.start : end].strip())
        for section, end in zip(document.sections, ends, strict=True)
    ]


def test_a_mail_with_only_a_subject_has_it_as_text(tmp_path: Path, collect: Collect) -> None:
    assert read(collect, tmp_path / "a.eml", b"Subject: Lunch at noon?\n\n").text == "Lunch at noon?"
    message = mail("The plan")
    message.add_attachment(b"\0\1", maintype="application", subtype="pdf", filename="plan.pdf")
    document = read(collect, tmp_path / "b.eml", message)
    assert document.text == "From: Ada Byron <ada@example.org>\nAttachments: plan.pdf\n\nThe plan"
    (tmp_path / "c.eml").write_bytes(b"X-Mailer: none\n\n\n")
    (entry,) = collect(tmp_path / "c.eml")
    assert (entry.state, entry.reason.text()) == ("skipped", "holds no text")


def test_forwarded_messages_and_text_attachments_are_sections(tmp_path: Path, collect: Collect) -> None:
    inner = mail("Seeds", "Order beans.\n", "Bo <bo@example.org>")
    inner["To"] = "ada@example.org"
    inner.add_attachment("kind,grams\nbean,50\n", subtype="csv", filename="seeds.csv")
    middle = mail("Fwd: Seeds", "See below.\n", "Cy <cy@example.org>")
    middle.add_attachment(inner)
    outer = mail("Fwd: Fwd: Seeds", "For you.\n")
    outer.add_attachment(middle)
    outer.add_attachment(b"Water daily.", maintype="application", subtype="octet-stream", filename="notes.md")
    outer.add_attachment(b"<h1>Soil</h1><p>Loose.</p>", maintype="text", subtype="html", filename="soil.html")
    outer.add_attachment(b"{\\rtf1 x}", maintype="text", subtype="rtf", filename="x.rtf")
    document = read(collect, tmp_path / "a.eml", outer)
    assert cuts(document) == [
        ("", "From: Ada Byron <ada@example.org>\nAttachments: notes.md, soil.html, x.rtf\n\nFor you."),
        ("Fwd: Seeds", "Subject: Fwd: Seeds\nFrom: Cy <cy@example.org>\n\nSee below."),
        (
            "Fwd: Seeds > Seeds",
            "Subject: Seeds\nFrom: Bo <bo@example.org>\nTo: ada@example.org\nAttachments: seeds.csv\n\nOrder beans.",
        ),
        ("Fwd: Seeds > Seeds > seeds.csv", "kind,grams\nbean,50"),
        ("notes.md", "Water daily."),
        ("Soil", "Soil\n\nLoose."),
        ("x.rtf", "x"),
    ]
    assert document.metadata["attachments"] == ["message/rfc822", "notes.md", "soil.html", "x.rtf"]


def attach(message: EmailMessage, path: Path, **named: str) -> None:
    message.add_attachment(
        path.read_bytes(), maintype="application", subtype="octet-stream", filename=path.name, **named
    )


def test_attached_pdf_and_office_files_are_sections(tmp_path: Path, collect: Collect) -> None:
    pdf = write(tmp_path / "Lease.PDF", words((50, 700, "Rent is due")), SCAN, words((50, 700, "Signed")), more=[PIXEL])
    book = openpyxl.Workbook()
    book.active.title = "Costs"
    book.active.append(["roof", 120])
    book.save(tmp_path / "costs.xlsx")
    letter = docx.Document()
    letter.add_heading("Garden", 1)
    letter.add_paragraph("Water daily.")
    letter.save(tmp_path / "letter.docx")
    inner = mail("Papers", "Here.\n", "Bo <bo@example.org>")
    attach(inner, tmp_path / "letter.docx")
    outer = mail("Fwd: Papers", "For you.\n")
    attach(outer, pdf)
    attach(outer, tmp_path / "costs.xlsx")
    outer.add_attachment(pdf.read_bytes(), maintype="application", subtype="pdf")
    outer.add_attachment(inner)
    path = tmp_path / "a.eml"
    document = read(collect, path, outer)
    assert [(section.heading, section.page) for section in document.sections[1:]] == [
        ("Lease.PDF", 1),
        ("Lease.PDF", 3),
        ("costs.xlsx > Costs", 1),
        ("application/pdf", 1),
        ("application/pdf", 3),
        ("Papers", None),
        ("Papers > letter.docx > Garden", None),
    ]
    assert [text for _, text in cuts(document)[1:5]] == ["Rent is due", "Signed", "Costs\nroof\t120", "Rent is due"]
    assert cuts(document)[-1][1] == "Garden\n\nWater daily."
    (entry,) = collect(path)
    assert [note.text() for note in entry.notes] == [
        "Lease.PDF inside it is not read whole (no text in 1 of 3 pages (2)): save it next to it",
        "application/pdf inside it is not read whole (no text in 1 of 3 pages (2)): save it next to it",
    ]


def test_attachments_that_are_not_read_are_noted_and_the_rest_is_read(
    tmp_path: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = mail("Papers", "Here.\n")
    message.add_related(b"\x89PNG", maintype="image", subtype="png", cid="<logo>", disposition="inline")
    for name, data in (
        ("a.pdf", b"%PDF-1.4 broken"),
        ("b.jpg", b"\xff\xd8"),
        ("c.zip", b"PK"),
        ("d.rtf", b"{\\rtf1 bees}"),
    ):
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    message.add_attachment(b"\1", maintype="application", subtype="pgp-signature", filename="signature.asc")
    path = tmp_path / "a.eml"
    assert read(collect, path, message).text.endswith("Here.\n\nbees")
    (entry,) = collect(path)
    assert entry.notes == (
        Code.INSIDE_NOT_WHOLE("a.pdf", "damaged"),
        Code.FILES_INSIDE("3 files", "image/png, b.jpg, c.zip"),
    )


def test_an_attachment_that_takes_too_long_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = mail("Papers", "Here.\n")
    for name in ("a.rtf", "b.rtf"):
        message.add_attachment(b"{\\rtf1 bees}", maintype="text", subtype="rtf", filename=name)
    monkeypatch.setattr(eml, "MAX_ATTACHMENT_SECONDS", 0)
    content = eml.read(bytes(message))
    assert content.text.endswith("Here.")
    assert content.unread == (Code.INSIDE_TOO_SLOW("a.rtf", "0"), Code.INSIDE_TOO_SLOW("b.rtf", "0"))


def test_a_digest_and_a_mail_attached_as_a_file(tmp_path: Path, collect: Collect) -> None:
    digest = (
        b"Subject: Digest 7\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n"
        b"--m\n\nToday's topics.\n\n--m\nContent-Type: multipart/digest; boundary=d\n\n"
        b"--d\n\nSubject: Bees\nFrom: bo@example.org\n\nThey swarm.\n\n"
        b"--d\n\nSubject: Wasps\nFrom: cy@example.org\n\nThey sting.\n\n--d--\n\n--m--\n"
    )
    assert cuts(read(collect, tmp_path / "a.eml", digest)) == [
        ("", "Today's topics."),
        ("Bees", "Subject: Bees\nFrom: bo@example.org\n\nThey swarm."),
        ("Wasps", "Subject: Wasps\nFrom: cy@example.org\n\nThey sting."),
    ]
    outer = mail("Look", "Attached.\n")
    attached = bytes(mail("Bees", "They swarm.\n"))
    outer.add_attachment(attached, maintype="application", subtype="octet-stream", filename="bees.eml")
    assert cuts(read(collect, tmp_path / "b.eml", outer))[1] == (
        "Bees",
        "Subject: Bees\nFrom: Ada Byron <ada@example.org>\n\nThey swarm.",
    )


def test_a_forwarded_message_in_base64(tmp_path: Path, collect: Collect) -> None:
    inner = base64.encodebytes(bytes(mail("Bees", "They swarm.\n"))).decode()
    raw = (
        "Subject: Look\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\n\nAttached.\n\n"
        f"--m\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}\n--m--\n"
    )
    assert cuts(read(collect, tmp_path / "a.eml", raw.encode())) == [
        ("", "Attached."),
        ("Bees", "Subject: Bees\nFrom: Ada Byron <ada@example.org>\n\nThey swarm."),
    ]


def test_a_report_on_delivery(tmp_path: Path, collect: Collect) -> None:
    report = (
        b"Subject: Undelivered\nMIME-Version: 1.0\n"
        b"Content-Type: multipart/report; report-type=delivery-status; boundary=r\n\n"
        b"--r\n\nIt did not arrive.\n\n--r\nContent-Type: message/delivery-status\n\n"
        b"Reporting-MTA: dns; mx.example.org\n\nFinal-Recipient: rfc822; bo@example.org\nAction: failed\n\n--r--\n"
    )
    assert cuts(read(collect, tmp_path / "a.eml", report)) == [
        ("", "It did not arrive."),
        (
            "message/delivery-status",
            "Reporting-MTA: dns; mx.example.org\n\nFinal-Recipient: rfc822; bo@example.org\nAction: failed",
        ),
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_mail_that_was_saved_in_another_encoding(tmp_path: Path, collect: Collect, encoding: str) -> None:
    raw = "Subject: Grüße\nFrom: Jürgen <j@example.org>\n\nSchöne Tage in Łódź.\n".encode(encoding)
    document = read(collect, tmp_path / "a.eml", raw)
    assert (document.title, document.metadata["from"]) == ("Grüße", "Jürgen <j@example.org>")
    assert document.text == "From: Jürgen <j@example.org>\n\nSchöne Tage in Łódź."


def test_headers_of_8_bits_that_are_not_encoded(tmp_path: Path, collect: Collect) -> None:
    for page in ("utf-8", "cp1252"):
        raw = "Subject: Grüße aus Köln\nFrom: Jürgen <j@example.org>\n\nSchöne Tage.\n".encode(page)
        document = read(collect, tmp_path / "a.eml", raw)
        assert (document.title, document.text) == (
            "Grüße aus Köln",
            "From: Jürgen <j@example.org>\n\nSchöne Tage.",
        )


def test_a_word_that_is_divided_between_two_encoded_words_of_a_name(tmp_path: Path, collect: Collect) -> None:
    raw = b"Subject: Hi\nFrom: =?utf-8?q?J=C3=BCr?= =?utf-8?q?gen_M?=\n =?utf-8?b?w7xsbGVy?= <j@example.org>\n\nHi\n"
    assert read(collect, tmp_path / "a.eml", raw).metadata["from"] == "Jürgen Müller <j@example.org>"


def test_every_word_of_a_mail_is_in_its_text(tmp_path: Path, collect: Collect) -> None:
    """Messages of random parts: plain, alternatives, attached texts and forwarded messages.

    A name is one word, because the library that writes them loses blanks between the encoded words of a long one.
    """
    source = random.Random(7)
    words: list[str] = []

    def text(count: int = 5) -> str:
        new = ["".join(source.choices("aäbdeéginorst", k=8)) for _ in range(count)]
        words.extend(new)
        return " ".join(new)

    def message(depth: int) -> EmailMessage:
        made = mail(text(), text() + "\n", f"{text(1)} <{source.randint(0, 999)}@example.org>")
        if source.random() < 0.5:
            made.add_alternative(f"<p>{made.get_content()}</p>", subtype="html")
        for _ in range(source.randint(0, 2)):
            if depth and source.random() < 0.6:
                made.add_attachment(message(depth - 1))
            else:
                made.add_attachment(text(), filename=source.choice(["a.txt", "b.md", "c.log"]))
        return made

    for number in range(40):
        words.clear()
        document = read(collect, tmp_path / f"{number}.eml", message(3))
        assert set(words) <= set(f"{document.title} {document.text}".split())
