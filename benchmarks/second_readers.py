"""A second reading of each format that likewise reads, with the standard library and pdftotext alone."""

from __future__ import annotations

import csv
import email
import email.policy
import html
import io
import json
import mailbox
import re
import subprocess
import tempfile
import unicodedata
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from email.message import EmailMessage, MIMEPart
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+")
"""A word, or a letter of a script without spaces."""
_VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
}
_NEVER_SHOWN = {
    *("script", "style", "template", "title", "noscript", "noframes", "iframe", "object", "video", "audio", "canvas"),
    *("datalist", "rp", "annotation", "annotation-xml"),
}
_INLINE = {
    *("a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small", "span")
}
_INLINE |= {"strong", "sub", "sup", "tt", "u", "var", "wbr", "ruby", "rb"}
_OFFICE_ROOTS = (
    *("document", "hdr", "ftr", "footnotes", "endnotes", "comments", "ThreadedComments", "xml"),
    *("sld", "notes", "cmLst", "wsDr", "dataModel", "chartSpace", "userShapes", "sldLayout", "sldMaster"),
)
"""Local names of the roots of parts with words. Sheets are read by their cells."""
_OFFICE_OMITTED = {
    *("moveFrom", "del", "rPh", "instrText", "delText", "numCache", "numLit", "formatCode"),
}
_OFFICE_BREAKS = {
    "p",
    "si",
    "is",
    "br",
    "tab",
    "ptab",
    "cr",
    "tc",
    "comment",
    "pt",
    "cm",
    "threadedComment",
    "v",
    "ser",
}
_OPENDOCUMENT_OMITTED = {
    *("tracked-changes", "automatic-styles", "scripts", "font-face-decls", "forms", "creator", "date", "date-string"),
    *("title", "desc", "page-number", "page-count", "sheet-name", "time", "note-citation", "ruby-text"),
}


def words_of(text: str) -> Counter[str]:
    return Counter(_WORD.findall(unicodedata.normalize("NFKC", text).replace("\xad", "").casefold()))


def pdf_text(path: Path) -> str:
    return subprocess.run(["pdftotext", "-q", str(path), "-"], capture_output=True, check=True).stdout.decode()


def office_text(path: Path) -> str:
    """The texts of all parts of a Word, PowerPoint or Excel file that have any, by the name of their root.

    Left out are deletions, the codes and numbers of fields, readings of East Asian words, and numbers with a format.
    """
    parts = list[str]()
    with zipfile.ZipFile(path) as archive:
        names = dict.fromkeys(archive.namelist())
        roots = {name: root for name in names if (root := _root(archive, name)) is not None}
        links = b"".join(archive.read(name) for name in names if "slides/_rels" in name)
    by_kind: dict[str, list[ElementTree.Element]] = defaultdict(list)
    for name, root in roots.items():
        if _local(root) != "sldLayout" or name.rpartition("/")[2].encode() in links:
            by_kind[_local(root)].append(root)
    strings = [_office_words(item, "si") for root in by_kind["sst"] for item in root]
    formats = [xf.get("numFmtId") for root in by_kind["styleSheet"] for xf in root.findall("{*}cellXfs/{*}xf")]
    for root in by_kind["worksheet"]:
        parts += [_cell_words(cell, strings, formats) for cell in root.iter() if _local(cell) == "c"]
        codes = (each.text or "" for margin in root.iterfind("{*}headerFooter") for each in margin)
        parts += [re.sub(r'&(?:"[^"]*"|K[0-9A-F]{6}|\d+|[A-Z])', " ", code).replace("&&", "&") for code in codes]
    parts += [sheet.get("name", "") for root in by_kind["workbook"] for sheet in root.iterfind("{*}sheets/{*}sheet")]
    seen = set[str]()
    for kind in _OFFICE_ROOTS:
        for root in by_kind[kind]:
            if (words := _office_words(root, kind)) not in seen:  # one page header has a part for each section
                seen.add(words)
                parts.append(words)
    return "\n".join(parts)


