"""Packages of Office files (DOCX, PPTX, XLSX): parts in a zip file, which relationships connect by their types.

Parts have any names: `word/document2.xml`, `xl\\Sheet1.XML`. Relationships say what they are, so parts are found by
type. A part that is missing or damaged costs that part and a note, never the file.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from posixpath import dirname, normpath, split
from typing import IO, Any, Self
from urllib.parse import unquote

from lxml import etree

from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Unreadable
from likewise.readers import archive, inside
from likewise.readers.formats import xml

_MAIN_PARTS = ("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml")
"""Usual names of the main part, for packages without relationships."""
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_SCHEMAS = "http://schemas.openxmlformats.org"
_NAMESPACES = {
    "w": f"{_SCHEMAS}/wordprocessingml/2006/main",
    "p": f"{_SCHEMAS}/presentationml/2006/main",
    "x": f"{_SCHEMAS}/spreadsheetml/2006/main",
    "a": f"{_SCHEMAS}/drawingml/2006/main",
    "dgm": f"{_SCHEMAS}/drawingml/2006/diagram",
    "r": f"{_SCHEMAS}/officeDocument/2006/relationships",
    "m": f"{_SCHEMAS}/officeDocument/2006/math",
    "mc": f"{_SCHEMAS}/markup-compatibility/2006",
    "v": "urn:schemas-microsoft-com:vml",
}
_BESIDE = {
    **{"comments": "Comments", "threadedComment": "Comments"},
    **dict.fromkeys(("chart", "chartEx", "chartUserShapes"), "Chart"),
}
"""Kinds of parts that hold words beside the text, with the heading of their section."""


@cache
def qn(name: str) -> str:
    """Return the qualified name for a prefix and a name, such as "w:p"."""
    prefix, _, local = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


@dataclass(frozen=True, slots=True)
class Relationship:
    """A relationship of a part to another one.

    Attributes:
        kind: the last word of its type: "officeDocument", "slide", "comments". Both namespaces have the same words.
        part: the name of the other part; empty if it is not in the package.
    """

    kind: str
    part: str


class OfficePackage:
    """An Office file that is open for reading. Names of parts have slashes, no slash before them, and lower case.

    Attributes:
        main: the name of the main part.
    """

    def __init__(self, path: str) -> None:
        """Open a package.

        Raises:
            Unreadable: it is a zip bomb, encrypted, not a zip file, or has no main part.
        """
        archive.check(path)
        self._zip = zipfile.ZipFile(path)
        self._members = {_part_name(member.filename): member for member in self._zip.infolist()}
        self._relationships: dict[str, Mapping[str, Relationship]] = {}
        self._damaged: dict[str, str] = {}
        self._missing: dict[str, None] = {}
        self._embedded: dict[str, None] = {}
        usual = (name for name in _MAIN_PARTS if name in self._members)
        self.main = next(self.related("", "officeDocument"), None) or next(usual, "")
        if not self.main:
            raise Unreadable(Code.NO_MAIN_PART())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self._zip.close()

    def main_root(self, name: str, wrong: Code) -> Any:
        """Return the root of the main part.

        Args:
            name: the local name that the root must have: "document", "presentation" or "workbook".
            wrong: the reason for a package of another program.

        Raises:
            Unreadable: it has another name, or is damaged.
        """
        root = self.xml(self.main)
        if root is None:
            raise Unreadable(Code.WRONG_XML(f"{self.main}: {self._damaged[self.main]}"))
        if local_name(root) != name:
            raise Unreadable(wrong(local_name(root)))
        return root

    def relationships(self, part: str) -> Mapping[str, Relationship]:
        """Return the relationships of a part by their id; of the package for an empty name."""
        if part not in self._relationships:
            folder, name = split(part)
            rels = f"{folder}/_rels/{name}.rels".lstrip("/")
            root = self.xml(rels) if rels in self._members else None
            elements = () if root is None else root.iter("{*}Relationship")
            self._relationships[part] = {each.get("Id", ""): self._relationship(part, each) for each in elements}
        return self._relationships[part]

    def _relationship(self, source: str, element: Any) -> Relationship:
        kind = element.get("Type", "").rpartition("/")[2]
        target = element.get("Target", "").replace("\\", "/").partition("#")[0]
        if kind == "subDocument":  # a part of a book in a file of its own
            self._missing[target] = None
        if element.get("TargetMode") == "External" or kind == "hyperlink" or not target or "://" in target:
            return Relationship(kind, "")
        whole = target if target.startswith("/") else f"/{dirname(source)}/{target}"
        names = (_part_name(normpath(each)) for each in (whole, unquote(whole)))
        part = next((name for name in names if name in self._members), "")
        if not part:
            self._missing[target] = None
        return Relationship(kind, part)

    def related(self, part: str, *kinds: str) -> Iterator[str]:
        """Yield the parts to which a part has a relationship of one of these kinds, in the order of its file."""
        found = (each.part for each in self.relationships(part).values() if each.kind in kinds and each.part)
        yield from dict.fromkeys(found)

    def target(self, part: str, identifier: str | None) -> str:
        """Return the part to which a relationship leads, by its id; empty if there is none in the package."""
        relationship = self.relationships(part).get(identifier or "")
        if relationship is None:
            self._missing[identifier or part] = None
        return relationship.part if relationship else ""

    def walk(self) -> Iterator[Relationship]:
        """Yield each part that relationships reach from the main part, once, the nearest first.

        Embedded files are noted, but for the workbook that a chart shows.
        """
        reached, queue = {self.main}, [Relationship("officeDocument", self.main)]
        for source in queue:  # it grows during the walk
            yield source
            for each in self.relationships(source.part).values():
                if each.kind in {"package", "oleObject"} and source.kind not in {"chart", "chartEx"} and each.part:
                    self._embedded[each.part] = None
                elif each.part and each.part not in reached:
                    reached.add(each.part)
                    queue.append(each)

    def open(self, part: str) -> IO[bytes]:
        """Open a part as a stream. Both namespaces and alternates are as they were written."""
        return self._zip.open(self._members[part])

    def elements(self, part: str, *names: str) -> Iterator[Any]:
        """Yield the elements of a part with these local names, one at a time: an element is gone with the next one.

        A damaged part is noted, and read as far as possible.
        """
        if part not in self._members:
            return
        tags = [f"{{*}}{name}" for name in names]
        try:
            with self.open(part) as stream:
                parser = etree.iterparse(stream, tag=tags, recover=True, **xml.SAFE)
                for _, element in parser:
                    yield element
                    while element.getprevious() is not None:
                        del element.getparent()[0]
        except (etree.XMLSyntaxError, *archive.DAMAGED) as error:
            self.note_damage(part, str(error))
        else:
            if parser.error_log:
                self.note_damage(part, parser.error_log[0].message)

    def note_damage(self, part: str, error: str) -> None:
        """Note that a part is damaged. The first damage of each part is noted."""
        self._damaged.setdefault(part, error)

    def data(self, part: str) -> bytes | None:
        """Return the bytes of a part; None if it is not in the package, or is damaged. A damaged part is noted."""
        if part not in self._members:
            return None
        try:
            return self._zip.read(self._members[part])
        except archive.DAMAGED as error:
            self.note_damage(part, str(error))
            return None

    def xml(self, part: str) -> Any:
        """Return the root of a part; None if it is not in the package, or is damaged. A damaged part is noted.

        Strict namespaces become transitional ones. Each `mc:AlternateContent` becomes one of its alternates. XML with a
        fault is read as far as possible.
        """
        data = self.data(part)
        if data is None:
            return None
        try:
            root = xml.parse(data)
        except etree.XMLSyntaxError as error:
            self.note_damage(part, error.msg)
            root = None
            with suppress(etree.XMLSyntaxError):  # there is nothing in it to recover
                root = xml.parse(data, recover=True)
        if root is None:
            return None
        if any(_STRICT.match(uri.encode()) for uri in root.nsmap.values()):
            root = xml.parse(_STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", etree.tostring(root)))
        _choose_alternates(root)
        return root

    def property(self, name: str) -> str:
        """Return a property of the document, such as "title" or "creator"; empty if it has none."""
        return self._properties.get(name, "")

    @cached_property
    def _properties(self) -> Mapping[str, str]:
        roots = (root for part in self.related("", "core-properties") if (root := self.xml(part)) is not None)
        return {local_name(each): (each.text or "").strip() for each in next(roots, ())}

    def notes(self) -> tuple[Reason, ...]:
        """Return the notes on parts that were passed over so far."""
        damaged = [Code.PART_DAMAGED(part, error) for part, error in self._damaged.items()]
        missing = [Code.PARTS_MISSING(", ".join(self._missing))] if self._missing else []
        names = [self._members[part].filename.rpartition("/")[2] for part in self._embedded]
        return (*damaged, *missing, *inside.files(names))


def _part_name(name: str) -> str:
    """Return the name under which a part is compared, as the format asks: without case, and with slashes."""
    return name.replace("\\", "/").lstrip("/").lower()


def _choose_alternates(root: Any) -> None:
    """Replace each `mc:AlternateContent` by its first choice with words, or else by its fallback."""
    for element in list(root.iter(qn("mc:AlternateContent"))):
        choices, fallbacks = element.findall(qn("mc:Choice")), element.findall(qn("mc:Fallback"))
        readable = (each for each in choices if _says_something(each))
        chosen = next(readable, None)
        if chosen is None:
            chosen = next(iter(fallbacks or choices), ())
        parent = element.getparent()
        if parent is not None:
            position = parent.index(element)
            parent[position : position + 1] = list(chosen)


def _says_something(choice: Any) -> bool:
    names = ((local_name(each), each.text) for each in choice.iter())
    return any(name in {"chart", "relIds"} or (name == "t" and text) for name, text in names)


def local_name(element: Any) -> str:
    """Return an element's name without its namespace; empty if it is not an element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def add_comments_and_charts(package: OfficePackage, into: Assembly) -> None:
    """Add each part that holds comments, and the words of each chart, as a section. The numbers of charts are left out.

    Excel writes the text of a thread of comments into a plain comment too, with advice round it: that one is left out.
    """
    reached = [each for each in package.walk() if each.kind in _BESIDE]
    roots = [(each.kind, root) for each in reached if (root := package.xml(each.part)) is not None]
    threads = [text for kind, root in roots if kind == "threadedComment" for text in _comments(root)]
    for kind, root in roots:
        into.section(_BESIDE[kind])
        texts = dict.fromkeys(_chart_words(root)) if _BESIDE[kind] == "Chart" else _comments(root)
        for text in texts:
            if kind != "comments" or not any(thread and thread in text for thread in threads):
                into.add(text, newlines=1)


