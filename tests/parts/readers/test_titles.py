"""Titles: without markup, and never a program's "Word Document" or the first chapter of a whole book."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest

from indexer.records import Section
from indexer.sources import Entry
from indexer.sources.content import Content
from indexer.sources.files import titles
from indexer.sources.files.titles import title_of, without_markup
from indexer.sources.formats import DOCX, EML, MARKDOWN, PDF, XLSX, Format

Collect = Callable[..., list[Entry]]


def title(collect: Collect, path: Path) -> str:
    (entry,) = collect(path)
    assert entry.document is not None, entry.reason.text()
    return entry.document.title


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("The <i>lamp</i><br/>of <b class='x'>the <u>keeper</u></b>", "The lamp of the keeper"),
        ("R&amp;D in &lt;b&gt;bold&lt;/b&gt;", "R&D in bold"),
        ("List<String> and a < b & c", "List<String> and a < b & c"),
        ("Allow ``X | Y`` as `x`\\ s, **bold** and *thin*", "Allow X | Y as xs, bold and thin"),
        ("[The lamp](https://example.org/a) by :pep:`8` and `Ada <http://a>`_", "The lamp by 8 and Ada"),
        ("__init__ of 2 * 3 * 4, snake_case_name", "__init__ of 2 * 3 * 4, snake_case_name"),
        (r"\*args, \*\*kwargs and snake\_case in C:\new", r"*args, **kwargs and snake_case in C:\new"),
        ("Microsoft Word - The harbour.doc", "The harbour.doc"),
        ("Microsoft Word - Document1", "Document1"),
    ],
)
def test_titles_have_no_markup(marked: str, plain: str) -> None:
    assert without_markup(marked) == plain


def sections(*headings: str) -> tuple[Section, ...]:
    return tuple(Section(10 * number, heading) for number, heading in enumerate(headings))


@pytest.mark.parametrize(
    ("format_", "content", "expected"),
    [
        (PDF, Content("The year of the storm\nIt began.", "Untitled"), "The year of the storm"),
        (PDF, Content("It began with rain.", "Untitled"), "file"),
        (PDF, Content("The year of the storm", ""), "file"),
        (PDF, Content("The year of the storm\nIt began.", "t.html"), "The year of the storm"),
        (PDF, Content("It began with rain.", "Microsoft Word - The harbour.doc"), "file"),
        (PDF, Content("It began with rain.", "C:\\Users\\ada\\The harbour"), "file"),
        (PDF, Content("It began with rain.", "/tmp/a/b"), "file"),
        (PDF, Content("It began with rain.", "print"), "file"),
        (PDF, Content("It began with rain.", "What robots.txt is for"), "What robots.txt is for"),
        (PDF, Content("It began with rain.", "Learning Node.js"), "Learning Node.js"),
        (EML, Content("Here it is.", "invoice.pdf"), "invoice.pdf"),
        (PDF, Content("Printed Name: Jane Doe\nShe signed.", "200.01"), "file"),
        (PDF, Content("The year of the storm\n12.5", "0:0:0.0 --> 0:0:1.510"), "The year of the storm"),
        (DOCX, Content("x", "Word Document", sections("", "Guide", "Guide > Setup")), "Guide"),
        (DOCX, Content("Salt and Sea\n\nby Ada", "The boy", sections("", "The boy", "The girl")), "Salt and Sea"),
        (DOCX, Content("The boy\n\nHe ran.", "The boy", sections("The boy", "The girl")), "file"),
        (DOCX, Content("The boy\n\nHe ran.", "The boy", sections("The boy", "The boy > Home")), "The boy"),
        (MARKDOWN, Content("# Chapter 1", "Chapter 1", sections("Chapter 1", "Chapter 2")), "file"),
        (MARKDOWN, Content("# 1. Salt", "1. Salt", sections("1. Salt", "2. Sea")), "file"),
        (MARKDOWN, Content("# 10 ways", "10 ways to cook", sections("10 ways to cook", "Boil")), "10 ways to cook"),
        (MARKDOWN, Content("# Chapter 1", "Chapter 1", sections("Chapter 1", "Chapter 1 > Home")), "Chapter 1"),
        (MARKDOWN, Content("# Install", "Project", sections("Project", "Install")), "Project"),
        (XLSX, Content("a\tb", "Untitled spreadsheet", sections("People", "Prices")), "file"),
    ],
)
def test_the_title_of_a_file(format_: Format, content: Content, expected: str) -> None:
    assert title_of(content, format_, "/folder/file.ext") == expected


def test_real_files(tmp_path: Path, collect: Collect) -> None:
    word = docx.Document()
    word.core_properties.title = "Word Document"
    word.add_heading("The <b>lamp</b>", 0)
    word.add_heading("Oil", 1)
    word.save(str(tmp_path / "a.docx"))
    assert title(collect, tmp_path / "a.docx") == "The lamp"
    slides = pptx.Presentation()
    slides.core_properties.title = "PowerPoint Presentation"
    for heading in ("Slide 1", "Slide 2"):
        slides.slides.add_slide(slides.slide_layouts[5]).shapes.title.text = heading
    slides.save(str(tmp_path / "talk.pptx"))
    assert title(collect, tmp_path / "talk.pptx") == "talk"
    book = openpyxl.Workbook()
    book.properties.title = "Untitled spreadsheet"
    assert book.active is not None
    book.active.append(["name", "born"])
    book.save(tmp_path / "people.xlsx")
    assert title(collect, tmp_path / "people.xlsx") == "people"
    (tmp_path / "page.html").write_text("<title>Untitled Document</title><h1>The <i>lamp</i></h1><p>It burns.</p>")
    assert title(collect, tmp_path / "page.html") == "The lamp"


def test_few_of_many_headings_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []

    def without_markup(title: str) -> str:
        cleaned.append(title)
        return title

    monkeypatch.setattr(titles, "without_markup", without_markup)
    sections = tuple(Section(number, f"Chapter {number}") for number in range(1000))
    assert title_of(Content("A title\nand a text.", "Chapter 0", sections), PDF, "/a/b.pdf") == "A title"
    assert len(cleaned) < 100
