"""Stretches of base64 and of hexadecimal digits in a text. Such stretches are not language, and their vectors are only
noise.

The rule is cautious. A stretch of fewer than `MIN_CHARACTERS` stays, and so does everything with a word in it; so do
numbers, names, addresses, sequences of DNA, and code. A slow test walks through collections and Python's library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

MIN_CHARACTERS = 512
"""Minimum length of a stretch: keys, hashes and small pictures are shorter. A model reads about 400 characters in one
passage."""

_MIN_CHANGES = 0.45
"""Minimum share of characters of base64 that are of another kind (capital, small letter, digit) than the character
before. Random bytes have 0.64, text in base64 0.55; names_like_this and TheseNames have less than 0.4."""

_MIN_DIGITS = 0.04
_MIN_LETTERS = 0.16
"""Minimum shares in base64 of digits, and of capitals and small letters each. Random bytes have 0.16 and 0.41."""

_MIN_HEX_LETTERS = 0.05
"""Minimum share of the letters a to f among hexadecimal digits. Random bytes have 0.37, and decimal numbers none."""

_MAX_HEX_LETTERS = 0.9

_MIN_RUN = 32  # mail breaks base64 into lines of 76, PEM into 64; MD5 has 32 digits
_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_AS_X = bytes(ord("x") if code in _CHARACTERS else ord(" ") for code in range(256))
_RUN = re.compile(b"x{%d,}+" % _MIN_RUN)
_BETWEEN = re.compile(r"[^A-Za-z0-9/_-]{0,16}")
_LAST_LINE = re.compile(
    r"""={0,2} [^A-Za-z0-9/_-]{0,8} [\r\n]+ [^A-Za-z0-9/_-]{0,8} (?=\S*[0-9+/=]) (?:[A-Za-z0-9+/]{4}){0,7}
    (?:[A-Za-z0-9+/]{4} | [A-Za-z0-9+/]{3}= | [A-Za-z0-9+/]{2}==) (?![^\s"'`\\])
    | ={1,2}""",
    re.VERBOSE,
)
_NOT_ENCODED = re.compile(r"[^A-Za-z0-9+/_-]+")
_DUMP_BEGINS = re.compile(r"\n[ \t]*[0-9A-Fa-f]{2,16}:?[ \t]+[0-9A-Fa-f]{2,8}[ \t]+[0-9A-Fa-f]{2,8}[ \t]")
_DUMPED = re.compile(
    r"""^[ \t]* (?:[0-9A-Fa-f]{4,16}:?[ \t]+)? ((?:(?:[0-9A-Fa-f]{2}){1,4}[ \t]+){7,} [0-9A-Fa-f]{2,8})
    (?:[ \t]{1,2}\S.{0,18})? [ \t]* (?:\r\n|\n|\Z)""",
    re.MULTILINE | re.VERBOSE,
)
_LAST_DUMPED = re.compile(
    r"(?:[ \t]*[0-9A-Fa-f]{6,16}:?(?:[ \t]+[0-9A-Fa-f]{2,8})*(?:[ \t]+\S.{0,18})?[ \t]*(?:\r\n|\n|\Z)){0,2}"
)
_REPEATED = re.compile(r"(.)\1{3,}")
_SAME_KIND = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")


def encoded_ranges(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each stretch of base64, hexadecimal digits or dumped bytes, in order and without
    overlaps."""
    if len(text) < MIN_CHARACTERS:
        return []
    return sorted([*_in_runs(text), *_dumps(text)])


def is_encoded(text: str) -> bool:
    """Return whether a text has letters and digits only in such stretches."""
    ranges = encoded_ranges(text)
    borders = [0, *chain.from_iterable(ranges), len(text)]
    around = (text[end:start] for end, start in zip(borders[::2], borders[1::2], strict=True))
    return bool(ranges) and not any(character.isalnum() for part in around for character in part)


def _in_runs(text: str) -> Iterator[tuple[int, int]]:
    plain = text.replace("\\n", "  ").replace("\\r", "  ")  # escaped line ends
    # Bytes are 20 times faster to look through than characters. Each character is one byte.
    runs = [match.span() for match in _RUN.finditer(plain.encode("ascii", "replace").translate(_AS_X))]
    for start, end in _blocks(plain, runs):
        encoded = _NOT_ENCODED.sub("", plain[start:end])
        if end - start >= MIN_CHARACTERS and (_is_hex(encoded) or _is_base64(encoded)):
            last = _LAST_LINE.match(plain, end)
            yield start, last.end() if last else end


def _blocks(text: str, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of successive lines of the same length. Only the last line may be shorter."""
    block: list[tuple[int, int]] = []
    for start, end in runs:
        if block:
            width, last = block[0][1] - block[0][0], block[-1][1] - block[-1][0]
            if last != width or end - start > width or not _BETWEEN.fullmatch(text, block[-1][1], start):
                yield block[0][0], block[-1][1]
                block = []
        block.append((start, end))
    if block:
        yield block[0][0], block[-1][1]


def _dumps(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines that `xxd` and `hexdump -C` print, or that have only bytes."""
    if not _DUMP_BEGINS.search(text):
        return
    block: list[re.Match[str]] = []
    for line in chain(_DUMPED.finditer(text), [None]):
        if block and (line is None or line.start() != block[-1].end()):
            start, end = block[0].start(), block[-1].end()
            digits = "".join("".join(match[1].split()) for match in block)
            if end - start >= MIN_CHARACTERS and _is_hex(digits.lower()):
                last = _LAST_DUMPED.match(text, end)
                yield start, last.end() if last else end
            block = []
        if line is not None:
            block.append(line)


def _is_hex(encoded: str) -> bool:
    if not _HEX.fullmatch(encoded):
        return False
    letters = len(encoded) - sum(map(encoded.count, "0123456789"))
    return _MIN_HEX_LETTERS * len(encoded) <= letters <= _MAX_HEX_LETTERS * len(encoded)


def _is_base64(encoded: str) -> bool:
    encoded = _REPEATED.sub(r"\1", encoded)  # of zeros
    runs = _SAME_KIND.findall(encoded)
    digits, capitals = (sum(len(run) for run in runs if test(run)) for test in (str.isdigit, str.isupper))
    small = sum(map(len, runs)) - digits - capitals
    size = len(encoded)
    if digits < _MIN_DIGITS * size or min(capitals, small) < _MIN_LETTERS * size:
        return False
    return len(runs) >= _MIN_CHANGES * size
