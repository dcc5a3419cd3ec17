"""Maildirs: folders with `cur`, `new` and `tmp`, in which each message is a file whose name changes with every flag.

The ledger names a message by its file without flags, directly below the Maildir. So neither a flag nor the move from
`new` to `cur` lets a run open the file again.
"""

# ruff: noqa: PTH110, PTH112, PTH118, PTH119, PTH120, PTH208
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress

_MESSAGE_FOLDERS = ("cur", "new")
_FLAGS = re.compile(r"[:;!]2,[A-Za-z]*$")


def is_maildir(folder: str) -> bool:
    """Return whether a folder is a Maildir."""
    return all(os.path.isdir(os.path.join(folder, name)) for name in (*_MESSAGE_FOLDERS, "tmp"))


def maildir_of(folder: str) -> str:
    """Return the Maildir whose messages are the files of this folder; empty if the files are not messages."""
    above, name = os.path.split(folder)
    return above if name in _MESSAGE_FOLDERS and is_maildir(above) else ""


def is_tmp_of_maildir(folder: str) -> bool:
    """Return whether a folder holds messages that are still being delivered."""
    return os.path.basename(folder) == "tmp" and is_maildir(os.path.dirname(folder))


def is_empty(folder: str) -> bool:
    """Return whether a folder holds nothing. A folder that cannot be listed may hold something."""
    with suppress(OSError), os.scandir(folder) as entries:
        return next(entries, None) is None
    return False


def ledger_path(maildir: str, name: str) -> str:
    """Return the path in the ledger of a message whose file has this name."""
    return os.path.join(maildir, _FLAGS.sub("", name))


def exists(path: str) -> bool:
    """Return whether a file of the ledger exists. For a message, return whether its Maildir exists."""
    return os.path.exists(path) or is_maildir(os.path.dirname(path))


def message_files(maildir: str) -> Iterator[tuple[str, str]]:
    """Yield the path in the ledger and the path of the file of each message."""
    for folder in _MESSAGE_FOLDERS:
        for name in os.listdir(os.path.join(maildir, folder)):
            yield ledger_path(maildir, name), os.path.join(maildir, folder, name)


def gone_message_paths(path: str) -> list[str]:
    """Return the paths that a message of the ledger can have had, without flags."""
    maildir, name = os.path.split(path)
    return [os.path.join(maildir, folder, name) for folder in _MESSAGE_FOLDERS]


def renamed_message(path: str) -> str:
    """Return the path of a file. If it is a message that has got another name with its flags, return its new path."""
    maildir = "" if os.path.exists(path) else maildir_of(os.path.dirname(path))
    files = dict(message_files(maildir)) if maildir else {}
    return files.get(ledger_path(maildir, os.path.basename(path)), path)
