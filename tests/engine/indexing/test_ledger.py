"""The codes of the ledger: the sentence of each, what is stored, and what an earlier format has stored."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from indexer.ledger import MAX_REASON_CHARACTERS, NO_REASON, Code, Reason, from_stored

SENTENCES: list[tuple[Reason, str]] = [
    (Code.DUPLICATE(), "duplicate id: a later record of the same run has it"),
    (Code.LEFT_OUT(), "no text that the model can read: left out when the model of the index was changed"),
    (Code.LEFT_OUT_SINCE("empty"), "empty (the vectors of the other model have an earlier text)"),
    (Code.UNREADABLE(), "no text that the model can read"),
    (
        Code.ENDS_WORKERS("3"),
        "embedding it ended each worker that tried (3): split it, or index it without workers",
    ),
    (
        Code.TOO_LONG("2,400"),
        "the model finds a passage of 2,400 characters too long: raise the limit of its server, or rebuild with fewer "
        "tokens per passage",
    ),
    (Code.NO_VECTOR(), 'has no "vector", and the index has no model to embed it with'),
    (Code.NAME_NOT_UTF_8(), "its name is not valid UTF-8: rename it"),
    (Code.CANNOT_BE_READ("Permission denied"), "cannot be read: Permission denied"),
    (Code.CANNOT_BE_LISTED("Permission denied"), "cannot be listed: Permission denied"),
    (Code.AN_INDEX(), "an index of likewise"),
    (Code.HIDDEN_FILE(), "hidden file"),
    (Code.HIDDEN_FOLDER(), "hidden folder"),
    (Code.IGNORED_BY_DEFAULT(), "ignored by default: --no-ignore reads it"),
    (Code.IGNORED_BY_FILE(".gitignore"), "ignored by .gitignore"),
    (Code.OWN_OUTPUT(), "the output of this command is written to it"),
    (Code.PIPE(), "a pipe, not a file"),
    (Code.SOCKET(), "a socket, not a file"),
    (Code.DEVICE(), "a device, not a file"),
    (Code.LINK_TO_NOTHING(), "a link that leads nowhere"),
    (Code.LINK_OUT_OF_FOLDER("/etc"), "a link that leaves the folder, to /etc"),
    (Code.LINK_TO_FILE_READ("b.txt"), "a link to b.txt, which is read itself"),
    (Code.EMPTY(), "empty"),
    (
        Code.TABLE_TOO_LARGE("1.2", "1"),
        "a table without a column of text, 1.2 MB, over the limit of 1 MB: raise --max-file-mb",
    ),
    (Code.TOO_LARGE("1,024.0", "64"), "1,024.0 MB, over the limit of 64 MB: raise --max-file-mb"),
    (Code.NO_TEXT(), "holds no text"),
    (Code.UNBROKEN(), "holds only long stretches without a space, such as base64, which no model reads"),
    (Code.BINARY(), "a binary file, of no format that likewise reads"),
    (Code.BINARY_WITH_NUL(), "a binary file: it holds NUL characters"),
    (Code.WORD_97(), "Word 97-2003: save it as .docx"),
    (Code.POWERPOINT_97(), "PowerPoint 97-2003: save it as .pptx"),
    (Code.EXCEL_97(), "Excel of before 1993: save it as .xlsx"),
    (Code.OUTLOOK(), "an Outlook message: save it as .eml"),
    (Code.IWORK(), "an Apple iWork file: export it as PDF, or to an Office format"),
    (Code.EBOOK(), "an e-book of a format that is not read: convert it to EPUB"),
    (Code.IMAGE(), "an image: run it through OCR, or name a program for it in [extractors] of your configuration file"),
    (Code.ARCHIVE(), "an archive: unpack it and index the folder"),
    (Code.AUDIO_OR_VIDEO(), "audio or video: index a transcript"),
    (Code.DRAWING(), "a drawing without words"),
    (Code.NO_READER("pdf", "pip install likewise"), "no reader of pdf is installed: pip install likewise"),
    (Code.EXPUNGED(), "deleted in the mail program, which removes it when it compacts the folder"),
    (Code.MAIL_IN_DELIVERY(), "messages that are still being delivered"),
    (Code.PROGRAM_WITHOUT_TEXT("ocr"), "ocr finds no text in it"),
    (
        Code.NO_TEXT_IN_PAGES(),
        "no text in its pages (scanned?): run it through OCR, or name a program for pdf in [extractors] of your "
        "configuration file",
    ),
    (Code.ENCODING_UNKNOWN(), "its encoding cannot be found out: save it as UTF-8"),
    (Code.WRONG_ENCODING("utf-16"), "is written in utf-16: save it as UTF-8"),
    (Code.WRONG_WIDE_BYTES("UTF-16"), "is UTF-16 with bytes that do not fit: save it as UTF-8"),
    (
        Code.ENCODING_GUESSED("cp1252", "3"),
        "encoding guessed: cp1252 (bytes beyond ASCII: 3): save it as UTF-8 if its text looks wrong",
    ),
    (Code.CHARACTERS_UNREAD("3", "utf-8"), "3 of its characters cannot be read as utf-8: save it as UTF-8"),
    (Code.WRONG_BYTE("2"), "is UTF-8 but for 1 byte, the first in line 2: save it as UTF-8"),
    (Code.WRONG_BYTES("3", "2"), "is UTF-8 but for 3 bytes, the first in line 2: save it as UTF-8"),
    (Code.RECORD_TOO_LARGE("1"), "the record is over 1 MB: raise --max-file-mb, or close an open quote"),
    (
        Code.QUOTE_NEVER_CLOSED(),
        'a quote that begins here is never closed, and takes in all that follows: close it, or write it as ""',
    ),
    (
        Code.TOO_MANY_COLUMNS("16,384"),
        "has more than 16,384 columns: split the table, or exchange its rows and columns",
    ),
    (Code.WRONG_CELLS(4, 3), "has 4 cells where the header has 3"),
    (Code.NO_ROWS(), "holds no rows below its header"),
    (Code.NO_ID_COLUMN("key", "a, b"), 'has no column "key", which --id-field names (columns: a, b)'),
    (Code.NO_TEXT_COLUMN("key", "a, b"), 'has no column "key", which --text-field names (columns: a, b)'),
    (Code.NO_RECORDS(), "holds no records"),
    (Code.NO_RECORD_WITH_TEXT(), "holds no record with a text: name its member with --text-field"),
    (Code.NO_RECORD_WITH_MEMBER("key"), 'no record has "key", which --text-field names'),
    (Code.NOT_UTF_8(11), "not valid UTF-8 (byte 11)"),
    (Code.HALF_A_CHARACTER(), "an escape \\uD800 to \\uDFFF has no partner: it is half a character"),
    (Code.NOT_JSON_AT_COLUMN("Expecting value", 1), "not valid JSON (Expecting value, column 1)"),
    (Code.NOT_JSON("NaN is not a finite number"), "not valid JSON (NaN is not a finite number)"),
    (Code.NOT_AN_OBJECT("a list"), "not a JSON object (found a list)"),
    (Code.EMPTY_TEXT(), "its text is empty"),
    (Code.NO_ID_MEMBER("key"), 'has no "key", which --id-field names'),
    (Code.WRONG_ID("id", "a list"), 'its id "id" must be a string or a number (found a list)'),
    (Code.NO_TEXT_MEMBER("key"), 'has no "key", which --text-field names'),
    (Code.RECORD_WITHOUT_TEXT(), 'has no text: give it a "text", or name the member with --text-field'),
    (Code.NULL_TEXT("text"), 'its text "text" is null'),
    (Code.WRONG_TEXT("text", "a list"), 'its text "text" must be a string or a number (found a list)'),
    (Code.WRONG_VECTOR_MEMBER("a list"), 'its "vector" must be a list of numbers (found a list in it)'),
    (Code.WRONG_VECTOR("a string"), 'its "vector" must be a list of numbers (found a string)'),
    (Code.INFINITE_VECTOR(), 'its "vector" must hold finite numbers'),
    (Code.READER_FAILED("docx", "KeyError: 'x'"), "damaged, or no docx file (KeyError: 'x')"),
    (Code.READER_CRASHED("signal", 9), "its reader crashed (signal 9)"),
    (Code.TOO_SLOW("60"), "reading it takes longer than 60 seconds: split it, or save it as plain text"),
    (Code.TOO_MUCH_MEMORY(2), "reading it takes more than 2 GiB of memory: split it, or save it as plain text"),
    (Code.TEXT_OVER_LIMIT("9"), "it unpacks to more than 9 characters: split it, or raise --max-file-mb"),
    (Code.PROGRAM_FAILED("ocr", "exit", 3, "no page"), "ocr failed (exit 3): no page"),
    (
        Code.PROGRAM_TOO_SLOW("ocr", "120"),
        "ocr takes longer than 120 seconds: raise its seconds in the configuration file",
    ),
    (
        Code.PROGRAM_TOO_MUCH_OUTPUT("ocr", "64"),
        "ocr writes more than 64 MB: raise its output_mb in the configuration file",
    ),
    (Code.PROGRAM_NOT_UTF_8("ocr", "7"), "ocr does not write UTF-8 (byte 7): let it write UTF-8"),
    (Code.TOO_DEEP("3"), "inside more than 3 other files: save it next to them"),
    (Code.ENCRYPTED(), "encrypted: save it without a password"),
    (Code.ENCRYPTED_OFFICE(), "encrypted, or of an older format: save it without a password in the current one"),
    (Code.DRM(), "encrypted (DRM)"),
    (Code.TOO_MANY_PAGES("100,001", "100,000"), "has 100,001 pages, over the limit of 100,000: split it"),
    (Code.TOO_MANY_MEMBERS("20,001", "20,000"), "a zip bomb: 20,001 members, over the bound of 20,000"),
    (Code.TOO_MANY_BYTES("2", "1"), "a zip bomb: unpacks to 2 bytes, over the bound of 1"),
    (Code.ZIP_BOMB("a.xml", "2"), "a zip bomb: a.xml unpacks to 2 bytes"),
    (Code.XML_ENTITIES("a.xml"), "a.xml declares XML entities, which are not expanded"),
    (Code.NOT_ZIP("File is not a zip file"), "damaged: not a readable zip file (File is not a zip file)"),
    (Code.NOT_RTF(), "damaged: not an RTF file, which begins with {\\rtf"),
    (Code.NOT_PPTX("x"), "damaged: not a PPTX file (its main part is a x)"),
    (Code.NOT_DOCX("x"), "damaged: not a DOCX file (its main part is a x)"),
    (Code.NOT_XLS("x"), "damaged: not a readable workbook (x)"),
    (Code.NOT_PDF("x"), "damaged: not a readable PDF (x)"),
    (Code.NO_MAIN_PART(), "damaged: no document, presentation or workbook in it"),
    (Code.NO_EPUB_PACKAGE(), "damaged: no EPUB package in it"),
    (Code.NO_CHAPTER("two.xhtml"), "damaged: its chapter two.xhtml is not in it"),
    (Code.NO_MAIL_HEADERS(), "damaged: no e-mail headers"),
    (Code.WRONG_MAIL_ENCODING("utf-8"), "damaged: not valid utf-8"),
    (Code.NO_CONTENT_LINES(), "damaged: no line of a calendar or contact"),
    (Code.HTML_CUT_OFF("1", "x"), "damaged: read as far as line 1 (x)"),
    (Code.NO_OPENDOCUMENT_BODY(), "damaged: no OpenDocument body in it"),
    (Code.NO_OPENDOCUMENT_CONTENT(), "damaged: no OpenDocument content in it"),
    (Code.WRONG_XML("x"), "damaged: not well-formed XML (x)"),
    (Code.RTF_CUT_OFF(), "its end is missing: it was read as far as it goes"),
    (
        Code.PAGE_WITHOUT_NAVIGATION(),
        "navigation and form controls are left out, which are more than 1 % of its visible words",
    ),
    (Code.XML_AS_SOURCE("x"), "not well-formed XML, its source is indexed (x)"),
    (Code.RECORDS_AS_ONE("5,001"), "5,001 records without a text were read as one document: name it with --text-field"),
    (
        Code.ROWS_AS_ONE("5,001"),
        "5,001 rows without a column of text were read as one document: name it with --text-field",
    ),
    (Code.PAGES_BY_PROGRAM(2, 12, "ocr", "3, 7"), "2 of 12 pages were read by ocr (3, 7)"),
    (
        Code.TEXT_BY_PROGRAM("ocr", 2, 12, "3, 7"),
        "all of its text comes from ocr, because 2 of 12 pages have no text (3, 7)",
    ),
    (
        Code.PAGES_WITHOUT_TEXT(2, 12, "3, 7"),
        "no text in 2 of 12 pages (3, 7): run them through OCR, or name a program in [extractors]",
    ),
    (
        Code.PICTURE_PAGES(1, 2, "2"),
        "hardly any text in 1 of 2 pages, which are pictures (2): run them through OCR, or name a program in "
        "[extractors]",
    ),
    (Code.PART_DAMAGED("a.xml", "x"), "its part a.xml is damaged, and is read as far as possible (x)"),
    (Code.PARTS_MISSING("a.xml"), "parts that it refers to are not in it (a.xml)"),
    (
        Code.GARBLED_PAGES(1, 2, "1"),
        "the fonts of 1 of 2 pages do not say which letters they draw (1): run them through OCR, or name a program in "
        "[extractors]",
    ),
    (
        Code.PAGES_DAMAGED(1, 2, "1"),
        "1 of 2 pages are damaged and were not read (1): print the file into a new PDF",
    ),
    (
        Code.FILES_INSIDE("2 files", "a.csv, b.csv"),
        "without the text of 2 files inside it (a.csv, b.csv): save it next to this file",
    ),
    (
        Code.INSIDE_NOT_WHOLE("a.pdf", "encrypted"),
        "a.pdf inside it is not read whole (encrypted): save it next to it",
    ),
    (Code.INSIDE_TOO_SLOW("a.pdf", "10"), "a.pdf inside it took longer than 10 seconds: the next run reads it again"),
    (
        Code.FRONT_MATTER_BROKEN("YAML", "mapping values are not allowed here"),
        "its front matter is not read, because it is not valid YAML (mapping values are not allowed here): repair it",
    ),
    (
        Code.HIDDEN_WORDS("1,200 words"),
        "without 1,200 words that the page hides, and that no heading or button of it opens",
    ),
    (Code.HIDDEN_PARTS("2 slides (3, 5)", "read too"), "it hides 2 slides (3, 5): read too"),
    (Code.XFA_FORM(), "its fields are not read, because it is an XFA form: print it into a new PDF"),
    (
        Code.UNBROKEN_LEFT_OUT("40"),
        "40 % of its text is stretches of over 2,000 characters without a space, which are not embedded",
    ),
    (
        Code.MEMBERS_BESIDE("x"),
        "without x beside its list of records: make each a record, or a file of its own",
    ),
    (
        Code.REPEATED_MEMBER('"year"'),
        'an object in it has "year" more than once, and the last value was read: remove the others',
    ),
    (
        Code.COLUMNS_NOT_SEARCHED('"notes"'),
        '"notes" beside its text is too long to be searched by words: name it with --text-field',
    ),
    (
        Code.CELL_OF_ANOTHER_TYPE("ask us", "price", "a number"),
        '"ask us" in column "price" is not a number: it stays text, and filters compare the other cells of the column '
        "alone",
    ),
    (Code.NUL_LEFT_OUT(), "its NUL characters are left out: no text has them"),
    (
        Code.NUMBERS_WITHOUT_FORMATS(),
        "numbers without their formats: save it as .xlsx to have them as they are shown",
    ),
    (
        Code.FORMULAS_WITHOUT_VALUE("2 formulas"),
        "without 2 formulas for which no value is stored: open it in a spreadsheet program, and save it",
    ),
    (Code.EARLIER_TEXT_KEPT(), "the text of an earlier reading is kept"),
]
"""A reason of every code, and its sentence."""


def test_every_code_is_here_once() -> None:
    assert [reason.code for reason, _ in SENTENCES] == [code for code in Code if code not in {Code.NONE, Code.OTHER}]


@pytest.mark.parametrize(("reason", "sentence"), SENTENCES)
def test_a_reason_is_shown_and_stored(reason: Reason, sentence: str) -> None:
    assert reason.text() == sentence
    at_line = replace(reason, line=12)
    assert at_line.text() == f"line 12: {sentence}"
    for each in (reason, at_line):
        assert from_stored(each.stored()) == each


def test_what_is_stored() -> None:
    assert (NO_REASON.stored(), NO_REASON.text(), from_stored("")) == ("", "", NO_REASON)
    assert not bool(NO_REASON)
    assert Code.DUPLICATE().stored() == '{"code": "duplicate"}'
    stored = replace(Code.WRONG_CELLS(4, 3), line=7).stored()
    assert json.loads(stored) == {"code": "wrong_cells", "arguments": ["4", "3"], "line": 7}
    marked = replace(NO_REASON, mark="0f")
    assert (marked.stored(), marked.text()) == ('{"code": "none", "mark": "0f"}', "")
    assert not bool(marked)
    assert from_stored(marked.stored()) == marked


@pytest.mark.parametrize(
    "sentence",
    [
        "why",
        "a sentence of nobody: it has 2 parts",
        "line 12: why",
        "{}",
        '{"code":',
        '{"code": 1}',
        "é",
    ],
)
def test_a_foreign_sentence_stays_word_for_word(sentence: str) -> None:
    assert from_stored(sentence).code is Code.OTHER
    assert from_stored(sentence).text() == from_stored(from_stored(sentence).stored()).text() == sentence


def test_a_code_of_a_newer_version_is_shown() -> None:
    stored = json.dumps({"code": "on_the_moon", "arguments": ["far", "away"], "line": 3})
    assert from_stored(stored) == Reason(Code.OTHER, ("on_the_moon: far: away",), 3)
    assert from_stored('{"code": "on_the_moon"}').text() == "on_the_moon"


@pytest.mark.parametrize("arguments", [[], ["1"], ["1", "2", "3"], [1, 2, 3]])
def test_a_code_with_other_arguments_is_shown_too(arguments: list[object]) -> None:
    """A newer version may have changed its sentence."""
    stored = json.dumps({"code": "too_large", "arguments": arguments, "line": 3})
    assert from_stored(stored).text() == ": ".join(["line 3: too_large", *map(str, arguments)])


def test_a_sentence_is_one_short_line() -> None:
    long = Code.NO_TEXT_COLUMN("key", "\n".join(f"column {number}" for number in range(1000)))
    assert len(long.text()) == MAX_REASON_CHARACTERS
    assert long.text().startswith('has no column "key", which --text-field names (columns: column 0 column 1')
    assert long.text().endswith("column 998 column 999)")
    assert len(long.stored()) < 3 * MAX_REASON_CHARACTERS
    assert from_stored(long.stored()) == long
