"""The errors of likewise. Each message says what happened, to what, and what to do next.

`exit_code` is the exit code of the command line: 2 wrong usage or bad input, 3 could not run. `http_status` and `slug`
are the status and the short name with which the HTTP service answers.
"""

from __future__ import annotations

import copyreg
import errno
import os
import sys
from shlex import quote
from typing import Any, NoReturn


def count_of(value: int, noun: str) -> str:
    """Return a number with its noun, which gets an s unless there is exactly one."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def to_install(extra: str = "") -> str:
    """Return the command that brings what an extra needs, or the core.

    likewise is installed wherever this is printed, from a wheel or a clone, so that pip and uv look for nothing but the
    missing packages.
    """
    return f"pip install 'likewise[{extra}]'" if extra else "pip install likewise"


class Message(str):
    """A sentence for every reader, and an addition that only the shell prints: clients of a service have no command
    line.

    Attributes:
        shell: text that `in_shell` puts after the sentence.
    """

    shell: str

    def __new__(cls, text: str, shell: str = "") -> Message:
        message = super().__new__(cls, text)
        message.shell = shell
        return message


def in_shell(message: object) -> str:
    """Return an error, a note or another message as the shell prints it."""
    text = message.args[0] if isinstance(message, LikewiseError) and message.args else message
    return f"{message}{text.shell if isinstance(text, Message) else ''}"


class LikewiseError(Exception):
    """The base class of all errors of likewise."""

    exit_code = 2
    http_status = 400
    slug = "bad-input"

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own calls the constructor with the message alone, and some constructors need more.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class BadInput(LikewiseError, ValueError):
    """An argument, a record or a file that cannot be used as it is."""


def refuse_pickle(opened: object, protocol: object) -> NoReturn:
    """Refuse to pickle something that is open, as its `__reduce_ex__`."""
    kind = type(opened).__name__
    raise BadInput(f"this {kind} is open and cannot be pickled: pass its path or address, and open it there")


class Closed:
    """Takes the place of what a closed object works with: whatever is asked of it raises BadInput.

    Attributes:
        address: the address of the index, which stays known.
    """

    def __init__(self, address: str, problem: str) -> None:
        self.address, self._problem = address, problem

    def __getattr__(self, name: str) -> NoReturn:
        raise BadInput(f"{self.address}: {self._problem}")

    def close(self) -> None:
        """Do nothing: it is closed."""


class SourceError(BadInput):
    """A SOURCE that is missing or cannot be read."""


class FilterError(BadInput):
    """A filter that does not parse, names an unknown field or compares with another type."""

    slug = "bad-filter"


class UnknownField(FilterError):
    """A filter that names a field which no document of the index has.

    Attributes:
        field: its name.
    """

    slug = "unknown-field"

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class NoWords(BadInput):
    """A question without a word to search by, or with stop words only, in words mode."""

    slug = "no-words"


class UnknownUri(BadInput, KeyError):
    """No document of the index has this uri."""

    http_status = 404
    slug = "unknown-uri"

    __str__ = Exception.__str__  # KeyError would put the message into quotation marks.


class ModelError(LikewiseError):
    """A model that cannot be found, loaded or trusted, or a recipe it cannot follow."""

    http_status = 500
    slug = "model-error"


class EndpointUnavailable(ModelError):
    """The endpoint of a model cannot be reached, is too busy, or too slow."""

    exit_code = 3
    http_status = 502
    slug = "endpoint-unavailable"


class NothingKnown(ModelError):
    """Texts for which a model has no vector, because it knows none of their tokens.

    Attributes:
        texts: their positions in the call (0-based).
    """

    http_status = 400

    def __init__(self, texts: list[int], model: str) -> None:
        super().__init__(
            f"model {model!r} has no vector for text {texts[0]}: it knows none of its words, or its weights are broken"
        )
        self.texts = tuple(texts)


class RecipeMismatch(BadInput):
    """Vectors of another recipe, or other passage settings, than the index was made with."""

    slug = "recipe-mismatch"


class TextTooLong(LikewiseError):
    """A text has more tokens than the model reads. Texts are cut only with truncate=True.

    Attributes:
        index: position of the text in the call (0-based).
        tokens: how many tokens the text has, with special tokens and prompt.
        limit: how many the model reads.
    """

    slug = "text-too-long"

    def __init__(self, index: int, tokens: int, limit: int) -> None:
        super().__init__(
            f"text {index} has {tokens} tokens and the model reads {limit}: shorten it, or cut it into passages"
        )
        self.index, self.tokens, self.limit = index, tokens, limit


class DeadlinePassed(LikewiseError):
    """A question took longer than its caller allows, or its caller has left."""

    exit_code = 3
    http_status = 503
    slug = "too-slow"


class WordsBuilding(LikewiseError):
    """The words of an index in a database are still being read, and the question does not wait for them."""

    exit_code = 3
    http_status = 503
    slug = "words-building"


class NotAnIndex(LikewiseError):
    """The folder does not contain an index, or the path is not a folder."""

    http_status = 503
    slug = "index-unavailable"


class UnsupportedSystem(LikewiseError):
    """This operating system lacks what the index needs: locks on files and folders that end with their process."""

    exit_code = 3
    http_status = 500
    slug = "unsupported-system"


class NewerFormat(LikewiseError):
    """The index was written by a newer likewise."""

    exit_code = 3
    http_status = 500
    slug = "newer-format"


class OlderFormat(LikewiseError):
    """The index was made before the first release of likewise. Only `index --rebuild` replaces it."""

    exit_code = 3
    http_status = 500
    slug = "older-format"


class IndexLocked(LikewiseError):
    """Another process or thread is writing to the index."""

    exit_code = 3
    http_status = 503
    slug = "locked"


class IndexDamaged(LikewiseError):
    """Stored bytes that do not match their checksum and cannot be rebuilt."""

    exit_code = 3
    http_status = 500
    slug = "index-damaged"


class StorageError(LikewiseError):
    """The disk or the database of an index cannot do what was asked. Its subclasses say why, where that is known."""

    exit_code = 3
    http_status = 500
    slug = "storage"


class DiskFull(StorageError):
    """There is no room on the disk. What was committed before is kept."""

    http_status = 507
    slug = "disk-full"


class NotPermitted(StorageError):
    """This user, or this role of a database, may not do what was asked. Trying again does not help."""

    slug = "not-permitted"


class IndexUnavailable(StorageError):
    """The database does not answer, or the index cannot be opened at this moment. Trying again later helps."""

    http_status = 503
    slug = "index-unavailable"


class WorkersLost(LikewiseError):
    """No worker is left to embed documents. What was committed before is kept."""

    exit_code = 3
    http_status = 503
    slug = "workers-lost"


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_PERMITTED = (errno.EACCES, errno.EPERM, errno.EROFS)
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


def storage_error(message: str, cause: BaseException) -> StorageError:
    """Return the error for a disk that refused, by its cause. FAISS and tantivy only name the cause in their text."""
    for numbers, kind in ((_DISK_FULL, DiskFull), (_NOT_PERMITTED, NotPermitted), (_TOO_MANY_FILES, IndexUnavailable)):
        if getattr(cause, "errno", None) in numbers or any(os.strerror(number) in str(cause) for number in numbers):
            return kind(message)
    return StorageError(message)


def older_format(address: str) -> OlderFormat:
    """Return the error for an index from before the first release, in a folder or in a database."""
    return OlderFormat(
        Message(
            f"{address}: was made before the first release of likewise, and cannot be read: index its sources again",
            f" (likewise index {quote(address)} SOURCE --rebuild replaces it)",
        )
    )


def check_system() -> None:
    """Refuse an operating system that likewise cannot run on, before another error occurs.

    Raises:
        UnsupportedSystem: this is Windows.
    """
    # Read through a variable: to a type checker on Linux, code behind a comparison with "win32" does not exist.
    system: str = sys.platform
    if system == "win32":
        raise UnsupportedSystem(
            "likewise does not run on Windows itself: run it in the Windows Subsystem for Linux, on Linux or on macOS"
        )
