"""The registry of file formats: the format of a file, by its extension or else by its first bytes."""

# ruff: noqa: PTH122
from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

from indexer import doors
from indexer.ledger import NO_REASON, Code, Reason
from indexer.sources.encoding import bom_encoding, is_binary
from indexer.sources.from_line import is_mbox

if TYPE_CHECKING:
    from indexer.records import KnownFile
    from indexer.sources.content import Content

FormatKind = Literal["text", "extracted", "records"]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        name: short name, the `format` by which documents are filtered.
        kind: "text" is kept as decoded, "extracted" is read by the worker process, "records" hold many documents.
        reader: the name under which `doors.find("readers", NAME)` finds its reader; empty for text without structure.
    """

    name: str
    kind: FormatKind
    reader: str = ""


TEXT = Format("text", "text")
JSON = Format("json", "records")
MARKDOWN = Format("markdown", "text", "markdown")
RST = Format("rst", "text", "rst")
ORG = Format("org", "text", "org")
SUBTITLES = Format("subtitles", "text")
HTML = Format("html", "extracted", "html")
PDF = Format("pdf", "extracted", "pdf")
DOCX = Format("docx", "extracted", "docx")
PPTX = Format("pptx", "extracted", "pptx")
XLSX = Format("xlsx", "extracted", "xlsx")
XLS = Format("xls", "extracted", "xls")
XLSB = Format("xlsb", "extracted", "xls")
EPUB = Format("epub", "extracted", "epub")
EML = Format("eml", "extracted", "eml")
ICS = Format("ics", "extracted", "content_lines")
VCF = Format("vcf", "extracted", "content_lines")
ODT = Format("odt", "extracted", "odf")
ODS = Format("ods", "extracted", "odf")
ODP = Format("odp", "extracted", "odf")
RTF = Format("rtf", "extracted", "rtf")
XML = Format("xml", "extracted", "xml")
IPYNB = Format("ipynb", "extracted", "ipynb")
CANVAS = Format("canvas", "extracted", "canvas")
CSV = Format("csv", "records")
TSV = Format("tsv", "records")
JSONL = Format("jsonl", "records")
MBOX = Format("mbox", "records")
MAILDIR = Format("maildir", "extracted")
_MAILBOXES = (MBOX.name, MAILDIR.name)  # their files have any name

FORMATS: dict[str, Format] = {
    **dict.fromkeys((".txt", ".text", ".log"), TEXT),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"), MARKDOWN),
    **dict.fromkeys((".rst", ".rest"), RST),
    ".org": ORG,
    **dict.fromkeys((".srt", ".vtt"), SUBTITLES),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".docx", ".docm", ".dotx"), DOCX),
    **dict.fromkeys((".pptx", ".pptm", ".ppsx"), PPTX),
    **dict.fromkeys((".xlsx", ".xlsm"), XLSX),
    ".pdf": PDF,
    ".epub": EPUB,
    ".ipynb": IPYNB,
    ".canvas": CANVAS,
    **dict.fromkeys((".eml", ".emlx", ".mht", ".mhtml"), EML),
    **dict.fromkeys((".ics", ".vcs"), ICS),
    ".vcf": VCF,
    **dict.fromkeys((".odt", ".ott", ".fodt"), ODT),
    **dict.fromkeys((".ods", ".ots", ".fods"), ODS),
    **dict.fromkeys((".odp", ".otp", ".fodp", ".odg"), ODP),
    ".rtf": RTF,
    **dict.fromkeys((".xml", ".svg", ".rss", ".atom", ".fb2"), XML),
    ".jsonl": JSONL,
    ".ndjson": JSONL,
    ".json": JSON,
    ".csv": CSV,
    ".tsv": TSV,
}

_BINARY_WORKBOOKS = {".xls": XLS, ".xlt": XLS, ".xlsb": XLSB}
"""Workbooks whose names other files have too, such as pages and tables that a program exports as .xls."""

# Schemas and stylesheets are programs whose names are in attributes: they stay source, other XML is its text.
_LANGUAGES = """
ada .adb .ads | assembly .asm .s | awk .awk | c .c .h | clojure .clj .cljs .cljc | cmake .cmake
cpp .cc .cpp .cxx .hh .hpp .hxx | csharp .cs | css .css .less .sass .scss | cuda .cu .cuh | d .d
dart .dart | diff .diff .patch | elixir .ex .exs | elm .elm | erlang .erl .hrl
fortran .f .f03 .f08 .f90 .f95 .for | fsharp .fs .fsi .fsx | go .go | graphql .graphql .gql
groovy .gradle .groovy | haskell .hs .lhs | ini .cfg .conf .ini .properties | java .java
javascript .cjs .js .jsx .mjs | julia .jl | kotlin .kt .kts | latex .bib .cls .sty .tex
lisp .cl .el .lisp | lua .lua | makefile .mk | matlab .m | nim .nim | nix .nix | ocaml .ml .mli
asciidoc .adoc .asciidoc | pascal .pas .pp | perl .pl .pm .pod | php .php
powershell .ps1 .psm1 | prolog .pro | protobuf .proto | python .py .pyi .pyw .pyx | r .r | ruby .rake .rb
rust .rs | scala .sc .scala | scheme .scm .ss .rkt | shell .bash .fish .ksh .sh .zsh | solidity .sol
sql .sql | svelte .svelte | swift .swift | tcl .tcl | terraform .hcl .tf | toml .toml
typescript .cts .mts .ts .tsx | verilog .sv .v | vhdl .vhd .vhdl | vue .vue
xsd .xsd | xslt .xsl .xslt | yaml .yaml .yml | zig .zig
"""
for _line in _LANGUAGES.replace("|", "\n").split("\n"):
    if _words := _line.split():
        FORMATS.update(dict.fromkeys(_words[1:], Format(_words[0], "text")))

_NAMES = {format_.name for format_ in (*FORMATS.values(), XLS, XLSB, MBOX, MAILDIR)}
_TEXT_NAMES = {format_.name for format_ in FORMATS.values() if format_.kind == "text"}

_HEAD_BYTES = 8192
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*+"
    rb"<(?:(!doctype\s+html|html)|(body|center|div|font|h[1-6]|head|p|span|style|table))\b",
    re.IGNORECASE | re.DOTALL,
)

_MAIL_HEADER = re.compile(rb"(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*+)*?MIME-Version:", re.IGNORECASE)
_MAGIC = {b"%PDF-": PDF, b"{\\rtf": RTF}
_ZIP = b"PK\x03\x04"
_PACKAGE_MEMBER = re.compile(
    rb"PK\x03\x04.{26}(?:mimetypeapplication/(?:vnd\.oasis\.opendocument\.)?(text|spreadsheet|presentation|graphics|epub)"
    rb"|xl[/\\]workbook\.(bin)|(?P<part>word|xl|ppt)[/\\])",
    re.DOTALL,
)
_PACKAGES = {
    **{b"word": DOCX, b"xl": XLSX, b"ppt": PPTX, b"bin": XLSB},
    **{b"text": ODT, b"spreadsheet": ODS, b"presentation": ODP, b"graphics": ODP, b"epub": EPUB},
}
_OFTEN_MISNAMED = (HTML, PDF, DOCX, PPTX, XLSX, EML, RTF)
_SEEN_NAMES = {format_.name for format_ in (*_OFTEN_MISNAMED, XML)}
_SEEN_ANYWHERE = {format_.name for format_ in (*_MAGIC.values(), *_PACKAGES.values(), XLS)}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS = {
    **dict.fromkeys(("EncryptedPackage", "EncryptionInfo"), Code.ENCRYPTED),
    **{"WordDocument": Code.WORD_97, "PowerPoint Document": Code.POWERPOINT_97},
    **{"Workbook": Code.EXCEL_97, "Book\0": Code.EXCEL_97, "__nameid_version1.0": Code.OUTLOOK},
}
"""Names in the directory of an OLE file, which say what the file is."""
_OFFICE_97 = (Code.WORD_97, Code.POWERPOINT_97, Code.EXCEL_97)

_NEVER_MBOX = ("eml", "diff")
"""Formats of files that may begin like an mbox: one message, and the patches of git."""

_ADVICE = {
    Code.WORD_97: ".doc .dot",
    Code.POWERPOINT_97: ".pot .pps .ppt",
    Code.EXCEL_97: ".xls .xlsb .xlt",
    Code.OUTLOOK: ".msg",
    Code.IWORK: ".key .numbers .pages",
    Code.EBOOK: ".azw .azw3 .djvu .lit .mobi",
    Code.IMAGE: (".avif .bmp .gif .heic .heif .ico .jp2 .jpeg .jpg .png .psd .tif .tiff .webp"),
    Code.ARCHIVE: ".7z .bz2 .cab .gz .iso .jar .rar .tar .tbz2 .tgz .txz .xz .zip .zst",
    Code.AUDIO_OR_VIDEO: (".aac .avi .flac .m4a .m4v .mkv .mov .mp3 .mp4 .mpeg .mpg .ogg .opus .wav .webm .wmv"),
}
_ADVICE_BY_EXTENSION = {extension: advice for advice, several in _ADVICE.items() for extension in several.split()}


_NEVER_TEXT = (Code.IMAGE, Code.ARCHIVE, Code.AUDIO_OR_VIDEO)
"""Kinds of files that are not read as text even if their bytes decode, as those of a damaged picture may."""


def reason_not_to_read(path: str, head: bytes) -> Reason:
    """Return why a file that no reader knows is not read, and what to do about it; `NO_REASON` for a text."""
    extension = os.path.splitext(path)[1].lower()
    code = kind_of_ole(head, extension) or _ADVICE_BY_EXTENSION.get(extension, Code.BINARY)
    return code() if is_binary(head) or code in _NEVER_TEXT else NO_REASON


def read_head(file: BinaryIO) -> bytes:
    """Return the first bytes of a file. Those of an OLE file are followed by its directory."""
    head = file.read(_HEAD_BYTES)
    if head.startswith(OLE):
        file.seek((int.from_bytes(head[48:52], "little") + 1) << min(sum(head[30:31]), 12))
        head += file.read(_HEAD_BYTES)
    file.seek(0)
    return head


def kind_of_ole(head: bytes, extension: str = "") -> Code | None:
    """Return what an OLE file is, by the first bytes that `read_head` returns; None for other files.

    A document may hold others. The kind of its name comes first, or else the first one in the directory.
    """
    if not head.startswith(OLE):
        return None
    places = {head.find(name.encode("utf-16-le")): code for name, code in _OLE_STREAMS.items()}
    codes = [code for place, code in sorted(places.items(), key=itemgetter(0)) if place >= 0]
    named = _ADVICE_BY_EXTENSION.get(extension)
    return named if named in codes else next(iter(codes), None)


READER_VERSIONS: dict[str, int] = {
    **dict.fromkeys(_TEXT_NAMES, 2),
    "csv": 2,
    "docx": 3,
    "eml": 3,
    "epub": 3,
    "html": 3,
    "ipynb": 3,
    "json": 2,
    "jsonl": 2,
    "maildir": 3,
    "mbox": 3,
    "odp": 3,
    "ods": 3,
    "odt": 3,
    "pdf": 2,
    "pptx": 2,
    "rtf": 3,
    "tsv": 2,
    "vcf": 2,
    "xlsx": 2,
    "xml": 3,
}
"""The version of the reader of each format by its name; 1 for formats that are not here.

