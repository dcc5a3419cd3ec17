"""What a person sees of pages: shadow roots, blocks that a click opens, readings after their words, results in HTML."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pdf_files
import pytest

from indexer.ledger import Code
from indexer.sources import Entry
from indexer.sources.content import Assembly
from likewise.readers.formats import html

Collect = Callable[..., list[Entry]]


def text_of(page: str) -> str:
    assembly = Assembly()
    html.write_body(html.parse(page), assembly)
    return assembly.content().text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<x-a><template shadowrootmode="open"><style>p{}</style><p>in</p></template></x-a>after', "in\n\nafter"),
        ("<x-a><template>never</template></x-a>", ""),
        (
            '<x-a><template shadowrootmode="closed"><h2><slot name="t">none</slot></h2><p>a <slot>none</slot></p>'
            '<slot name="u">own</slot></template><b slot="t">Title</b><i>light</i></x-a>',
            "Title\n\na light\n\nown",
        ),
        ('<x-a><template shadowrootmode="open"><p>shown: <slot></slot></p></template>words</x-a>', "shown: words"),
        (
            '<x-a><template shadowrootmode="open"><x-b><template shadowrootmode="open"><p>1 <slot></slot></p>'
            "</template><slot></slot></x-b></template>2</x-a>",
            "1 2",
        ),
    ],
)
def test_shadow_roots_are_in_their_place(page: str, text: str) -> None:
    assert text_of(page) == text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h3><button>Q</button></h3><div style='height:0;display:none'><p>A</p></div>", "Q\n\nA"),
        ("<h3>Q</h3><p hidden>A</p><p hidden>B</p>", "Q\n\nA\n\nB"),
        ("<button>Q</button><div hidden>A</div>", "Q\n\nA"),
        ("<div><button>Q</button></div><div hidden>A</div>", "Q\n\nA"),
        ("<button aria-controls='a b'>Q</button><p>x</p><div id=b hidden>A</div>", "Q\n\nx\n\nA"),
        (
            "<div id=m style='display: none'>A<button data-bs-target='#m'>Close</button></div><a href='#m'>Q</a>",
            "A\n\nQ",
        ),
        ("<span onclick=\"show('a1')\">Q</span><p>x</p><div id=a1 hidden>A</div>", "Q\n\nx\n\nA"),
        ("<button commandfor=d>Q</button><p>x</p><dialog id=d>A</dialog>", "Q\n\nx\n\nA"),
        ("<dl><dt>Q</dt><dd hidden>A</dd></dl>", "Q\nA"),
        ("<details><summary>Q</summary><p>A</p></details>", "Q\n\nA"),
        ("<p>x</p><div role=tabpanel hidden>A</div>", "x\n\nA"),
        (
            "<table><tr onclick='f()'><td>Q</td><td>1</td></tr><tr hidden><td>A</td><td>2</td></tr></table>",
            "Q\t1\nA\t2",
        ),
        ("<a href='c.xhtml#n'>1</a><aside id=n hidden>A</aside><div hidden>B</div>", "1\n\nA"),
        ("<button>Menu</button><ul hidden><li><a>Home</a></li></ul><p>x</p>", "x"),
        ("<p>x</p><div hidden>A</div><dialog><h2 id=t>T</h2>B</dialog>", "x"),
    ],
)
def test_blocks_that_a_click_opens_are_in_the_text(page: str, text: str) -> None:
    assert text_of(page) == text


def test_hidden_words_that_stay_out_are_counted(collect: Collect, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<h3>Q</h3><div hidden>A</div><p>x</p><div style='display:none'>one two</div>")
    (entry,) = collect(tmp_path / "a.html")
    assert entry.notes == (Code.HIDDEN_WORDS("2 words"),)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</rt></ruby>の寺", "東京の (とうきょう)寺"),
        ("<ruby>東<rt>とう</rt></ruby>\n<ruby>京<rt>きょう</rt></ruby>", "東京 (とうきょう)"),
        ("<ruby>取<rt>と</rt></ruby>り<ruby>扱<rt>あつか</rt></ruby>い、", "取り扱い (と、あつか)、"),
        ("<ruby>北京<rp>(<rt>Běijīng<rp>)</ruby> 好", "北京 (Běijīng)好"),
        ("<ruby><rb>東</rb><rb>京</rb><rtc><rt>とう</rt><rt>きょう</rt></rtc></ruby>", "東京 (とうきょう)"),
        ("<ruby><ruby>東京<rt>とうきょう</rt></ruby><rt>capital</rt></ruby>", "東京 (とうきょう capital)"),
    ],
)
def test_readings_stand_after_their_word(page: str, text: str) -> None:
    assert text_of(f"<p>{page}</p>") == text


def test_lines_of_the_source_do_not_part_chinese() -> None:
    page = "<h1>北\n京</h1><p>上\n  海<br>天\n津 a\nb</p><pre>上\n海</pre>"
    assert (
        text_of(f"{page}<table><tr><td>北\n京</td><td>x</td></tr></table>")
        == "北京\n\n上海\n天津 a b\n\n上\n海\n\n北京\tx"
    )


def test_lines_of_a_pdf_do_not_part_chinese(collect: Collect, tmp_path: Path) -> None:
    cmap = "1 begincodespacerange<00><ff>endcodespacerange 2 beginbfchar<41><5317><42><4eac>endbfchar"
    font = pdf_files.HELVETICA.replace(">>", "/ToUnicode 4 0 R>>")
    page = "BT /F1 12 Tf 50 700 Td (xA) Tj 0 -14 Td (B) Tj 90 0 Td (A) Tj -90 -14 Td (x) Tj ET"
    stream = f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream"
    (entry,) = collect(pdf_files.write(tmp_path / "a.pdf", page, font=font, more=[stream]))
    assert entry.document is not None
    assert entry.document.text.split() == ["x北京北", "x"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text/html": ["<table><tr><td>Salmon</td>", "<td>42</td></table>"]}, "```\nSalmon\t42\n```"),
        ({"text/markdown": ["**Herring** quota"], "text/plain": "x"}, "**Herring** quota"),
        ({"text/html": "<div id=plot></div><script>words</script>", "text/plain": "Plot()"}, "```\nPlot()\n```"),
        ({"text/html": "<p>Bars</p>", "image/png": "AAAA", "text/plain": "<Figure>"}, "```\nBars\n```"),
        ({"image/png": "AAAA", "text/plain": "<Figure>"}, ""),
    ],
)
def test_results_of_notebooks(collect: Collect, tmp_path: Path, data: dict[str, Any], text: str) -> None:
    cell = {"cell_type": "code", "source": "f()", "outputs": [{"output_type": "display_data", "data": data}]}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    (entry,) = collect(tmp_path / "a.ipynb")
    assert entry.document is not None
    assert entry.document.text == f"```\nf()\n```\n\n{text}".strip()