def diagram_words(package: OfficePackage, part: str, reference: Any) -> str:
    """Return the words of SmartArt, one line per shape.

    Args:
        reference: the `dgm:relIds` in the part, which names the data of the diagram.
    """
    root = package.xml(package.target(part, reference.get(qn("r:dm"))))
    points = () if root is None else root.iter(qn("dgm:pt"))
    return "\n".join(line for line in (" ".join(_runs(point).split()) for point in points) if line)


def _comments(root: Any) -> Iterator[str]:
    for element in root.iter():
        if local_name(element) in {"comment", "cm", "threadedComment"}:
            yield " ".join(_runs(element).split())


def _chart_words(root: Any) -> Iterator[str]:
    """Yield the title, the names of axes and series, and the categories."""
    for element in root.iter():
        name = local_name(element)
        if name == "p":
            yield " ".join(_runs(element).split())
        elif name in {"strCache", "strLit", "strDim"}:
            yield from (value.text or "" for value in element.iter("{*}v", "{*}pt"))
        elif name in {"tx", "txData"}:  # a name that refers to no cell
            yield from (value.text or "" for value in element.iterchildren("{*}v"))


def _runs(element: Any) -> str:
    """Return the text of an element, whose words may be cut into runs, with a blank before each paragraph."""
    names = ((local_name(part), part.text or "") for part in element.iter())
    return "".join(" " if name in {"p", "br"} else text for name, text in names if name in {"p", "br", "t", "text"})
