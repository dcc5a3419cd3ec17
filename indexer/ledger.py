"""The values of the ledger: the states of files and records, and the reasons for them.

A reason is a code with arguments, and its sentence is made where it is shown. Programs and SQL compare codes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from functools import lru_cache
from typing import Any, Literal

LedgerState = Literal["indexed", "unchanged", "updated", "skipped", "failed", "gone"]

HELD: tuple[LedgerState, ...] = ("indexed", "updated", "unchanged")
"""The states of rows whose record became the document of its uri."""

MAX_REASON_CHARACTERS = 200

_SURROGATE = re.compile("[\ud800-\udfff]")


@unique
class Code(Enum):
    """The codes of reasons, each with its sentence. The ledger stores the name of a code in lower case."""

    NONE = ""
    OTHER = "{}"
    """The text of an error that likewise does not word itself, or of a code that this version does not know."""

    # What the ledger and the model decide.
    DUPLICATE = "duplicate id: a later record of the same run has it"
    """The document was taken from another file."""
    LEFT_OUT = "no text that the model can read: left out when the model of the index was changed"
    """Only the index with the other model has the document, until a run indexes the document or prunes it."""
    LEFT_OUT_SINCE = "{} (the vectors of the other model have an earlier text)"
    """As LEFT_OUT, and a later run had another reason to skip the record, or failed."""
    UNREADABLE = "no text that the model can read"
    """Another model may have the document."""
    ENDS_WORKERS = "embedding it ended each worker that tried ({}): split it, or index it without workers"
    TOO_LONG = (
        "the model finds a passage of {} characters too long: raise the limit of its server, or rebuild with fewer "
        "tokens per passage"
    )
    NO_VECTOR = 'has no "vector", and the index has no model to embed it with'

    # Files and folders that are not opened.
    NAME_NOT_UTF_8 = "its name is not valid UTF-8: rename it"
    CANNOT_BE_READ = "cannot be read: {}"
    CANNOT_BE_LISTED = "cannot be listed: {}"
    AN_INDEX = "an index of likewise"
    HIDDEN_FILE = "hidden file"
    HIDDEN_FOLDER = "hidden folder"
    IGNORED_BY_DEFAULT = "ignored by default: --no-ignore reads it"
    IGNORED_BY_FILE = "ignored by {}"
    OWN_OUTPUT = "the output of this command is written to it"
    PIPE = "a pipe, not a file"
    SOCKET = "a socket, not a file"
    DEVICE = "a device, not a file"
    LINK_TO_NOTHING = "a link that leads nowhere"
    LINK_OUT_OF_FOLDER = "a link that leaves the folder, to {}"
    LINK_TO_FILE_READ = "a link to {}, which is read itself"

    # Files without a text.
    EMPTY = "empty"
    TABLE_TOO_LARGE = "a table without a column of text, {} MB, over the limit of {} MB: raise --max-file-mb"
    TOO_LARGE = "{} MB, over the limit of {} MB: raise --max-file-mb"
    NO_TEXT = "holds no text"
    UNBROKEN = "holds only long stretches without a space, such as base64, which no model reads"
    BINARY = "a binary file, of no format that likewise reads"
    BINARY_WITH_NUL = "a binary file: it holds NUL characters"
    WORD_97 = "Word 97-2003: save it as .docx"
    POWERPOINT_97 = "PowerPoint 97-2003: save it as .pptx"
    EXCEL_97 = "Excel of before 1993: save it as .xlsx"
    OUTLOOK = "an Outlook message: save it as .eml"
    IWORK = "an Apple iWork file: export it as PDF, or to an Office format"
    EBOOK = "an e-book of a format that is not read: convert it to EPUB"
    IMAGE = "an image: run it through OCR, or name a program for it in [extractors] of your configuration file"
    ARCHIVE = "an archive: unpack it and index the folder"
    AUDIO_OR_VIDEO = "audio or video: index a transcript"
    DRAWING = "a drawing without words"
    NO_READER = "no reader of {} is installed: {}"
    EXPUNGED = "deleted in the mail program, which removes it when it compacts the folder"
    MAIL_IN_DELIVERY = "messages that are still being delivered"
    PROGRAM_WITHOUT_TEXT = "{} finds no text in it"
    NO_TEXT_IN_PAGES = (
        "no text in its pages (scanned?): run it through OCR, or name a program for pdf in [extractors] of your "
        "configuration file"
    )

    # Encodings.
    ENCODING_UNKNOWN = "its encoding cannot be found out: save it as UTF-8"
    WRONG_ENCODING = "is written in {}: save it as UTF-8"
    WRONG_WIDE_BYTES = "is {} with bytes that do not fit: save it as UTF-8"
    ENCODING_GUESSED = "encoding guessed: {} (bytes beyond ASCII: {}): save it as UTF-8 if its text looks wrong"
    CHARACTERS_UNREAD = "{} of its characters cannot be read as {}: save it as UTF-8"
    WRONG_BYTE = "is UTF-8 but for 1 byte, the first in line {}: save it as UTF-8"
    WRONG_BYTES = "is UTF-8 but for {} bytes, the first in line {}: save it as UTF-8"

    # Records and tables.
    RECORD_TOO_LARGE = "the record is over {} MB: raise --max-file-mb, or close an open quote"
    QUOTE_NEVER_CLOSED = (
        'a quote that begins here is never closed, and takes in all that follows: close it, or write it as ""'
    )
    TOO_MANY_COLUMNS = "has more than {} columns: split the table, or exchange its rows and columns"
    WRONG_CELLS = "has {} cells where the header has {}"
    NO_ROWS = "holds no rows below its header"
    NO_ID_COLUMN = 'has no column "{}", which --id-field names (columns: {})'
    NO_TEXT_COLUMN = 'has no column "{}", which --text-field names (columns: {})'
    NO_RECORDS = "holds no records"
    NO_RECORD_WITH_TEXT = "holds no record with a text: name its member with --text-field"
    NO_RECORD_WITH_MEMBER = 'no record has "{}", which --text-field names'
    NOT_UTF_8 = "not valid UTF-8 (byte {})"
    HALF_A_CHARACTER = "an escape \\uD800 to \\uDFFF has no partner: it is half a character"
    NOT_JSON_AT_COLUMN = "not valid JSON ({}, column {})"
    NOT_JSON = "not valid JSON ({})"
    NOT_AN_OBJECT = "not a JSON object (found {})"
    EMPTY_TEXT = "its text is empty"
    NO_ID_MEMBER = 'has no "{}", which --id-field names'
    WRONG_ID = 'its id "{}" must be a string or a number (found {})'
    NO_TEXT_MEMBER = 'has no "{}", which --text-field names'
    RECORD_WITHOUT_TEXT = 'has no text: give it a "text", or name the member with --text-field'
    NULL_TEXT = 'its text "{}" is null'
    WRONG_TEXT = 'its text "{}" must be a string or a number (found {})'
    WRONG_VECTOR_MEMBER = 'its "vector" must be a list of numbers (found {} in it)'
    WRONG_VECTOR = 'its "vector" must be a list of numbers (found {})'
    INFINITE_VECTOR = 'its "vector" must hold finite numbers'

    # Files that their reader refuses.
    READER_FAILED = "damaged, or no {} file ({})"
    READER_CRASHED = "its reader crashed ({} {})"
    TOO_SLOW = "reading it takes longer than {} seconds: split it, or save it as plain text"
    TOO_MUCH_MEMORY = "reading it takes more than {} GiB of memory: split it, or save it as plain text"
    TEXT_OVER_LIMIT = "it unpacks to more than {} characters: split it, or raise --max-file-mb"
    PROGRAM_FAILED = "{} failed ({} {}): {}"
    PROGRAM_TOO_SLOW = "{} takes longer than {} seconds: raise its seconds in the configuration file"
    PROGRAM_TOO_MUCH_OUTPUT = "{} writes more than {} MB: raise its output_mb in the configuration file"
    PROGRAM_NOT_UTF_8 = "{} does not write UTF-8 (byte {}): let it write UTF-8"
    TOO_DEEP = "inside more than {} other files: save it next to them"
    ENCRYPTED = "encrypted: save it without a password"
    ENCRYPTED_OFFICE = "encrypted, or of an older format: save it without a password in the current one"
    DRM = "encrypted (DRM)"
    TOO_MANY_PAGES = "has {} pages, over the limit of {}: split it"
    TOO_MANY_MEMBERS = "a zip bomb: {} members, over the bound of {}"
    TOO_MANY_BYTES = "a zip bomb: unpacks to {} bytes, over the bound of {}"
    ZIP_BOMB = "a zip bomb: {} unpacks to {} bytes"
    XML_ENTITIES = "{} declares XML entities, which are not expanded"
    NOT_ZIP = "damaged: not a readable zip file ({})"
    NOT_RTF = "damaged: not an RTF file, which begins with {{\\rtf"
    NOT_PPTX = "damaged: not a PPTX file (its main part is a {})"
    NOT_DOCX = "damaged: not a DOCX file (its main part is a {})"
    NOT_XLS = "damaged: not a readable workbook ({})"
    NOT_PDF = "damaged: not a readable PDF ({})"
    NO_MAIN_PART = "damaged: no document, presentation or workbook in it"
    NO_EPUB_PACKAGE = "damaged: no EPUB package in it"
    NO_CHAPTER = "damaged: its chapter {} is not in it"
    NO_MAIL_HEADERS = "damaged: no e-mail headers"
    WRONG_MAIL_ENCODING = "damaged: not valid {}"
    NO_CONTENT_LINES = "damaged: no line of a calendar or contact"
    HTML_CUT_OFF = "damaged: read as far as line {} ({})"
    NO_OPENDOCUMENT_BODY = "damaged: no OpenDocument body in it"
    NO_OPENDOCUMENT_CONTENT = "damaged: no OpenDocument content in it"
    WRONG_XML = "damaged: not well-formed XML ({})"

    # Notes of readers, for documents that are indexed.
    RTF_CUT_OFF = "its end is missing: it was read as far as it goes"
    PAGE_WITHOUT_NAVIGATION = "navigation and form controls are left out, which are more than 1 % of its visible words"
    XML_AS_SOURCE = "not well-formed XML, its source is indexed ({})"
    RECORDS_AS_ONE = "{} records without a text were read as one document: name it with --text-field"
    ROWS_AS_ONE = "{} rows without a column of text were read as one document: name it with --text-field"
    PAGES_BY_PROGRAM = "{} of {} pages were read by {} ({})"
    TEXT_BY_PROGRAM = "all of its text comes from {}, because {} of {} pages have no text ({})"

    # What was not read of a file or record that has a document.
    PAGES_WITHOUT_TEXT = "no text in {} of {} pages ({}): run them through OCR, or name a program in [extractors]"
    PICTURE_PAGES = (
        "hardly any text in {} of {} pages, which are pictures ({}): run them through OCR, or name a program in "
        "[extractors]"
    )
    PART_DAMAGED = "its part {} is damaged, and is read as far as possible ({})"
    PARTS_MISSING = "parts that it refers to are not in it ({})"
    GARBLED_PAGES = (
        "the fonts of {} of {} pages do not say which letters they draw ({}): run them through OCR, or name a program "
        "in [extractors]"
    )
    PAGES_DAMAGED = "{} of {} pages are damaged and were not read ({}): print the file into a new PDF"
    FILES_INSIDE = "without the text of {} inside it ({}): save it next to this file"
    INSIDE_NOT_WHOLE = "{} inside it is not read whole ({}): save it next to it"
    INSIDE_TOO_SLOW = "{} inside it took longer than {} seconds: the next run reads it again"
    FRONT_MATTER_BROKEN = "its front matter is not read, because it is not valid {} ({}): repair it"
    HIDDEN_WORDS = "without {} that the page hides, and that no heading or button of it opens"
    HIDDEN_PARTS = "it hides {}: {}"
    XFA_FORM = "its fields are not read, because it is an XFA form: print it into a new PDF"
    UNBROKEN_LEFT_OUT = "{} % of its text is stretches of over 2,000 characters without a space, which are not embedded"
    MEMBERS_BESIDE = "without {} beside its list of records: make each a record, or a file of its own"
    REPEATED_MEMBER = "an object in it has {} more than once, and the last value was read: remove the others"
    COLUMNS_NOT_SEARCHED = "{} beside its text is too long to be searched by words: name it with --text-field"
    CELL_OF_ANOTHER_TYPE = (
        '"{}" in column "{}" is not {}: it stays text, and filters compare the other cells of the column alone'
    )
    NUL_LEFT_OUT = "its NUL characters are left out: no text has them"
    NUMBERS_WITHOUT_FORMATS = "numbers without their formats: save it as .xlsx to have them as they are shown"
    FORMULAS_WITHOUT_VALUE = "without {} for which no value is stored: open it in a spreadsheet program, and save it"
    EARLIER_TEXT_KEPT = "the text of an earlier reading is kept"
    """Reading it failed, and its document stays as it was."""

    def __call__(self, *arguments: object) -> Reason:
        """Return the reason with these arguments, each as one line of UTF-8: a path may have other bytes."""
        lines = (re.sub(r"\s+", " ", _SURROGATE.sub("\ufffd", str(each))) for each in arguments)
        return Reason(self, tuple(_short(line, 2 * MAX_REASON_CHARACTERS) for line in lines))


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a file or record has its state.

    Attributes:
        arguments: values in the sentence of the code; numbers as they are shown.
        line: line of its file that a record begins in; None for a whole file.
        mark: hash of the message of a mailbox that was read, so that the next run need not parse it; empty for others.
    """

    code: Code
    arguments: tuple[str, ...] = ()
    line: int | None = None
    mark: str = ""

    def __bool__(self) -> bool:
        return self.code is not Code.NONE

    @property
    def is_left_out(self) -> bool:
        """True if only the index with the other model has the document of this record."""
        return self.code in {Code.LEFT_OUT, Code.LEFT_OUT_SINCE}

    def left_out(self) -> Reason:
        """Return this reason for a record whose document only the index with the other model has."""
        if self.is_left_out:
            return self
        if self.code in {Code.NONE, Code.UNREADABLE}:
            return Code.LEFT_OUT()
        return Code.LEFT_OUT_SINCE(self.text())

    def text(self) -> str:
        """Return the sentence in one line of at most MAX_REASON_CHARACTERS; empty without a reason."""
        place = "" if self.line is None else f"line {self.line}: "
        return _short(" ".join(f"{place}{self.code.value.format(*self.arguments)}".split()), MAX_REASON_CHARACTERS)

    def stored(self) -> str:
        """Return the stored form: a JSON object without empty members; an empty text if there is neither a reason nor a
        mark."""
        return json.dumps(self._members(), ensure_ascii=False) if self or self.mark else ""

    def _members(self) -> dict[str, Any]:
        members = {"code": self.code.name.lower(), "arguments": self.arguments, "line": self.line, "mark": self.mark}
        return {name: value for name, value in members.items() if value}