def _root(archive: zipfile.ZipFile, name: str) -> ElementTree.Element | None:
    """The root of a part; None if it is not XML or is damaged."""
    try:
        return ElementTree.fromstring(archive.read(name)) if name.lower().endswith((".xml", ".vml")) else None
    except (ElementTree.ParseError, zipfile.BadZipFile, zlib.error):
        return None


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _office_words(root: ElementTree.Element, kind: str) -> str:
    parts = list[str]()

    def visit(element: ElementTree.Element) -> None:
        name = _local(element)
        if name in _OFFICE_OMITTED or (name == "fld" and element.get("type", "").startswith(("slidenum", "datetime"))):
            return
        placeholders = (each for each in element.iter() if _local(each) == "ph") if name == "sp" else iter(())
        types = [each.get("type", "") for each in placeholders]
        if types and (kind in {"sldMaster", "sldLayout"} or "sldNum" in types):  # slides do not show these prompts
            return
        if name in _OFFICE_BREAKS:
            parts.append("\n")
        if kind == "xml" and name == "textbox":  # of a control or a comment
            parts.append("\n" + "".join(element.itertext()))
        if name in {"t", "text"} or (name == "v" and kind == "chartSpace"):
            parts.append(element.text or "")
        parts.append(element.get("string", "") if name == "textpath" else "-" if name == "noBreakHyphen" else "")
        children = list(element)
        if name == "AlternateContent":
            children = sorted(children, key=lambda child: len(words_of(_office_words(child, kind))))[-1:]
        for child in children:
            visit(child)

    visit(root)
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), "".join(parts))


def _cell_words(cell: ElementTree.Element, strings: list[str], formats: list[str | None]) -> str:
    """Return what a cell shows. Numbers that Excel writes in another way, and fractions, are left out."""
    value, kind, style = cell.findtext("{*}v") or "", cell.get("t", "n"), int(cell.get("s", "0"))
    if kind == "s":
        return strings[int(value)] if value.isdecimal() and int(value) < len(strings) else ""
    if kind == "inlineStr":
        return _office_words(cell, "c")
    is_general = style >= len(formats) or formats[style] in {"0", "49", None}
    is_shown = kind in {"str", "e"} or (kind == "n" and is_general and re.fullmatch(r"-?\d{1,11}", value))
    return value if is_shown else ""


def opendocument_text(path: Path) -> str:
    """The text of the body, of the objects in it, and of the pages' headers and footers."""
    parts: list[str] = []

    def visit(element: ElementTree.Element) -> None:
        name = _local(element)
        if name in _OPENDOCUMENT_OMITTED or any(key.endswith("}placeholder") for key in element.attrib):
            return
        if name in {"p", "h", "tab", "line-break", "s", "table-cell", "annotation", "list-item"}:
            parts.append("\n")
        parts.append(element.text or "")
        for child in element:
            visit(child)
            parts.append(child.tail or "")

    if path.read_bytes().lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
        roots = [ElementTree.fromstring(path.read_bytes())]
    else:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(("content.xml", "styles.xml"))]
            roots = [root for name in names if (root := _root(archive, name)) is not None]
    for root in roots:
        for element in root.iter():
            if _local(element) in {"body", "master-page"} and "}" in element.tag:
                visit(element)
    return "".join(parts)


class _Page(HTMLParser):
    """Collects all text of a page, but for elements that no browser shows. Navigation and hidden blocks count."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unshown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_shadow = tag == "template" and any(name.startswith("shadowroot") for name, _ in attrs)
        if tag not in _VOID and (self._unshown or (tag in _NEVER_SHOWN and not is_shadow)):
            self._unshown.append(tag)
        if tag == "body":
            self._unshown.clear()
        self.parts.append("" if tag in _INLINE else " ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unshown:
            while self._unshown.pop() != tag:
                pass
        self.parts.append("" if tag in _INLINE else " ")

    def handle_data(self, data: str) -> None:
        if not self._unshown:
            self.parts.append(data)


def shown(page: str) -> str:
    parser = _Page()
    parser.feed(page)
    parser.close()
    return "".join(parser.parts)


def decoded(data: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark. Others have no second reader."""
    if b"\x1b" in data:
        raise ValueError("ISO-2022, which has no second reader")
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def html_text(path: Path) -> str:
    return shown(decoded(path.read_bytes()))


def epub_text(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if re.search(r"\.x?html?$", name) and "nav" not in name]
        return "\n".join(shown(decoded(archive.read(name))) for name in names)


def message_text(message: EmailMessage) -> str:
    """The headers that people read, and all parts. Of alternatives only the plain text, unless it is a stub."""
    texts = [str(message[name]) for name in ("subject", "from", "to", "cc") if message[name]]
    left_out = set[int]()
    for part in message.walk():
        if part.get_content_type() == "multipart/alternative":
            children = [child for child in part.iter_parts() if child.get_content_type() in {"text/plain", "text/html"}]
            words = {id(child): words_of(_part_text(child)) for child in children}
            children.sort(key=lambda child: child.get_content_type() != "text/plain")
            lacking = words[id(children[-1])] - words[id(children[0])] if children else Counter[str]()
            if children and 2 * lacking.total() > words[id(children[-1])].total():
                children.reverse()
            left_out |= {id(child) for child in children[1:]}
        elif not part.is_multipart() and id(part) not in left_out:
            texts.append(_part_text(part))
    return "\n".join(texts)


