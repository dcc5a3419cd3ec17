"""Finds out in which encoding a text file is written, and decodes it without changing anything else."""

from __future__ import annotations

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_COOKIE = re.compile(
    rb"-\*-.*?coding:[ \t]*([-\w.]+)"  # Emacs
    rb"|^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)"  # Python, PEP 263
    rb"|vim?:.*?\b(?:fileencoding|fenc)=([-\w.]+)"
    rb"|^<\?xml[^>]*?\bencoding=[\"']([-\w.]+)",
    re.MULTILINE,
)
_SAMPLE = 256 * 1024  # charset-normalizer takes seconds a megabyte


def bom_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark declares."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def is_binary(head: bytes) -> bool:
    """Whether the beginning of a file holds NUL bytes that no declared UTF-16 or UTF-32 explains."""
    return b"\0" in head and bom_encoding(head) is None


def decode(data: bytes) -> str | None:
    """The text, newlines as they are, without a byte order mark; None where no encoding fits.

    Tried in order: byte order mark, coding cookie or XML declaration in the first two lines, UTF-8, and what
    charset-normalizer makes of a sample. Every one of them must decode the whole file strictly.
    """
    if marked := bom_encoding(data):
        return _strict(data, marked)
    first_lines = b"\n".join(data[:1024].splitlines()[:2])
    last_lines = b"\n".join(data[-1024:].splitlines()[-2:])  # where vim looks too
    cookie = _COOKIE.search(first_lines) or re.search(rb"vim?:.*?\b(?:fileencoding|fenc)=([-\w.]+)", last_lines)
    declared = next((name.decode() for name in cookie.groups() if name), None) if cookie else None
    for encoding in (declared, "utf-8"):
        if encoding and (text := _strict(data, encoding)) is not None:
            return text
    guessed = guess(data)
    return _strict(data, guessed) if guessed else None


def guess(data: bytes) -> str | None:
    """The encoding that charset-normalizer finds most plausible for the first 256 KiB."""
    from charset_normalizer import from_bytes

    sample = data[:_SAMPLE]
    if len(data) > _SAMPLE:  # at a line's end: a cut inside a character would rule its encoding out
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    best = from_bytes(sample).best()
    return best.encoding if best else None


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (LookupError, ValueError):  # no such encoding, or not this one
        return None
