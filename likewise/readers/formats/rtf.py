"""RTF with striprtf: paragraphs, and tables with a row a line; notes, text boxes, page headers and footers at the end.

striprtf leaves out notes, headers, footers and text boxes, writes "|" between cells, and breaks the line at each
paragraph of a cell. So the source is rewritten first: these parts become paragraphs at the end, and the control words
of tables become tabs and blanks.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import codecs
import re
from dataclasses import replace

from indexer.ledger import Code
from indexer.sources.content import Assembly, Content, Unreadable

_TOKEN = re.compile(r"\\([a-zA-Z]+)(-?\d+)? ?|\\[^a-zA-Z]|[{}]|[^\\{}]+")
_ASIDES = {
    *("footnote", "annotation", "shptxt", "dptxbxtext"),
    *("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"),
}
_PROPERTIES = {"title", "author"}
_DISCARDED = {"colorschememapping", "datastore", "fontemb", "objdata", "pict", "themedata"}  # megabytes of digits
_CODE_PAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_BLANK = "\\enspace "  # within a cell; not a plain blank, which would end a control word before it
_IN_CELLS = {"par": _BLANK, "line": _BLANK, "tab": _BLANK, "sect": _BLANK, "page": _BLANK}
_REPLACED = {"cell": "\\tab ", "nestcell": _BLANK, "nestrow": _BLANK, "par": "\\par\\par "}


def read(path: str) -> Content:
    """Read a file. Title and author are the document's properties."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.lstrip().startswith(b"{\\rtf"):
        raise Unreadable(Code.NOT_RTF())
    source = _Source(_ascii(data))
    text = _text(source.text, source.code_page)
    assembly, gap, after_row = Assembly(), 2, False
    for line in text.split("\n"):
        is_row = line.endswith("\t")
        if line.strip():
            cells = (" ".join(cell.split()) for cell in line.split("\t"))
            block = "\t".join(cells).rstrip() if is_row else line.rstrip()
            assembly.add(block, 2 if is_row != after_row else gap)
        gap, after_row = 1 if line.strip() else 2, is_row
    properties = {
        name: " ".join(_text("{\\rtf1 " + "".join(rtf) + "}", source.code_page).split())
        for name, rtf in source.properties.items()
    }
    content = assembly.content(
        properties.pop("title", ""), {name: value for name, value in properties.items() if value}
    )
    return replace(content, unread=(Code.RTF_CUT_OFF(),)) if source.is_cut_off else content


class _Source:
    """RTF that striprtf reads completely.

    Attributes:
        properties: RTF of the properties, by name.
        code_page: the encoding if the file names none.
        is_cut_off: whether a group is not closed.
    """

    def __init__(self, rtf: str) -> None:
        self.properties: dict[str, list[str]] = {}
        self.code_page = "cp1252"
        self._body: list[str] = []
        self._asides: list[list[str]] = []
        self._target, self._in_cell = self._body, False
        self._groups: list[tuple[list[str], bool]] = []
        position = 0
        while match := _TOKEN.match(rtf, position):
            position = match.end()
            if match[0] == "{":
                self._groups.append((self._target, self._in_cell))
                self._target.append("{")
            elif match[0] == "}":
                self._close()
                if not self._groups:
                    break
            elif match[1] == "bin":  # bytes of a picture, which may be any
                position += max(0, int(match[2] or 0))
            else:
                self._write(match[0], match[1] or "")
        self.is_cut_off = bool(self._groups)
        while self._groups:
            self._close()

    @property
    def text(self) -> str:
        """The whole file, with notes and similar parts at the end."""
        asides = "".join("{\\pard\\par\\par " + "".join(aside) + "}" for aside in self._asides)
        return "".join(self._body[:-1]) + asides + "}"

    def _close(self) -> None:
        """Close a group, also in the part of the file that its content went to."""
        if not self._groups:
            return
        outer, self._in_cell = self._groups.pop()
        self._target.append("}")
        if outer is not self._target:
            outer.append("}")
        self._target = outer

    def _write(self, token: str, word: str) -> None:
        if word in _ASIDES or word in _DISCARDED or (word in _PROPERTIES and self._target[-1] == "{"):
            self._target = ["{"]
            if word in _ASIDES:
                self._asides.append(self._target)
            elif word in _PROPERTIES:
                self.properties.setdefault(word, self._target)
            return
        if word in {"intbl", "pard"}:
            self._in_cell = word == "intbl"
        if word == "ansicpg" and _is_codec(code_page := f"cp{token[8:].strip()}"):
            self.code_page = code_page
        self.code_page = _CODE_PAGES.get(word, self.code_page)
        if word == "field":
            token += "\n"  # striprtf would write the address of a link, and searches for it in quadratic time
        replaced = _REPLACED.get(word, token)
        self._target.append(_IN_CELLS.get(word, replaced) if self._in_cell else replaced)


def _is_codec(name: str) -> bool:
    try:
        codecs.lookup(name)
    except LookupError:
        return False
    return True


def _text(rtf: str, code_page: str) -> str:
    """Return the text of RTF. Characters beyond the first plane, which RTF writes as two, are one each."""
    from striprtf.striprtf import rtf_to_text

    text: str = rtf_to_text(rtf, code_page, errors="replace")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _ascii(data: bytes) -> str:
    """Return RTF with bytes beyond ASCII as escapes. UTF-8 becomes code units; a code page becomes bytes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return re.sub(rb"[\x80-\xff]", lambda byte: b"\\'%02x" % byte[0][0], data).decode("ascii")

    def escaped(character: re.Match[str]) -> str:
        units = character[0].encode("utf-16-le")
        pairs = (int.from_bytes(units[start : start + 2], "little") for start in range(0, len(units), 2))
        return "{\\uc1" + "".join(f"\\u{unit} ?" for unit in pairs) + "}"

    return re.sub(r"[^\x00-\x7f]", escaped, text)
