"""Words of files that are missing in what likewise reads of them, found by a second reader of each format.

    LIKEWISE_EVAL_DATA=... python -m benchmarks.extraction [--list] [FILE|FOLDER...]

Without a FILE or FOLDER it reads all documents of LIKEWISE_EVAL_DATA/data, and all files that the tests of the readers
make. Second readers: pdftotext, the raw XML of Office files, Python's html, email, json and csv; a text in UTF-8 must
be the file itself. Hidden text, navigation and forms of web pages do not count. "reported" are the files that the
ledger names, because reading them or a part of them failed; their words are not compared. --list names each file with
missing words, and why a file is reported.
"""

from __future__ import annotations

import argparse
import csv
import email
import email.policy
import html
import io
import json
import mailbox
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.machine import machine
from indexer.ledger import Code
from indexer.sources import Entry, ReadOptions, open_sources, read
from indexer.sources.formats import FORMATS, TEXT
from indexer.stores.addresses.open import holds_store

ROOT = Path(__file__).parents[1]
_WORD = re.compile(r"\w+")
_UNWANTED = re.compile(r"[\W_]+|[\x00-\x08]")
_VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
}
_UNSHOWN = {
    *(
        "script",
        "style",
        "template",
        "title",
        "noscript",
        "noframes",
        "iframe",
        "object",
        "video",
        "audio",
        "canvas",
        "datalist",
    ),
    *("nav", "button", "select", "head", "rp", "annotation", "annotation-xml"),
}
_HARMLESS = {Code.NONE, Code.PAGE_WITHOUT_NAVIGATION}
_OFFICE_PARTS = re.compile(
    r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml"
    r"|ppt/(?:slides|notesSlides|comments)/[^/]+\.xml"
    r"|xl/(?:sharedStrings|worksheets/[^/]+|comments/?[^/]*)\.xml"
)


def words_of(text: str) -> Counter[str]:
    return Counter(_WORD.findall(unicodedata.normalize("NFKC", text).replace("\xad", "").casefold()))


def squeezed(text: str) -> str:
    """The letters and digits of a text alone: a word that a line end divides is in it."""
    return _UNWANTED.sub("", unicodedata.normalize("NFKC", text).casefold())


def pdf_text(path: Path) -> str:
    return subprocess.run(["pdftotext", "-q", str(path), "-"], capture_output=True, check=True).stdout.decode()


def office_text(path: Path) -> str:
    """The text elements of a Word, PowerPoint or Excel file, but for what was deleted or moved away."""
    parts, seen = list[str](), set[bytes]()

    def visit(element: ElementTree.Element) -> None:
        name = element.tag.rpartition("}")[2]
        if name in {"moveFrom", "del", "Fallback", "rPh"}:
            return
        if name in {"p", "si", "is", "br", "tab", "cr"}:
            parts.append("\n")
        if name in {"t", "text"}:
            parts.append(element.text or "")
        for child in element:
            visit(child)

    with zipfile.ZipFile(path) as archive:
        for member in filter(_OFFICE_PARTS.fullmatch, archive.namelist()):
            if (data := archive.read(member)) not in seen:  # one page header has a part for each section
                seen.add(data)
                visit(ElementTree.fromstring(data))
                parts.append("\n")
    return "".join(parts)


def opendocument_text(path: Path) -> str:
    if path.suffix.lower().startswith(".f"):
        root = ElementTree.fromstring(path.read_bytes())
        root = next(element for element in root.iter() if element.tag.endswith("}body"))
    else:
        with zipfile.ZipFile(path) as archive:
            root = ElementTree.fromstring(archive.read("content.xml"))
    parts: list[str] = []

    def visit(element: ElementTree.Element) -> None:
        name = element.tag.rpartition("}")[2]
        if name in {
            "tracked-changes",
            "automatic-styles",
            "scripts",
            "font-face-decls",
            "forms",
            "creator",
            "date",
            "title",
            "desc",
        }:
            return
        if name in {"p", "h", "tab", "line-break", "s", "table-cell", "annotation"}:
            parts.append("\n")
        parts.append(element.text or "")
        for child in element:
            visit(child)
            parts.append(child.tail or "")

    visit(root)
    return "".join(parts)