Raise it by one when the text, the title or the sections that a reader returns change, or which documents it makes of a
file: the next run then reads the files of this format again, and embeds what has changed. Messages of mailboxes are
read by the reader of "eml": raise "mbox" and "maildir" with it.
"""


def reader_of(format_name: str) -> str:
    """Return format and version of the reader that reads a format now, such as "pdf/2"."""
    return f"{format_name}/{READER_VERSIONS.get(format_name, 1)}"


class Program(Protocol):
    """A program of the user that extracts text. The part `readers` has it as `ExtractorProgram`.

    Attributes:
        kind: the extension of the files that it reads, or the format of files that may lack text.
        reader: the name and version that the ledger has for files that it has read.
    """

    @property
    def kind(self) -> str: ...

    @property
    def reader(self) -> str: ...

    def read(self, path: str) -> Content:
        """Return the text of a file. Raises Unreadable or Skip."""

    def complete(self, path: str, content: Content) -> Content:
        """Return what a reader has found in a file, with the text that it lacks. Raises Unreadable or Skip."""

    def may_add_to(self, recorded: KnownFile) -> bool:
        """Return whether a file that another reader has read may lack text."""


def program_for(programs: Sequence[Program], *kinds: str) -> Program | None:
    """Return the program for the first of these extensions and formats that has one."""
    return next((each for kind in kinds for each in programs if each.kind == kind), None)


def is_read_alike(path: str, recorded: KnownFile, programs: Sequence[Program]) -> bool:
    """Return whether a file would be read again by the reader or program that has read it, as far as its name tells."""
    extension = os.path.splitext(path)[1].lower()
    by_extension = format_of_extension(extension)
    readers = {reader: reader.partition("/")[0] for reader in recorded.readers - {each.reader for each in programs}}
    program = program_for(programs, extension, *readers.values()) if readers else None
    if program is not None and program.may_add_to(recorded):
        return False
    for reader, format_name in readers.items():
        has_another_name = by_extension is not None and by_extension.name != format_name
        may_be_seen = format_name in _MAILBOXES or format_name in _SEEN_ANYWHERE
        may_be_seen |= format_name in _SEEN_NAMES and _may_be_misnamed(extension)
        if reader != reader_of(format_name) or (has_another_name and not may_be_seen):
            return False
    return True


def format_of_extension(extension: str) -> Format | None:
    """Return the format of files with an extension in lower case; None if no reader knows the extension."""
    return FORMATS.get(extension) or (_added_formats().get(extension) if extension else None)


def is_extracted(format_name: str | None) -> bool:
    """Return whether the text of a document of this format is not the text of its file."""
    if format_name in _NAMES:
        return format_name not in _TEXT_NAMES
    return format_name is not None and f".{format_name}" in _added_formats()


@cache
def _added_formats() -> Mapping[str, Format]:
    """Return the formats that packages of others read, by extension. Finding them takes 10 to 20 ms."""
    added = (name for name in doors.names("readers") if name not in doors.TABLE["readers"])
    return {f".{name}": Format(name, "extracted", name) for name in added}


def format_of(path: str, head: bytes) -> Format:
    """Return the format of a file, by its extension or else by its first bytes (`head`).

    A mailbox has any name, such as that of a mailing list: "users@lists.example.org".
    """
    extension = os.path.splitext(path)[1].lower()
    by_extension = format_of_extension(extension)
    if (by_extension is None or by_extension.name not in _NEVER_MBOX) and is_mbox(head):
        return MBOX
    anywhere = _binary_format(head, extension) if by_extension is None or extension in FORMATS else None
    if anywhere is not None:
        return anywhere
    if by_extension is None or _may_be_misnamed(extension):
        seen = _format_seen(head, extension)
        if seen is not None:
            return seen
    return by_extension or TEXT


def _may_be_misnamed(extension: str) -> bool:
    """Return whether programs write other formats under this extension: a web page named .xls, a message named .doc."""
    return _ADVICE_BY_EXTENSION.get(extension) in _OFFICE_97 or FORMATS.get(extension) in _OFTEN_MISNAMED


def _binary_format(head: bytes, extension: str) -> Format | None:
    """Return the format of a file that begins as no text does, whatever its name is; None for others."""
    if head.startswith(OLE) and is_binary(head):
        kind = kind_of_ole(head, extension) or (Code.EXCEL_97 if extension in _BINARY_WORKBOOKS else None)
        is_wrapped = kind is Code.ENCRYPTED or (kind is None and FORMATS.get(extension) in _PACKAGES.values())
        return XLS if kind is Code.EXCEL_97 else DOCX if is_wrapped else TEXT  # the reader of DOCX refuses it
    advice = _ADVICE_BY_EXTENSION.get(extension)
    if head.startswith(_ZIP) and advice not in {Code.ARCHIVE, Code.EBOOK, Code.IWORK}:
        member = _PACKAGE_MEMBER.search(head)
        if member and (b"[Content_Types].xml" in head or not member["part"] or _may_be_misnamed(extension)):
            seen, named = _PACKAGES[member[member.lastindex or 0]], FORMATS.get(extension)
            return named if named and named.reader == seen.reader else seen
        return XLSB if extension == ".xlsb" else None
    return next((format_ for mark, format_ in _MAGIC.items() if head.startswith(mark)), None)


def _format_seen(head: bytes, extension: str) -> Format | None:
    """Return the format that the first bytes show; None if they show none.

    Templates of unknown extensions begin with elements too: only a page that says so is HTML there.
    """
    if (encoding := bom_encoding(head)) is not None:
        head = head.decode(encoding, "ignore").encode()
    if _MAIL_HEADER.match(head):
        return EML
    may_be_misnamed = _may_be_misnamed(extension)
    if is_html(head, whole=not may_be_misnamed):
        return HTML
    is_xml = may_be_misnamed and FORMATS.get(extension) is not HTML and head.lstrip().startswith(b"<?xml")
    return XML if is_xml else None


def is_html(head: bytes, *, whole: bool = False) -> bool:
    """Return whether a text begins as a page, or with an element that is closed again unless a `whole` page is asked
    for."""
    opening = _PAGE.match(head[:_HEAD_BYTES])
    if opening is None or opening[1]:
        return opening is not None
    return not whole and b"</" + opening[2].lower() in head.lower()
