"""PDF with pypdfium2: one section per page, with its number; fields and annotations are where they are on the page.

Four things that PDFium's text does not keep are put right here: hyphens at line ends (`join_lines`), the gap between
two numbers of a table that stand closer than a space (`_glued`), letters that are drawn again to look bold
(`_without_copies`), and the order of letters that are read from the right.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from ctypes import byref
from dataclasses import replace
from itertools import chain, compress, pairwise
from operator import itemgetter, not_
from statistics import median

import pypdfium2
from pypdfium2 import raw

from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Content, Skip, Unreadable
from indexer.stores.words.analysis import close_up
from likewise.readers import inside
from likewise.readers.formats.pdf_annotations import PlacedText, Rectangle, insertions, placed_texts
from likewise.readers.formats.pdf_right_to_left import RIGHT_TO_LEFT, rows
from likewise.readers.limits import MAX_PAGES
from likewise.readers.page_numbers import page_ranges

_MARK = "\x02"
"""PDFium writes this, or U+FFFE, for a hyphen or soft hyphen at the end of a line, and then leaves the line end out."""

_BROKEN = re.compile(rf"([^\W_]*){_MARK}(?:\r?\n)?(?=([^\W_]*))")
_BROKEN_WORD = re.compile(rf"[^\W_]*(?:{_MARK}(?:\r?\n)?[^\W_]*)+")
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")

_COMPOUND_STARTS = frozenset({
    *("all", "best", "better", "cross", "ever", "fast", "full", "good", "half", "hard", "high", "ill", "least", "less"),
    *("long", "low", "much", "near", "non", "quasi", "real", "self", "short", "so", "well"),
})  # fmt: skip
"""First parts that English joins with a hyphen (Chicago Manual of Style, 7.89), and adverbs that do not end in -ly."""

_SUFFIXES = frozenset({
    *("ance", "ation", "ence", "fully", "hood", "ings", "less", "like", "ment", "ments", "ness", "ship", "wards"),
})  # fmt: skip
"""Ends of words that follow one of `_COMPOUND_STARTS` in a word without a hyphen, such as illness and selfless."""

_MIN_MIXED_LETTERS = 4
"""Minimum letters of a word of two scripts. Shorter ones are units and formulas, such as "μm"."""

_LETTERS = re.compile(rf"[^\W\d_]{{{_MIN_MIXED_LETTERS},}}")
_REPEATED_LETTER = re.compile(r"([1!fijlrtI|])\1+")  # narrow ones: PDFium knows copies of wide ones
_REPEATED_WORD = re.compile(r"(?<!\S)(\w\S*)\s+(?=(\1)(?!\S))")
_NUMBERS = re.compile(r"\S*\d\S+|\S+\d")
_MIN_GAP = 0.085
"""Minimum gap between two words, in heights of a character (ascent to descent, 1.17 times the size of Helvetica).

