"""E-mail (EML) with the standard library. The subject is the title.

Among alternatives the plain text is read, unless it lacks most words of another one: many programs write "This message
is in HTML" there. An invitation is read beside them.

The text begins with the lines From, To, Cc, Bcc, Date and Attachments, as a mail program shows them: so names and
addresses are found as words and are embedded together with the text of the mail. Metadata alone would not do this.
Forwarded messages, messages of a digest and attachments follow as sections. PDF and Office files among them are read by
their own readers, in a worker process of this one.
"""

# ruff: noqa: PTH122
from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import EmailMessage, Message, MIMEPart
from email.utils import parsedate_to_datetime
from pathlib import Path

from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Content, Refused, Unreadable, clean
from indexer.sources.encoding import Decoded, decode, decode_labelled, is_binary, marked_encoding
from indexer.sources.formats import EML, FORMATS, HTML, ICS, VCF, Format, format_of, is_html
from likewise.readers import inside
from likewise.readers.formats import content_lines, html
from likewise.readers.formats.html import Written
from likewise.readers.formats.html_arrangement import count
from likewise.readers.limits import MAX_ATTACHMENT_SECONDS
from likewise.readers.message import message_ids

_FIELDS = {"from": "From", "to": "To", "cc": "Cc", "subject": "Subject"}
_SHOWN = ("From", "To", "Cc", "Bcc", "Date")
_MARKUP = {"text/rtf", "text/richtext", "text/enriched"}  # text/* that is not readable as it is
_COPIES = {"text/x-amp-html", "text/watch-html"}  # of an alternative, for some devices and programs
_PAGES = {"text/html", *_COPIES}
_CONTENT_LINES = {*("text/calendar", "application/ics", "text/vcard", "text/x-vcard", "text/directory")}
_PROGRAMS = {
    "text/css",
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "application/pgp-encrypted",
}
"""Types of parts without words for a person, which need no note."""
_MESSAGES = {"message/rfc822", "message/global", "message/news", "message/partial"}
_SIGNATURES = {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}
_ENCODED_WORDS = re.compile(r"=\?[^?\s]+\?[bq]\?[^?]*\?=(?:\s+=\?[^?\s]+\?[bq]\?[^?]*\?=)*", re.IGNORECASE)
_MAX_DEPTH = 20  # of messages within messages
_MIN_LACKING_SHARE = 0.5
_MIN_LACKING = 3
"""A plain text is read unless it lacks this many words of another alternative, and this share of them."""
_CUT = re.compile(r"(?<!^--) \r?\n(?![>\r\n])", re.MULTILINE)
_UUENCODED = re.compile(r"^begin [0-7]{3,4} (\S.*?)\r?\n(?:[ -`]+\r?\n)+end[ \r]*$", re.MULTILINE)
"""A file within a text, as mail programs attached files before MIME."""
_WORD = re.compile(r"\w+")
_APPLE_COUNT = re.compile(rb"\s*(\d+)[ \t]*\r?\n")
"""First line of a message of Apple Mail (.emlx): its bytes. A list of properties follows the message."""


def read(source: str | bytes) -> Content:
    """Read a file, or the bytes of a message of a mailbox.

    The metadata are from, to, cc, subject, date (ISO 8601), thread and the names of attachments. A mail without a body
    has its subject as text.
    """
    message = _parse(source if isinstance(source, bytes) else Path(source).read_bytes())
    if not message.keys():
        raise Unreadable(Code.NO_MAIL_HEADERS())
    subject = _header(message, "Subject")
    assembly = Assembly()
    assembly.add(headers := "\n".join(_heading_lines(message)))
    attachments = _Attachments()
    if unread := f"{headers}{subject}".count("\ufffd"):
        attachments.written = Written(notes=(Code.CHARACTERS_UNREAD(f"{unread:,}", "the encoding of its headers"),))
    if not _write_message(message, assembly, attachments, []):
        assembly.add(subject)
    metadata: dict[str, str | list[str]] = {
        name: value for name, header in _FIELDS.items() if (value := _header(message, header))
    }
    if thread := _thread(message):
        metadata["thread"] = thread
    if date := _header(message, "Date"):
        try:
            metadata["date"] = parsedate_to_datetime(date).isoformat()
        except ValueError:
            metadata["date"] = date
    if names := _attachments(message):
        metadata["attachments"] = names
    content = html.with_notes(assembly.content(subject, metadata), attachments.written)
    return replace(content, unread=(*content.unread, *attachments.notes()))


