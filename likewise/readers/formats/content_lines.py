"""Calendars (.ics) and contacts (.vcf): one section per event, task or contact, with the values that people read.

Both formats consist of content lines, NAME;PARAMETER=VALUE:VALUE (RFC 5545 and RFC 6350). vCard 2.1 also has lines in
quoted-printable. Lines are unfolded as bytes, because a line may be folded inside a character.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.sources.encoding import decode, decode_labelled, marked_encoding, undecodable
from likewise.readers import inside
from likewise.readers.formats import html

_LINE = re.compile(r'([\w.-]+)((?:;[^:;"]*(?:"[^"]*"[^:;"]*)*)*):(.*)', re.DOTALL)
_QUOTED_PRINTABLE = re.compile(rb"[\w.-]+;[^:]*\bQUOTED-PRINTABLE\b[^:]*:", re.IGNORECASE)
_CHARSET = re.compile(r";CHARSET=\"?([-\w]+)", re.IGNORECASE)
_BASE64 = re.compile(r";ENCODING=\"?B(?:ASE64)?\b|;BASE64\b|;VALUE=BINARY\b", re.IGNORECASE)
_PERSON = re.compile(r';CN=(?:"([^"]*)"|([^;:]*))', re.IGNORECASE)
_ZONE = re.compile(r";TZID=\"?([^;:\"]+)", re.IGNORECASE)
_SCHEME = re.compile(r"(?:mailto|tel):", re.IGNORECASE)
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)[\d:]*(Z?))?")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PARTS = re.compile(r"(?<!\\);")
_LABELS = {"DTSTART": "Start", "DTEND": "End", "DUE": "Due", "BDAY": "Birthday", "ANNIVERSARY": "Anniversary"}
_NAMES = {"SUMMARY", "FN", "N", "X-WR-CALNAME"}
_STRUCTURED = {"N", "ADR", "ORG"}
_FOR_PROGRAMS = {
    *("ACTION", "ACKNOWLEDGED", "CALSCALE", "CLASS", "CLIENTPIDMAP", "COMPLETED", "CREATED", "DTSTAMP", "DURATION"),
    *("EXDATE", "FREEBUSY", "GENDER", "GEO", "KEY", "KIND", "LANG", "LAST-MODIFIED", "LOGO", "METHOD", "PHOTO"),
    *("PERCENT-COMPLETE", "PRIORITY", "PRODID", "RDATE", "RECURRENCE-ID", "RELATED-TO", "REPEAT", "REV", "RRULE"),
    *("SEQUENCE", "SORT-STRING", "SOUND", "STATUS", "TRANSP", "TRIGGER", "TZ", "UID", "VERSION", "XML"),
}
_SHOWN_EXTENSIONS = {"X-WR-CALNAME", "X-WR-CALDESC", "X-ALT-DESC", "X-ABLABEL", "X-ABRELATEDNAMES", "X-ABDATE"}
_APPLE_LABEL = re.compile(r"_\$!<(.*)>!\$_")
_HIDDEN_COMPONENTS = {"VTIMEZONE", "STANDARD", "DAYLIGHT"}


@dataclass(frozen=True, slots=True)
class _Property:
    """One content line: its name without a group, its parameters as written, and its decoded value."""

    name: str
    parameters: str
    value: str


def read(path: str) -> Content:
    """Read a file. A calendar's title is its name; another file with one entry has the name of the entry as title."""
    assembly = Assembly()
    title, unread = write(Path(path).read_bytes(), assembly)
    content = assembly.content(title)
    if not content.text:
        raise Skip(Code.NO_TEXT())
    return replace(content, unread=unread)


def write(data: bytes, into: Assembly, path: str = "") -> tuple[str, tuple[Reason, ...]]:
    """Write a calendar or contacts, and return their title and notes.

    Args:
        path: heading of the message that holds them.

    Raises:
        Unreadable: the encoding is unknown, or there is no content line.
    """
    entries, names, attached = list(_entries(_properties(data))), [], 0
    calendar_name = ""
    for entry in entries:
        found = {each.name: each for each in entry}
        name = next((_shown(found[key]) for key in ("SUMMARY", "FN", "N") if key in found and _shown(found[key])), "")
        if "X-WR-CALNAME" in found:
            calendar_name = _shown(found["X-WR-CALNAME"])
        lines = [name]
        for each in entry:
            attached += each.name == "ATTACH" and bool(_BASE64.search(each.parameters))
            if (each.name != "N" or "FN" not in found) and not (each.name == "X-ALT-DESC" and "DESCRIPTION" in found):
                lines.append(_shown(each))
        lines = [line for line in dict.fromkeys(lines) if line]
        if lines:
            names.append(name)
            into.section(" > ".join(filter(None, (path, name))))
        for line in lines:
            into.add(line, newlines=1)
    unread = inside.files(["ATTACH"] * attached)
    return calendar_name or (names[0] if len(names) == 1 else ""), unread