It is 0.1 of the font's size, poppler's `minWordBreakSpace`. Kerning beside digits stays below 0.03 in the PDFs tried.
"""

_MAX_STAMP_CHARACTERS = 40
"""Maximum length of a text that is only a stamp on a page, such as its number."""

_MIN_PICTURE_SHARE = 0.6
"""Minimum share of a page that its picture covers in a scan."""

_MAX_COPY_DISTANCE = 0.1
"""Maximum distance between a letter and its copy, in heights of the letter. The narrowest letters advance by 0.15."""

_MIN_GARBLED_SHARE = 0.1
"""Minimum share of the characters of a page that no person can read on a page that is noted."""

_MIN_WRONG_LETTERS = 4
"""Minimum different characters in a run of control or private ones that is a word. Leaders and bullets have one."""

_SAMPLE_CHARACTERS = 64
"""Characters of a page that are asked whether their font says which letter they are."""

_WITHIN_LATIN = {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH", "HALFWIDTH", "MATHEMATICAL"}
"""First words of the names of letters that stand in words beside Latin letters."""

_NEIGHBOURS = 8
"""Number of characters on both sides of a number that show the spacing of letters in its line."""


_LACKING = (Code.PAGES_WITHOUT_TEXT, Code.PICTURE_PAGES, Code.GARBLED_PAGES, Code.PAGES_DAMAGED)


def read(path: str) -> Content:
    """Read a file. Title and author are the document's properties."""
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            raise Unreadable(Code.ENCRYPTED()) from error
        raise Unreadable(Code.NOT_PDF(error)) from error
    if len(document) > MAX_PAGES:
        raise Unreadable(Code.TOO_MANY_PAGES(f"{len(document):,}", f"{MAX_PAGES:,}"))
    with suppress(pypdfium2.PdfiumError):  # a broken form: the pages are read without it
        document.init_forms()
    pages, lacking = list[str](), {code: list[int]() for code in _LACKING}
    for number in range(len(document)):
        try:
            text, code = _read_page(document, number)
        except pypdfium2.PdfiumError:
            text, code = "", Code.PAGES_DAMAGED
        pages.append(text)
        if code:
            lacking[code].append(number + 1)
    assembly = Assembly()
    for number, text in enumerate(join_lines(pages), 1):
        assembly.section(page=number)
        assembly.add(close_up(text, lines=True))
    properties = document.get_metadata_dict(skip_empty=True)
    metadata: dict[str, str | int] = {"pages": len(document)}
    if author := properties.get("Author"):
        metadata["author"] = author
    unread = _unread(document, lacking)
    document.close()
    content = assembly.content(properties.get("Title", "").strip(), metadata)
    if not content.text:
        raise Skip(Code.NO_TEXT_IN_PAGES())
    return replace(content, unread=unread, unread_pages=tuple(sorted(chain(*lacking.values()))))


def _read_page(document: pypdfium2.PdfDocument, number: int) -> tuple[str, Code | None]:
    """Return the text of a page, and the code of the note if some of its text is missing.

    Raises:
        PdfiumError: the page is damaged.
    """
    page = document[number]
    text_page = page.get_textpage()
    text, code = _text(text_page, placed_texts(document, number, text_page)), None
    if not text.strip():
        is_blank = next(iter(page.get_objects(max_depth=1)), None) is None
        code = None if is_blank else Code.PAGES_WITHOUT_TEXT
    elif len(text.strip()) < _MAX_STAMP_CHARACTERS and _is_picture(page):
        code = Code.PICTURE_PAGES
    elif _is_garbled(text_page, text):
        code = Code.GARBLED_PAGES
    text_page.close()
    page.close()
    return text, code


