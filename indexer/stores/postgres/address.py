"""The address of an index in a database: a URI of libpq and the name of the index."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from indexer.errors import BadInput

DEFAULT_NAME = "default"

_MAX_NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Address:
    """An index in a database.

    Attributes:
        conninfo: the URI that libpq gets; it may hold a password.
        index: the name of the index in that database.
        shown: the whole address without a password, for messages; it opens the same index.
    """

    conninfo: str
    index: str
    shown: str

    def named(self, index: str) -> Address:
        """Return the address of another index of the same database."""
        return parse_address(_with_index(self.conninfo, index))


def parse_address(text: str) -> Address:
    """Read `postgresql://user@host/database?index=NAME`; without a name it is `default`.

    Raises:
        BadInput: it is no such URI, or a name that cannot be one.
    """
    try:
        parts = urlsplit(text)
        parameters = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise BadInput("the address of the database cannot be read: write postgresql://USER@HOST/DATABASE") from error
    names = [value for name, value in parameters if name == "index"]
    index = names[-1] if names else DEFAULT_NAME
    if not index or len(index) > _MAX_NAME_CHARACTERS or not index.isprintable():
        raise BadInput(
            f"index={index[:40]!r} cannot name an index: use 1 to {_MAX_NAME_CHARACTERS} printable characters"
        )
    rest = [(name, value) for name, value in parameters if name != "index"]
    shown = [(name, value) for name, value in rest if name not in ("password", "sslpassword")]
    credentials, at, host = parts.netloc.rpartition("@")
    user = credentials.partition(":")[0]
    return Address(
        _uri(parts.scheme, parts.netloc, parts.path, rest),
        index,
        _uri(parts.scheme, f"{user}{at}{host}" if user else host, parts.path, [*shown, ("index", index)]),
    )


def _with_index(uri: str, index: str) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}index={quote(index, safe='')}"


def _uri(scheme: str, netloc: str, path: str, parameters: list[tuple[str, str]]) -> str:
    return urlunsplit((scheme, netloc, path or "/", urlencode(parameters, quote_via=quote, safe="/"), ""))
