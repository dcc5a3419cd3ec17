"""Everything that the pages link to exists: files, headings, benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "data" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OF_PARTS = sorted((ROOT / "likewise").glob("*/README.md"))

_LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")
_FILE = re.compile(r"`((?:indexer|search|tests|benchmarks|docs|data)/[\w./-]+\.\w+|likewise/[\w./-]+\.py)`")
_BENCHMARK = re.compile(r"benchmarks[./](\w+)")


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *OF_PARTS], ids=lambda page: str(page.relative_to(ROOT)))
def test_everything_that_is_pointed_to_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file, anchor in _LINK.findall(text):
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not anchor or anchor in headings(target), f"{file}#{anchor}"
    for file in _FILE.findall(text):
        assert (ROOT / file).exists(), file
    for name in _BENCHMARK.findall(text):
        assert (ROOT / "benchmarks" / f"{name.removesuffix('.py')}.py").exists(), name


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md" and page not in reached and page.exists():
            reached.add(page)
            waiting += [(page.parent / file).resolve() for file, _ in _LINK.findall(page.read_text(encoding="utf-8"))]
    assert {page.resolve() for page in PAGES} <= {page.resolve() for page in reached}
