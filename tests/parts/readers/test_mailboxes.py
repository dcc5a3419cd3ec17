"""Mailboxes: how an mbox is divided, which uri a message has, and what a run reads of a mailbox that has changed."""

from __future__ import annotations

import errno
import io
import mailbox
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hardware import needs_memory_limit

from indexer import Index
from indexer.ledger import Code
from indexer.records import KnownFile
from indexer.sources import Entry
from indexer.sources.content import Content, Unreadable
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.formats import EML, MBOX, TEXT, format_of
from likewise.readers import mbox
from likewise.readers.mailbox import MessageOpener

Collect = Callable[..., list[Entry]]
Likewise = Callable[..., Any]

FROM = "From ada@example.org Wed May  1 10:00:00 2024\n"
TIMES = count(time.time() - 3600)


def mail(id_: str = "", body: str = "", **headers: str) -> str:
    """A message as it is in an mbox, without its "From " line."""
    lines = [f"Message-ID: <{id_}>"] * bool(id_)
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in {"From": "Ada <ada@x.org>", **headers}.items()]
    return "\n".join(lines) + f"\n\n{body or f'About {id_}.'}\n"


def box(*messages: str, line: str = FROM) -> str:
    return "".join(f"{line}{message}\n" for message in messages)


def write(path: Path, content: str | bytes) -> Path:
    """A file that settled long ago, so that its stamp tells of changes: each has another time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, (next(TIMES),) * 2)
    return path


def names(entries: list[Entry], state: str = "read") -> list[str]:
    return [entry.uri.partition("#")[2] for entry in entries if entry.state == state]


def texts(entries: list[Entry]) -> list[str]:
    """The text of each message below the lines of its header."""
    return [entry.document.text.partition("\n\n")[2] for entry in entries if entry.document is not None]


def recorded(entries: list[Entry]) -> dict[str, KnownFile]:
    """Return the rows of the ledger after these entries were indexed."""
    first = entries[0]
    assert first.stamp is not None
    rows = tuple((e.uri, "indexed" if e.state in ("read", "unchanged") else e.state, e.reason) for e in entries)
    notes = {entry.uri: entry.notes for entry in entries if entry.notes}
    return {first.file: KnownFile(first.stamp, rows, frozenset({first.reader}), notes)}  # type: ignore[arg-type]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The uris of the messages that were parsed, in order."""
    uris: list[str] = []
    extract = EXTRACTOR.extract

    def note(path: str, module: str, most: int, data: bytes) -> Any:
        uris.append(path.rpartition("#")[2])
        return extract(path, module, most, data=data)

    monkeypatch.setattr(EXTRACTOR, "extract", note)
    yield uris
    uris.clear()


@pytest.mark.parametrize("id_", ["b", ""])
def test_an_attachment_that_took_too_long_is_tried_again_and_nothing_else_is(
    tmp_path: Path, collect: Collect, parsed: list[str], monkeypatch: pytest.MonkeyPatch, id_: str
) -> None:
    path = write(tmp_path / "mbox", box(mail("a"), mail(id_, "The slow one."), mail("c")))
    extract, slow = EXTRACTOR.extract, Code.INSIDE_TOO_SLOW("a.pdf", "10")

    def late(uri: str, module: str, most: int, data: bytes) -> Content:
        content = extract(uri, module, most, data=data)
        return replace(content, unread=(slow,)) if b"slow" in data else content

    with monkeypatch.context() as patch:
        patch.setattr(EXTRACTOR, "extract", late)
        first = collect(path)
    assert [entry.notes for entry in first] == [(), (slow,), ()]
    parsed.clear()
    known = recorded(first)
    second = sorted(collect(path, known=known), key=lambda entry: entry.state)
    assert [entry.state for entry in second] == ["read", "unchanged", "unchanged"]
    assert (second[0].uri, second[0].notes) == (first[1].uri, ())
    assert len(parsed) == 1
    parsed.clear()
    whole = recorded([first[0], second[0], first[2]])
    assert {entry.state for entry in collect(path, known=whole)} == {"unchanged"}
    assert not parsed


