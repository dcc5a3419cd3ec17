"""HTML: the main text by trafilatura, or the whole body if that finds too little; headings are sections."""

# ruff: noqa: PTH123
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from indexer.sources.content import Assembly, Content, Headings, Unreadable
from indexer.sources.encoding import ascii_compatible, bom_encoding, guess

_CHARSET = re.compile(rb"<meta[^>]+?charset\s*=\s*[\"']?([-\w.:]+)|<\?xml[^>]+?encoding=[\"']([-\w.]+)", re.IGNORECASE)
_DROPPED = {
    *(
        "script",
        "style",
        "noscript",
        "template",
        "nav",
        "aside",
        "footer",
        "button",
        "select",
        "iframe",
    ),
    *("object", "svg", "math", "title", "dialog"),
}
_BLOCKS = {
    *(
        "address",
        "article",
        "blockquote",
        "body",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "header",
    ),
    *("hr", "li", "main", "ol", "p", "pre", "section", "summary", "table", "tr", "ul"),
    *("quote", "list", "item", "row"),  # the names that trafilatura gives them
}
_LINES = {"dd", "dt", "li", "tr", "item", "row"}  # one newline before these, not a blank line


def read(path: str) -> Content:
    """The title is the page's own, og:title or the first heading."""
    import trafilatura

    with open(path, "rb") as file:
        tree = parse(file.read())
    if tree is None:
        return Content("")
    whole = Assembly()
    heading = write_body(tree, whole)
    metadata = {name: value for name in ("description", "author", "keywords") if (value := _meta(tree, name))}
    if language := tree.get("lang"):
        metadata["lang"] = language
    titles = (tree.findtext(".//title"), _meta(tree, "og:title"), heading)
    title = next((text for title in titles if (text := " ".join((title or "").split()))), "")
    found = trafilatura.bare_extraction(tree, favor_recall=True, include_comments=False, include_links=False)
    main = Assembly()
    if found is not None and found.body is not None:
        write_body(found.body, main)
    content, everything = main.content(title, metadata), whole.content(title, metadata)
    few, all_of_it = len(content.text), len(everything.text)
    too_little = few < 0.1 * all_of_it or (few < 200 and all_of_it > 2 * few)
    # Where it finds no structure, trafilatura gives one paragraph of all words, menus included. Unless that has far
    # more words, the blocks of everything are the better text; in any other case the shorter one lost something.
    gave_up = "\n" not in content.text and "\n" in everything.text and all_of_it > 0.5 * few
    return everything if too_little or gave_up else content


def parse(page: bytes | str) -> Any:
    """The root element; bytes in the declared encoding or the one that fits. None for an empty page."""
    from lxml import etree, html

    parser = html.HTMLParser(
        encoding="utf-8",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,  # or libxml2 cuts long scripts, images within the page and deep trees, silently
    )
    text = page if isinstance(page, str) else _decode(page)
    if not text.strip():
        return None
    try:
        tree = html.document_fromstring(text.encode("utf-8", errors="replace"), parser=parser)
    except etree.ParserError:  # nothing but comments
        return None
    if fatal := [error for error in parser.error_log if error.level == etree.ErrorLevels.FATAL]:
        raise Unreadable(f"damaged: read as far as line {fatal[0].line:,} ({fatal[0].message})")
    return tree


def write_body(tree: Any, into: Assembly, page: int | None = None) -> str:
    """Write an element's text in blocks, with a section at each heading; returns the first heading."""
    headings, first = Headings(), ""
    body = tree.find(".//body")
    for level, block, newlines in _blocks(tree if body is None else body):
        if level:
            first = first or " ".join(block.split())
            into.section(headings.enter(level, block), page)
        into.add(block, newlines)
    return first


def _blocks(tree: Any) -> Iterator[tuple[int, str, int]]:
    """(heading level or 0, text, newlines before it), in the order of the page."""
    parts: list[str] = []
    level, newlines, preformatted = 0, 2, 0

    def gathered() -> Iterator[tuple[int, str, int]]:
        block = "".join(parts) if preformatted else _SPACES.sub(_kept_space, "".join(parts))
        parts.clear()
        if block.strip():
            yield level, block.strip("\n"), newlines

    stack: list[tuple[Any, bool]] = [(tree, False)]
    while stack:
        element, leaving = stack.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if not leaving and element is not tree and (not tag or tag in _DROPPED or _is_hidden(element)):
            parts.append(_squeeze(element.tail, preformatted))
            continue
        own_level = _level(element, tag)
        verbatim = tag == "pre" or (tag == "code" and "\n" in (element.text or ""))
        if tag in _BLOCKS or own_level or verbatim:
            yield from gathered()
            level, newlines = 0 if leaving else own_level, 1 if tag in _LINES else 2
        elif leaving:
            pass
        elif tag in {"br", "lb"}:
            parts.append("\n")
        elif tag in {"td", "th", "cell"} and parts and "".join(parts).strip():
            parts.append("\t")
        if leaving:
            preformatted -= verbatim
            parts.append(_squeeze(element.tail, preformatted) if element is not tree else "")
        else:
            preformatted += verbatim
            parts.append(_squeeze(element.text, preformatted))
            stack.append((element, True))
            stack.extend((child, False) for child in reversed(element))
    yield from gathered()


def _level(element: Any, tag: str) -> int:
    name = (element.get("rend") or "h2") if tag == "head" else tag
    return int(name[1]) if re.fullmatch("h[1-6]", name) else 0


def _is_hidden(element: Any) -> bool:
    return element.get("hidden") is not None or element.get("aria-hidden") == "true"


def _squeeze(text: str | None, preformatted: int) -> str:
    return (text or "") if preformatted else re.sub(r"[ \t\r\n\f]+", " ", text or "")


_SPACES = re.compile(r" *[ \n\t]+ *")


def _kept_space(found: re.Match[str]) -> str:
    """Of a run of white space the newline, else the tab, else one space."""
    return next((space for space in "\n\t" if space in found[0]), " ")


def _meta(tree: Any, name: str) -> str:
    found = tree.xpath("//meta[@name=$name or @property=$name]/@content", name=name)
    return " ".join(found[0].split()) if found else ""


def _is_wide(encoding: str) -> bool:
    """Whether this is UTF-16 or UTF-32, which a page that is read byte by byte cannot be in."""
    return encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32")) and not ascii_compatible(encoding)


def _decode(data: bytes) -> str:
    """Byte order mark, then a declared charset, then UTF-8, then a guess; what does not fit is U+FFFD."""
    found = _CHARSET.search(data[:4096])
    declared = bom_encoding(data) or ((found[1] or found[2]).decode() if found else "")
    if declared.lower() in {"iso-8859-1", "latin-1", "latin1", "ascii", "us-ascii"}:
        declared = "windows-1252"  # as browsers do
    elif found and not bom_encoding(data) and _is_wide(declared):
        declared = "utf-8"  # as the HTML standard says: a page in UTF-16 could not have declared it readably
    try:
        return data.decode(declared or "utf-8", errors="replace" if declared else "strict")
    except (LookupError, UnicodeError):
        return data.decode(guess(data) or "utf-8", errors="replace")
