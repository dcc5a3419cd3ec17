"""The address of a model behind an endpoint, as a user writes it: http://HOST:PORT/v1#NAME."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from indexer.errors import ModelError

_FORM = "write http://HOST:PORT/v1#NAME, with the name of the model after #"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """An address in its parts.

    Attributes:
        host: scheme://host:port in lower case, always with the port: what a user names.
        path: the part of the path before /embeddings, such as /v1; without a slash at its end.
        name: what the endpoint calls the model.
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
        if not name.strip():
            raise ModelError(f"{address!r:.200} names no model: {_FORM}")
        if not text.isprintable() or any(map(str.isspace, address)):
            raise ModelError(f"{text!r:.200} has characters that an address cannot have: {_FORM}")
        try:
            parts = urlsplit(address)
            port = parts.port or _PORTS[parts.scheme]
        except (ValueError, KeyError) as error:
            raise ModelError(f"{address!r:.200} is not an address ({error}): {_FORM}") from error
        if parts.username is not None or parts.password is not None or parts.query:
            raise ModelError(
                f"the address of {name!r:.80} holds a user, a password or a query, which would be stored in the index: "
                f"set LIKEWISE_API_KEY instead, and {_FORM}"
            )
        if not parts.hostname:
            raise ModelError(f"{address!r:.200} names no host: {_FORM}")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/").removesuffix("/embeddings")
        return cls(f"{parts.scheme}://{host}:{port}", path, name)

    @property
    def url(self) -> str:
        """The URL that texts are posted to."""
        return f"{self.host}{self.path}/embeddings"

    def __str__(self) -> str:
        return f"{self.host}{self.path}#{self.name}"
