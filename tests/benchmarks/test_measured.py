"""The page of all figures: where each table comes from, and what renewing one changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measured import PAGE, renew, rows_of, tables_of

CPU = "Some CPU, AVX2 alone, 2 cores"
BENCHMARK = """
print('Some CPU\\n\\n| first | x |\\n| --- | --- |\\n| a | 1 |\\n')
print('| second | y |\\n| --- | --- |\\n| b | 2 |\\n| c | 3 |')
"""
TEXT = """# Measured

## Quality

{cpu}, 2026-01-02, `python {benchmark}`:

| first | x |
| --- | --- |
| a | 8 |

## Two words

CPU not recorded, 2026-01-02, `python {benchmark}`, table {number}:

| second | y |
| --- | --- |
| b | 9 |

How to read it.

Other CPU, 2 cores, 2026-01-02, `python {benchmark}`:

| kept |
| --- |
| 7 |

{cpu}, 2026-01-02, a script in the history:

| kept too |
| --- |
| 6 |
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "benchmark.py").write_text(BENCHMARK)
    page = tmp_path / "measured.md"
    page.write_text(TEXT.format(cpu=CPU, benchmark=tmp_path / "benchmark.py", number=2))
    return page


def test_a_renewed_table_is_what_its_command_prints_today(page: Path) -> None:
    before = page.read_text()
    renew(page, "two-words", CPU, "2026-11-27")
    renewed = before.replace("CPU not recorded, 2026-01-02", f"{CPU}, 2026-11-27")
    assert page.read_text() == renewed.replace("| b | 9 |", "| b | 2 |\n| c | 3 |")


def test_an_unknown_name_and_a_table_that_is_not_printed_change_nothing(page: Path) -> None:
    page.write_text(page.read_text().replace("table 2", "table 3"))
    before = page.read_text()
    with pytest.raises(
        ValueError, match=r"^speed: measured\.md has no table of this name, but these: quality, two-words$"
    ):
        renew(page, "speed", CPU, "2026-11-27")
    with pytest.raises(ValueError, match=r"printed 2 tables, and no table 3$"):
        renew(page, "two-words", CPU, "2026-11-27")
    assert page.read_text() == before


def test_a_table_is_kept_if_the_command_of_another_fails(page: Path) -> None:
    before = page.read_text().replace("table 2", "table 3")
    quality = before.partition("## Quality\n\n")[2].partition("## Two words")[0].rstrip()
    page.write_text(f"{before}\n{quality}\n")
    with pytest.raises(ValueError, match=r"printed 2 tables, and no table 3$"):
        renew(page, "two-words", CPU, "2026-11-27")
    renewed = quality.replace("2026-01-02", "2026-11-27").replace("| a | 8 |", "| a | 1 |")
    assert page.read_text() == f"{before}\n{renewed}\n"


def test_a_table_that_does_not_say_where_it_comes_from_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^line 1 does not name CPU, date and command of the table: Figures:$"):
        tables_of(["Figures:", "", "| a |", "| --- |"])


def test_every_table_of_the_page_has_a_head_and_rows_of_its_width() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for table in tables_of(lines):
        rows = rows_of(table, lines)
        assert len(rows) > 1, table
        assert {len(row) for row in rows} == {len(rows[0])}, table