def test_a_message_that_took_too_long_is_not_parsed_when_mail_arrives(
    tmp_path: Path, collect: Collect, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "mbox", box(mail("a"), mail("b", "The slow one.")))
    extract, slow = EXTRACTOR.extract, Code.TOO_SLOW("60")

    def late(uri: str, module: str, most: int, data: bytes) -> Content:
        if b"slow" in data:
            raise Unreadable(slow)
        return extract(uri, module, most, data=data)

    with monkeypatch.context() as patch:
        patch.setattr(EXTRACTOR, "extract", late)
        first = collect(path)
    known = recorded(first)
    write(path, box(mail("a"), mail("b", "The slow one."), mail("c")))
    parsed.clear()
    second = collect(path, known=known)
    assert [(entry.state, entry.reason.text()) for entry in second] == [
        ("unchanged", ""),
        ("failed", slow.text()),
        ("read", ""),
    ]
    assert parsed == ["c"]
    assert names(collect(path, known=recorded(second), rehash=True)) == ["a", "b", "c"]


# which files are mailboxes, and how they are divided


@pytest.mark.parametrize(
    "line",
    [
        "From ada@example.org Wed May  1 10:00:00 2024",
        "From - Wed May 01 10:00:00 2024",
        "From ada at example.org  Wed May  1 10:00:00 2024",
        "From 1683784112345@xxx Tue Mar 14 12:00:00 +0000 2023",
        "From MAILER-DAEMON Wed May  1 10:00 2024",
        "From ada@example.org Wed May  1 10:00:00 MET DST 2024 remote from uunet",
        'From "Ada B" Wed, 1 May 2024 10:00:00 +0200',
        "From ???@??? Mon Jan 01 12:00:00 1996",
        "From  Wed May  1 10:00:00 2024",
    ],
)
def test_lines_that_begin_a_message(line: str) -> None:
    for end in ("\n", "\r\n"):
        head = f"{line}{end}From: ada@example.org{end}{end}Hello".encode()
        assert format_of("/mail/Inbox", head) is MBOX


