"""The address of an index in a database: a URI of libpq and the name of the index."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from indexer.errors import BadInput

DEFAULT_NAME = "default"

_MAX_NAME_CHARACTERS = 200

_URI = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^:@/?#\s]*)(?P<password>:[^@/?#\s]*)?@)?(?P<hosts>[^@/?#\s]*)"
    r"(?P<database>/[^@/?#\s]*)?(?:\?(?P<parameters>[^#\r\n\t]*))?"
)
"""The form of a URI, stricter than libpq's. Text that libpq would misread, such as a password with an @, is refused,
because libpq's error would show a part of the password."""

_HOST = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*)(?::\d*)?")
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_SECRET = ("password", "sslpassword")

_MIN_PASSWORD_CHARACTERS = 4
"""Minimum characters of a password that is removed from messages. A shorter password occurs in ordinary words, and
removing it there would reveal it."""


@dataclass(frozen=True, slots=True)
class Address:
    """An index in a database.

    Attributes:
        conninfo: the URI that libpq gets; it may hold a password.
        index: the name of the index in that database.
        shown: the whole address without a password, for messages; it opens the same index.
    """

    conninfo: str = field(repr=False)
    index: str
    shown: str


def parse_address(text: str) -> Address:
    """Read `postgresql://user@host/database?index=NAME`; without a name it is `default`.

    Raises:
        BadInput: the text is not such a URI, or the name of the index is not allowed. The message holds no part of the
            URI.
    """
    match = _URI.fullmatch(text)
    if match is None or _BROKEN_PERCENT.search(text) or not all(map(_HOST.fullmatch, match["hosts"].split(","))):
        raise _unreadable()
    if match["parameters"] and any(parameter.count("=") != 1 for parameter in match["parameters"].split("&")):
        raise _unreadable()
    pairs = _pairs(match["parameters"])
    names = [value for name, value in pairs if name == "index"]
    try:
        index = unquote(names[-1], errors="strict") if names else DEFAULT_NAME
    except UnicodeDecodeError as error:
        raise _unreadable() from error
    if not index or len(index) > _MAX_NAME_CHARACTERS or not index.isprintable():
        raise BadInput(
            f"index={index[:40]!r} cannot name an index: use 1 to {_MAX_NAME_CHARACTERS} printable characters"
        )
    rest = [f"{quote(name, safe='')}={value}" for name, value in pairs if name != "index"]
    shown = [f"{quote(name, safe='')}={value}" for name, value in pairs if name not in ("index", *_SECRET)]
    at = "" if match["user"] is None else "@"
    user, database = match["user"] or "", match["database"] or "/"
    return Address(
        _uri(f"{match['scheme']}{user}{match['password'] or ''}{at}{match['hosts']}{database}", rest),
        index,
        _uri(f"{match['scheme']}{user}{at}{match['hosts']}{database}", [*shown, f"index={quote(index, safe='')}"]),
    )


def named(address: Address, index: str) -> str:
    """Return the address, without a password, of an index of another name in the same database."""
    return f"{address.shown.rpartition('index=')[0]}index={quote(index, safe='')}"


def with_role(address: Address, role: str) -> str:
    """Return the address, without a password, of an index for another role."""
    other = re.sub("(?<=[?&])(?:user=|options=[^&]*role)[^&]*&", "", address.shown)
    return re.sub("//(?:[^@/?]*@)?", lambda _: f"//{quote(role, safe='')}@", other, count=1)


def passwords(address: Address) -> list[str]:
    """Return the passwords that this process may send to the server, in each form in which an error might repeat
    them."""
    match = _URI.fullmatch(address.conninfo)
    given = [(match["password"] or "")[1:]] if match else []
    given += [value for name, value in _pairs(match["parameters"] if match else None) if name in _SECRET]
    known = [*given, *map(unquote, given), os.environ.get("PGPASSWORD", "")]
    return sorted({password for password in known if len(password) >= _MIN_PASSWORD_CHARACTERS}, key=len, reverse=True)


def _pairs(parameters: str | None) -> list[tuple[str, str]]:
    """Return names and values of parameters. parse_qs is not used, because a plus sign is not a space for libpq."""
    cut = (parameter.partition("=") for parameter in (parameters or "").split("&") if parameter)
    return [(unquote(name), value) for name, _, value in cut]


def _unreadable() -> BadInput:
    return BadInput(
        "the address of the database cannot be read: write postgresql://USER@HOST/DATABASE?index=NAME, with other "
        "characters than letters and digits as % and two hexadecimal digits, and the password in PGPASSWORD or .pgpass"
    )


def _uri(before: str, parameters: list[str]) -> str:
    return f"{before}?{'&'.join(parameters)}" if parameters else before
