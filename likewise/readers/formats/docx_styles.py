"""What DOCX says in other ways than by text: headings by their styles, hidden words, automatic numbers, symbols, and
choices in forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from likewise.readers.formats.office_package import qn

_HEADING = re.compile(r"head(?:ing)?\s*([1-9a-e])$", re.IGNORECASE)  # Word's headings, and publishers' "HeadA"
_TITLE = re.compile(r"(?:(?:book|chapter|appendix)\s*)?title$", re.IGNORECASE)
_PLACE = re.compile(r"%([1-9])")
_ROMAN = (
    *((500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


_CODES = b"ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprVstufcyw"
_GREEK = dict(zip(_CODES, "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρςστυφχψω", strict=True))
"""Letters in the font Symbol, by the codes that it has for them."""
_MAX_WRITTEN = 780
"""Maximum number that is written in letters or signs, which become long. Word has the same bound for letters."""


@cache
def _path(names: str) -> str:
    return "/".join(map(qn, names.split("/")))


def _value(parent: Any, path: str) -> str | None:
    """Return the `w:val` of the element at a path such as "w:pPr/w:pStyle"; None without one."""
    found = None if parent is None else parent.find(_path(path))
    return None if found is None else found.get(qn("w:val"))


def _is_on(parent: Any, path: str) -> bool | None:
    """Return the value of a switch such as "w:rPr/w:vanish", which is on without a value; None without a switch."""
    found = parent.find(_path(path))
    return None if found is None else found.get(qn("w:val")) not in {"0", "false", "off"}


def integer(text: str | None, otherwise: int) -> int:
    """Return a number of up to six digits, or a default for any other text."""
    return int(text) if text and re.fullmatch(r"-?\d{1,6}", text) else otherwise


def chosen(choices: Any) -> str:
    """Return the entry that a list in a form shows."""
    entries = [each.get(qn("w:val"), "") for each in choices.iterchildren(qn("w:listEntry"))]
    at = integer(_value(choices, "w:result"), 0)
    return entries[at] if 0 <= at < len(entries) else ""


def symbol(element: Any) -> str:
    """Return the sign of a font of symbols; nothing for the pictures of Wingdings."""
    font, code = element.get(qn("w:font")) or "", element.get(qn("w:char")) or ""
    number = int(code, 16) if re.fullmatch("[0-9A-Fa-f]{2,4}", code) else 0
    if font == "Symbol":
        return _GREEK.get(number & 0xFF, "")
    return "" if 0xE000 <= number < 0xF900 or "dings" in font else chr(number)


class Styles:
    """The styles of paragraphs."""

    def __init__(self, root: Any) -> None:
        """Args:
        root: the root of the part of styles; None without one.
        """
        elements = () if root is None else root.iter(qn("w:style"))
        self._styles: dict[str, Any] = {each.get(qn("w:styleId"), ""): each for each in elements}
        paragraphs = ((name, style) for name, style in self._styles.items() if style.get(qn("w:type")) == "paragraph")
        defaults = (name for name, style in paragraphs if style.get(qn("w:default")) in {"1", "true", "on"})
        self._default = next(defaults, "")
        self._levels = {name: self._level(name) for name in self._styles}
        self.hiding = {name for name in self._styles if self._hides(name)}

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all styles."""
        return iter(self._styles)

    def of(self, paragraph: Any) -> str:
        """Return the id of the style of a paragraph."""
        return _value(paragraph, "w:pPr/w:pStyle") or self._default

    def chain(self, name: str | None) -> Iterator[tuple[str, Any]]:
        """Yield a style and the styles that it is based on, by their ids."""
        seen: set[str] = set()
        while name and name in self._styles and name not in seen:
            seen.add(name)
            yield name, self._styles[name]
            name = _value(self._styles[name], "w:basedOn")

    def level(self, paragraph: Any) -> int | None:
        """Return the level of a heading, by its style or a style that this one is based on; 0 for a title, None for
        other text."""
        return self._levels.get(self.of(paragraph))

    def is_hidden(self, run: Any) -> bool:
        """Return whether the text of a run is hidden, by itself, its style or the style of its paragraph."""
        own = _is_on(run, "w:rPr/w:vanish")
        if own is not None or not self.hiding:
            return bool(own)
        paragraph = next(run.iterancestors(qn("w:p")), run)
        return not self.hiding.isdisjoint((_value(run, "w:rPr/w:rStyle"), self.of(paragraph)))

    def _hides(self, style_id: str) -> bool:
        switches = (_is_on(style, "w:rPr/w:vanish") for _, style in self.chain(style_id))
        return bool(next((each for each in switches if each is not None), False))

    def _level(self, style_id: str) -> int | None:
        for _, style in self.chain(style_id):
            name = _value(style, "w:name") or ""
            if match := _HEADING.match(name):
                return int(match[1]) if match[1].isdigit() else "abcde".index(match[1].lower()) + 1
            if _TITLE.match(name):
                return 0
        return None


@dataclass(slots=True)
class _List:
    """The levels of an abstract list, and its counters. Lists with the same levels count on together."""

    levels: dict[int, Any]
    counts: dict[int, int] = field(default_factory=dict)