class _Page(HTMLParser):
    """Collects the shown words of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unshown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        style = re.sub(r"\s", "", values.get("style") or "")
        hidden = "hidden" in values or "display:none" in style or "visibility:hidden" in style
        hidden |= values.get("role") in {"navigation", "menu", "menubar"} or values.get("aria-hidden") == "true"
        if tag not in _VOID and (self._unshown or tag in _UNSHOWN or hidden):
            self._unshown.append(tag)
        if tag == "body":
            self._unshown.clear()
        self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unshown:
            while self._unshown.pop() != tag:
                pass
        self.parts.append(" ")

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
    """The headers that people read, the plain text or else the page, and the texts that are attached."""
    headers = [str(message[name]) for name in ("subject", "from", "to") if message[name]]
    texts: list[str] = []
    kinds = {part.get_content_type() for part in message.walk()}
    for part in message.walk():
        kind = part.get_content_type()
        if kind == "text/plain" or (kind == "text/html" and "text/plain" not in kinds):
            try:
                content = str(part.get_content())
            except (LookupError, KeyError, UnicodeError):
                continue
            texts.append(shown(content) if kind == "text/html" else content)
    return "\n".join(headers + texts)


def mail_text(path: Path) -> str:
    if b"\0" in (data := path.read_bytes()):
        raise ValueError("not bytes of mail")
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
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


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
    """The texts between the tags, which are pages themselves in feeds."""
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


@dataclass
class Result:
    """What was compared of the files of one format."""

    files: int = 0
    words: int = 0
    missing: int = 0
    reported: int = 0
    uncompared: int = 0
    notes: list[str] = field(default_factory=list)


def text_of(entries: list[Entry]) -> str:
    """All that can be found of a file: texts, titles, ids and fields."""
    parts: list[str] = []
    for entry in entries:
        if (document := entry.document) is not None:
            parts += [
                document.text,
                document.title,
                *json_texts(dict(document.metadata)),
                document.uri.rpartition("/")[2],
            ]
            parts += [str(value) for value in document.metadata.values() if not isinstance(value, str)]
    return "\n".join(parts)


def missing_words(expected: str, text: str) -> Counter[str]:
    """Words of one text that another has less often, though neither divided nor joined."""
    short = words_of(expected) - words_of(text)
    whole = squeezed(text) if short else ""
    needed = words_of(expected)
    return Counter({word: count for word, count in short.items() if whole.count(squeezed(word)) < needed[word]})


def compare(path: Path, options: ReadOptions, results: dict[str, Result]) -> None:
    """Compare one file, and count it under its format."""
    entries = [
        entry
        for source in open_sources([str(path)], options, holds_store)
        for entry in read(source, options, lambda _: None)
    ]
    documents = [entry.document for entry in entries if entry.document is not None]
    kind = (documents[0].format if documents else None) or path.suffix[1:].lower()
    if documents and kind == "eml" and "#" in documents[0].uri:
        kind = "mbox"
    result = results[kind]
    result.files += 1
    reasons = [note.text() for entry in entries for note in (entry.reason, *entry.notes) if note.code not in _HARMLESS]
    if reasons:
        result.reported += 1
        result.notes.append(f"{path}: reported: {reasons[0]}")
        return
    try:
        if (second := SECOND.get(kind)) is not None:
            expected = second(path)
        else:
            expected = decoded(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")
            if FORMATS.get(path.suffix.lower(), TEXT).kind != "text" or "\0" in expected:
                raise ValueError("no second reader")
    except Exception as error:  # noqa: BLE001 the tests make damaged files of every kind
        result.uncompared += 1
        result.notes.append(f"{path}: not compared: {error}")
        return
    lost = missing_words(expected, text_of(entries))
    if second is None and [document.text.replace("\r\n", "\n").replace("\r", "\n") for document in documents] != [
        expected
    ]:
        lost["(not the file)"] += 1
    result.words += words_of(expected).total()
    result.missing += lost.total()
    if lost:
        result.notes.append(f"{path}: {lost.total()} missing: {' '.join(word for word, _ in lost.most_common(12))}")


def files_of_tests(folder: Path) -> Path:
    """Run the tests of the readers, and return the folder of the files that they made."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "tests/parts/readers",
        "tests/engine/sources",
        "--basetemp",
        str(folder / "made"),
    ]
    command += ["-o", "tmp_path_retention_policy=all"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder / "made"


def walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.endswith((".index", "current")) and name != ".likewise"
        )
        yield from (Path(parent, name) for name in sorted(names) if Path(parent, name).is_file())


def report(title: str, files: Iterator[Path], *, listed: bool) -> int:
    results: dict[str, Result] = defaultdict(Result)
    options = ReadOptions(ignore=False)
    for path in files:
        compare(path, options, results)
    print(f"{title}\n\n| format | files | words | missing | reported | not compared |\n{'| --- ' * 6}|")
    for kind, result in sorted(results.items()):
        counts = (result.files, result.words, result.missing, result.reported, result.uncompared)
        print(f"| {kind} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    print(flush=True)
    if listed:
        print("\n".join(note for _, result in sorted(results.items()) for note in result.notes))
    return sum(result.missing for result in results.values())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    print(f"{machine()}\n")
    for path in arguments.paths:
        report(path.name, walk(path) if path.is_dir() else iter([path]), listed=arguments.list)
    if not arguments.paths:
        data = Path(os.environ["LIKEWISE_EVAL_DATA"]) / "data"
        report("documents of the evaluation data", walk(data), listed=arguments.list)
        folder = Path(tempfile.mkdtemp(prefix="likewise-extraction-"))
        try:
            report("files of the tests", walk(files_of_tests(folder)), listed=arguments.list)
        finally:
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
