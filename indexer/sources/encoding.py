"""Finding the encoding of bytes, and decoding them without any other change.

All readers decode here. `decode_labelled` believes a label (of a page, of XML, of a part of a mail) as browsers do: a
label stands for the largest encoding that programs write under it (WHATWG Encoding Standard), and Japanese encodings
have the rows of vendors. `decode_text` finds the encoding of a text that has no label. Both return notes: on an
encoding that few bytes decided, and on characters that could not be read.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from functools import cache
from typing import NamedTuple

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
_SUPERSETS = {
    **dict.fromkeys(("gb2312", "gbk", "x-gbk", "csgb2312", "gb_2312-80"), "gb18030"),
    **dict.fromkeys(("shift_jis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc_kr", "windows-949"), "cp949"),
    **dict.fromkeys(("big5", "x-x-big5"), "big5hkscs"),
    **dict.fromkeys(("tis-620", "iso8859-11", "dos-874"), "cp874"),
    **dict.fromkeys(("iso-2022-jp-ms", "cp50220", "cp50221", "iso2022_jp"), "iso2022_jp_ext"),
    **dict.fromkeys(("eucjp-ms", "cp51932", "x-euc-jp"), "euc_jp"),
    **{"iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso-8859-8-i": "iso8859-8", "koi8-ru": "koi8-u"},
    **{"x-mac-roman": "mac-roman", "x-mac-cyrillic": "mac-cyrillic", "x-mac-ukrainian": "mac-cyrillic"},
}
"""The encoding that a label stands for, by the label or by Python's name of its codec. Python knows other labels."""

_ESCAPED_JAPANESE = re.compile(rb"\x1b(?:\$[@B]|\$\([DOPQ]|\([IJ])")
_ESCAPED_KOREAN = re.compile(rb"\x1b\$\)C")
_VENDOR_ROWS, _REPLACE = "likewise.vendor-rows", "likewise.replace"  # names of error handlers

_ASCII = bytes(range(128))
_FEW_BYTES = 200
"""Minimum bytes beyond ASCII that decide a guess without a note."""

_MIN_READ = 20
"""Minimum bytes beyond ASCII that an encoding reads for each one that it does not read."""

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
    "mac-roman": _WESTERN,
    "mac-latin2": _CENTRAL,
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


class Decoded(NamedTuple):
    """A text with its newlines unchanged and without a byte order mark, and notes for the ledger."""

    text: str
    notes: tuple[Reason, ...] = ()


def codec_of(label: str) -> str | None:
    """Return Python's name of the encoding that a label stands for; None for a label that nobody knows."""
    label = label.strip(" \t\r\n\"'").lower().partition("*")[0]  # RFC 2231 appends a language after "*"
    for name in (label, label.replace("windows-", "cp").removeprefix("x-")):
        if name in _SUPERSETS:
            return _SUPERSETS[name]
        try:
            codec = codecs.lookup(name)
            b"a".decode(name, errors="replace")  # raises for codecs such as "rot13"
        except (LookupError, ValueError):
            continue
        return _SUPERSETS.get(codec.name, codec.name)
    return None


def decode_labelled(data: bytes, label: str | None) -> Decoded:
    """Return the text of bytes that have a label, such as the charset of a page or of a part of a mail.

    A byte order mark comes first. UTF-8 is tried before ASCII, an unknown label and none. If most characters beyond
    ASCII do not fit the label, the encoding is found as that of any text; otherwise they become U+FFFD, with a note.
    """
    codec = bom_encoding(data) or codec_of(label or "")
    if codec and codec.startswith(("utf-16", "utf-32", "utf_16", "utf_32")) and not bom_encoding(data):
        is_narrow = marked_encoding(data) is None and _strict(data, "utf-8") is not None
        codec = "utf-8" if is_narrow else codec  # a page that could be read to its label is not in UTF-16
    if codec in {None, "ascii"}:
        return decode_text(data, cookies=False) or _replaced(data, "cp1252" if codec else "utf-8")
    decoded = _replaced(data, codec)
    if decoded.notes and (text := _strict(data, "utf-8")) is not None:
        return Decoded(text)
    beyond = len(decoded.text) - len(decoded.text.encode("ascii", "ignore")) if decoded.notes else 0
    if 2 * decoded.text.count("\ufffd") > beyond > 0 and (found := decode_text(data, cookies=False)):
        return found
    return decoded


