"""The speed of reading files, by format: files and MB per second, also against another checkout of likewise.

The times are processor seconds of a process and its worker, because other programs hardly disturb these.
Each checkout has a process, and these take turns with each format. The best turn counts. The first file of a format is
read once before, so that imports do not count. Without files of the user it makes files of the words of the project's
own pages. `benchmarks.extraction --time` calls it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from email.message import EmailMessage
from html import escape
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
_CHINESE = (
    "北京是中国的首都，也是全国的政治和文化中心。",
    "今天的天气很好，我们一起去公园散步。",
    "图书馆里有许多关于历史和科学的书籍。",
    "这台机器每小时可以生产三百个零件。",
    "医生建议病人多喝水，并且按时吃药。",
)
Checkouts = Mapping[str, tuple[Path, str]]
"""Folder and Python of each checkout, by its name."""


def report(groups: Mapping[str, list[Path]], checkouts: Checkouts, turns: int, *, as_json: bool) -> None:
    """Measure the groups of files in all checkouts, and print a table of their best turns."""
    best: dict[str, dict[str, float]] = {}
    processes = {name: _start(*checkout) for name, checkout in checkouts.items()}
    for group, files in groups.items():
        for process in processes.values():
            _seconds(process, files[:1])
        timed = [(name, _seconds(process, files)) for _ in range(turns) for name, process in processes.items()]
        best[group] = {name: min(seconds for each, seconds in timed if each == name) for name in processes}
    for process in processes.values():
        process.communicate()
    if as_json:
        print(json.dumps(best))
        return
    print(f"best of {turns} turns, files/s and MB/s\n")
    columns = ("format", "files", "MB", *checkouts, "time, this to the other")
    print(f"| {' | '.join(columns)} |\n{'| --- ' * len(columns)}|")
    for group, files in groups.items():
        megabytes = sum(file.stat().st_size for file in files) / 1e6
        speeds = [f"{len(files) / s:,.0f} files, {megabytes / s:,.2f} MB" for s in best[group].values()]
        seconds = list(best[group].values())
        ratio = f"{seconds[0] / seconds[1]:.2f}" if len(seconds) > 1 else ""
        print(f"| {group} | {len(files)} | {megabytes:.1f} | {' | '.join(speeds)} | {ratio} |", flush=True)


def _start(folder: Path, python: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [python, "-P", __file__]
    return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _seconds(process: subprocess.Popen[str], files: list[Path]) -> float:
    """Return the processor seconds that a process needs for these files."""
    assert process.stdin
    assert process.stdout
    print(json.dumps(list(map(str, files))), file=process.stdin, flush=True)
    return float(process.stdout.readline())


def measure() -> None:
    """Read the files that each line of the standard input names, with the likewise of PYTHONPATH, and print seconds."""
    from indexer.sources import ReadOptions, open_sources, read
    from indexer.stores.addresses.open import holds_store

    options = ReadOptions(ignore=False)
    for line in sys.stdin:
        sources = open_sources(json.loads(line), options, holds_store)
        began = _processor_seconds()
        for source in sources:
            for _ in read(source, options, lambda _: None):
                pass
        print(_processor_seconds() - began, flush=True)


def _processor_seconds() -> float:
    """Return the seconds that this process and its worker have used so far."""
    process = psutil.Process()
    times = (each.cpu_times() for each in (process, *process.children(recursive=True)))
    return sum(each.user + each.system for each in times)


def by_suffix(files: list[Path]) -> dict[str, list[Path]]:
    groups: dict[str, list[Path]] = {}
    for file in files:
        groups.setdefault(file.suffix.lower() or file.name, []).append(file)
    return dict(sorted(groups.items()))


def make_files(folder: Path) -> dict[str, list[Path]]:
    """Write files of the words of the project's pages, and return them by format."""
    pages = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    paragraphs = [" ".join(block.split()) for block in pages.split("\n\n") if len(block.split()) > 8]
    chosen = random.Random(43)
    makers = {
        "Markdown": (100, ".md", _write_markdown),
        "PDF": (10, ".pdf", _write_pdf),
        "DOCX": (20, ".docx", _write_docx),
        "PPTX": (20, ".pptx", _write_pptx),
        "XLSX": (10, ".xlsx", _write_xlsx),
        "ODT": (40, ".odt", _write_odt),
        "HTML": (40, ".html", _write_html),
        "mail": (80, ".eml", _write_mail),
        "text in GBK": (40, ".txt", _write_gbk),
    }
    groups: dict[str, list[Path]] = {}
    for group, (count, suffix, make) in makers.items():
        (parent := folder / group).mkdir()
        groups[group] = [parent / f"{number}{suffix}" for number in range(count)]
        for path in groups[group]:
            make(path, chosen.choices(paragraphs, k=80))
    return groups


