"""RTF with striprtf: paragraphs, and tables with a row a line; notes, text boxes, page headers and footers at the end.

striprtf leaves out notes, headers, footers and text boxes, writes "|" between cells, and breaks the line at each
paragraph of a cell. So the source is rewritten first: these parts become paragraphs at the end, the control words of
tables become tabs and blanks, and hidden and deleted text is left out.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import re
from dataclasses import replace

from indexer.ledger import Code, Reason
from indexer.sources.content import Assembly, Content, Unreadable
from indexer.sources.encoding import codec_of

_TOKEN = re.compile(r"\\([a-zA-Z]+)(-?\d+)? ?|\\[^a-zA-Z]|[{}]|[^\\{}]+")
_ASIDES = {
    *("footnote", "annotation", "shptxt", "dptxbxtext"),
    *("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"),
}
_PROPERTIES = {"title", "author"}
_DISCARDED = {"colorschememapping", "datastore", "fontemb", "objdata", "pict", "themedata"}  # megabytes of digits
_HIDING = {"v", "deleted"}
_SHOWN = re.compile(r"\\(u-?\d|[^a-zA-Z]|(?:tab|bullet|e[mn]dash|[lr](?:dbl)?quote)\b)|[^\\]")
_FORMATTING = {"b", "cf", "cs", "ds", "f", "fs", "i", "lang", "pard", "plain", "rtlch", "ltrch", "s", "ts", "ul"}
_BINARY = re.compile(rb"\\\\|\\bin(\d+) ?")
_FONT_WITHOUT_CHARSET = re.compile(r"(\{\\f\d+)(?![^{}]*\\fcharset)")
_CHARSETS = {78: 128, 79: 136, 80: 129, 82: 177, 85: 134, 86: 238, 87: 204, 88: 222, 89: 238}
"""Character sets of Windows by those of Mac OS for which Python has no codec. Their letters beyond ASCII may differ."""

_CODE_PAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_BLANK = "\\enspace "  # within a cell; not a plain blank, which would end a control word before it
_IN_CELLS = {"par": _BLANK, "line": _BLANK, "tab": _BLANK, "sect": _BLANK, "page": _BLANK}
_FORMULA = (
    "moMath moMathPara mmath mr me mf mnum mden mfunc mfName mnary msub msup msSub msSup msSubSup msPre mrad mdeg"
)
_SEEN = {
    *("pntext", "object", "result"),
    *_FORMULA.split(),
    *("md", "mm", "mmr", "macc", "mbar", "mbox", "meqArr", "mlim"),
}
"""Destinations that word processors show and striprtf leaves out: numbers of lists, objects and formulas."""
_REPLACED = dict.fromkeys(_SEEN, "") | {"cell": "\\tab ", "nestcell": _BLANK, "nestrow": _BLANK, "par": "\\par\\par "}


def read(path: str) -> Content:
    """Read a file. Title and author are the document's properties."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.lstrip().startswith(b"{\\rtf"):
        raise Unreadable(Code.NOT_RTF())
    source = _Source(_ascii(_without_binary(data)))
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
    notes: list[Reason] = [Code.RTF_CUT_OFF()] if source.is_cut_off else []
    if unread := content.text.count("\ufffd"):
        notes.append(Code.CHARACTERS_UNREAD(f"{unread:,}", source.code_page))
    return replace(content, unread=tuple(notes))


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
        self._hidden: frozenset[str] = frozenset()  # the control words that hide the text that follows
        self._is_before_ansi = False  # whether the next group is text that is repeated in Unicode
        self._groups: list[tuple[list[str], bool, frozenset[str]]] = []
        position = 0
        while match := _TOKEN.match(rtf, position):
            position = match.end()
            if match[0] == "{":
                self._groups.append((self._target, self._in_cell, self._hidden))
                self._target.append("{")
                self._hidden |= {"upr"} if self._is_before_ansi else set()
                self._is_before_ansi = False
            elif match[0] == "}":
                self._close()
                if not self._groups:
                    break
            else:
                self._write(match[0], match[1] or "")
        self.is_cut_off = bool(self._groups)
        while self._groups:
            self._close()

    @property
    def text(self) -> str:
        """The whole file, with notes and similar parts at the end."""
        asides = "".join("{\\pard\\par\\par " + "".join(aside) + "}" for aside in self._asides)
        text = "".join(self._body[:-1]) + asides + "}"
        return _FONT_WITHOUT_CHARSET.sub(r"\1\\fcharset1", text)  # striprtf would give it the charset of the next font

    def _close(self) -> None:
        """Close a group, also in the part of the file that its content went to."""
        if not self._groups:
            return
        outer, self._in_cell, self._hidden = self._groups.pop()
        self._target.append("}")
        if outer is not self._target:
            outer.append("}")
        self._target = outer

    def _write(self, token: str, word: str) -> None:
        if not token.strip("\r\n") and (self._target[-1:] == ["{"] or self._is_before_ansi):
            return
        is_unicode_copy = word == "ud" and self._target[-1:] == ["\\*"]
        if self._target[-1:] == ["\\*"] and (is_unicode_copy or word in _FORMATTING | _SEEN):
            self._target.pop()  # "\*" ignores a destination that nobody knows, and no other group
        if is_unicode_copy or (token == "\\*" and self._target[-1] != "{"):
            return
        self._is_before_ansi = word == "upr"
        if self._is_before_ansi or self._is_hidden(token, word):
            return
        if word == "fcharset" and (charset := _CHARSETS.get(int(token[9:].strip() or 0))):
            token = f"\\fcharset{charset} "
        if word in _ASIDES or word in _DISCARDED or (word in _PROPERTIES and self._target[-1] == "{"):
            self._target = ["{"]
            if word in _ASIDES:
                self._asides.append(self._target)
            elif word in _PROPERTIES:
                self.properties.setdefault(word, self._target)
            return
        if word in {"intbl", "pard"}:
            self._in_cell = word == "intbl"
        if word == "ansicpg":
            if not codec_of(code_page := f"cp{token[8:].strip()}"):
                return
            self.code_page = code_page
        self.code_page = _CODE_PAGES.get(word, self.code_page)
        if word == "field":
            token += "\n"  # striprtf would write the address of a link, and searches for it in quadratic time
        replaced = _REPLACED.get(word, token)
        self._target.append(_IN_CELLS.get(word, replaced) if self._in_cell else replaced)

    def _is_hidden(self, token: str, word: str) -> bool:
        """Return whether a token is hidden text, and remember what a control word says about the text after it."""
        if word in _HIDING:
            self._hidden = self._hidden - {word} if token.rstrip().endswith("0") else self._hidden | {word}
        if word == "plain":
            self._hidden -= _HIDING
        is_text = _SHOWN.match(token) or word in _PROPERTIES or word in _ASIDES
        return bool(self._hidden and is_text)


def _text(rtf: str, code_page: str) -> str:
    """Return the text of RTF. Characters beyond the first plane, which RTF writes as two, are one each."""
    from striprtf.striprtf import rtf_to_text

    text: str = rtf_to_text(rtf, code_page, errors="replace")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_binary(data: bytes) -> bytes:
    """Return RTF without the bytes of pictures, which may be any."""
    parts, position = [], 0
    while match := _BINARY.search(data, position):
        parts.append(data[position : match.start() if match[1] else match.end()])
        position = match.end() + int(match[1] or 0)
    return b"".join([*parts, data[position:]])


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
