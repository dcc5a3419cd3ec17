"""Reads e-mail (EML) with the standard library: the subject is the title; plain text is preferred to HTML."""

# ruff: noqa: PTH123
from __future__ import annotations

from email import message_from_binary_file, policy
from email.message import MIMEPart
from email.utils import parsedate_to_datetime

from indexer.sources import html
from indexer.sources.content import Assembly, Content, Unreadable

_ADDRESSES = {"from": "From", "to": "To", "cc": "Cc"}


def read(path: str) -> Content:
    """Metadata: from, to, cc, date (ISO 8601) and the names of attachments, whose content is not read."""
    with open(path, "rb") as file:
        message = message_from_binary_file(file, policy=policy.default)
    if not message.keys():
        raise Unreadable("damaged: no e-mail headers")
    assembly = Assembly()
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None and body.get_content_subtype() == "html":
        tree = html.parse(_decoded(body).encode())
        if tree is not None:
            html.write_body(tree, assembly)
    elif body is not None:
        assembly.add(_decoded(body))
    metadata: dict[str, str | list[str]] = {
        name: " ".join(str(message[header]).split()) for name, header in _ADDRESSES.items() if message[header]
    }
    if message["Date"]:
        try:
            metadata["date"] = parsedate_to_datetime(str(message["Date"])).isoformat()
        except ValueError:
            metadata["date"] = str(message["Date"])
    if attachments := [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]:
        metadata["attachments"] = attachments
    return assembly.content(" ".join(str(message["Subject"] or "").split()), metadata)


def _decoded(part: MIMEPart) -> str:
    """The text of a part, also where its charset is unknown."""
    data = part.get_payload(decode=True)
    content = data if isinstance(data, bytes) else b""
    try:
        return content.decode(part.get_content_charset("utf-8"), errors="replace")
    except LookupError:
        return content.decode("utf-8", errors="replace")