def _entries(properties: Iterator[_Property]) -> Iterator[list[_Property]]:
    """Yield the properties of each event, task or contact, with those of its alarms; first those of the calendar."""
    open_components: list[str] = []
    entry: list[_Property] = []
    whole: list[_Property] = []
    later: list[list[_Property]] = []
    for each in properties:
        component = each.value.strip().upper()
        if each.name == "BEGIN":
            if component in {"VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VCARD"}:
                later.append(entry := [])
            open_components.append(component)
        elif each.name == "END":
            if component in open_components:
                del open_components[open_components.index(component) :]
        elif not _HIDDEN_COMPONENTS.intersection(open_components):
            (whole if open_components in ([], ["VCALENDAR"]) else entry).append(each)
    yield from [whole, *later]


def _properties(data: bytes) -> Iterator[_Property]:
    if encoding := marked_encoding(data):
        data = data.decode(encoding, "replace").encode()
    unfolded = b"\n".join(_unfolded(data))
    text = decode(unfolded, cookies=False)
    if text is None:
        raise Unreadable(undecodable(unfolded))
    lines = [match for line in text.split("\n") if (match := _LINE.fullmatch(line.strip()))]
    if not lines:
        raise Unreadable(Code.NO_CONTENT_LINES())
    for name, parameters, written in (match.groups() for match in lines):
        is_quoted = _QUOTED_PRINTABLE.match(f"{name}{parameters}:".encode())
        value = _quoted_printable(written, _CHARSET.search(parameters)) if is_quoted else written
        yield _Property(name.rpartition(".")[2].upper(), parameters, value)


def _unfolded(data: bytes) -> Iterator[bytes]:
    """Yield each line with the lines that continue it. vCard 2.1 keeps the blank that a continuation begins with."""
    keeps_blank, line = b"\nVERSION:2.1" in data.upper().replace(b"\r", b"\n"), b""
    for following in data.splitlines():
        if line.endswith(b"=") and _QUOTED_PRINTABLE.match(line):
            line = line[:-1] + following
        elif following[:1] in (b" ", b"\t"):
            line += following if keeps_blank else following[1:]
        else:
            yield line
            line = following
    yield line


def _quoted_printable(value: str, charset: re.Match[str] | None) -> str:
    return decode_labelled(quopri.decodestring(value.encode()), charset[1] if charset else "utf-8").text


def _shown(each: _Property) -> str:
    """Return what a person reads of a property; empty for one that only programs read."""
    name, value = each.name, each.value
    is_extension = name.startswith("X-") and name not in _SHOWN_EXTENSIONS
    if name in _FOR_PROGRAMS or is_extension or _BASE64.search(each.parameters):
        return ""
    if name in _LABELS:
        return f"{_LABELS[name]}: {_moment(each)}"
    if name in _STRUCTURED:
        parts = [_unescaped(part) for part in _PARTS.split(value)]
        if name == "N":  # family name, given name, other names, titles before and after
            family, given, others, before, after = (parts + [""] * 5)[:5]
            return " ".join(filter(None, (before, given, others, family, after)))
        return ", ".join(filter(None, parts))
    value = _APPLE_LABEL.sub(r"\1", _SCHEME.sub("", _unescaped(value), count=1))
    if name == "X-ALT-DESC":
        html.write_page(value, written := Assembly())
        value = written.content().text
    person = _PERSON.search(each.parameters)
    return f"{person[1] or person[2]} <{value}>" if person else value


def _moment(each: _Property) -> str:
    if (moment := _MOMENT.fullmatch(each.value.strip())) is None:
        return _unescaped(each.value)
    year, month, day, hour, minute, utc = moment.groups()
    zone = _ZONE.search(each.parameters)
    parts = (f"{year}-{month}-{day}", hour and f"{hour}:{minute}", "UTC" if utc else zone and zone[1])
    return " ".join(filter(None, parts))


def _unescaped(value: str) -> str:
    return _ESCAPE.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], value).strip()