def _parse(data: bytes) -> EmailMessage:
    """Return the message in a file, which may be from Apple Mail, in UTF-16 or with a byte order mark."""
    if encoding := marked_encoding(data):
        try:
            data = data.decode(encoding).encode()
        except ValueError as error:
            raise Unreadable(Code.WRONG_MAIL_ENCODING(encoding)) from error
    if counted := _APPLE_COUNT.match(data):
        data = data[counted.end() : counted.end() + int(counted[1][:18])]
    return message_from_bytes(data, policy=policy.default)


def _header(message: Message, name: str) -> str:
    """Return a header on one line, empty if there is none. Bytes that are not encoded are decoded like any text.

    Encoded words are decoded with `decode_header`: the parser of structured headers leaves a blank between two of them,
    which divides a word that both have a part of (CPython issue 128110).
    """
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    data = raw.encode("utf-8", "surrogateescape")
    value = raw if data.isascii() else decode(data, cookies=False) or data.decode("utf-8", "replace")
    if "=?" in value:
        try:
            value = _ENCODED_WORDS.sub(_decode_words, value)
        except HeaderParseError:  # not encoded after all
            value = str(policy.default.header_factory(name, value))
    return " ".join(clean(value).split())


def _decode_words(words: re.Match[str]) -> str:
    """Return the text of encoded words that follow one another (RFC 2047)."""
    parts = decode_header(words[0])
    return "".join(decode_labelled(part, charset).text if isinstance(part, bytes) else part for part, charset in parts)


def _thread(message: Message) -> str:
    """Return the id of the message that began the thread, as far as this message knows it."""
    headers = (_header(message, name) for name in ("References", "In-Reply-To", "Message-ID"))
    return next((ids[0] for header in headers if (ids := message_ids(header))), "")


def _heading_lines(message: Message, *others: str) -> list[str]:
    """Return the lines that a mail program shows above a message, in its order."""
    lines = [f"{name}: {value}" for name in (*others, *_SHOWN) if (value := _header(message, name))]
    parts = message.iter_attachments() if isinstance(message, MIMEPart) else ()
    if names := [name for part in parts if (name := part.get_filename())]:
        lines.append(f"Attachments: {', '.join(names)}")
    return lines


def _attachments(message: MIMEPart) -> list[str]:
    others = (part for part in message.iter_attachments() if part.get_filename() or not _is_shown(part))
    return [part.get_filename() or part.get_content_type() for part in others]


def _is_shown(part: MIMEPart) -> bool:
    return part.get_content_disposition() != "attachment" and part.get_content_type() in {"text/plain", *_PAGES}


