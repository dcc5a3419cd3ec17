"""The address of a model behind an endpoint, as a user writes it: http://HOST:PORT/v1#NAME."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from indexer.errors import ModelError

_FORM = "write http://HOST:PORT/v1#NAME, with the name of the model after #"
_PORTS = {"http": 80, "https": 443}
_MAX_LABEL = 63
"""Maximum characters between two dots of a host's name."""


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """An address in its parts.

    Attributes:
        host: scheme://host:port in lower case, always with the port. Users name hosts in this form.
        path: the part of the path before /embeddings, such as /v1; without a slash at its end.
        name: the endpoint's name of the model.
    """

    host: str
    path: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address.

        Raises:
            ModelError: the text is not an address, names no model, or holds a user, a password or a query, which would
                be stored in the index.
        """
        address, _, name = text.partition("#")
        shown = _without_secrets(address)
        if not name.strip():
            raise ModelError(f"{shown!r:.200} names no model: {_FORM}")
        if not text.isprintable() or any(map(str.isspace, address)):
            raise ModelError(f"{shown!r:.200} has characters that an address cannot have: {_FORM}")
        try:
            parts = urlsplit(address)
            port = _PORTS[parts.scheme] if parts.port is None else parts.port
        except (ValueError, KeyError) as error:
            raise ModelError(f"{shown!r:.200} is not an address (its host or its port is wrong): {_FORM}") from error
        if parts.username is not None or parts.password is not None or parts.query:
            raise ModelError(
                f"the address of {name!r:.80} holds a user, a password or a query, which would be stored in the index: "
                f"set LIKEWISE_API_KEY instead, and {_FORM}"
            )
        if not parts.hostname:
            raise ModelError(f"{shown!r:.200} names no host: {_FORM}")
        if not port or not _is_host(parts.hostname):
            raise ModelError(f"{shown!r:.200} is not an address (its host or its port is wrong): {_FORM}")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/").removesuffix("/embeddings")
        return cls(f"{parts.scheme}://{host}:{port}", path, name)

    @property
    def url(self) -> str:
        """The URL that texts are posted to."""
        return f"{self.host}{self.path}/embeddings"

    def __str__(self) -> str:
        return f"{self.host}{self.path}#{self.name}"


def _without_secrets(address: str) -> str:
    """Return an address for a message: without user, password and query, even if it cannot be read otherwise."""
    scheme, slashes, rest = address.partition("?")[0].partition("//")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"


def _is_host(name: str) -> bool:
    """Return whether no part of a name is empty or too long for the name of a host."""
    return ":" in name or all(0 < len(part) <= _MAX_LABEL for part in name.removesuffix(".").split("."))