def _is_garbled(page: pypdfium2.PdfTextPage, text: str) -> bool:
    """Return whether the fonts of a page do not say which letters are drawn, so that its text is not what one sees.

    Then its characters are control characters or private ones, have no place in Unicode, or are letters of two scripts
    in one word, because the numbers of glyphs were taken for letters.
    """
    counts = Counter(text.replace(_MARK, ""))
    written = sum(count for character, count in counts.items() if not character.isspace())
    wrong = {each for each in counts if each == "\ufffd" or unicodedata.category(each) in {"Cc", "Cn", "Co"}} - {
        *"\r\n\t"
    }
    if wrong:
        runs = re.findall(f"[{re.escape(''.join(wrong))}]+", text)
        if any(len(set(run)) >= _MIN_WRONG_LETTERS for run in runs):
            return True
    words = () if text.isascii() else _LETTERS.findall(text)
    mixed = sum(len(word) for word in words if not word.isascii() and _is_of_two_scripts(word))
    if sum(counts[each] for each in wrong) + mixed >= _MIN_GARBLED_SHARE * written:
        return True
    indexes = range(0, page.count_chars(), max(1, page.count_chars() // _SAMPLE_CHARACTERS))
    unmapped: int = sum(raw.FPDFText_HasUnicodeMapError(page.raw, index) == 1 for index in indexes)
    return unmapped >= _MIN_GARBLED_SHARE * len(indexes)


def _is_of_two_scripts(word: str) -> bool:
    scripts = {unicodedata.name(letter, "?").partition(" ")[0] for letter in word}
    return len(scripts) > 1 and not scripts <= _WITHIN_LATIN


def _is_picture(page: pypdfium2.PdfPage) -> bool:
    """Return whether a picture covers most of a page, as in a scan."""
    width, height = page.get_size()
    for picture in page.get_objects([raw.FPDF_PAGEOBJ_IMAGE]):
        left, bottom, right, top = picture.get_bounds()
        if (right - left) * (top - bottom) >= _MIN_PICTURE_SHARE * width * height:
            return True
    return False


def _unread(document: pypdfium2.PdfDocument, lacking: Mapping[Code, Sequence[int]]) -> tuple[Reason, ...]:
    """Return notes on the parts of a document that were not read, given the numbers of pages."""
    notes = [code(len(numbers), len(document), page_ranges(numbers)) for code, numbers in lacking.items() if numbers]
    notes += inside.files([document.get_attachment(index).get_name() for index in range(document.count_attachments())])
    if document.get_formtype() == raw.FORMTYPE_XFA_FULL:
        notes.append(Code.XFA_FORM())
    return tuple(notes)


def join_lines(pages: Sequence[str]) -> Iterator[str]:
    """Yield the pages with those words joined that were broken at the end of a line, and without soft hyphens.

    A PDF does not say whether a hyphen at a line end belongs to the word. The first rule that applies decides:

    1. A hyphen beside a digit belongs to the word.
    2. Where the document has the word elsewhere within a line, it is written like that; the more frequent form wins.
    3. A hyphen beside a part of one letter, which typesetters never break off, between a small letter and a capital, or
       in a word that has more hyphens belongs to the word.
    4. Where both parts are words of the document themselves, the hyphen belongs to the word.
    5. So it does after a first part that English joins with a hyphen ("well-known", but "ill-ness").
    6. Any other hyphen was set for the line end, and is removed.

    Rules 2 and 6 come from O. S. Bauge, "Dehyphenation: Some empirical methods" (University of Oslo, 2012): a word
    list made from the text itself makes the fewest errors, and removing is best if the list has no such word.
    """
    whole = [page.replace("\ufffe", _MARK).replace("\xad", "") for page in pages]
    if not any(_MARK in page for page in whole):
        yield from whole
        return
    words: Counter[str] = Counter()
    for page in whole:
        words.update(_WORD.findall(_BROKEN_WORD.sub(" ", page)))
    frequency: Counter[str] = Counter()
    for word, count in words.items():
        frequency[word.casefold()] += count
    parts = {part for word in words for part in word.split("-")}
    folded_parts = {part.casefold() for part in parts}

    def joined(match: re.Match[str]) -> str:
        left, right = match[1], match[2]
        if not left or not right or left[-1].isdigit() or right[0].isdigit():
            return f"{left}-"
        without, with_hyphen = (frequency[f"{left}{hyphen}{right}".casefold()] for hyphen in ("", "-"))
        before, after = match.string[match.start() - 1 : match.start()], match.string[match.end(2) : match.end(2) + 1]
        if without or with_hyphen:
            kept = with_hyphen >= without
        elif 1 in {len(left), len(right)} or (left[-1].islower() and right[0].isupper()) or "-" in {before, after}:
            kept = True
        else:
            # The second part counts as it is written: in German "Haus-tür" is one word, though "Tür" is another.
            kept = (left.casefold() in folded_parts and right in parts) or (
                left.casefold() in _COMPOUND_STARTS and len(right) > 3 and right not in _SUFFIXES
            )
        return f"{left}-" if kept else left

    for page in whole:
        yield _BROKEN.sub(joined, page)


def _text(page: pypdfium2.PdfTextPage, placed: Sequence[PlacedText]) -> str:
    """Return the text of a page with the placed texts, and with a space between numbers that PDFium has glued together.

    For PDFium, two characters are neighbours if the gap between them is less than about a quarter of the wider
    character. Two cells of a narrow table can be that close too. Words stay as they are: a gap within them is kerning.
    """
    text: str = page.get_text_bounded()
    is_turned = RIGHT_TO_LEFT.search(text) is not None
    if not placed and not is_turned and not re.search(r"\d\S", text) and not _may_have_copies(text):
        return text
    # The bounded text has other line ends, and its marks are written in another way.
    places, inside = _shown(_characters(page)), _shown(text)
    if len(places) != len(inside):  # some of the characters are outside the page
        bounds = page.page.get_bbox()
        places = [index for index in places if _is_within(page, index, bounds)]
    if len(places) != len(inside):
        return "\n".join([text, *(each.text for each in placed)])
    if copies := _copies_of_letters(page, text, inside, places):
        text, places = _without_copies(text, inside, places, copies)
        inside = _shown(text)
    if is_turned:
        text, places = _in_reading_order(page, text, places)
        inside = _shown(text)
    boxes = {offset: _box(page, index) for offset, index in zip(inside, places, strict=True)} if placed else {}
    inserted = [*insertions(text, boxes, placed), *((offset, " ") for offset in _gaps(page, text, inside, places))]
    parts, end = [], 0
    for offset, part in sorted(inserted, key=itemgetter(0)):
        parts += [text[end:offset], part]
        end = offset
    return "".join([*parts, text[end:]])


def _may_have_copies(text: str) -> bool:
    lines = text.splitlines()
    return bool(_REPEATED_LETTER.search(text) or _REPEATED_WORD.search(text)) or len(set(lines)) < len(lines)


def _characters(page: pypdfium2.PdfTextPage) -> str:
    """Return the characters of a page by their indexes in PDFium. NUL is a blank."""
    count = page.count_chars()
    whole: str = page.get_text_range()
    if len(whole) != count:  # those that have no place in Unicode are left out of the text
        whole = "".join(chr(raw.FPDFText_GetUnicode(page.raw, index)) for index in range(count))
    return whole.replace("\0", " ")


def _shown(text: str) -> list[int]:
    """Return the offsets of the characters of a text, blanks left out."""
    return list(compress(range(len(text)), map(not_, map(str.isspace, text))))


def _copies_of_letters(
    page: pypdfium2.PdfTextPage, text: str, inside: Sequence[int], places: Sequence[int]
) -> set[int]:
    """Return the offsets of letters that are drawn again at nearly the same place.

    Programs draw letters twice to make them bold or to give them a shadow. PDFium knows a copy only if it follows soon
    and is closer than a part of the width of the letter. All letters of a page are compared only if a line or word is a
    copy; otherwise those that follow themselves.

    Args:
        inside: the offsets of the characters of the text, blanks left out.
        places: PDFium's indexes of the same characters.
    """
    starts = _starts_of_repeated(text)
    offsets = [offset for match in _REPEATED_LETTER.finditer(text) for offset in range(*match.span())]
    if _copies(page, text, [(offset, places[bisect_left(inside, offset)]) for offset in starts]):
        offsets = list(inside)
    return _copies(page, text, [(offset, places[bisect_left(inside, offset)]) for offset in offsets])


def _without_copies(text: str, inside: Sequence[int], places: Sequence[int], copies: set[int]) -> tuple[str, list[int]]:
    """Return a text without its letters at the offsets of copies, and the indexes of the others."""
    words = (
        (word[1], "".join(letter for offset, letter in enumerate(word[2], word.start(2)) if offset not in copies))
        for word in re.finditer(r"(\s*)(\S+)", text)
    )
    left = "".join(f"{blank}{letters}" for blank, letters in words if letters)
    return left, [index for offset, index in zip(inside, places, strict=True) if offset not in copies]


def _starts_of_repeated(text: str) -> list[int]:
    """Return the offsets at which lines begin that are there more than once, and words that follow themselves."""
    starts: dict[str, list[int]] = {}
    for line in re.finditer(r"\w[^\r\n]*", text):
        starts.setdefault(line[0], []).append(line.start())
    lines = (each for each in starts.values() if len(each) > 1)
    words = ((word.start(), word.start(2)) for word in _REPEATED_WORD.finditer(text))
    return sorted({*chain(*lines), *chain(*words)})


def _copies(page: pypdfium2.PdfTextPage, text: str, compared: Sequence[tuple[int, int]]) -> set[int]:
    """Return the offsets of those characters that are drawn at nearly the place of the same one before them.

    Args:
        compared: the offset in the text of each character that is compared, and PDFium's index of it.
    """
    drawn: dict[tuple[str, int, int], tuple[int, Rectangle]] = {}
    copies = set()
    for offset, index in compared:
        box = _box(page, index)
        near = _MAX_COPY_DISTANCE * (box.top - box.bottom)
        if near <= 0:
            continue
        column, row = int(box.left / near), int(box.bottom / near)
        for place in ((text[offset], column + x, row + y) for x in (0, -1, 1) for y in (0, -1, 1)):
            before, other = drawn.get(place, (0, None))
            is_near = other and abs(box.left - other.left) <= near and abs(box.bottom - other.bottom) <= near
            if is_near and not (box == other and index == before + 1):  # one glyph may be two letters, such as "ff"
                copies.add(offset)
                break
        drawn[text[offset], column, row] = index, box
    return copies


def _in_reading_order(page: pypdfium2.PdfTextPage, text: str, places: Sequence[int]) -> tuple[str, list[int]]:
    """Return a text with its lines of Arabic and Hebrew as they are read, and the indexes of its letters.

    Args:
        places: PDFium's indexes of the characters of the text, blanks left out.
    """
    remaining = iter(places)
    indexes = [[next(remaining) for each in line if not each.isspace()] for line in text.splitlines()]
    boxes = {index: _box(page, index) for index in places}
    lines, ordered = list[str](), list[int]()
    for line, letters in rows(text.splitlines(), indexes, boxes):
        lines.append(line)
        ordered += letters
    return "\n".join(lines), ordered


def _gaps(page: pypdfium2.PdfTextPage, text: str, inside: Sequence[int], places: Sequence[int]) -> Iterator[int]:
    """Yield the offsets in the text before which a space is missing; arguments are those of `_glued`, for a page."""
    for run in _NUMBERS.finditer(text):
        first = bisect_left(inside, run.start())
        nearby = slice(max(0, first - _NEIGHBOURS), first + len(run[0]) + _NEIGHBOURS)
        for offset in _glued(page, text, inside[nearby], places[nearby]):
            if run.start() < offset < run.end():
                yield offset


def _glued(page: pypdfium2.PdfTextPage, text: str, offsets: Sequence[int], indexes: Sequence[int]) -> Iterator[int]:
    """Yield the offsets beside a digit before which a space is missing.

    The median gap is subtracted first, because the letters of a heading may be spaced out.

    Args:
        offsets: of characters that follow one another, blanks left out.
        indexes: PDFium's indexes of the same characters.
    """
    boxes = [_box(page, index) for index in indexes]
    gaps: dict[int, float] = {}
    for at, (box, following) in enumerate(pairwise(boxes), 1):
        height = max(box.top - box.bottom, following.top - following.bottom)
        on_one_line = height > 0 and following.bottom < box.top and box.bottom < following.top
        if offsets[at] == offsets[at - 1] + 1 and on_one_line:
            gaps[offsets[at]] = (following.left - box.right) / height
    usual = max(0.0, median(gaps.values())) if len(gaps) > 2 else 0.0
    for offset, gap in gaps.items():
        if gap - usual > _MIN_GAP and (text[offset - 1].isdigit() or text[offset].isdigit()):
            yield offset


def _box(page: pypdfium2.PdfTextPage, index: int) -> Rectangle:
    """Return the place of a character, with its advance width and the height of its font."""
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(page.raw, index, byref(box))
    return Rectangle(box.left, box.bottom, box.right, box.top)


def _is_within(page: pypdfium2.PdfTextPage, index: int, bounds: tuple[float, float, float, float]) -> bool:
    left, bottom, right, top = page.get_charbox(index)
    page_left, page_bottom, page_right, page_top = bounds
    return bool(left < page_right and right > page_left and bottom < page_top and top > page_bottom)