def _write_markdown(path: Path, paragraphs: list[str]) -> None:
    path.write_text("\n\n".join(["# " + paragraphs[0][:40], *paragraphs]), encoding="utf-8")


def _write_pdf(path: Path, paragraphs: list[str]) -> None:
    words = " ".join(paragraphs).encode("ascii", "ignore").decode()
    words = words.translate(str.maketrans({"(": "", ")": "", "\\": ""}))
    lines = [words[start : start + 90] for start in range(0, len(words), 90)]
    pages = [lines[start : start + 50] for start in range(0, len(lines), 50)]
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for page in pages:
        drawn = "BT /F1 11 Tf 50 780 Td " + " 0 -14 Td ".join(f"({line}) Tj" for line in page) + " ET"
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
        members = f"/MediaBox[0 0 600 800]/Resources<</Font<</F1 3 0 R>>>>/Contents {len(objects)} 0 R"
        objects.append(f"<</Type/Page/Parent 2 0 R{members}>>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    text, offsets = "%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(f"{len(text):010} 00000 n \n")
        text += f"{number} 0 obj{body}endobj\n"
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{''.join(offsets)}"
    trailer = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(text)}\n%%EOF"
    path.write_text(text + table + trailer, encoding="ascii")


def _write_docx(path: Path, paragraphs: list[str]) -> None:
    import docx

    document = docx.Document()
    for number, paragraph in enumerate(paragraphs):
        document.add_paragraph(
            paragraph[:40] if number % 10 == 0 else paragraph, "Heading 1" if number % 10 == 0 else None
        )
    table = document.add_table(rows=12, cols=4)
    for number, cell in enumerate(table._cells):
        cell.text = paragraphs[number][:30]
    document.save(str(path))


def _write_pptx(path: Path, paragraphs: list[str]) -> None:
    import pptx

    presentation: Any = pptx.Presentation()
    for number in range(0, len(paragraphs), 4):
        slide: Any = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = paragraphs[number][:40]
        slide.placeholders[1].text = "\n".join(paragraphs[number + 1 : number + 3])
        slide.notes_slide.notes_text_frame.text = paragraphs[number + 3]
    presentation.save(str(path))


def _write_xlsx(path: Path, paragraphs: list[str]) -> None:
    import openpyxl

    workbook = openpyxl.Workbook()
    sheet: Any = workbook.active
    for row in range(400):
        words = paragraphs[row % len(paragraphs)]
        sheet.append([row, words[:50], words[50:80], row * 1.25, row / 7, words[:5], row % 2 == 0, f"row {row}"])
        sheet.cell(row + 1, 4).number_format = "0.00"
    workbook.save(str(path))


def _write_odt(path: Path, paragraphs: list[str]) -> None:
    office = "urn:oasis:names:tc:opendocument:xmlns:"
    body = "".join(f"<text:p>{escape(paragraph)}</text:p>" for paragraph in paragraphs)
    names = f'xmlns:office="{office}office:1.0" xmlns:text="{office}text:1.0"'
    content = f"<office:document-content {names}><office:body><office:text>{body}</office:text></office:body>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("content.xml", f"{content}</office:document-content>")


def _page(paragraphs: list[str]) -> str:
    blocks = (
        f"<div><h2>{escape(each[:30])}</h2><p>{escape(each)} <a href='#'>More</a></p></div>" for each in paragraphs
    )
    return f"<!doctype html><title>Page</title><body><nav><a href='/'>Home</a></nav>{''.join(blocks)}</body>"


def _write_html(path: Path, paragraphs: list[str]) -> None:
    path.write_text(_page(paragraphs), encoding="utf-8")


def _write_mail(path: Path, paragraphs: list[str]) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ann@example.org", "bo@example.org", paragraphs[0][:60]
    message.set_content("\n\n".join(paragraphs[:20]))
    message.add_alternative(_page(paragraphs[:20]), subtype="html")
    path.write_bytes(bytes(message))


def _write_gbk(path: Path, paragraphs: list[str]) -> None:
    path.write_bytes("\n".join(_CHINESE[len(each) % len(_CHINESE)] * 8 for each in paragraphs).encode("gbk"))


if __name__ == "__main__":
    measure()
