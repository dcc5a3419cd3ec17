"""One e-mail message as bytes: its id, and a hash that stays when a mail program marks the message as read.

Nothing is parsed here but the header, by regular expressions: a mailbox of 100,000 messages is compared with the ledger
in seconds. `readers/eml.py` makes the text.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

HEADER_END = re.compile(rb"(\r?\n)\r?\n")
_CHANGING = re.compile(
    rb"^(?:status|x-status|x-keywords|x-uid|x-uidl|x-imap|x-imapbase|x-label|x-mozilla-[^\s:]*|x-account-key"
    rb"|x-evolution[^\s:]*|x-gmail-labels|x-gm-[^\s:]*|content-length|lines):.*\n?(?:[ \t].*\n?)*",
    re.IGNORECASE | re.MULTILINE,
)
"""Header lines that mail programs write into a message after it has arrived."""
_ID = re.compile(rb"^message-id:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
_MOZILLA_STATUS = re.compile(rb"^x-mozilla-status:[ \t]*([0-9a-f]{4})\b", re.IGNORECASE | re.MULTILINE)
_EXPUNGED = 0x0008
_BRACKETED = re.compile(r"<([^<>]+)>")
_MAX_ID_CHARACTERS = 500
"""Maximum characters of an id. A message with a longer id is named by its hash."""


def message_ids(value: str) -> list[str]:
    """Return the ids in the value of a header (Message-ID, References, In-Reply-To), without angle brackets."""
    ids = ("".join(each.split()) for each in _BRACKETED.findall(value))
    bare = "".join(value.split())
    return [each for each in ids if each] or ([bare] if bare and not _BRACKETED.search(value) else [])


@dataclass(frozen=True)
class Message:
    """A message without the `From ` line and the quoting of an mbox.

    Attributes:
        data: header and body; only the beginning if the message is too large.
    """

    data: bytes

    @cached_property
    def header(self) -> bytes:
        """The lines of the header, without the blank line below it."""
        end = HEADER_END.search(self.data)
        return self.data[: end.end(1)] if end else self.data

    @property
    def id(self) -> str:
        """The Message-ID without angle brackets; empty if there is no usable id."""
        match = _ID.search(self.header)
        ids = message_ids(match[1].decode("utf-8", "replace")) if match else []
        return ids[0] if ids and ids[0].isprintable() and len(ids[0]) <= _MAX_ID_CHARACTERS else ""

    @cached_property
    def lasting(self) -> tuple[bytes, bytes]:
        """Header and body without what mail programs change after the message has arrived."""
        return _CHANGING.sub(b"", self.header), self.data[len(self.header) :].rstrip(b"\r\n")

    @property
    def size(self) -> int:
        """Bytes of the message, without what mail programs change."""
        return sum(map(len, self.lasting))

    @cached_property
    def mark(self) -> str:
        """Hash of the message, without what mail programs change: 32 hexadecimal digits."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self.lasting:
            digest.update(part)
        return digest.hexdigest()

    @property
    def is_expunged(self) -> bool:
        """True if Thunderbird has deleted the message. The message stays in the file until the folder is compacted."""
        match = _MOZILLA_STATUS.search(self.header)
        return match is not None and bool(int(match[1], 16) & _EXPUNGED)
