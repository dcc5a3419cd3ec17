"""The messages of a mailbox (mbox or Maildir) as entries, each a document of its own.

The uri is `MAILBOX#message-id`, or `MAILBOX#` and a hash of the message if it has no id or another message of the
mailbox has the id. A message keeps its uri as long as it is in the mailbox. The ledger has the hash of each message
(`Reason.mark`). So, if a mailbox has changed, only its new messages are parsed.
"""

# ruff: noqa: PTH119, PTH123
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO

from indexer.ledger import HELD, NO_REASON, Code, Reason
from indexer.records import Document, KnownFile, Stamp
from indexer.sources.entry import Entry, ReadOptions, content_or_entry, entry_of
from indexer.sources.files.extractor import EXTRACTOR
from indexer.sources.files.titles import title_of
from indexer.sources.folders.maildir import ledger_path, message_files
from indexer.sources.folders.walk import WalkedFile
from indexer.sources.formats import EML, MAILDIR, MBOX, reader_of
from indexer.sources.limits import MAX_EXPANSION
from likewise.readers.mbox import message_places, read_message
from likewise.readers.message import Message


class Mailboxes:
    """Reads the mailboxes of a SOURCE, with the uris that their messages have in the ledger."""

    def __init__(self, known: Callable[[str], KnownFile | None], options: ReadOptions) -> None:
        """Prepare to read mailboxes.

        Args:
            known: returns the record of the ledger for the path of a file.
            options: which messages are too large.
        """
        self._known, self._options, self._opener = known, options, MessageOpener()
        self._maildir = ""
        self._holders: dict[str, str] = {}  # the file of each uri of this Maildir

    def open(self, walked: WalkedFile) -> BinaryIO:
        """Open the file of a message in a Maildir. Raises OSError if it cannot be opened."""
        return self._opener.open(walked.maildir, walked.message_file)

    def entries(self, file: BinaryIO, walked: WalkedFile, stamp: Stamp) -> Iterator[Entry]:
        """Yield the entries of the messages in an open file: an mbox, or a message of a Maildir."""
        if not walked.maildir:
            mailbox = _Mailbox(walked.path, MBOX.name, self._options)
            yield from _read_mbox(file, mailbox, stamp, self._known(walked.path))
            return
        mailbox, message = _Mailbox(walked.maildir, MAILDIR.name, self._options), Message(file.read())
        yield mailbox.entry(message, self._uri(mailbox, message, walked.path), walked.path, stamp)

    def _uri(self, mailbox: _Mailbox, message: Message, file: str) -> str:
        """Return the uri of a message of a Maildir.

        Args:
            file: the path of its file in the ledger.
        """
        if mailbox.path != self._maildir:
            self._maildir = mailbox.path
            self._holders = {uri: name for name, _ in message_files(mailbox.path) for uri in self._recorded(name)}
        by_mark = mailbox.uri(message.mark)
        if not message.id or by_mark in self._recorded(file):
            return by_mark
        uri = mailbox.uri(message.id)
        return uri if self._holders.setdefault(uri, file) == file else by_mark

    def _recorded(self, file: str) -> list[str]:
        recorded = self._known(file)
        return [uri for uri, _, _ in recorded.entries] if recorded is not None else []


@dataclass(frozen=True, slots=True)
class _Mailbox:
    """A mailbox whose messages are read.

    Attributes:
        path: absolute path of the mbox file, or of the folder of a Maildir.
        format: short name of its format.
        options: which messages are too large.
    """

    path: str
    format: str
    options: ReadOptions

    def uri(self, name: str) -> str:
        return f"{self.path}#{name}"

    def entry(self, message: Message, uri: str, file: str, stamp: Stamp) -> Entry:
        """Parse a message and return its entry.

        Args:
            file: the path of its file in the ledger.
        """
        if message.is_expunged:
            return Entry(uri, file, "skipped", Code.EXPUNGED(), stamp=stamp)
        most = MAX_EXPANSION * self.options.max_bytes
        read_content = partial(EXTRACTOR.extract, uri, EML.reader, most, data=message.data)
        content = content_or_entry(read_content, uri, file, stamp)
        if isinstance(content, Entry):
            late = content.reason.code is Code.TOO_SLOW
            return replace(content, reason=replace(content.reason, mark=message.mark)) if late else content
        document = Document(
            uri=uri,
            text=content.text,
            title=title_of(content, EML, ""),
            metadata={**content.metadata, "size": message.size},
            path=self.path,
            format=self.format,
            modified=_in_utc(content.metadata.get("date", "")),
            sections=content.sections,
        )
        # A message without a mark is parsed again.
        is_final = all(note.code is not Code.INSIDE_TOO_SLOW for note in content.unread)
        reason = replace(content.note, mark=message.mark if is_final else "")
        return entry_of(document, file, stamp, reason, content.unread)