def _part_text(part: MIMEPart) -> str:
    """The text of a part of a message: a text as it is, a file by the second reader of its format."""
    try:
        content = part.get_content()
    except (LookupError, KeyError, UnicodeError, ValueError):
        return ""
    extension = Path(part.get_filename() or "").suffix.lower()
    if isinstance(content, bytes) and extension[1:] in {"pdf", "docx", "pptx", "xlsx", "odt", "ods", "odp", "rtf"}:
        with tempfile.NamedTemporaryFile(suffix=extension) as file:
            file.write(content)
            file.flush()
            return SECOND[extension[1:]](Path(file.name))
    if part.get_content_type() in {"text/calendar", "text/vcard", "text/x-vcard"}:
        folded = re.sub(r"\r?\n[ \t]", "", str(content))
        values = re.findall(r"^(?:SUMMARY|DESCRIPTION|LOCATION|FN|NOTE|ORG|TITLE)[^:\n]*:(.*)$", folded, re.MULTILINE)
        return re.sub(r"\\[nN]", "\n", "\n".join(values))
    if part.get_content_maintype() != "text":
        return ""
    is_page = part.get_content_type() == "text/html" or extension in {".html", ".htm"}
    return shown(str(content)) if is_page else str(content)


def mail_text(path: Path) -> str:
    if b"\0" in (data := path.read_bytes()):
        raise ValueError("not bytes of mail")
    if path.suffix == ".emlx":
        count, _, data = data.partition(b"\n")
        data = data[: int(count)]
    return message_text(email.message_from_bytes(data, policy=email.policy.default))


def mbox_text(path: Path) -> str:
    with closing(mailbox.mbox(path, create=False)) as box:
        raw = [box.get_bytes(key) for key in box.keys()]  # noqa: SIM118
    return "\n".join(message_text(email.message_from_bytes(one, policy=email.policy.default)) for one in raw)


def json_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for member in value.values():
            yield from json_texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from json_texts(member)
    elif isinstance(value, str):
        yield value


def jsonl_text(path: Path) -> str:
    return "\n".join(
        text for line in path.open(encoding="utf-8") if line.strip() for text in json_texts(json.loads(line))
    )


def notebook_text(path: Path) -> str:
    """The source of all cells, and their results as text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    results = (result for cell in cells for result in cell.get("outputs", ()))
    texts = ((result.get("data") or {}).get("text/plain", result.get("text", "")) for result in results)
    return "\n".join("".join(lines) for lines in (*(cell["source"] for cell in cells), *texts))


def table_text(path: Path) -> str:
    text = decoded(path.read_bytes())
    csv.field_size_limit(2**30)
    if path.suffix == ".tsv":
        return "\n".join(line.replace("\t", " ") for line in text.splitlines()[1:])
    try:
        dialect: Any = csv.Sniffer().sniff(text[:20_000], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    return "\n".join(" ".join(row) for row in list(csv.reader(io.StringIO(text), dialect))[1:])


def rtf_text(path: Path) -> str:
    """The words of an RTF file between its control words, without its tables of fonts, colours and styles."""
    raw = path.read_bytes().decode("latin-1")
    raw = re.sub(r"\{\\(?:fonttbl|colortbl|stylesheet|info|\*)(?:[^{}]|\{[^{}]*\})*\}", " ", raw)
    return re.sub(r"\\'[0-9a-f]{2}|\\u-?\d+\s?\??|\\[a-z]+-?\d* ?|[{}\\]", " ", raw)


def xml_text(path: Path) -> str:
    """Return the texts between the tags. In feeds, such a text is a page in HTML."""
    return shown(html.unescape(" ".join(ElementTree.fromstring(path.read_bytes()).itertext())))


SECOND: dict[str, Callable[[Path], str]] = {
    "pdf": pdf_text,
    **dict.fromkeys(("docx", "pptx", "xlsx"), office_text),
    **dict.fromkeys(("odt", "ods", "odp"), opendocument_text),
    "html": html_text,
    "epub": epub_text,
    **dict.fromkeys(("eml", "maildir"), mail_text),
    "mbox": mbox_text,
    "jsonl": jsonl_text,
    "ipynb": notebook_text,
    "csv": table_text,
    "tsv": table_text,
    "rtf": rtf_text,
    "xml": xml_text,
}
