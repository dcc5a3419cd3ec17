"""The files of LIKEWISE_EVAL_DATA/files, which stand for kinds that lose text elsewhere: what is read of each.

The same kinds are made in the tests of the readers; here are the files as programs wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.sources import Entry

LETTER = (
    "From: Ann Example <ann@example.org>\nTo: Bob Example <bob@example.org>\nDate: Fri, 17 May 2024 10:00:00 +0200\n\n"
)
UMLAUTS = "Die Brücke über die Donau ist schön. Zweite Zeile mit Größe und Maß.\n"

TEXTS = {
    "1234.emlx": LETTER + "Das Gespräch über die Brücke war langweilig.",
    "altchunk.docx": "Cover letter of the report.\n\nFindings\n\nThe otter population doubled in the estuary.\n\n"
    "End of the report.",
    "backslash.xlsx": "Backslash stock of kettles",
    "bad-created.xlsx": "Stock of copper kettles\t17",
    "bad-validation.xlsx": "Stock of copper kettles\t17",
    "bin.rtf": "Words before the picture.\n\nWords after the picture about otters.",
    "calendar.eml": LETTER
    + "You are invited.\n\nBudget review\nConference room Albatross\nStart: 2024-05-20 08:00 UTC",
    "cjk-wrapped.txt": "我们昨天在北\n京的图书馆看书，后来去了上\n海的博物馆。\n",
    "confluence.doc": "Date: Fri, 17 May 2024 10:00:00 +0000 (UTC)\n\nOnboarding\n\n"
    "New colleagues get a badge and a büro key on the first day.",
    "contact.vcf": "Jörg Müller\n+49151\nBrückenbau und Wasser",
    "cp1252.eml": LETTER + "It’s 20 € for the “blue” kettle – don’t wait.",
    "embedded.docx": "The table is in the embedded sheet.",
    "equation-box.pptx": "Slide title\n\nRotating blades need 500 m3 of air per day",
    "euckr-label.html": "똠방각하와 펲시콜라를 샀다.",
    "faq.html": "Questions\n\nHow long is the warranty?\n\nThe warranty lasts seven years for all ovens.\n\n"
    "Where is the repair shop?\n\nThe repair shop is in the old tannery.\n\nSpare parts are listed here.",
    "footnotes2.docx": "See the note on badgers.\n\nBadgers sleep through the coldest weeks.\n\n"
    "Please verify the hedgehog count.",
    "formats.xlsx": "kind\tvalue\nrate\t7.5%\nprice\t€ 1,234.50\nsum\t0.30\nhours\t26:30\nbig\t123456789012346000\n"
    "third\t0.33\nphone\t4915112345678\nzip\t01067",
    "gbk.html": "朱镕基访问了东京。",
    "headerfooter.xlsx": "Body\nConfidential plan Albatross\nFooter of finance",
    "iso2022jp.txt": "犬が一晩中吠えて近所の人が文句を言う。\n",
    "latin5.html": "“İstanbul” – şehir",
    "mac-long.txt": UMLAUTS * 6,
    "mixed.txt": "Zeile eins mit Brücke\nZeile zwei mit Größe\n" + "ASCII Zeile\n" * 20,
    "notes-box.pptx": "Slide title\n\nPlain notes\n\nSecond note box about terns",
    "null-rel.docx": "A letter about the harbour crane.",
    "numbered.docx": "Article 1 The tenant pays on the first day.\n\nArticle 2 The landlord repairs the roof.\n\n"
    "Article 3 Dogs need written consent.",
    "out.ipynb": "# Notebook\n\n```\nshow()\n```\n\n```\nSalmon landings\t42\n```\n\n**Herring** quota\n\n"
    "```\nprinted words\n```\n\nraw cell words",
    "report.xls": "Name\tTown\nAnn\tRome",
    "ruby.docx": "週末に東京(とうきょう)の図書館へ行きました。",
    "ruby.html": "週末に東京の図書館へ (とうきょう、としょかん)行きました。",
    "shadow.html": "The kettle boils in ninety seconds.\n\nFooter words.",
    "smartart.docx": "Our process in one picture:\n\nHarvest the barley\nRoast the malt slowly",
    "star.rtf": "The quiet brown owl watches the old barn.",
    "strict.xlsx": "Strict sheet about windmills",
    "stub.eml": LETTER + "Your parcel with the copper kettle leaves the warehouse on Thursday.\n\nKettle\t39.90",
    "textbox.xlsx": "See the box on the right\nAssumption: salmon prices rise four percent a year.",
    "upr.rtf": "Body",
    "x000d.xlsx": "note\nfirst line second line with café and literal _x000D_",
    "zwsp.txt": "Only here: e\u200bmail and data\u200bbase with zero width.\n",
}
TITLES = {
    "confluence.doc": "Exported From Confluence",
    "contact.vcf": "Jörg Müller",
    "euckr-label.html": "글",
    "gbk.html": "新闻",
    "ruby.html": "旅",
    "upr.rtf": "東京",
}
NOTES = {
    "embedded.docx": "without the text of 1 file inside it (Microsoft_Excel_Worksheet.xlsx): save it next to this file",
    "mac-long.txt": "encoding guessed: mac-roman (bytes beyond ASCII: 36): save it as UTF-8 if its text looks wrong",
    "mixed.txt": "encoding guessed: cp1252 (bytes beyond ASCII: 2): save it as UTF-8 if its text looks wrong",
    "null-rel.docx": "parts that it refers to are not in it (../NULL)",
}
RECORDS = {
    "lines.json": [("1", "", "The otter builds no dam."), ("2", "", "The beaver does.")],
    "nul.csv": [("nul.csv:2", "", "name: Ann\ncity: Rome"), ("nul.csv:3", "", "name: Bob\ncity: Oslo")],
    "sep.csv": [
        ("sep.csv:3", "", "name: Ann\ncity: Rome\nnote: likes tea"),
        ("sep.csv:4", "", "name: Bob\ncity: Oslo\nnote: likes rye bread"),
    ],
    "texts.csv": [("texts.csv:2", "", "boils quickly"), ("texts.csv:3", "", "heavy lid")],
    "title-only.jsonl": [
        ("a", "Grain prices soared in the port", "Grain prices soared in the port"),
        ("b", "Second", "Body here."),
    ],
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_title_and_notes_of_a_file(name: str, collect: Callable[..., list[Entry]], evaluation_data: Path) -> None:
    (entry,) = collect(evaluation_data / "files" / name)
    assert entry.document is not None
    assert entry.document.text == TEXTS[name]
    assert entry.document.title == TITLES.get(name, entry.document.title)
    assert [note.text() for note in entry.notes] == ([NOTES[name]] if name in NOTES else [])


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_a_file(name: str, collect: Callable[..., list[Entry]], evaluation_data: Path) -> None:
    documents = [entry.document for entry in collect(evaluation_data / "files" / name) if entry.document]
    assert [(Path(one.uri).name, one.title, one.text) for one in documents] == RECORDS[name]


@pytest.mark.needs("shell")
def test_what_people_ask_finds_the_file_that_has_it(likewise: Any, evaluation_data: Path, tmp_path: Path) -> None:
    files, x = evaluation_data / "files", tmp_path / "x.index"
    said = likewise("index", x, files / "two-tables", "--json").succeeded()
    assert (said.json["indexed"], said.json["seen"]) == (4, 4)
    likewise("index", x, files).succeeded()

    def found(question: str) -> list[str]:
        hits = likewise("search", x, question, "--mode", "words", "-k", "4", "--json").succeeded().json["hits"]
        return [name for hit in hits if (name := Path(hit["uri"]).name) != "README.md"]

    assert found("北京") == found("上海") == ["cjk-wrapped.txt"]
    assert sorted(found("東京")) == ["ruby.docx", "ruby.html", "upr.rtf"]
    assert found("email") == found("database") == ["zwsp.txt"]
    assert "texts.csv:2" in found("copper")
    assert found("grain prices")[0] == "a"
    shown = likewise("search", x, "what does tar -xzf do", "--mode", "words").succeeded().out
    assert re.findall(r"(\w+\.md):", shown)[0] == "tar.md"