def _read_mbox(stream: BinaryIO, mailbox: _Mailbox, stamp: Stamp, known: KnownFile | None) -> Iterator[Entry]:
    """Yield the entries of the messages of an mbox.

    Args:
        known: the record of the ledger for the file. A message that it has is not parsed.
    """
    limit = mailbox.options.max_bytes
    uris = _MboxUris(mailbox, known)
    waiting: list[tuple[int, int]] = []

    def entry(begin: int, end: int, *, may_wait: bool) -> Entry | None:
        message = read_message(stream, begin, end, limit)
        uri, is_unchanged = uris.recorded(message)
        if is_unchanged and not message.is_expunged:
            if uri in uris.late:
                return Entry(uri, mailbox.path, "failed", uris.late[uri], stamp=stamp)
            reason, notes = replace(NO_REASON, mark=message.mark), known.notes.get(uri, ()) if known is not None else ()
            return Entry(uri, mailbox.path, "unchanged", reason, stamp=stamp, notes=notes)
        if not uri and may_wait and uris.may_belong_to_a_later_one(message):
            return None
        uri = uri or uris.new(message)
        if end - begin > limit:
            reason = Code.TOO_LARGE(f"{(end - begin) / 2**20:,.1f}", f"{mailbox.options.max_file_mb:g}")
            return Entry(uri, mailbox.path, "skipped", reason, stamp=stamp)
        return mailbox.entry(message, uri, mailbox.path, stamp)

    for begin, end in message_places(stream):
        if (found := entry(begin, end, may_wait=True)) is None:
            waiting.append((begin, end))
        else:
            yield found
    for begin, end in waiting:
        found = entry(begin, end, may_wait=False)
        assert found is not None
        yield found


class _MboxUris:
    """The uris of the messages of an mbox: uris from the ledger, and new uris.

    Attributes:
        late: why messages failed that took too long to parse.
    """

    def __init__(self, mailbox: _Mailbox, known: KnownFile | None) -> None:
        self.late: dict[str, Reason] = {}
        self._mailbox = mailbox
        self._by_mark: dict[str, str] = {}
        self._equal: dict[str, list[str]] = {}  # more uris of messages that are equal, by their mark
        self._known: set[str] = set()
        self._changed: set[str] = set()  # to be parsed, although the message is as it was
        self._given: set[int] = set()  # hashes of the uris of this run
        for uri, state, reason in known.entries if known is not None else ():
            mark = reason.mark or uri.removeprefix(mailbox.uri(""))
            if self._by_mark.setdefault(mark, uri) != uri:
                self._equal.setdefault(mark, []).append(uri)
            self._known.add(uri)
            if state == "failed" and reason.code is Code.TOO_SLOW and reason.mark:
                self.late[uri] = reason
            elif state not in HELD or not reason.mark:
                self._changed.add(uri)
        is_whole = known is not None and known.stamp.size >= 0 and known.readers == {reader_of(mailbox.format)}
        self._may_skip = is_whole and not mailbox.options.rehash

    def recorded(self, message: Message) -> tuple[str, bool]:
        """Return the uri that the ledger has for a message, empty if it is new; and whether it need not be parsed."""
        uri = self._by_mark.get(message.mark, "")
        if not uri:
            return "", False
        self._by_mark[message.mark] = self._equal[message.mark].pop(0) if self._equal.get(message.mark) else ""
        self._given.add(hash(uri))
        return uri, self._may_skip and uri not in self._changed

    def may_belong_to_a_later_one(self, message: Message) -> bool:
        """Return whether a later message may be the message that the ledger has under the id of this new message."""
        uri = self._mailbox.uri(message.id)
        return bool(message.id) and uri in self._known and hash(uri) not in self._given

    def new(self, message: Message) -> str:
        """Return the uri of a message that the ledger does not have."""
        uri = self._mailbox.uri(message.id or message.mark)
        if hash(uri) in self._given:
            uri = self._mailbox.uri(message.mark)
        self._given.add(hash(uri))
        return uri


class MessageOpener:
    """Opens the files of messages, of one Maildir after another, even if a flag was added since the folder was
    listed."""

    def __init__(self) -> None:
        self._maildir = ""
        self._renamed: dict[str, str] = {}  # the files when a message was missed last, by their paths in the ledger

    def open(self, maildir: str, path: str) -> BinaryIO:
        """Open the file of a message.

        Raises:
            OSError: it cannot be opened.
        """
        with suppress(FileNotFoundError):
            return open(path, "rb")
        known_as = ledger_path(maildir, os.path.basename(path))
        if maildir == self._maildir:
            with suppress(FileNotFoundError, KeyError):
                return open(self._renamed[known_as], "rb")
        self._maildir, self._renamed = maildir, dict(message_files(maildir))
        return open(self._renamed.get(known_as, path), "rb")


def _in_utc(date: str) -> str | None:
    """Return a date of a message as `Document.modified` has it; None if it cannot be read."""
    try:
        moment = datetime.fromisoformat(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None