def decode(data: bytes, cookies: bool = True) -> str | None:
    """Return the text of `decode_text`; None if no encoding fits all of its characters."""
    decoded = decode_text(data, cookies)
    return decoded.text if decoded and all(note.code is not Code.CHARACTERS_UNREAD for note in decoded.notes) else None


def decode_text(data: bytes, cookies: bool = True) -> Decoded | None:
    """Return the text of bytes without a label; None if no encoding fits.

    Tried in this order: byte order mark, UTF-16 by its NUL bytes, the escapes of ISO-2022, UTF-8, the coding cookie or
    XML declaration of source code, and a guess from the lines that are not ASCII. An encoding fits only if it decodes
    the whole file without an error, but for UTF-8 with a few wrong bytes, and Latin text with lines in UTF-8.

    Args:
        cookies: look for a coding cookie or XML declaration.
    """
    if marked := marked_encoding(data):
        text = _strict(data, marked)
        return None if text is None else Decoded(text)
    declared = _cookie(data) if cookies else None
    if escaped := _escaped_encoding(data):
        return _replaced(data, escaped)
    for encoding in ("utf-8", declared):
        if encoding and (text := _strict(data, encoding)) is not None:
            return Decoded(text)
    return _guessed(data)


def _escaped_encoding(data: bytes) -> str | None:
    """Return the encoding that the escapes of a text of 7 bits show; None for any other text."""
    if b"\x1b" not in data or not data.isascii():
        return None
    if _ESCAPED_KOREAN.search(data):
        return "iso2022_kr"
    return "iso2022_jp_ext" if _ESCAPED_JAPANESE.search(data) else None


def _guessed(data: bytes) -> Decoded | None:
    """Return the text in the most plausible encoding, with a note if few bytes have decided it.

    Lines of a file of Latin script that are UTF-8 are read as UTF-8. If no encoding fits, wrong bytes of UTF-8 become
    U+FFFD.
    """
    has_utf_8 = re.search("[^\x00-\x7f\ud800-\udfff]", data.decode("utf-8", "surrogateescape"))
    lines = data.splitlines(keepends=True) if has_utf_8 else []
    is_utf_8 = [line.isascii() or _strict(line, "utf-8") is not None for line in lines]
    others = b"".join(line for line, fits in zip(lines, is_utf_8, strict=True) if not fits)
    is_mixed = any(fits and not line.isascii() for line, fits in zip(lines, is_utf_8, strict=True))
    encoding = None if is_mixed and _broken_utf8(others, 0.5) else guess(others if is_mixed else data)
    if encoding and is_mixed:  # in other scripts, a few lines are UTF-8 by coincidence
        is_mixed = _is_latin(_non_ascii_lines(others), encoding)
        encoding = None if not is_mixed and _broken_utf8(data, 0.95) else encoding
    if encoding is None:
        return _replaced(data, "utf-8") if _broken_utf8(data, 0.75) else None
    parts = [(data, encoding)]
    if is_mixed:
        parts = [(line, "utf-8" if fits else encoding) for line, fits in zip(lines, is_utf_8, strict=True)]
    beyond = len((others if is_mixed else data).translate(None, _ASCII))
    guessed = (Code.ENCODING_GUESSED(encoding, f"{beyond:,}"),) if beyond < _FEW_BYTES else ()
    text = "".join(part.decode(codec, _REPLACE) for part, codec in parts)
    return None if _MIN_READ * text.count("\ufffd") > beyond else Decoded(text, (*guessed, *_unread(text, encoding)))


