"""Numbers as a sheet shows them: a table of values, format codes and texts."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from likewise.readers.formats.number_formats import BUILT_IN, shown, shown_text

TABLE = [
    # no format
    (0.1 + 0.2, "", "0.3"),
    (1067.0, "General", "1067"),
    (-2.5, "General", "-2.5"),
    (4915112345678.0, "", "4915112345678"),
    (1.234567890123457e17, "", "123456789012346000"),
    (1e300, "0.00", "1E+300"),
    (1.5e-12, "", "1.5E-12"),
    (12.0, "@", "12"),
    (3.0, 'General" pieces"', "3 pieces"),
    # digits, groups, currencies
    (0.075, "0.0%", "7.5%"),
    (0.075, "0.0\\ %", "7.5 %"),
    (1234.5, '"€" #,##0.00', "€ 1,234.50"),
    (1234.5, "#,##0.00\\ [$€-407]", "1,234.50 €"),
    (-1234.5, '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', "$ (1,234.50)"),
    (0.0, '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', "$ -"),
    (1067.0, "00000", "01067"),
    (1 / 3, "0.00", "0.33"),
    (2.5, "0", "3"),
    (-0.001, "0.00", "0.00"),
    (0.5, "#.##", ".5"),
    (12.0, "#.##", "12"),
    (0.0, "#", ""),
    (1234567.0, "#,##0,", "1,235"),
    (1234567.0, '0.0,,"M"', "1.2M"),
    (123456789.0, "000-00-0000", "123-45-6789"),
    (5551234567.0, "(###) ###-####", "(555) 123-4567"),
    (1234567890.0, "#,##0", "1,234,567,890"),
    (12345.0, "0.00E+00", "1.23E+04"),
    (0.00012, "0.0E+0", "1.2E-4"),
    (12345.0, "##0.0E+0", "12.3E+3"),
    (1e20, "0.000000000000", "100000000000000000000.000000000000"),
    (1.75, "# ?/?", "1 3/4"),
    (0.5, "?/?", "1/2"),
    (3.0, "# ?/?", "3"),
    (-1.25, "# ?/?", "-1 1/4"),
    # sections
    (-5.0, "0;[Red](0)", "(5)"),
    (-5.0, "0", "-5"),
    (0.0, '0;-0;"none"', "none"),
    (7.0, ";;;", ""),
    (150.0, '[>=100]"many";[<10]"few";0', "many"),
    (3.0, '[>=100]"many";[<10]"few";0', "few"),
    (50.0, '[>=100]"many";[<10]"few";0', "50"),
    (1.0, '"yes";"yes";"no"', "yes"),
    # times and durations
    (1.104166666666667, "[h]:mm", "26:30"),
    (1.104166666666667, "[hh]:mm:ss", "26:30:00"),
    (-0.5, "[h]:mm", "-12:00"),
    (0.0625, "[mm]:ss", "90:00"),
    (0.4375, "h:mm", "10:30"),
    (0.9375, "h:mm AM/PM", "10:30 PM"),
    (0.0, "h:mm AM/PM", "12:00 AM"),
    (0.5 + 1.4 / 86400, "hh:mm:ss", "12:00:01"),
    (0.5 + 1.4 / 86400, "mm:ss.0", "00:01.4"),
    (0.4375, 'h"时"mm"分"', "10时30分"),
    # dates
    (45352.0, "dd.mm.yyyy", "2024-03-01"),
    (45352.0, "mmmm", "2024-03-01"),
    (45352.0, '[$-411]ggge"年"m"月"d"日"', "2024-03-01"),
    (45352.4375, "m/d/yy h:mm", "2024-03-01T10:30:00"),
    (45352.4375 - 1e-11, "m/d/yy h:mm", "2024-03-01T10:30:00"),
    (45352.4375, "yyyy-mm-dd", "2024-03-01"),
    (60.0, "yyyy-mm-dd", "1900-02-29"),
    (59.0, "yyyy-mm-dd", "1900-02-28"),
    (61.0, "yyyy-mm-dd", "1900-03-01"),
    (0.25, "yyyy-mm-dd h:mm", "06:00:00"),
    (-3.0, "yyyy-mm-dd", "1899-12-27"),
    (-1e6, "yyyy-mm-dd", "-1000000"),
    (4e9, "yyyy-mm-dd", "4000000000"),
]


@pytest.mark.parametrize(("value", "code", "text"), TABLE)
def test_a_number_is_written_as_a_sheet_shows_it(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


@pytest.mark.parametrize("number", [*range(14, 18), *range(27, 32), 34, 35, 36, *range(50, 59)])
def test_built_in_formats_of_dates(number: int) -> None:
    assert shown(45352.0, BUILT_IN[number]) == "2024-03-01"
    assert shown(43890.0, BUILT_IN[number], from_1904=True) == "2024-03-01"


@pytest.mark.parametrize(
    ("number", "text"),
    [(9, "150%"), (18, "12:00 PM"), (20, "12:00"), (45, "00:00"), (46, "36:00:00"), (12, "1 1/2"), (44, "$ 1.50")],
)
def test_built_in_formats_of_numbers(number: int, text: str) -> None:
    assert shown(1.5, BUILT_IN[number]) == text


def test_a_format_adds_words_to_a_text() -> None:
    assert shown_text("7b", '0;0;0;"Room "@') == "Room 7b"
    assert shown_text("7b", '"Room "@') == "Room 7b"
    assert shown_text("7b", "0.00") == shown_text("7b", "@") == "7b"


@settings(max_examples=100)
@given(st.text('0#?.,%/;@"\\_*[]hmsyd-+E€$<>=AP 1', max_size=12), st.floats(allow_nan=False))
@example("0/", 1.5)
@example("E+0x", 1.0)
@example("[>1.2.3]0", 1.0)
@example("[>=]0", 1.5)
@example("0" * 300, 1.5)
def test_a_broken_format_costs_nothing_but_itself(code: str, value: float) -> None:
    assert isinstance(shown(value, code), str)
    assert "words" in shown_text("words", code) or "@" not in code or ";" in code