def test_files_that_are_mailboxes_whatever_their_name() -> None:
    head = box(mail("a")).encode()
    for name in ("mbox", "Inbox", "2024.mbox", "2024-May.txt", "users@python.org", "Drafts.1"):
        assert format_of(f"/mail/{name}", head) is MBOX
    assert format_of("/mail/Inbox", b"\xef\xbb\xbf\r\n" + head) is MBOX
    assert format_of("/mail/Inbox", FROM.encode() + b">From ada Wed May  1 10:00:00 2024\nFrom: a@x.org\n\nx") is MBOX
    assert format_of("/mail/one.eml", head) is EML
    assert format_of("/src/0001.patch", head).name == "diff"
    for text in ("From here on\nNote: x\n", FROM, f"{FROM}The ship left.\n", "From Ada, 1 May 2024\nTo: Bo\n"):
        assert format_of("/mail/Inbox", text.encode()) is TEXT, text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_from_lines_within_a_text_divide_nothing(tmp_path: Path, collect: Collect, end: str) -> None:
    bodies = [
        f"Below a line:\n{FROM}no blank line above",
        "Above\n\nFrom now on, without a date.\n\nFrom May 1, 2024 at 10:00:00 we are closed.",
        "Quoted:\n\n>From here\n>>From there\n> From afar",
        "x" * 3000,
        "The end",
    ]
    content = box(*(mail(f"{number}", body) for number, body in enumerate(bodies)))
    path = write(tmp_path / "Inbox", content.replace("\n", end))
    expected = [*bodies[:2], "Quoted:\n\nFrom here\n>From there\n> From afar", *bodies[3:]]
    entries = collect(path)
    assert names(entries) == ["0", "1", "2", "3", "4"]
    assert texts(entries) == [body.strip() for body in expected]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_messages_are_found_wherever_what_is_read_at_once_ends(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    content = box(*(mail(f"{number}", "x" * number) for number in range(40))).replace("\n", end).encode()
    expected = list(mbox.message_places(io.BytesIO(content)))
    assert len(expected) == 40
    for chunk in range(1040, 1240):
        monkeypatch.setattr(mbox, "_CHUNK_BYTES", chunk)
        assert list(mbox.message_places(io.BytesIO(content))) == expected, chunk


def test_a_right_content_length_protects_from_lines_that_are_not_quoted(tmp_path: Path, collect: Collect) -> None:
    body = f"As it was:\n\n{FROM}Subject: inner\n\nInside.\n"
    right, wrong = (mail("a", body, Content_Length=str(length)) for length in (len(body), 20))
    for message, expected in ((right, ["a", "b"]), (wrong, ["a", "", "b"])):
        entries = collect(write(tmp_path / "Inbox", box(message, mail("b"))))
        assert [entry.document.metadata.get("thread", "") for entry in entries if entry.document] == expected
    assert texts(collect(write(tmp_path / "Inbox", box(mail("b"), right))))[1] == body.strip()


def test_every_text_of_a_message_is_in_its_document(tmp_path: Path, collect: Collect) -> None:
    """The standard library is the second reader: it divides files that it has written itself as we do."""
    source = random.Random(3)

    def words() -> str:
        lines = (" ".join("".join(source.choices("aäbdéegi犬", k=6)) for _ in range(6)) for _ in range(4))
        return "\n".join((source.choice(["", "From ", ">From ", "> "])) + line for line in lines) + "\n"

    made = mailbox.mbox(tmp_path / "made")
    for number in range(60):
        message = EmailMessage()
        message["From"], message["Subject"] = "ada@example.org", words().replace("\n", " ")
        message["Message-ID"] = f"<{number}@example.org>"
        message.set_content(words(), cte=source.choice(["8bit", "base64", "quoted-printable"]))
        if source.random() < 0.4:
            message.add_attachment(words(), filename="note.txt", cte=source.choice(["8bit", "base64"]))
        made.add(message)
    made.close()
    entries = collect(tmp_path / "made")
    assert names(entries) == [f"{number}@example.org" for number in range(60)]
    second = mailbox.mbox(
        tmp_path / "made", factory=lambda file: message_from_bytes(file.read(), policy=policy.default)
    )
    for entry, message in zip(entries, list(second), strict=True):
        assert entry.document is not None
        found = entry.document.text.replace(">From ", "From ").split()
        assert (entry.document.title, entry.document.format) == (" ".join(message["Subject"].split()), "mbox")
        for part in message.walk():
            if part.get_content_type() == "text/plain":
                wanted = part.get_content().replace(">From ", "From ").split()
                assert any(found[at : at + len(wanted)] == wanted for at in range(len(found))), entry.uri
    second.close()


def test_fields_of_a_message(tmp_path: Path, collect: Collect) -> None:
    first = mail(
        "b@x", To="Bo <bo@x.org>", Subject="=?utf-8?q?Gr=C3=BC=C3=9Fe?=", Date="Wed, 01 May 2024 10:00:00 +0200"
    )
    reply = mail("c@x", References="<a@x>\n <b@x>", In_Reply_To="<b@x>", Date="yesterday")
    short, alone = mail("d@x", In_Reply_To="<b@x>"), mail("", "No id.")
    entries = collect(write(tmp_path / "Inbox", box(first, reply, short, alone)))
    documents = [entry.document for entry in entries if entry.document is not None]
    assert documents[0].metadata == {
        "from": "Ada <ada@x.org>",
        "to": "Bo <bo@x.org>",
        "subject": "Grüße",
        "date": "2024-05-01T10:00:00+02:00",
        "thread": "b@x",
        "size": len(first.rstrip()),
    }
    assert (documents[0].title, documents[0].path) == ("Grüße", str(tmp_path / "Inbox"))
    assert [document.modified for document in documents] == ["2024-05-01T08:00:00+00:00", None, None, None]
    assert [document.metadata.get("thread") for document in documents] == ["b@x", "a@x", "b@x", None]
    assert (documents[1].metadata["date"], documents[1].title) == ("yesterday", "")


# the uri of a message


def test_what_mail_programs_change_is_not_part_of_the_hash(tmp_path: Path, collect: Collect) -> None:
    before = collect(write(tmp_path / "Inbox", box(mail("", "Text.", Subject="s"))))
    headers = {"Status": "RO", "X_Status": "A", "X_Keywords": "a,\n b", "X_UID": "7", "X_Mozilla_Status": "0001"}
    other_line = "From - Thu May 02 10:00:00 2024\n"
    after = collect(write(tmp_path / "Inbox", box(mail("", "Text.", Subject="s", **headers), line=other_line)))
    assert names(before) == names(after) == [before[0].reason.mark]
    assert before[0].document == after[0].document
    assert names(collect(write(tmp_path / "Inbox", box(mail("", "Texts.", Subject="s"))))) != names(before)


def test_a_message_keeps_its_uri_when_another_one_with_its_id_comes_or_goes(tmp_path: Path, collect: Collect) -> None:
    one, two, three = (mail("same", body) for body in ("One.", "Two.", "Three."))
    path = tmp_path / "Inbox"

    def uris(known: list[Entry], *messages: str) -> tuple[list[Entry], dict[str, str]]:
        entries = collect(write(path, box(*messages)), known=recorded(known) if known else {}, rehash=True)
        bodies = dict(zip(texts(entries), names(entries), strict=True))
        return entries, bodies

    both, given = uris([], one, two)
    assert given["One."] == "same"
    assert given["Two."] == both[1].reason.mark
    assert uris(both, two)[1] == {"Two.": given["Two."]}
    assert uris(both, one)[1] == {"One.": "same"}
    assert uris(both, two, one)[1] == given
    _, more = uris(both, three, two, one)  # a new one comes before them
    assert {**given, "Three.": more["Three."]} == more
    assert len(set(more.values())) == 3
    assert uris(both, two, three)[1] == {"Two.": given["Two."], "Three.": "same"}  # the first was edited


def test_equal_messages(tmp_path: Path, collect: Collect) -> None:
    path, one = tmp_path / "Inbox", mail("same", "One.")
    first = collect(write(path, box(one)))
    assert names(first) == ["same"]
    twice = collect(write(path, box(one, one)), known=recorded(first))
    assert (names(twice, "unchanged"), names(twice)) == (["same"], [first[0].reason.mark])
    again = collect(write(path, box(one)), known=recorded(twice))
    assert (names(again, "unchanged"), names(again)) == (["same"], [])


# what is read again


def test_only_new_messages_are_parsed(tmp_path: Path, collect: Collect, parsed: list[str]) -> None:
    path = tmp_path / "Inbox"
    first = collect(write(path, box(mail("a"), mail("b"))))
    assert parsed == ["a", "b"]
    entries = collect(write(path, box(mail("a"), mail("b"), mail("c"))), known=recorded(first))
    assert (names(entries, "unchanged"), names(entries), parsed) == (["a", "b"], ["c"], ["a", "b", "c"])
    rewritten = box(mail("c", Status="RO"), mail("a", Status="O"), line="From - Thu May 02 10:00:00 2024\n")
    entries = collect(write(path, rewritten), known=recorded(entries))
    assert (names(entries, "unchanged"), names(entries), len(parsed)) == (["c", "a"], [], 3)


def test_what_was_not_read_of_a_message_stays_in_the_ledger(
    tmp_path: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, extract = Code.OTHER("a page without text"), EXTRACTOR.extract

    def noting(path: str, module: str, most: int, data: bytes) -> Content:
        return replace(extract(path, module, most, data=data), unread=(note,) if path.endswith("#a") else ())

    monkeypatch.setattr(EXTRACTOR, "extract", noting)
    path = tmp_path / "Inbox"
    first = collect(write(path, box(mail("a"), mail("b"))))
    second = collect(write(path, box(mail("a"), mail("b"), mail("c"))), known=recorded(first))
    for entries in (first, second):
        assert [(entry.uri.partition("#")[2], entry.notes) for entry in entries if entry.notes] == [("a", (note,))]
    assert names(second, "unchanged") == ["a", "b"]


def test_a_message_that_thunderbird_has_deleted_is_left_out(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "Inbox"
    first = collect(write(path, box(mail("a", X_Mozilla_Status="0001"), mail("b"))))
    entries = collect(write(path, box(mail("a", X_Mozilla_Status="0009"), mail("b"))), known=recorded(first))
    assert [(entry.uri.partition("#")[2], entry.state, entry.reason.text()) for entry in entries] == [
        ("a", "skipped", "deleted in the mail program, which removes it when it compacts the folder"),
        ("b", "unchanged", ""),
    ]


def test_a_damaged_message_fails_alone(likewise: Likewise, tmp_path: Path, encoder: Any) -> None:
    path, index = write(tmp_path / "Inbox", box(mail("a"), mail("b"), mail("c"))), tmp_path / "x.index"
    likewise("index", index, path)
    encoder.seen.clear()
    write(path, box(mail("a"), "\0\0\0\0\n" + mail("b", "Damaged."), mail("c"), "No header, no id.\n"))
    likewise("index", index, path, "--json").reported(1, unchanged=2, failed=2)
    failed = likewise("info", index, "--ledger", "failed").out.splitlines()
    ids = [line.split()[1].partition("#")[2] for line in failed if "damaged: no e-mail headers" in line]
    assert ids == [blake2b(b"No header, no id.", digest_size=16).hexdigest(), "b"]
    with Index.open(index) as opened:
        assert sorted(document.text.partition("\n\n")[2] for document in opened) == ["About a.", "About b.", "About c."]
    write(path, box(mail("a"), mail("b", "Repaired."), mail("c")))
    assert likewise("index", index, path, "--json").json["indexed"] == 1
    assert len(encoder.seen) == 1


def test_a_message_over_the_limit_is_skipped_alone(tmp_path: Path, collect: Collect) -> None:
    path = write(tmp_path / "Inbox", box(mail("a"), mail("b", "x" * 200_000), mail("c")))
    entries = collect(path, max_file_mb=0.1)
    assert [(entry.uri.partition("#")[2], entry.state, entry.reason.text()) for entry in entries] == [
        ("a", "read", ""),
        ("b", "skipped", "0.2 MB, over the limit of 0.1 MB: raise --max-file-mb"),
        ("c", "read", ""),
    ]


def test_removed_messages_go_with_prune_and_nothing_is_embedded_again(
    likewise: Likewise, tmp_path: Path, encoder: Any, parsed: list[str]
) -> None:
    path, index = tmp_path / "mail" / "Inbox", tmp_path / "x.index"
    write(path, box(*(mail(f"m{number}") for number in range(6))))
    assert likewise("index", index, path.parent, "--json").json["indexed"] == 6
    encoder.seen.clear(), parsed.clear()
    assert likewise("index", index, path.parent, "--json").json["unchanged"] == 6  # the file is not opened
    write(path, box(*(mail(f"m{number}", Status="RO") for number in (5, 4, 3, 0)), mail("new")))
    said = likewise("index", index, path.parent, "--prune", "--json").json
    assert {name: said[name] for name in ("seen", "indexed", "unchanged", "pruned")} == {
        "seen": 5,
        "indexed": 1,
        "unchanged": 4,
        "pruned": 2,
    }
    assert parsed == ["new"]
    assert len(encoder.seen) == 1
    with Index.open(index) as opened:
        assert sorted(document.uri.partition("#")[2] for document in opened) == ["m0", "m3", "m4", "m5", "new"]
    assert likewise("index", index, path.parent, "--rehash", "--json").json["unchanged"] == 5
    assert len(parsed) == 6


def test_an_mbox_that_an_earlier_version_has_read_as_one_text_becomes_its_messages_in_one_commit(
    likewise: Likewise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, index = write(tmp_path / "mail" / "python.org", box(mail("a"), mail("b"))), tmp_path / "x.index"
    with monkeypatch.context() as earlier:
        earlier.setattr("indexer.sources.files.reading.format_of", lambda path, head: TEXT)
        earlier.setattr("indexer.sources.files.reading.reader_of", lambda name: "")
        likewise("index", index, path.parent)
    assert likewise("list", index, "--json").out.count('"format": "text"') == 1
    said = likewise("index", index, path.parent, "--stream").out
    assert said.count('"committed"') == 1
    with Index.open(index) as opened:
        assert sorted(document.uri for document in opened) == [f"{path}#a", f"{path}#b"]
    assert likewise("index", index, path.parent, "--json").json["unchanged"] == 2
    assert "read again" not in likewise("index", index, path.parent).err


def test_commands_take_a_message_by_its_uri(likewise: Likewise, tmp_path: Path) -> None:
    path, index = tmp_path / "mail" / "Inbox", tmp_path / "x.index"
    later = mail("late@x", "Later words.", Date="Mon, 3 Jun 2024 08:00:00 +0000", From="Bo <bo@x.org>")
    early = mail("early@x", "Early words.", Date="Wed, 17 Apr 2024 08:00:00 +0000", Subject="Spring")
    write(path, box(later, early))
    likewise("index", index, path)
    assert "Early words." in likewise("show", index, f"{path}#early@x").out
    assert "Early words." in likewise("show", index, "mail/Inbox#early@x").out
    assert f"{path}#late@x" in likewise("list", index, "--where", "date >= 2024-05").out
    assert likewise("list", index, "--where", 'from contains "Bo"', "--json").out.count("\n") == 1
    assert likewise("similar", index, f"{path}#late@x", "-k", 1, "--json").json["hits"][0]["uri"] == f"{path}#early@x"
    hit = likewise("search", index, "early", "-k", 1).out
    assert f"{path}#early@x\n" in hit  # not a line of the file
    assert "Spring" in hit
    assert likewise("remove", index, f"{path}#late@x").code == 0
    assert likewise("index", index, path, "--json").json["indexed"] == 1  # it is in the mailbox still


# Maildirs


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    for folder in ("cur", "new", "tmp", ".Sent/cur", ".Sent/new", ".Sent/tmp", ".cache"):
        (tmp_path / "Mail" / folder).mkdir(parents=True)
    write(tmp_path / "Mail" / "cur" / "1.a.host:2,S", mail("a"))
    write(tmp_path / "Mail" / "new" / "2.b.host", mail("b"))
    write(tmp_path / "Mail" / "tmp" / "3.c.host", mail("c"))
    write(tmp_path / "Mail" / ".Sent" / "cur" / "4.d.host:2,", mail("d"))
    write(tmp_path / "Mail" / ".cache" / "note.txt", "hidden")
    return tmp_path / "Mail"


def test_a_maildir_and_its_hidden_folders_are_read(maildir: Path, collect: Collect) -> None:
    entries = collect(maildir.parent)
    assert [entry.uri for entry in entries if entry.state == "read"] == [
        f"{maildir}/.Sent#d",
        f"{maildir}#a",
        f"{maildir}#b",
    ]
    assert {str(Path(entry.uri).relative_to(maildir)): entry.reason.text() for entry in entries if entry.reason} == {
        ".cache": "hidden folder",
        "tmp": "messages that are still being delivered",
    }
    document = next(entry.document for entry in entries if entry.uri.endswith("#a"))
    assert document is not None
    assert (document.format, document.path, document.metadata["from"]) == ("maildir", str(maildir), "Ada <ada@x.org>")
    assert [entry.uri for entry in collect(maildir / "cur")] == [f"{maildir}#a"]
    assert [entry.uri for entry in collect(maildir / "cur" / "1.a.host:2,S")] == [f"{maildir}#a"]


def test_flags_and_moves_change_nothing_and_open_nothing(
    likewise: Likewise, tmp_path: Path, maildir: Path, encoder: Any, parsed: list[str]
) -> None:
    index = tmp_path / "x.index"
    assert likewise("index", index, maildir, "--json").json["indexed"] == 3
    encoder.seen.clear(), parsed.clear()
    (maildir / "new" / "2.b.host").rename(maildir / "cur" / "2.b.host:2,FS")
    (maildir / "cur" / "1.a.host:2,S").rename(maildir / "cur" / "1.a.host:2,RS")
    write(maildir / "new" / "5.e.host", mail("e"))
    said = likewise("index", index, maildir, "--prune", "--json").json
    assert (said["unchanged"], said["indexed"], said["pruned"]) == (3, 1, 0)
    assert parsed == ["e"]
    assert "1 new" not in likewise("status", "--index", index).out
    (maildir / "cur" / "1.a.host:2,RS").unlink()
    assert likewise("index", index, maildir, "--prune", "--json").json["pruned"] == 1
    assert f"{maildir}#a" not in likewise("list", index).out


@pytest.mark.parametrize(("source", "options"), [("Mail/cur", ()), ("Mail", ("--glob", "cur/*"))])
def test_a_message_that_is_gone_is_pruned_if_only_its_folder_is_read(
    likewise: Likewise, tmp_path: Path, maildir: Path, source: str, options: tuple[str, ...]
) -> None:
    index = tmp_path / "x.index"
    write(maildir / "cur" / "5.e.host:2,", mail("e"))
    likewise("index", index, maildir)
    (maildir / "cur" / "1.a.host:2,S").unlink()
    said = likewise("index", index, tmp_path / source, *options, "--prune", "--json").json
    assert said["pruned"] == 1
    assert [line.split("#")[1][0] for line in likewise("list", index).out.splitlines()] == ["d", "e", "b"]


def test_messages_of_a_maildir_keep_their_uris(likewise: Likewise, tmp_path: Path, maildir: Path) -> None:
    index = tmp_path / "x.index"
    likewise("index", index, maildir)
    write(maildir / "cur" / "0.other.host:2,", mail("a", "Another with this id."))

    def uris() -> dict[str, str]:
        likewise("index", index, maildir, "--prune", "--yes")
        with Index.open(index) as opened:
            return {document.text.partition("\n\n")[2]: document.uri.partition("#")[2] for document in opened}

    both = uris()
    assert both["About a."] == "a"
    assert len(both["Another with this id."]) == 32
    (maildir / "cur" / "1.a.host:2,S").unlink()
    assert uris() == {text: uri for text, uri in both.items() if uri != "a"}


def test_prune_keeps_messages_that_are_only_ignored_or_in_a_folder_that_cannot_be_listed(
    likewise: Likewise, tmp_path: Path, maildir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, scandir = tmp_path / "x.index", os.scandir
    likewise("index", index, tmp_path)

    def refusing(path: str) -> Any:
        if path == str(maildir / "cur"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(path)

    def refusing_names(path: str) -> list[str]:
        with refusing(path) as entries:
            return [entry.name for entry in entries]

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        patch.setattr(os, "listdir", refusing_names)
        assert "files: 1 failed, 2 unchanged" in likewise("status", "--index", index).out
        said = likewise("index", index, tmp_path, "--prune", "--yes", "--json")
    said.reported(1, failed=1, pruned=0)
    write(tmp_path / ".likewiseignore", "Mail\n")
    assert likewise("index", index, tmp_path, "--prune", "--yes", "--json").json["pruned"] == 0
    assert likewise("list", index).out.count("Mail") == 3


def test_messages_that_get_a_flag_while_their_folder_is_read(
    maildir: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5, 9):
        write(maildir / "cur" / f"{number}.e{number}.host:2,", mail(f"e{number}"))
    listed: list[str] = []
    listdir, opened = os.listdir, MessageOpener.open

    def flagged(self: MessageOpener, folder: str, path: str) -> Any:
        Path(path).rename(f"{path}T")
        return opened(self, folder, path)

    monkeypatch.setattr(MessageOpener, "open", flagged)
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or listdir(path))
    assert names(collect(maildir / "cur")) == ["a", "e5", "e6", "e7", "e8"]
    opener = MessageOpener()
    listed.clear()
    for number in range(5, 9):
        with opened(opener, str(maildir), str(maildir / "cur" / f"{number}.e{number}.host:2,")) as file:
            assert f"About e{number}." in file.read().decode()
    assert listed == [str(maildir / "cur"), str(maildir / "new")], "one listing for all that were renamed"
    with pytest.raises(FileNotFoundError):
        opened(MessageOpener(), str(maildir), str(maildir / "cur" / "9.none.host:2,"))


def test_a_single_message_is_found_again_under_its_new_name(likewise: Likewise, tmp_path: Path, maildir: Path) -> None:
    index, message = tmp_path / "x.index", maildir / "cur" / "1.a.host:2,S"
    assert likewise("index", index, message, "--json").json["indexed"] == 1
    message.rename(maildir / "cur" / "1.a.host:2,RS")
    for command in (("index", index, message), ("update", index)):
        likewise(*command, "--prune", "--json").reported(0, unchanged=1, pruned=0)
    (maildir / "cur" / "1.a.host:2,RS").unlink()
    assert likewise("index", index, message, "--prune").code == 2
    assert likewise("index", index, maildir / "cur", "--prune", "--yes", "--json").json["pruned"] == 1


def test_nothing_is_listed_of_an_empty_maildir_and_nothing_is_left_to_do_after_pruning(
    likewise: Likewise, tmp_path: Path
) -> None:
    folder, index = tmp_path / "in", tmp_path / "x.index"
    for name in ("cur", "new", "tmp"):
        (folder / "Mail" / name).mkdir(parents=True)
    path = write(folder / "Inbox", box(mail("a"), mail("b"), mail("c")))
    assert likewise("index", index, folder, "--json").json["seen"] == 3
    write(path, box(mail("a"), mail("b")))
    assert likewise("update", index, "--prune", "--json").json["pruned"] == 1
    assert likewise("status", index).out.endswith("files: 1 unchanged\n")


_READ = """
import sys
from indexer.sources import ReadOptions, open_sources, read
from indexer.sources.files import extractor
from indexer.stores.addresses.open import holds_store
from likewise.readers.formats import eml

extractor.EXTRACTOR.extract = lambda path, module, most, data: eml.read(data)  # without the worker, to be quick
options = ReadOptions()
(source,) = open_sources(sys.argv[1:], options, holds_store)
messages = sum(1 for entry in read(source, options, {}.get) if entry.document)
status = open("/proc/self/status").read()
print(messages, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.long
@pytest.mark.timeout(600)
@needs_memory_limit
def test_a_hundred_thousand_messages_take_little_more_memory_than_five_thousand(tmp_path: Path) -> None:
    peaks = []
    for messages in (5_000, 100_000):
        with (tmp_path / f"{messages}").open("w") as file:
            file.writelines(box(mail(f"{number}@example.org", "Short.")) for number in range(messages))
        command = [sys.executable, "-c", _READ, str(tmp_path / f"{messages}")]
        read, peak = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
        assert int(read) == messages
        peaks.append(int(peak))
    assert peaks[1] - peaks[0] < 20, peaks  # megabytes: 100 bytes for the uri of each message
