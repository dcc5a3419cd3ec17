"""HTML: the main text by trafilatura, or the whole body if trafilatura finds too little; headings are sections."""

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
_LINES = {"dd", "dt", "li", "tr", "item", "row"}  # these have one newline before them, not a blank line


def read(path: str) -> Content:
    """Read a file. Its title is that of the page, its og:title or its first heading."""
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
    extracted = trafilatura.bare_extraction(tree, favor_recall=True, include_comments=False, include_links=False)
    main = Assembly()
    if extracted is not None and extracted.body is not None:
        write_body(extracted.body, main)
    content, everything = main.content(title, metadata), whole.content(title, metadata)
    length, whole_length = len(content.text), len(everything.text)
    too_little = length < 0.1 * whole_length or (length < 200 and whole_length > 2 * length)
    # Where trafilatura finds no structure, it returns one paragraph of all words, menus included. The blocks of the
    # whole body are the better text then, unless that paragraph has far more words.
    has_lost_structure = "\n" not in content.text and "\n" in everything.text and whole_length > 0.5 * length
    return everything if too_little or has_lost_structure else content


def parse(page: bytes | str) -> Any:
    """Return the root element of a page; None if the page is empty.

    Args:
        page: bytes are decoded by the declared encoding, or one that fits.

    Raises:
        Unreadable: the page is damaged.
    """
    from lxml import etree, html

    parser = html.HTMLParser(
        encoding="utf-8",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,  # without it libxml2 silently cuts long scripts, inline images and deep trees
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
    """Write an element's text in blocks, with a section at each heading; return the first heading."""
    headings, first = Headings(), ""
    body = tree.find(".//body")
    for level, block, newlines in _blocks(tree if body is None else body):
        if level:
            first = first or " ".join(block.split())
            into.section(headings.enter(level, block), page)
        into.add(block, newlines)
    return first


def _blocks(tree: Any) -> Iterator[tuple[int, str, int]]:
    """Yield heading level (or 0), text and number of newlines before it, in the order of the page."""
    parts: list[str] = []
    level, newlines, preformatted = 0, 2, 0

    def take_block() -> Iterator[tuple[int, str, int]]:
        block = "".join(parts) if preformatted else _SPACES.sub(_one_space, "".join(parts))
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
            yield from take_block()
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
    yield from take_block()


def _level(element: Any, tag: str) -> int:
    name = (element.get("rend") or "h2") if tag == "head" else tag
    return int(name[1]) if re.fullmatch("h[1-6]", name) else 0


def _is_hidden(element: Any) -> bool:
    return element.get("hidden") is not None or element.get("aria-hidden") == "true"


def _squeeze(text: str | None, preformatted: int) -> str:
    return (text or "") if preformatted else re.sub(r"[ \t\r\n\f]+", " ", text or "")


_SPACES = re.compile(r" *[ \n\t]+ *")


def _one_space(match: re.Match[str]) -> str:
    """Return a newline if the white space has one, else a tab if it has one, else a space."""
    return next((space for space in "\n\t" if space in match[0]), " ")


def _meta(tree: Any, name: str) -> str:
    contents = tree.xpath("//meta[@name=$name or @property=$name]/@content", name=name)
    return " ".join(contents[0].split()) if contents else ""


def _is_wide(encoding: str) -> bool:
    """Return whether this is UTF-16 or UTF-32: a page in one of them could not declare it in readable bytes."""
    return encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32")) and not ascii_compatible(encoding)


def _decode(data: bytes) -> str:
    """Decode by byte order mark, declared charset, UTF-8 or a guess, in this order; wrong bytes become U+FFFD."""
    match = _CHARSET.search(data[:4096])
    declared = bom_encoding(data) or ((match[1] or match[2]).decode() if match else "")
    if declared.lower() in {"iso-8859-1", "latin-1", "latin1", "ascii", "us-ascii"}:
        declared = "windows-1252"  # as browsers do
    elif match and not bom_encoding(data) and _is_wide(declared):
        declared = "utf-8"  # as the HTML standard says
    try:
        return data.decode(declared or "utf-8", errors="replace" if declared else "strict")
    except (LookupError, UnicodeError):
        return data.decode(guess(data) or "utf-8", errors="replace")
