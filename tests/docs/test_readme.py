"""README, the tutorial and "Asking" show what the program prints, line by line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from docs.examples import ROOT, refreshed
from indexer.sources.formats import FORMATS, MAILDIR, MBOX

# 16-bit and 32-bit hardware differ in the third decimal of a score, sizes and times everywhere.
_NUMBER = re.compile(r"(?<![\d.])-?[01]\.\d{3,}")
_VARYING = re.compile(r"\d+\.\d MB|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


_TUTORIAL = pytest.param("docs/tutorial.md", marks=[pytest.mark.long, pytest.mark.timeout(600)])


@pytest.mark.slow
@pytest.mark.timeout(300)  # it runs about twenty commands
@pytest.mark.parametrize("name", ["README.md", "docs/asking.md", _TUTORIAL])
def test_a_page_shows_what_is_printed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIKEWISE_INDEX", raising=False)
    printed = refreshed(page)
    assert page.count("\n$ likewise ") >= 2
    assert page.count("```python\n") == page.count("```text\n") >= 1
    lines, numbers = _comparable(printed)
    expected_lines, expected_numbers = _comparable(page)
    assert lines == expected_lines, "see what changed with: python -m docs.examples"
    # bfloat16 has 8 bits: cosines differ by up to 0.003 between CPUs, and are printed rounded.
    assert numbers == pytest.approx(expected_numbers, abs=0.005)


def _comparable(text: str) -> tuple[list[str], list[float]]:
    numbers = [float(number) for number in _NUMBER.findall(text)]
    return _VARYING.sub("…", _NUMBER.sub("…", text)).splitlines(), numbers


def test_every_target_that_a_page_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    named = {target for text in texts for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)}
    assert named >= {"demo", "test"}
    assert named <= targets


def test_readme_can_be_read_in_one_sitting() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") < 175


def test_the_table_of_the_readme_names_every_format() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    table = page.partition("\n## What it reads\n")[2].partition("\n## ")[0].casefold()
    titles = {"odt": "opendocument", "ods": "opendocument", "odp": "opendocument"}
    formats = {MBOX.name, MAILDIR.name} | {each.name for each in FORMATS.values() if each.kind != "text" or each.reader}
    names = {"rst": "restructuredtext"} | titles
    assert [name for name in sorted(formats) if names.get(name, name) not in table] == []
