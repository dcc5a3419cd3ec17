"""Finds out in which encoding a text file is written, and decodes it without changing anything else."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from functools import cache

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

# The letters beyond ASCII that languages are written with, in the code pages of their files. charset-normalizer
# takes French for cp1250 and Swedish for hp_roman8; which letters a language has not tells them apart.
_WESTERN = (
    "àâæçèéêëîïôœùûüÿ äöüßéà áéíóúñü àèéìíîòóùú áâãàçéêíóôõúüª åäöéüà æøåéäöü áðéíóúýþæö äõöüšž àçèéíïòóúü áèéëïöüóê"
)
_CENTRAL = "ąćęłńóśźż áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž áéíóöőúüű čćđšž ăâîşţ"
_PAGES = {
    "cp1252": _WESTERN,  # the first of those that fit equally well is taken
    "cp1250": _CENTRAL,
    "iso8859_2": _CENTRAL,
    "cp1254": "çğıöşüâîûİ",
    "cp1257": "ąčęėįšųūž āčēģīķļņšūž",
}
_BEYOND = re.compile(rb"[\x80-\xff]")
_WITHIN_WORDS = "’·\xad"  # the only signs between two small letters; any other is a letter of another code page
_MISPLACED = re.compile(rf"(?<=[a-z])(?![{_WITHIN_WORDS}])[^\x00-\x7f](?=[a-z])")


def bom_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark declares."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def is_binary(head: bytes) -> bool:
    """Whether the beginning of a file holds NUL bytes that no declared UTF-16 or UTF-32 explains."""
    return b"\0" in head and bom_encoding(head) is None


def decode(data: bytes, cookies: bool = True) -> str | None:
    """The text, newlines as they are, without a byte order mark; None where no encoding fits.

    Tried in order: byte order mark, UTF-8, the coding cookie or XML declaration of source code (`cookies`), and a
    guess from the lines that are not ASCII. Every one of them must decode the whole file strictly.
    """
    if marked := bom_encoding(data):
        return _strict(data, marked)
    declared = _cookie(data) if cookies else None
    seven_bit = declared is not None and declared.lower().startswith("iso-2022")  # UTF-8 would fit it too
    for encoding in (declared, "utf-8") if seven_bit else ("utf-8", declared):
        if encoding and (text := _strict(data, encoding)) is not None:
            return text
    guessed = guess(data)
    return _strict(data, guessed) if guessed else None


def undecodable(data: bytes) -> str:
    """Why `decode` gave None, as the ledger's reason."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not bom_encoding(data) and (bad := _broken_utf8(data, 0.75)):
            line, plural = data.count(b"\n", 0, error.start) + 1, "s" if bad > 1 else ""
            return f"is UTF-8 but for {bad:,} byte{plural}, the first in line {line:,}: save it as UTF-8"
    return "its encoding cannot be found out: save it as UTF-8"


def guess(data: bytes) -> str | None:
    """The most plausible encoding of the lines that are not ASCII, of which 256 KiB are looked at.

    None also for UTF-8 with a few wrong bytes, as in a log that was cut: any other encoding would be a false one.
    """
    from charset_normalizer import from_bytes

    if _broken_utf8(data, 0.95):
        return None
    sample = _telling(data)
    fits = _fits(sample)
    page = max(fits, key=lambda name: fits[name], default="")
    fitting = page if page and fits[page] >= 0.95 else ""
    if not fitting:
        best = from_bytes(sample).best()
        if best is None or not _is_latin(sample, best.encoding):
            return best.encoding if best else None
        fitting = "cp1252" if page == "cp1252" and _strict(sample, page) is not None else best.encoding
    # In Latin script "Ã©" and its like are no words, so that a smaller share tells UTF-8.
    return None if _broken_utf8(data, 0.75) else fitting


def ascii_compatible(encoding: str) -> bool:
    """Whether a declaration that was found by its ASCII letters may be true."""
    return _strict(b"coding", encoding) == "coding"


def _cookie(data: bytes) -> str | None:
    first_lines = b"\n".join(data[:1024].splitlines()[:2])
    last_lines = b"\n".join(data[-1024:].splitlines()[-2:])  # where vim looks too
    cookie = _COOKIE.search(first_lines) or re.search(rb"vim?:.*?\b(?:fileencoding|fenc)=([-\w.]+)", last_lines)
    declared = next((name.decode() for name in cookie.groups() if name), None) if cookie else None
    return declared if declared and ascii_compatible(declared) else None


def _telling(data: bytes) -> bytes:
    """The lines that are not ASCII, whole ones: a cut inside a character would rule its encoding out."""
    parts, size, at = [], 0, 0
    while size < _SAMPLE and (found := _BEYOND.search(data, at)):
        start = max(data.rfind(b"\n", 0, found.start()) + 1, found.start() - 4096)
        at = data.find(b"\n", found.end(), found.end() + _SAMPLE) + 1 or found.end() + _SAMPLE
        parts.append(data[start:at])
        size += at - start
    return b"".join(parts)


def _broken_utf8(data: bytes, share: float) -> int:
    """How many bytes are wrong where this share of those beyond ASCII is UTF-8, or all but a character cut at the end.

    Else 0: it is no UTF-8 at all.
    """
    text = data.decode("utf-8", errors="surrogateescape")
    valid = len(text.encode("utf-8", errors="ignore"))
    bad, ascii_bytes = len(data) - valid, len(data.translate(None, bytes(range(128, 256))))
    if len(text) - bad - ascii_bytes < 3:  # characters; so few may be a chance
        return 0
    cut = bad == len(re.findall("[\udc80-\udcff]", text[-3:]))
    return bad if cut or valid - ascii_bytes >= share * (len(data) - ascii_bytes) else 0


def _fits(sample: bytes) -> dict[str, float]:
    """For each code page, which share of what is not ASCII the alphabet of one of its languages holds."""
    beyond = len(_BEYOND.findall(sample))
    if beyond > 0.8 * len(re.findall(rb"[A-Za-z]", sample)) + 4:
        return {}  # too many: no Latin text
    fits = dict.fromkeys(_PAGES, 0.0)
    for page in _PAGES:
        text = _strict(sample, page)
        if text is None:
            continue
        signs = _signs(page)
        counts = Counter(character for character in text if character > "\x7f")
        misplaced = Counter(found[0] for found in _MISPLACED.finditer(text) if not found[0].islower())
        for letters in _alphabets(page):
            known = sum(
                count - misplaced[character]
                for character, count in counts.items()
                if character in letters or character in signs
            )
            fits[page] = max(fits[page], known / max(1, beyond))
    return fits


@cache
def _alphabets(page: str) -> list[frozenset[str]]:
    return [frozenset(letters + letters.upper()) for letters in _PAGES[page].split()]


@cache
def _signs(page: str) -> frozenset[str]:
    """What a code page has beyond ASCII that is no letter."""
    every = bytes(range(128, 256)).decode(page, errors="ignore")
    return frozenset(sign for sign in every if not sign.isalpha() and unicodedata.category(sign) != "Cc")


def _is_latin(sample: bytes, encoding: str) -> bool:
    """Whether this is a single-byte encoding, and what it makes of the sample is Latin script."""
    text = _strict(sample, encoding) or ""
    letters = [character for character in text if character > "\x7f" and character.isalpha()]
    latin = sum("LATIN" in unicodedata.name(letter, "") for letter in letters)
    return len(text) == len(sample) and latin >= 0.5 * len(letters)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (LookupError, ValueError):  # no such encoding, or not this one
        return None
