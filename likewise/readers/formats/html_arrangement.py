"""The tree of an HTML page as a person sees it: shadow roots in their place, blocks opened, readings after their words.

It also says which elements a browser shows, for html.py.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

_INVISIBLE = {
    *("head", "title", "script", "style", "noscript", "noframes", "template", "datalist", "rp"),
    *("iframe", "object", "video", "audio", "canvas"),  # their content is shown only by browsers that lack them
    *("annotation", "annotation-xml"),  # the source of a formula, beside the formula
}
CONTROLS = {"button", "select"}
CELLS = {"td", "th"}
HEADINGS = {f"h{level}" for level in range(1, 7)}
VERBATIM = {"pre", "textarea", "listing", "xmp", "plaintext"}
BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir"),
    *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend"),
    *("li", "main", "menu", "nav", "ol", "option", "p", "search", "section", "summary", "svg", "table"),
    *("tbody", "td", "text", "tfoot", "th", "thead", "tr", "ul"),
    *HEADINGS,
    *VERBATIM,
}
_WORD = re.compile(r"\w+")
_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)

_CONTROLLING = ("aria-controls", "data-target", "data-bs-target", "popovertarget", "commandfor", "onclick", "href")
"""Attributes that name the id of an element that is opened."""
_NAME = re.compile(r"[\w:.-]+")
_OPENERS = {*HEADINGS, "button", "dt", "label", "summary"}
_OPENING_ROLES = {"button", "heading", "tab"}
_TYPED = {"date", "datetime-local", "email", "month", "number", "search", "tel", "text", "time", "url", "week"}
"""Types of fields whose value is a text that a person reads."""
_PLACED = {"x", "y", "dy"}
_SIGN_LENGTH = 2
"""Maximum characters of a picture's alternative text that is read within a line."""
_AFTER_BASE = re.compile("[\u3041-\u309f\\s]*")
"""The end of a word whose beginning has a reading, such as the last two letters of 食べる."""


def separate(body: Any) -> None:
    """Put a blank or a slash between words that a browser draws apart: in fractions, matrices and lines of drawings."""
    for element in body.iter("mfrac", "mtd", "mtr", "tspan"):
        if element.tag == "mfrac" and len(element):
            element[0].tail = " / "
        elif element.tag != "mfrac" and (element.tag != "tspan" or not _PLACED.isdisjoint(element.keys())):
            element.text, element.tail = f" {element.text or ''}", f" {element.tail or ''}"


def show_attributes(body: Any) -> None:
    """Make text of what browsers show of attributes: what is typed into fields, and pictures of initials and emoji."""
    for element in list(body.iter("input", "img")):
        text = element.get("value" if element.tag == "input" else "alt") or ""
        if element.tag == "img" and len(text) <= _SIGN_LENGTH:
            element.tag, element.text = "span", text
        elif element.tag == "input" and (element.get("type") or "text").lower() in _TYPED:
            element.tag, element.text = "span", f" {text} "


def show_shadow_roots(body: Any) -> None:
    """Put declarative shadow roots into their elements, and the children of these into the slots of the roots."""
    for root in [each for each in body.iter("template") if each.get("shadowrootmode") or each.get("shadowroot")]:
        host, root.tag = root.getparent(), "div"
        for slot in list(root.iter("slot")):
            if next(slot.iterancestors("template"), None) is not None:  # of a shadow root within this one
                continue
            name = slot.get("name", "")
            children = [each for each in host if each is not root and each.get("slot", "") == name]
            text, root.tail = ("", root.tail) if name else ((root.tail or ""), "")
            if children or text.strip():
                del slot[:]
                slot.text = text
                slot.extend(children)