NO_REASON = Reason(Code.NONE)

STORED_MARK = '{"code": "none", "mark": %'
"""Pattern of SQL for the stored reasons that have a mark and no sentence."""

STORED_LEFT_OUT = '{"code": "left_out%'
"""Pattern of SQL for the stored reasons that are `Reason.is_left_out`."""


def _short(line: str, most: int) -> str:
    """Return a line of at most `most` characters: its end says what to do, so its middle is cut."""
    if len(line) <= most:
        return line
    end = most // 2
    return f"{line[: most - end - 3]} … {line[-end:]}"


@lru_cache(4096)
def from_stored(text: str) -> Reason:
    """Return the reason that the ledger stores. A text that is no such object becomes the sentence, word for word."""
    return _read(text, lambda value: (_from_members(value),))[0] if text else NO_REASON


def notes_stored(notes: Sequence[Reason]) -> str:
    """Return the stored form of notes: a JSON list of the objects of reasons; empty without a note."""
    return json.dumps([note._members() for note in notes], ensure_ascii=False) if notes else ""


@lru_cache(4096)
def notes_from_stored(text: str) -> tuple[Reason, ...]:
    """Return the notes that the ledger stores. A text that is not such a list becomes one note, word for word."""
    return _read(text, lambda value: tuple(map(_from_members, value))) if text else ()


def _read(text: str, reasons_of: Callable[[Any], tuple[Reason, ...]]) -> tuple[Reason, ...]:
    """Return the reasons in a text of JSON. A text that has none becomes one, word for word."""
    try:
        return reasons_of(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return (Code.OTHER(text),)


def _from_members(members: Mapping[str, Any]) -> Reason:
    name, arguments, line = members["code"].upper(), tuple(members.get("arguments", ())), members.get("line")
    mark = members.get("mark", "")
    code = Code.__members__.get(name)
    if code is None or len(arguments) != code.value.count("{}"):  # of a newer version
        return Reason(Code.OTHER, (": ".join([name.lower(), *map(str, arguments)]),), line)
    return Reason(code, arguments, line, mark)
