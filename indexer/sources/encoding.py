"""Finding the encoding of a text file, and decoding the file without any other change."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from functools import cache

from indexer.ledger import Code, Reason

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # tested before UTF-16, because it begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD_BYTES = 8192  # an even number: UTF-16 has two bytes or four for each character
_NOT_IN_TEXT = {"Cc", "Cs", "Co", "Cn"}  # categories: control, surrogate, private and unassigned characters
_CONTROLS_OF_TEXT = "\t\n\v\f\r\x1b\x85"
_COOKIE = re.compile(
    rb"-\*-.*?coding:[ \t]*([-\w.]+)"  # Emacs
    rb"|^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)"  # Python, PEP 263
    rb"|vim?:.*?\b(?:fileencoding|fenc)=([-\w.]+)"
    rb"|^<\?xml[^>]*?\bencoding=[\"']([-\w.]+)",
    re.MULTILINE,
)
_SAMPLE_BYTES = 256 * 1024  # charset-normalizer takes seconds per megabyte

# The letters beyond ASCII of each language, by the code page of its files. charset-normalizer takes French for cp1250
# and Swedish for hp_roman8. Letters that do not occur in any one language rule a code page out.
_WESTERN = (
    "àâæçèéêëîïôœùûüÿ äöüßéà áéíóúñü àèéìíîòóùú áâãàçéêíóôõúüª åäöéüà æøåéäöü áðéíóúýþæö äõöüšž àçèéíïòóúü áèéëïöüóê"
)
_CENTRAL = "ąćęłńóśźż áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž áéíóöőúüű čćđšž ăâîşţ"
_PAGES = {
    "cp1252": _WESTERN,  # of code pages that fit equally well the first is taken
    "cp1250": _CENTRAL,
    "iso8859_2": _CENTRAL,
    "cp1254": "çğıöşüâîûİ",
    "cp1257": "ąčęėįšųūž āčēģīķļņšūž",
}
_BEYOND_OR_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f-\xff]")
_BEYOND = re.compile(rb"[\x80-\xff]")
_WITHIN_WORDS = "’·\xad"  # signs that occur between two small letters; any other is a letter of another code page
_MISPLACED = re.compile(rf"(?<=[a-z])(?![{_WITHIN_WORDS}])[^\x00-\x7f](?=[a-z])")


def bom_encoding(head: bytes) -> str | None:
    """Return the encoding that a byte order mark declares; None without one."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def marked_encoding(data: bytes) -> str | None:
    """Return the encoding that a byte order mark declares, or UTF-16 if NUL bytes show it; None for anything else."""
    return bom_encoding(data) or _wide_encoding(data)


def _wide_encoding(data: bytes) -> str | None:
    """Return the encoding of a text in UTF-16, which has no byte order mark; None for anything else.

    The ASCII characters of such a text, at least its blanks, have NUL bytes. In the right byte order the beginning has
    only assigned characters and no control characters. If this is also true in the wrong byte order, the wrong order
    has fewer ASCII characters.
    """
    sample = data[:_HEAD_BYTES]
    if b"\0" not in sample:
        return None
    others = sample.replace(b"\0", b"")
    if 4 * (len(sample) - len(others)) <= len(sample) + 3 and _is_narrow(others):
        return None  # a text in another encoding, with a NUL byte among four bytes at most
    ascii_share = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(sample)  # the last character may be cut
        except UnicodeDecodeError:
            continue
        is_text = all(
            unicodedata.category(character) not in _NOT_IN_TEXT or character in _CONTROLS_OF_TEXT for character in text
        )
        if is_text and (ascii_characters := sum(character < "\x80" for character in text)):
            ascii_share[encoding] = ascii_characters
    return max(ascii_share, key=lambda encoding: ascii_share[encoding], default=None)


def _is_narrow(sample: bytes) -> bool:
    """Return whether the bytes are nearly all ASCII, or UTF-8 without control characters."""
    if len(_BEYOND_OR_CONTROL.findall(sample)) < 0.1 * len(sample):
        return True
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return not any(unicodedata.category(character) == "Cc" for character in text if character not in _CONTROLS_OF_TEXT)


def is_binary(head: bytes) -> bool:
    """Return whether the beginning of a file has NUL bytes, and is neither UTF-16 nor has a byte order mark."""
    return b"\0" in head and marked_encoding(head) is None


def decode(data: bytes, cookies: bool = True) -> str | None:
    """Return the text with its newlines unchanged and without a byte order mark; None if no encoding fits.

    Tried in this order: byte order mark, UTF-16 by its NUL bytes, UTF-8, the coding cookie or XML declaration of source
    code, and a guess from the lines that are not ASCII. An encoding fits only if it decodes the whole file without an
    error.

    Args:
        cookies: look for a coding cookie or XML declaration.
    """
    if marked := marked_encoding(data):
        return _strict(data, marked)
    declared = _cookie(data) if cookies else None
    seven_bit = declared is not None and declared.lower().startswith("iso-2022")  # UTF-8 would fit it too
    for encoding in (declared, "utf-8") if seven_bit else ("utf-8", declared):
        if encoding and (text := _strict(data, encoding)) is not None:
            return text
    guessed = guess(data)
    return _strict(data, guessed) if guessed else None