class Numbers:
    """Counts the automatic numbers of paragraphs."""

    def __init__(self, root: Any, styles: Styles) -> None:
        """Args:
        root: the root of the part of numbering; None without one.
        """
        self._styles = styles
        self._lists: dict[str | None, _List] = {}
        self._numbers: dict[str | None, tuple[str | None, Any]] = {}
        self._restarted: set[tuple[str, int]] = set()
        if root is None:
            return
        for each in root.iter(qn("w:num")):
            self._numbers[each.get(qn("w:numId"))] = _value(each, "w:abstractNumId"), each
        linked: dict[str | None, str] = {}
        for each in root.iter(qn("w:abstractNum")):
            levels = {integer(level.get(qn("w:ilvl")), 0): level for level in each.findall(qn("w:lvl"))}
            self._lists[each.get(qn("w:abstractNumId"))] = _List(levels)
            linked[each.get(qn("w:abstractNumId"))] = _value(each, "w:numStyleLink") or ""
        self._of_style = {name: self._numbered_style(name) for name in styles}
        for abstract, style in linked.items():  # the levels of a list style are in another list
            other = self._numbers.get(self._of_style.get(style, ("", ""))[0], ("", None))[0]
            self._lists[abstract] = self._lists.get(other, self._lists[abstract])

    def next(self, paragraph: Any, *, is_heading: bool) -> str:
        """Count a paragraph, and return its number as it is shown. The number is empty without words in it, such as
        "Article %1", unless the paragraph is a heading."""
        if not self._numbers or paragraph.tag != qn("w:p"):
            return ""
        number, level = self._numbered(paragraph)
        abstract, element = self._numbers.get(number, (None, None))
        numbered = self._lists.get(abstract)
        if number is None or numbered is None or level not in (levels := self._levels(numbered, element)):
            return ""
        override = next((each for each in element.iter(qn("w:lvlOverride")) if _is_level(each, level)), None)
        restart = _value(override, "w:startOverride")
        if restart is not None and (number, level) not in self._restarted:
            self._restarted.add((number, level))
            numbered.counts[level] = integer(restart, 1) - 1
        start = integer(_value(levels[level], "w:start"), 1)
        numbered.counts[level] = numbered.counts.get(level, start - 1) + 1
        for deeper in [each for each in numbered.counts if each > level]:
            if level < integer(_value(levels.get(deeper), "w:lvlRestart"), deeper):
                del numbered.counts[deeper]
        text = _value(levels[level], "w:lvlText") or ""
        has_words = any(map(str.isalpha, _PLACE.sub("", text)))
        if not (is_heading or has_words) or _value(levels[level], "w:numFmt") == "bullet":
            return ""
        as_decimal = levels[level].find(qn("w:isLgl")) is not None
        return _PLACE.sub(lambda match: _shown(levels, numbered.counts, int(match[1]) - 1, as_decimal), text).strip()

    def _numbered(self, paragraph: Any) -> tuple[str | None, int]:
        """Return the list and the level of a paragraph, from itself or its style; None without a list."""
        number = _value(paragraph, "w:pPr/w:numPr/w:numId")
        level = _value(paragraph, "w:pPr/w:numPr/w:ilvl")
        if number is None:
            number, level_of_style = self._of_style.get(self._styles.of(paragraph), (None, None))
            level = level or level_of_style
        return (None if number == "0" else number), integer(level, 0)

    def _numbered_style(self, style_id: str) -> tuple[str | None, str | None]:
        """Return the list and the level of a style. The level of a list may name the style."""
        level = None
        for name, style in self._styles.chain(style_id):
            number = _value(style, "w:pPr/w:numPr/w:numId")
            level = level or _value(style, "w:pPr/w:numPr/w:ilvl")
            if number is not None:
                numbered = self._lists.get(self._numbers.get(number, (None, None))[0])
                levels = {} if numbered is None else numbered.levels
                named = (str(at) for at, element in levels.items() if _value(element, "w:pStyle") == name)
                return number, level or next(named, None)
        return None, None

    def _levels(self, numbered: _List, element: Any) -> dict[int, Any]:
        """Return the levels of a list, some of which it may replace."""
        replaced = element.iterfind(f"{qn('w:lvlOverride')}/{qn('w:lvl')}")
        return {**numbered.levels, **{integer(level.get(qn("w:ilvl")), 0): level for level in replaced}}


def _is_level(element: Any, level: int) -> bool:
    return integer(element.get(qn("w:ilvl")), 0) == level


def _shown(levels: dict[int, Any], counts: dict[int, int], level: int, as_decimal: bool) -> str:
    """Return the number of a level as its format shows it. A level that was not counted yet has its first number."""
    count = counts.get(level, integer(_value(levels.get(level), "w:start"), 1))
    kind = "decimal" if as_decimal else _value(levels.get(level), "w:numFmt") or "decimal"
    if kind == "none":
        return ""
    return number_as(kind, count)


def number_as(kind: str, count: int) -> str:
    """Return a number as a kind such as "upperRoman" shows it."""
    return _KINDS.get(kind, str)(count) if 0 < count <= _MAX_WRITTEN else str(count)


def _letters(count: int) -> str:
    """Return a, b, …, z, aa, bb."""
    return chr(97 + (count - 1) % 26) * ((count - 1) // 26 + 1)


def _roman(count: int) -> str:
    text = ""
    for value, sign in _ROMAN:
        text += sign * (count // value)
        count %= value
    return text


def _chinese(count: int) -> str:
    """Return a number below 1,000 in Chinese and Japanese characters."""
    text, zero = "", False
    for value, sign in ((100, "百"), (10, "十"), (1, "")):
        digit, count = divmod(count, value)
        if digit:
            text += (
                "零" * zero + ("" if digit == 1 and value == 10 and not text else "〇一二三四五六七八九"[digit]) + sign
            )
        zero = bool(text) and not digit
    return text


_KINDS: dict[str, Callable[[int], str]] = {
    "lowerLetter": _letters,
    "upperLetter": lambda count: _letters(count).upper(),
    "lowerRoman": lambda count: _roman(count).lower(),
    "upperRoman": _roman,
    "decimalZero": "{:02}".format,
    **dict.fromkeys(("chineseCounting", "chineseCountingThousand", "japaneseCounting"), _chinese),
}
