"""Names and styles of OpenDocument: which paragraphs are titles, and the automatic numbers of headings and lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lxml import etree

from likewise.readers.formats.docx_styles import integer, number_as

NAMES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "loext": "urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0",
    "math": "http://www.w3.org/1998/Math/MathML",
    "meta": "urn:oasis:names:tc:opendocument:xmlns:meta:1.0",
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "presentation": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
    "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
    "svg": "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "xlink": "http://www.w3.org/1999/xlink",
}
_KINDS = {
    **{"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"},
    "一, 二, 三, ...": "chineseCounting",
}
_PLACE = re.compile(r"%(\d+)%")


def tag(name: str) -> str:
    prefix, _, local = name.partition(":")
    return f"{{{NAMES[prefix]}}}{local}"


def get(element: Any, name: str) -> str:
    return str(element.get(tag(name)) or "")


_H, _P, _LIST, _ITEM, _NUMBER = map(tag, ("text:h", "text:p", "text:list", "text:list-item", "text:number"))


def _styles(*parts: Any) -> list[Any]:
    return [style for part in parts if part is not None for style in part.iterfind(".//style:style", NAMES)]


def _based_on(names: set[str], styles: Sequence[Any]) -> set[str]:
    """Return these names of styles, and those of the styles that are based on them."""
    parents = {get(style, "style:name"): get(style, "style:parent-style-name") for style in styles}
    while more := {name for name, parent in parents.items() if parent in names} - names:
        names = names | more
    return names


def _with(styles: Sequence[Any], name: str, value: str) -> set[str]:
    """Return the names of styles with a property."""
    return {get(style, "style:name") for style in styles for each in style if get(each, name) == value}


def title_styles(*parts: Any) -> set[str]:
    """Return the names of the styles of titles: "Title", and the styles based on it."""
    return _based_on({"Title"}, _styles(*parts))


def hidden(elements: Sequence[Any], *parts: Any) -> list[int]:
    """Return the numbers of the sheets or slides that their styles hide."""
    styles = _styles(*parts)
    hiding = _with(styles, "table:display", "false") | _with(styles, "presentation:visibility", "hidden")
    names = ((get(each, "table:style-name") or get(each, "draw:style-name")) for each in elements)
    return [number for number, name in enumerate(names, 1) if name in hiding]


def strip_hidden(body: Any, *parts: Any) -> int:
    """Remove hidden sections, and words that their styles hide; return the number of words."""
    styles = _styles(*parts)
    showing = _with(styles, "text:display", "true")
    others = [style for style in styles if get(style, "style:name") not in showing]
    hiding = _based_on(_with(styles, "text:display", "none"), others)
    words = 0
    for element in list(body.iter(*map(tag, ("text:section", "text:span", "text:p", "text:h")))):
        if get(element, "text:display") == "none" or get(element, "text:style-name") in hiding:
            words += len(" ".join(element.itertext()).split())
            for inner in list(element.iter("*")):
                inner[:], inner.text = [], None
    return words


def write_numbers(body: Any, *parts: Any) -> None:
    """Write the automatic numbers of headings, and of levels of lists that have words in them, as `text:number`.

    Args:
        parts: the parts that have styles of lists and the numbering of headings.
    """
    styles = {
        get(style, "style:name") or "Outline": {_integer(level, "text:level", 1): level for level in style}
        for part in parts
        if part is not None
        for style in part.iter(tag("text:list-style"), tag("text:outline-style"))
    }
    counts: dict[str, dict[int, int]] = {}
    for element in body.iter(_H, _LIST, _ITEM):
        lists = [each for each in (element, *element.iterancestors()) if each.tag == _LIST]
        name = next(filter(None, (get(each, "text:style-name") for each in lists)), "" if lists else "Outline")
        if element.tag == _LIST:
            continues = len(lists) > 1 or get(element, "text:continue-numbering") == "true"
            if not continues and not get(element, "text:continue-list"):
                counts[name] = {}
            continue
        first = element if element.tag == _H else next(element.iterchildren(etree.Element), None)
        if first is None or first.tag not in {_H, _P} or (element.tag == _H and lists):
            continue  # an item without a number of its own, or a heading in one
        level = len(lists) or _integer(element, "text:outline-level", 1)
        number = _count(element, level, styles.get(name, {}), counts.setdefault(name, {}), first.tag == _H)
        if (given := first.find(_NUMBER)) is not None:
            given.text = f"{given.text or ''} "
        elif number:
            first.insert(0, etree.Element(_NUMBER))
            first[0].text, first[0].tail, first.text = f"{number} ", first.text, None


def _count(element: Any, level: int, levels: Mapping[int, Any], counts: dict[int, int], is_heading: bool) -> str:
    """Count a heading or an item, and return its number as it is shown."""
    style = levels.get(level)
    if style is None or get(element, "text:is-list-header") == "true":
        return ""
    start = _integer(style, "text:start-value", 1)
    counts[level] = _integer(element, "text:start-value", counts.get(level, start - 1) + 1)
    for deeper in [each for each in counts if each > level]:
        del counts[deeper]
    shown = range(max(1, level + 1 - _integer(style, "text:display-levels", 1)), level + 1)
    places = ".".join(f"%{each}%" for each in shown if each in levels and get(levels[each], "style:num-format"))
    written = f"{get(style, 'style:num-prefix')}{places}{get(style, 'style:num-suffix')}"
    template = get(style, "style:num-list-format") or get(style, "loext:num-list-format") or written
    if not places or not (is_heading or any(map(str.isalpha, _PLACE.sub("", template)))):
        return ""

    def number(match: re.Match[str]) -> str:
        place = int(match[1])
        kind = get(levels[place], "style:num-format") if place in levels else ""
        return number_as(_KINDS.get(kind, "decimal"), counts.get(place, 1)) if kind else ""

    return _PLACE.sub(number, template).strip()


def _integer(element: Any, name: str, otherwise: int) -> int:
    return integer(get(element, name), otherwise)
