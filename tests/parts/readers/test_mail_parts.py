"""Parts of a mail: alternatives, invitations, parts without a disposition, and files of Apple Mail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from indexer.ledger import Code, Reason
from indexer.sources import Entry

Collect = Callable[..., list[Entry]]

HEAD = "From: ann@example.org\nMIME-Version: 1.0\nSubject: Hi\n"
KETTLE = (
    "<p>Your parcel with the copper kettle leaves on Thursday.</p><table><tr><td>Kettle</td><td>39.90</td></tr></table>"
)
EVENT = (
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Budget review\nLOCATION:Room Albatross\nDTSTART:20240520T080000Z\n"
    "DESCRIPTION:Bring figures.\nEND:VEVENT\nEND:VCALENDAR\n"
)
BUDGET = "Budget review\nRoom Albatross\nStart: 2024-05-20 08:00 UTC\nBring figures."


def multipart(kind: str, *parts: tuple[str, str]) -> str:
    """Return the lines of a multipart entity. Each part is its headers and its content."""
    mark = f"b{len(kind)}-{len(parts)}"
    inner = "".join(f"--{mark}\n{header}\n\n{content}\n" for header, content in parts)
    return f"Content-Type: multipart/{kind}; boundary={mark}\n\n{inner}--{mark}--\n"


def part(entity: str) -> tuple[str, str]:
    header, _, content = entity.partition("\n\n")
    return header, content


PLAIN, PAGE = "Content-Type: text/plain", "Content-Type: text/html"
PDF, PICTURE = "Content-Type: application/x-thing; name=a.bin", "Content-Type: image/png"
CALENDAR = "Content-Type: text/calendar; method=REQUEST"
UUENCODED = "begin 644 my plan.doc\n6=75E;F-O9&5D(')E9'!O;&P@=&5X=\n`\nend"
STUB = "This message is in HTML. Please use a mail program that shows HTML."
SHOWN = "Your parcel with the copper kettle leaves on Thursday.\n\nKettle\t39.90"


@pytest.mark.parametrize(
    ("body", "text", "notes"),
    [
        (multipart("alternative", (PLAIN, STUB), (PAGE, KETTLE)), SHOWN, ()),
        (
            multipart("alternative", (PLAIN, "Your parcel leaves on Thursday"), (PAGE, "<p>Your parcel leaves soon")),
            "Your parcel leaves on Thursday",
            (),
        ),
        (f"{PLAIN}\n\nCome.\n{UUENCODED}\nBye.", "Come.\n\nBye.", (Code.FILES_INSIDE("1 file", "my plan.doc"),)),
        (f"{PLAIN}\n\nbegin 644 words\nthat go on\nend", "begin 644 words\nthat go on\nend", ()),
        (multipart("alternative", (PLAIN, "Come."), (CALENDAR, EVENT)), f"Come.\n\n{BUDGET}", ()),
        (multipart("mixed", (PLAIN, "Come."), (CALENDAR, EVENT)), f"Come.\n\n{BUDGET}", ()),
        (
            multipart("mixed", (CALENDAR, EVENT), ("Content-Type: application/ics; name=invite.ics", EVENT)),
            BUDGET,
            (),
        ),
        (multipart("mixed", (PLAIN, "Come."), (PDF, "x")), "Come.", (Code.FILES_INSIDE("1 file", "a.bin"),)),
        (
            multipart(
                "alternative",
                (PLAIN, STUB),
                part(multipart("mixed", (PAGE, KETTLE), (PDF, "x"), (PAGE, "<p>After it.</p>"))),
            ),
            f"{SHOWN}\n\nAfter it.",
            (Code.FILES_INSIDE("1 file", "a.bin"),),
        ),
        (
            multipart('related; start="<r>"', (PICTURE, "x"), (f"{PAGE}\nContent-ID: <r>", "<p>Root")),
            "Root",
            (Code.FILES_INSIDE("1 file", "image/png"),),
        ),
        (f"{PLAIN}\n\n<html><body><p>Really <b>HTML</b></p></body></html>\n", "Really HTML", ()),
        (f"{PLAIN}\n\n<div>Also &amp; this</div>\n", "Also & this", ()),
        (f"{PLAIN}\n\n<p> is an element that I do not close\n", "<p> is an element that I do not close", ()),
        (multipart("mixed", (PLAIN, "Card."), ("Content-Type: text/x-vcard", "no lines")), "Card.", None),
    ],
)
def test_the_part_with_the_words_is_read_and_others_are_noted(
    tmp_path: Path, collect: Collect, body: str, text: str, notes: tuple[Reason, ...] | None
) -> None:
    path = tmp_path / "a.eml"
    path.write_text(HEAD + body)
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    lines = entry.document.text.split("\n\n", 1)
    assert lines[1] == text
    assert entry.notes == ((Code.INSIDE_NOT_WHOLE("text/x-vcard", "damaged"),) if notes is None else notes)


def test_deeply_nested_alternatives_are_written_once_each(tmp_path: Path, collect: Collect) -> None:
    body = f"{PLAIN}\n\nThe core.\n"
    for depth in range(40):
        mark = f"m{depth}x"
        body = f"Content-Type: multipart/alternative; boundary={mark}\n\n--{mark}\n{body}\n--{mark}--\n"
    (tmp_path / "a.eml").write_text(HEAD + body)
    (entry,) = collect(tmp_path / "a.eml")
    assert entry.document is not None
    assert entry.document.text.endswith("\n\nThe core.")


@pytest.mark.parametrize("count", [None, "9999999", "99999999999999999999999"])
def test_a_message_of_apple_mail_ends_where_its_first_line_says(
    tmp_path: Path, collect: Collect, count: str | None
) -> None:
    message = f"{HEAD}Content-Type: text/plain; charset=utf-8\n\nDas Gespräch war lang.\n".encode()
    plist = b'<?xml version="1.0"?>\n<plist><dict><key>flags</key></dict></plist>\n' if count is None else b""
    path = tmp_path / "1234.emlx"
    path.write_bytes(f"{count or len(message)}\n".encode() + message + plist)
    (entry,) = collect(path)
    assert entry.document is not None
    assert (entry.document.format, entry.document.title) == ("eml", "Hi")
    assert entry.document.text == "From: ann@example.org\n\nDas Gespräch war lang."
