"""E-mail (EML) with the standard library: the subject is the title, and of alternatives the plain text is read."""

# ruff: noqa: PTH123
from __future__ import annotations

from email import message_from_binary_file, policy
from email.message import MIMEPart
from email.utils import parsedate_to_datetime

from indexer.sources.content import Assembly, Content, Unreadable
from indexer.sources.encoding import decode
from indexer.sources.readers import html

_ADDRESSES = {"from": "From", "to": "To", "cc": "Cc"}


def read(path: str) -> Content:
    """Read a file, with metadata: from, to, cc, date (ISO 8601) and the names of attachments, which are not read."""
    with open(path, "rb") as file:
        message = message_from_binary_file(file, policy=policy.default)
    if not message.keys():
        raise Unreadable("damaged: no e-mail headers")
    assembly = Assembly()
    _write(message, assembly)
    metadata: dict[str, str | list[str]] = {
        name: " ".join(str(message[header]).split()) for name, header in _ADDRESSES.items() if message[header]
    }
    if message["Date"]:
        try:
            metadata["date"] = parsedate_to_datetime(str(message["Date"])).isoformat()
        except ValueError:
            metadata["date"] = str(message["Date"])
    others = (part for part in message.iter_attachments() if part.get_filename() or not _is_shown(part))
    if attachments := [part.get_filename() or part.get_content_type() for part in others]:
        metadata["attachments"] = attachments
    return assembly.content(" ".join(str(message["Subject"] or "").split()), metadata)


def _is_shown(part: MIMEPart) -> bool:
    return part.get_content_disposition() != "attachment" and part.get_content_type() in {"text/plain", "text/html"}


def _write(part: MIMEPart, into: Assembly) -> None:
    """Write the text of a part: of all parts that are shown, and of alternatives the plain one, unless it is blank."""
    kind = part.get_content_type()
    if part.get_content_disposition() == "attachment":
        return
    if part.is_multipart():
        children = [child for child in part.iter_parts() if isinstance(child, MIMEPart)]
        if kind != "multipart/alternative":
            children = children if kind.startswith("multipart/") else []  # a forwarded message is an attachment
            for child in children[:1] if kind == "multipart/related" else children:
                _write(child, into)
            return
        for child in sorted(children, key=lambda child: child.get_content_type() != "text/plain"):
            written = Assembly()
            _write(child, written)
            if written.content().text:
                _write(child, into)
                return
    elif kind == "text/plain":
        into.add(_decode(part))
    elif kind == "text/html" and (tree := html.parse(_decode(part))) is not None:
        html.write_body(tree, into)


def _decode(part: MIMEPart) -> str:
    """Return the text of a part, decoded by its charset or, if that is unknown or does not fit, like any text."""
    data = part.get_payload(decode=True)
    content = data if isinstance(data, bytes) else b""
    declared = part.get_content_charset("us-ascii")
    try:
        return content.decode(declared)
    except (LookupError, ValueError):
        text = decode(content, cookies=False)
    try:
        return content.decode(declared, errors="replace") if text is None else text
    except LookupError:
        return content.decode("utf-8", errors="replace")
