"""Calendars (.ics) and contacts (.vcf): what a person reads of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from indexer.ledger import Code
from indexer.sources import Entry

Collect = Callable[..., list[Entry]]

OLD_CARD = (
    "BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;Dr.\n"
    "TEL;CELL:+49151\nNOTE;ENCODING=QUOTED-PRINTABLE:Br=C3=BCckenbau=\n und Wasser\n"
    "PHOTO;ENCODING=BASE64;JPEG:/9j/4AAQSkZJRgABAQAAAQABAAD\n /9j/4AAQSkZJRg==\n\nEND:VCARD\n"
)
NEW_CARD = (
    "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ann Example\r\nN:Example;Ann;;;\r\nORG:Otter\\, Beaver & Co;Dams\r\n"
    "item1.ADR;TYPE=home:;;Mill Lane 5;Ulm;;89073;Germany\r\nEMAIL:ann@example.org\r\nBDAY:19850412\r\n"
    "NOTE:first line\\nsecond line that is fol\r\n ded\r\nUID:4711\r\nEND:VCARD\r\n"
)
CALENDAR = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x\r\nX-WR-CALNAME:Work\r\n"
    "BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\nBEGIN:STANDARD\r\nTZNAME:CET\r\nDTSTART:19701025T030000\r\nEND:STANDARD\r\n"
    "END:VTIMEZONE\r\n"
    'BEGIN:VEVENT\r\nUID:1@x\r\nSUMMARY:Budget review\r\nDTSTART;TZID="Europe/Berlin":20240520T100000\r\n'
    'DTEND:20240520T090000Z\r\nLOCATION:Room\\; 2\r\nORGANIZER;CN="Bo: Chair":mailto:bo@example.org\r\n'
    "DESCRIPTION:Bring figures\\, please.\r\nX-ALT-DESC;FMTTYPE=text/html:<p>Bring figures</p>\r\n"
    "BEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:Leave early\r\nEND:VALARM\r\n"
    "ATTACH;ENCODING=BASE64;VALUE=BINARY:AAAA\r\nEND:VEVENT\r\n"
    "BEGIN:VTODO\r\nSUMMARY:Order\r\nDUE;VALUE=DATE:20240601\r\nX-ALT-DESC:<p>Beans <b>now</b></p>\r\nEND:VTODO\r\n"
    "END:VCALENDAR\r\n"
)


APPLE_CARD = (
    "BEGIN:VCARD\nVERSION:3.0\nFN:Ann\nitem1.TEL:555\nitem1.X-ABLabel:boat\nitem2.X-ABRELATEDNAMES:Eve\n"
    "item2.X-ABLabel:_$!<Mother>!$_\nX-ABUID:4711\nEND:VCARD\n"
)
OLD_CALENDAR = (
    "BEGIN:VCALENDAR\nVERSION:1.0\nBEGIN:VEVENT\nSUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Z=C3=A4hne=\n"
    " zeigen\nEND:VEVENT\nEND:VCALENDAR\n"
)


@pytest.mark.parametrize(
    ("name", "written", "title", "text", "headings"),
    [
        ("old.vcf", OLD_CARD, "Dr. Jörg Müller", "Dr. Jörg Müller\n+49151\nBrückenbau und Wasser", ["Dr. Jörg Müller"]),
        (
            "new.vcf",
            NEW_CARD,
            "Ann Example",
            "Ann Example\nOtter, Beaver & Co, Dams\nMill Lane 5, Ulm, 89073, Germany\nann@example.org\n"
            "Birthday: 1985-04-12\nfirst line\nsecond line that is folded",
            ["Ann Example"],
        ),
        ("apple.vcf", APPLE_CARD, "Ann", "Ann\n555\nboat\nEve\nMother", ["Ann"]),
        ("phone.vcs", OLD_CALENDAR, "Zähne zeigen", "Zähne zeigen", ["Zähne zeigen"]),
        (
            "work.ics",
            CALENDAR,
            "Work",
            "Work\n\nBudget review\nStart: 2024-05-20 10:00 Europe/Berlin\nEnd: 2024-05-20 09:00 UTC\nRoom; 2\n"
            "Bo: Chair <bo@example.org>\nBring figures, please.\nLeave early\n\nOrder\nDue: 2024-06-01\nBeans now",
            ["", "Budget review", "Order"],
        ),
    ],
)
def test_the_values_that_people_read_are_the_text(
    tmp_path: Path, collect: Collect, name: str, written: str, title: str, text: str, headings: list[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(written.encode())
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    assert (entry.document.title, entry.document.text) == (title, text)
    assert [section.heading for section in entry.document.sections] == headings
    assert entry.notes == ((Code.FILES_INSIDE("1 file", "ATTACH"),) if name == "work.ics" else ())


def test_a_line_folded_inside_a_character_and_other_encodings(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.ics"
    card = "BEGIN:VEVENT\r\nSUMMARY:Fr\u00fchst\u00fcck im Caf\u00e9\r\nEND:VEVENT\r\n"
    for data in (
        card.encode().replace("ü".encode(), b"\xc3\r\n \xbc", 1),
        card.encode("utf-16"),
        card.encode("cp1252"),
    ):
        path.write_bytes(data)
        (entry,) = collect(path)
        assert entry.document is not None
        assert entry.document.text == "Frühstück im Café"


def test_a_file_without_content_lines_fails_and_one_without_words_is_skipped(tmp_path: Path, collect: Collect) -> None:
    (tmp_path / "a.vcf").write_text("no card\n")
    (tmp_path / "b.vcf").write_text("BEGIN:VCARD\nVERSION:3.0\nEND:VCARD\n")
    assert [(entry.state, entry.reason) for entry in collect(tmp_path)] == [
        ("failed", Code.NO_CONTENT_LINES()),
        ("skipped", Code.NO_TEXT()),
    ]