def _replaced(data: bytes, codec: str) -> Decoded:
    """Return the text with U+FFFD for what cannot be read, and their number in a note."""
    if (text := _strict(data, codec)) is not None:
        return Decoded(text)
    text = data.decode(codec, _REPLACE)
    return Decoded(text, _unread(text, codec))


def _unread(text: str, codec: str) -> tuple[Reason, ...]:
    count = text.count("\ufffd")
    return (Code.CHARACTERS_UNREAD(f"{count:,}", codec),) if count else ()


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
            return codec_of(best.encoding) if best else None
        fitting = "cp1252" if page == "cp1252" and _strict(sample, page) is not None else best.encoding
    # In Latin script "Ã©" and the like are not words, so a smaller share is enough to recognize UTF-8.
    return None if _broken_utf8(data, 0.75) else fitting


def _cookie(data: bytes) -> str | None:
    first_lines = b"\n".join(data[:1024].splitlines()[:2])
    last_lines = b"\n".join(data[-1024:].splitlines()[-2:])  # where vim looks too
    cookie = _COOKIE.search(first_lines) or re.search(rb"vim?:.*?\b(?:fileencoding|fenc)=([-\w.]+)", last_lines)
    declared = next((name.decode() for name in cookie.groups() if name), None) if cookie else None
    # In an encoding without ASCII bytes for ASCII letters, the declaration could not be read.
    return declared if declared and _strict(b"coding", declared) == "coding" else None


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
        counts = Counter(character for character in text if character > "\x7f")
        misplaced = Counter(match[0] for match in _MISPLACED.finditer(text) if not match[0].islower())
        for characters in _alphabets(page):
            plausible = sum(count - misplaced[each] for each, count in counts.items() if each in characters)
            fits[page] = max(fits[page], plausible / max(1, beyond))
    return fits


@cache
def _alphabets(page: str) -> list[frozenset[str]]:
    """Return for each language of a code page its letters, and the characters beyond ASCII that are not letters."""
    every = bytes(range(128, 256)).decode(page, errors="ignore")
    signs = [sign for sign in every if not sign.isalpha() and unicodedata.category(sign) != "Cc"]
    return [frozenset((*letters, *letters.upper(), *signs)) for letters in _PAGES[page].split()]


def _is_latin(sample: bytes, encoding: str) -> bool:
    """Return whether this is a single-byte encoding in which the sample is Latin script."""
    text = _strict(sample, encoding) or ""
    letters = [character for character in text if character > "\x7f" and character.isalpha()]
    latin = sum("LATIN" in unicodedata.name(letter, "") for letter in letters)
    return len(text) == len(sample) and latin >= 0.5 * len(letters)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding, _VENDOR_ROWS)
    except (LookupError, ValueError):  # there is no such encoding, or it does not fit
        return None


def _vendor_rows(error: UnicodeError) -> tuple[str, int]:
    """Read a character that programs write in this encoding and Python does not know; raise any other error.

    These are the rows of NEC and IBM in EUC-JP and ISO-2022-JP, as code page 932 has them, and the euro sign.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair, end = error.object[error.start : error.start + 2], error.start + 2
    if error.encoding in {"euc_jp", "iso2022_jp_ext"} and len(pair) == 2:
        row, cell = (byte & 0x7F for byte in pair)
        lead = ((row - 0x21) >> 1) + 0x81
        trail = cell + (0x7E if row % 2 == 0 else 0x1F if cell < 0x60 else 0x20)
        if 0x20 < row < 0x7F and 0x20 < cell < 0x7F:
            return bytes((lead + (0x40 if lead > 0x9F else 0), trail)).decode("cp932"), end
    elif error.encoding == "big5hkscs" and pair == b"\xa3\xe1":
        return "€", end
    elif error.encoding == "gb18030" and pair[:1] == b"\x80":
        return "€", error.start + 1
    raise error


def _replacement(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    try:
        return _vendor_rows(error)
    except UnicodeDecodeError:
        return "\ufffd", error.end


codecs.register_error(_VENDOR_ROWS, _vendor_rows)
codecs.register_error(_REPLACE, _replacement)