def open_hidden_blocks(body: Any) -> None:
    """Show the blocks that a heading, a summary or a button opens, and the text of such a button.

    The opener names the id of the block, or is before it. Menus, which are nothing but links and controls, stay hidden.
    """
    hidden = [each for each in body.iter() if isinstance(each.tag, str) and is_hidden(each, each.tag)]
    if not hidden:
        return
    openers: dict[str, list[Any]] = defaultdict(list)
    labels: dict[str, Any] = {}
    for element in body.iter():
        for attribute in _CONTROLLING:
            value = element.get(attribute, "")
            for name in _NAME.findall(value.partition("#")[2] if attribute == "href" else value):
                openers[name].append(element)
        if element.get("id") and _opens(element):
            labels[element.get("id")] = element
    opened: dict[Any, Any] = {}
    for element in hidden:
        named = [*openers.get(element.get("id"), ()), labels.get(element.get("aria-labelledby"))]
        before = _opener_before(element, opened) if element.tag in BLOCKS else None
        candidates = (each for each in (*named, before) if each is not None)
        opener = next((each for each in candidates if element not in (each, *each.iterancestors())), None)
        if (opener is None and element.get("role") != "tabpanel") or is_all_links(element):
            continue
        if opener is before:
            opened[element] = opener
        element.attrib.pop("hidden", None)
        element.set("style", "")
        element.set("open", "")
        if opener is not None and opener.tag == "button":
            opener.tag = "div"


def _opens(element: Any) -> bool:
    return element.tag in _OPENERS or element.get("role") in _OPENING_ROLES or element.get("aria-expanded") is not None


def _opener_before(element: Any, opened: dict[Any, Any]) -> Any:
    """Return what opens an element because it is before it, alone in its block; None if there is no such."""
    previous = element.getprevious()
    if previous is None or previous in opened:
        return opened.get(previous)
    names_nothing = previous.get("onclick") is not None or previous.get("href", "").startswith(("#", "javascript:"))
    if names_nothing or _opens(previous):
        return previous
    opener = next(filter(_opens, previous.iter()), None)
    return opener if opener is not None and words_in(opener) == words_in(previous) else None


def move_readings(body: Any) -> None:
    """Write the readings of ruby in brackets after the word that they belong to, so that the word stays whole."""
    readings: list[str] = []
    for ruby in [each for each in body.iter("ruby") if next(each.iterancestors("ruby"), None) is None]:
        marks = list(ruby.iter("rt", "rtc", "rp"))
        of_ruby = []
        for mark in reversed(marks):  # the inner ones first: an end tag may be left out
            if mark.tag != "rp" and not is_invisible(mark, mark.tag):
                of_ruby.append(" ".join("".join(mark.itertext()).split()))
            mark.drop_tree()
        readings += filter(None, reversed(of_ruby))
        tail = ruby.tail or ""
        end = _AFTER_BASE.match(tail).end()  # type: ignore[union-attr]
        following = ruby.getnext()
        if end == len(tail) and following is not None and following.tag == "ruby":
            if readings and tail.strip():
                readings[-1] += "、"
            continue
        if readings:
            ruby.tail = f"{tail[:end].rstrip()} ({' '.join(readings)}){tail[end:]}"
            readings = []


def is_invisible(element: Any, tag: str) -> bool:
    """Return whether browsers do not show an element."""
    return (
        tag in _INVISIBLE
        or is_hidden(element, tag)
        or "katex-mathml" in (element.get("class") or "").split()  # the formula again, for screen readers
    )


def is_hidden(element: Any, tag: str) -> bool:
    """Return whether a page hides an element that it could show. `aria-hidden` hides one only from screen readers."""
    return tag not in _INVISIBLE and (
        (element.get("hidden") is not None and element.get("hidden") != "until-found")
        or (tag == "dialog" and element.get("open") is None)
        or _HIDING_STYLE.search(element.get("style") or "") is not None
    )


def is_all_links(element: Any) -> bool:
    """Return whether an element has words, all of them in links and controls. It ends at the first other word."""
    linked = 0
    for text, in_link, _ in pieces(element):
        words = count(text)
        if words and not in_link:
            return False
        linked += words
    return linked > 0


def pieces(element: Any) -> Iterator[tuple[str, bool, bool]]:
    """Yield the visible strings of an element in any order: text, whether in a link or control, whether in a cell.

    The element itself may be hidden.
    """
    stack = [(element, False, False)]
    while stack:
        node, in_link, in_cell = stack.pop()
        tag = node.tag if isinstance(node.tag, str) else ""
        if not tag or (node is not element and is_invisible(node, tag)):
            continue
        in_link, in_cell = in_link or tag in {"a", *CONTROLS}, in_cell or tag in CELLS
        yield node.text or "", in_link, in_cell
        for child in node:
            yield child.tail or "", in_link, in_cell
            stack.append((child, in_link, in_cell))


def words_in(element: Any) -> int:
    """Return the number of visible words of an element."""
    return sum(count(text) for text, _, _ in pieces(element))


def count(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))