class _Attachments:
    """Reads the files that are attached to a message, and notes what was not read.

    Attributes:
        written: the outcome of writing the texts of the message.
    """

    def __init__(self) -> None:
        self._deadline = time.monotonic() + MAX_ATTACHMENT_SECONDS
        self.written = Written()
        self._notes: list[Reason] = []
        self._unread: list[str] = []
        self._content_lines: set[bytes] = set()

    def notes(self) -> tuple[Reason, ...]:
        return (*self._notes, *inside.files(self._unread))

    def write_content_lines(self, part: MIMEPart, into: Assembly, path: list[str]) -> None:
        """Write a calendar or contacts. Many invitations are in a message twice, the second time as a file."""
        if (data := _payload(part)) in self._content_lines:
            return
        self._content_lines.add(data)
        try:
            _, notes = content_lines.write(data, into, " > ".join(path))
        except Unreadable as unreadable:
            self.note(_name(part), unreadable.reason)
        else:
            for reason in notes:
                self.note(_name(part), reason)

    def write(self, part: MIMEPart, into: Assembly, path: list[str]) -> None:
        """Write the text of an attached file. A file that its reader refuses, or that no reader knows, gets a note."""
        name, data = _name(part), _payload(part)
        format_ = format_of(name, data)
        if format_.kind != "extracted":
            if part.get_content_type() not in _SIGNATURES | _PROGRAMS and (data or part.get_filename()):
                self._unread.append(name)
            return
        try:
            content = self._read(data, format_, Assembly.max_characters - into.length)
        except Refused as refused:
            self.note(name, refused.reason)
            return
        for reason in content.unread:
            self.note(name, reason)
        into.section(" > ".join([*path, name]))
        _append(content, into, [*path, name])

    def _read(self, data: bytes, format_: Format, max_characters: int) -> Content:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise Unreadable(Code.TOO_SLOW(f"{MAX_ATTACHMENT_SECONDS:g}"))
        return inside.extract(data, format_, max_characters, seconds)

    def note(self, name: str, reason: Reason) -> None:
        """Note why a part was not read, or not whole."""
        self._notes.append(inside.note(name, reason))


def _write_message(message: MIMEPart, into: Assembly, attachments: _Attachments, path: list[str]) -> bool:
    """Write the body of a message, and then what is attached; return whether there was any text.

    Args:
        path: headings of the enclosing messages, and the heading of the message itself.
    """
    attached: list[MIMEPart] = []
    length = into.length
    attachments.written += _write(message, into, attached)
    if message in attached:  # the message itself is marked as an attachment
        path = path[:-1]
    for part in attached:
        if (inner := _inner_message(part)) is not None:
            if len(path) >= _MAX_DEPTH:
                attachments.note(_name(part), Code.TOO_DEEP(_MAX_DEPTH))
            else:
                below = [*path, _header(inner, "Subject") or part.get_filename() or "Forwarded message"]
                into.section(" > ".join(below))
                into.add("\n".join(_heading_lines(inner, "Subject")))
                _write_message(inner, into, attachments, below)
        elif part.get_content_type() in _CONTENT_LINES or _extension_format(part) in (ICS, VCF):
            attachments.write_content_lines(part, into, path)
        elif (text := _attached_text(part)) is not None:
            into.section(" > ".join([*path, _name(part)]))
            is_page = _extension_format(part) is HTML or part.get_content_type() in _PAGES
            attachments.written += _write_text(text, into, is_page)
        else:
            attachments.write(part, into, path)
    return into.length > length


def _write(part: MIMEPart, into: Assembly, attached: list[MIMEPart]) -> Written:
    """Write the text of all parts that are shown, of alternatives only one.

    Parts that are not shown within the text are appended to `attached`.
    """
    kind, written = part.get_content_type(), Written()
    if part.is_multipart() and kind.startswith("multipart/"):
        children = [child for child in part.iter_parts() if isinstance(child, MIMEPart)]
        if kind == "multipart/alternative":
            written = _write_alternative(children, into, attached)
        elif kind == "multipart/related":
            root = _root(part, children)
            for child in children:
                if child is root:
                    written = _write(child, into, attached)
            attached.extend(child for child in children if child is not root)
        else:
            for child in children:
                written += _write(child, into, attached)
    elif not _is_shown(part) and not kind.startswith("multipart/"):  # or multipart without its parts: a text
        attached.append(part)
    else:
        decoded = _decode(part)
        is_page = kind in _PAGES or is_html(decoded.text.encode("utf-8", "replace"))
        written = _write_text(decoded, into, is_page)
    return written


def _write_text(decoded: Decoded, into: Assembly, is_page: bool) -> Written:
    if is_page:
        written = html.write_page(decoded.text, into)
    else:
        into.add(_UUENCODED.sub("", decoded.text))
        written = Written(words=count(decoded.text))
    return replace(written, notes=(*decoded.notes, *inside.files(_UUENCODED.findall(decoded.text))))