def undecodable(data: bytes) -> Reason:
    """Return the reason why `decode` returned None, for the ledger."""
    wide = marked_encoding(data) or ""
    if wide.startswith(("utf-16", "utf-32")):
        return Code.WRONG_WIDE_BYTES(wide[:6].upper())
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not bom_encoding(data) and (bad := _broken_utf8(data, 0.75)):
            line = data.count(b"\n", 0, error.start) + 1
            return Code.WRONG_BYTES(f"{bad:,}", f"{line:,}") if bad > 1 else Code.WRONG_BYTE(f"{line:,}")
    return Code.ENCODING_UNKNOWN()


def guess(data: bytes) -> str | None:
    """Return the most plausible encoding of the lines that are not ASCII; up to 256 KiB of them are looked at.

    It is None for UTF-8 with a few wrong bytes, such as a log that was cut: any other encoding would be wrong.
    """
    from charset_normalizer import from_bytes

    if _broken_utf8(data, 0.95):
        return None
    sample = _non_ascii_lines(data)
    fits = _fits(sample)
    page = max(fits, key=lambda name: fits[name], default="")
    fitting = page if page and fits[page] >= 0.95 else ""
    if not fitting:
        best = from_bytes(sample).best()
        if best is None or not _is_latin(sample, best.encoding):
            return best.encoding if best else None
        fitting = "cp1252" if page == "cp1252" and _strict(sample, page) is not None else best.encoding
    # In Latin script "Ã©" and the like are not words, so a smaller share is enough to recognize UTF-8.
    return None if _broken_utf8(data, 0.75) else fitting


def ascii_compatible(encoding: str) -> bool:
    """Return whether this encoding has ASCII bytes for ASCII letters. Otherwise a declaration of it could not be
    read."""
    return _strict(b"coding", encoding) == "coding"


def _cookie(data: bytes) -> str | None:
    first_lines = b"\n".join(data[:1024].splitlines()[:2])
    last_lines = b"\n".join(data[-1024:].splitlines()[-2:])  # where vim looks too
    cookie = _COOKIE.search(first_lines) or re.search(rb"vim?:.*?\b(?:fileencoding|fenc)=([-\w.]+)", last_lines)
    declared = next((name.decode() for name in cookie.groups() if name), None) if cookie else None
    return declared if declared and ascii_compatible(declared) else None


def _non_ascii_lines(data: bytes) -> bytes:
    """Return whole lines that are not ASCII: a cut inside a character would rule its encoding out."""
    parts, size, end = [], 0, 0
    while size < _SAMPLE_BYTES and (match := _BEYOND.search(data, end)):
        start = max(data.rfind(b"\n", 0, match.start()) + 1, match.start() - 4096)
        end = data.find(b"\n", match.end(), match.end() + _SAMPLE_BYTES) + 1 or match.end() + _SAMPLE_BYTES
        parts.append(data[start:end])
        size += end - start
    return b"".join(parts)


def _broken_utf8(data: bytes, share: float) -> int:
    """Return how many bytes are wrong in a file that is mostly UTF-8; 0 if it is another encoding.

    A file is mostly UTF-8 if this share of the bytes beyond ASCII is valid, or all of them except a cut character at
    the end.
    """
    text = data.decode("utf-8", errors="surrogateescape")
    valid = len(text.encode("utf-8", errors="ignore"))
    bad, ascii_bytes = len(data) - valid, len(data.translate(None, bytes(range(128, 256))))
    if len(text) - bad - ascii_bytes < 3:  # characters beyond ASCII; one or two may be a coincidence
        return 0
    cut = bad == len(re.findall("[\udc80-\udcff]", text[-3:]))
    return bad if cut or valid - ascii_bytes >= share * (len(data) - ascii_bytes) else 0


def _fits(sample: bytes) -> dict[str, float]:
    """Return for each code page the largest share of non-ASCII characters that are letters of one of its languages."""
    beyond = len(_BEYOND.findall(sample))
    if beyond > 0.8 * len(re.findall(rb"[A-Za-z]", sample)) + 4:
        return {}  # too many for a text in Latin script
    fits = dict.fromkeys(_PAGES, 0.0)
    for page in _PAGES:
        text = _strict(sample, page)
        if text is None:
            continue
        signs = _signs(page)
        counts = Counter(character for character in text if character > "\x7f")
        misplaced = Counter(match[0] for match in _MISPLACED.finditer(text) if not match[0].islower())
        for letters in _alphabets(page):
            plausible = sum(
                count - misplaced[character]
                for character, count in counts.items()
                if character in letters or character in signs
            )
            fits[page] = max(fits[page], plausible / max(1, beyond))
    return fits


@cache
def _alphabets(page: str) -> list[frozenset[str]]:
    return [frozenset(letters + letters.upper()) for letters in _PAGES[page].split()]


@cache
def _signs(page: str) -> frozenset[str]:
    """Return the characters of a code page beyond ASCII that are not letters."""
    every = bytes(range(128, 256)).decode(page, errors="ignore")
    return frozenset(sign for sign in every if not sign.isalpha() and unicodedata.category(sign) != "Cc")


def _is_latin(sample: bytes, encoding: str) -> bool:
    """Return whether this is a single-byte encoding in which the sample is Latin script."""
    text = _strict(sample, encoding) or ""
    letters = [character for character in text if character > "\x7f" and character.isalpha()]
    latin = sum("LATIN" in unicodedata.name(letter, "") for letter in letters)
    return len(text) == len(sample) and latin >= 0.5 * len(letters)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (LookupError, ValueError):  # there is no such encoding, or it does not fit
        return None