def _write_alternative(children: list[MIMEPart], into: Assembly, attached: list[MIMEPart]) -> Written:
    """Write the plain text, or else the first alternative of which the one before lacks most words."""
    best: Content | None = None
    best_written = Written()
    best_words: set[str] = set()
    children = [child for child in children if child.get_content_type() not in _COPIES] or children
    for child in sorted(children, key=lambda child: child.get_content_type() != "text/plain"):
        assembly = Assembly()
        written = _write(child, assembly, attached)
        content = assembly.content()
        words = set(_WORD.findall(content.text.casefold()))
        lacking = len(words - best_words)
        if content.text and (best is None or lacking >= max(_MIN_LACKING, _MIN_LACKING_SHARE * len(words))):
            best, best_words, best_written = content, words, written
    if best is not None:
        _append(best, into, [])
    return best_written


def _append(content: Content, into: Assembly, path: list[str]) -> None:
    """Write a text and its sections below the headings of a path."""
    into.add(content.text[: content.sections[0].start if content.sections else None])
    ends = [section.start for section in content.sections[1:]] + [len(content.text)]
    for section, end in zip(content.sections, ends, strict=False):
        if heading := " > ".join(filter(None, [*path, section.heading])):
            into.section(heading, section.page)
        into.add(content.text[section.start : end])


def _root(part: MIMEPart, children: list[MIMEPart]) -> MIMEPart | None:
    """Return the part of multipart/related that shows the others: the one that `start` names, or else the first."""
    start = part.get_param("start")
    named = (child for child in children if start and child.get("Content-ID", "").strip() == start)
    return next(named, children[0] if children else None)


def _inner_message(part: MIMEPart) -> MIMEPart | None:
    """Return the message that a part holds: forwarded, one of a digest, or attached as a file; None for any other."""
    kind = part.get_content_type()
    if part.get_content_maintype() == "message":
        inner = part.get_payload()
        message = inner[0] if isinstance(inner, list) and inner else None
        if kind not in _MESSAGES or not isinstance(message, MIMEPart):
            return None
        if not message.keys() and part.get("Content-Transfer-Encoding", "").lower() == "base64":  # against RFC 2046
            message.add_header("Content-Transfer-Encoding", "base64")
            return _parse(_payload(message))
        return message
    if _extension_format(part) is EML and (data := _payload(part)):
        message = _parse(data)
        return message if message.keys() else None
    return None


def _attached_text(part: MIMEPart) -> Decoded | None:
    """Return the text of a part that is a text by its type or, if the type says nothing, by its name."""
    kind, by_name = part.get_content_type(), _extension_format(part)
    is_text = part.get_content_maintype() == "text" and kind not in _MARKUP | _PROGRAMS
    if kind == "application/octet-stream" and by_name is not None:
        is_text = by_name.kind in {"text", "records"} or by_name is HTML
    if part.get_content_maintype() == "message":  # a report on delivery: its parts have headers only
        inner = part.get_payload()
        blocks = (sub.raw_items() for sub in inner if isinstance(sub, Message)) if isinstance(inner, list) else ()
        texts = ("\n".join(f"{name}: {' '.join(str(value).split())}" for name, value in block) for block in blocks)
        return Decoded("\n\n".join(texts))
    if not is_text or is_binary(_payload(part)):
        return None
    return _decode(part)


def _extension_format(part: MIMEPart) -> Format | None:
    return FORMATS.get(os.path.splitext(part.get_filename() or "")[1].lower())


def _name(part: MIMEPart) -> str:
    return part.get_filename() or part.get_content_type()


def _payload(part: MIMEPart) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _decode(part: MIMEPart) -> Decoded:
    """Return the text of a part, decoded by its charset or, if that is unknown or does not fit, like any text."""
    label = part.get_content_charset("")
    if not label and part.get_content_type() in _PAGES:
        return html.decode_page(_payload(part))
    decoded = decode_labelled(_payload(part), label)
    is_cut = str(part.get_param("delsp", "")).lower() == "yes"  # by its program, within words too (RFC 3676)
    return decoded._replace(text=_CUT.sub("", decoded.text)) if is_cut else decoded
