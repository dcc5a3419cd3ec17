"""Numbers of a sheet as it shows them, by their format code, such as `[h]:mm` or `#,##0.00`.

Dates are written in the form of ISO 8601, whatever their format, because the order of day and month and the names of
months depend on the machine that shows a sheet. Times and durations are written as their format says.

No library was found that gives a number its text: openpyxl and python-calamine return values, and a cell of
`[h]:mm` or `00000` is then another number than the one that a reader sees. The codes are those of ECMA-376, 18.8.31.
"""

from __future__ import annotations

import datetime
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache

_ACCOUNTING = '_(* #,##0{0}_);_(* (#,##0{0});_(* "-"{1}_);_(@_)'
BUILT_IN: dict[int, str] = {
    **{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??"},
    **{
        5: '"$"#,##0;("$"#,##0)',
        6: '"$"#,##0;("$"#,##0)',
        7: '"$"#,##0.00;("$"#,##0.00)',
        8: '"$"#,##0.00;("$"#,##0.00)',
    },
    **{18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm"},
    **dict.fromkeys((*range(14, 18), *range(27, 37), *range(50, 59)), "yyyy-mm-dd"),
    **{32: "h:mm", 33: "h:mm:ss", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)"},
    **{40: "#,##0.00;(#,##0.00)", 41: _ACCOUNTING.format("", ""), 42: _ACCOUNTING.format("", "").replace("*", '"$"*')},
    **{43: _ACCOUNTING.format(".00", "??"), 44: _ACCOUNTING.format(".00", "??").replace("*", '"$"*')},
    **{45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@"},
}
"""The formats that a workbook names by their number alone. 27-36 and 50-58 are dates of East Asian languages."""

_TOKEN = re.compile(
    r"""(?P<literal>"[^"]*"?|\\.) | (?P<space>[_*].) | (?P<elapsed>\[(?:h+|m+|s+)\]) | \[\$(?P<currency>[^\]-]*)[^\]]*\]
    | \[(?P<condition>[<>=]+\s*-?\d+\.?\d*)\] | (?P<ignored>\[[^\]]*\]) | (?P<general>general)
    | (?P<half>am/pm|a/p|上午/下午)
    | (?P<exponent>e[+-]) | (?P<date>y+|d+|e+|g+|b+) | (?P<clock>h+|m+|s+) | (?P<fraction>(?<=s)\.0+|(?<=s\])\.0+)
    | (?P<digit>[0\#?]) | (?P<point>\.) | (?P<comma>,) | (?P<percent>%) | (?P<text>@) | (?P<other>.)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_SECTION = re.compile(r'((?:"[^"]*"?|\\.|[_*].|\[[^\]]*\]|[^;])*)(?:;|$)', re.DOTALL)
_COMPARE = {
    "<": Decimal.__lt__, "<=": Decimal.__le__, ">": Decimal.__gt__, ">=": Decimal.__ge__, "=": Decimal.__eq__,
    "<>": Decimal.__ne__,
}  # fmt: skip
_EXACT = Context(prec=1000)  # enough for each number below _MAX_SHOWN in a format of _MAX_CODE_CHARACTERS
_MAX_CODE_CHARACTERS = 255
_MAX_SHOWN = 1e21
"""Numbers from this one on are written with an exponent."""
_MIN_DAY, _MAX_DAY = -693_593, 2_958_465  # 0001-01-01 and 9999-12-31
_DAYS_TO_1904 = 1462

Tokens = tuple[tuple[str, str], ...]


def shown(value: float, code: str = "", from_1904: bool = False) -> str:
    """Return a number as a sheet shows it in a cell with this format code.

    Args:
        from_1904: whether the workbook counts days from 1904.
    """
    if code in {"", "General"} or len(code) > _MAX_CODE_CHARACTERS or not abs(value) < _MAX_SHOWN:
        return _general(value)
    sections = _sections(code)
    tokens, has_own_sign = _chosen(value, sections)
    kinds = {kind for kind, _ in tokens}
    if kinds & {"date", "elapsed", "clock"}:
        return _moment(value, tokens, from_1904)
    sign = "-" if value < 0 and not has_own_sign else ""
    if kinds & {"general", "text"} or not tokens:
        number = _general(abs(value)) if tokens or len(sections) == 1 else ""
        plain = [number if kind in {"general", "text"} else _written(kind, text) for kind, text in tokens]
        return _joined([sign, *(plain or [number])]) if tokens or number else ""
    text = _number(abs(Decimal(repr(value))), tokens)
    return _joined([sign if re.search("[1-9]", text) or "digit" not in kinds else "", text])


def shown_text(value: str, code: str) -> str:
    """Return a text as a sheet shows it: a format may add words to it, as `"Room "@` does."""
    tokens = next((tokens for tokens in reversed(_sections(code)) if any(kind == "text" for kind, _ in tokens)), ())
    if len(tokens) < 2:
        return value
    return _joined([value if kind == "text" else _written(kind, text) for kind, text in tokens])


@lru_cache(1024)
def _sections(code: str) -> tuple[Tokens, ...]:
    """Return the tokens of each section: positive numbers, negative ones, zero, text."""
    sections = _SECTION.findall(f"{code};")[:-1][:4]
    return tuple(tuple(_token(match) for match in _TOKEN.finditer(section)) for section in sections)


def _token(match: re.Match[str]) -> tuple[str, str]:
    kind = match.lastgroup or "currency"
    return kind, match[kind]


def _chosen(value: float, sections: tuple[Tokens, ...]) -> tuple[Tokens, bool]:
    """Return the section for a number, and whether it writes the sign of a negative number itself."""
    for section in sections:
        for kind, text in section:
            if kind == "condition":
                operator, limit = re.fullmatch(r"([<>=]+)\s*(.+)", text).groups()  # type: ignore[union-attr]
                if _COMPARE.get(operator, Decimal.__eq__)(Decimal(repr(value)), Decimal(limit)):
                    return section, False
    if any(kind == "condition" for section in sections for kind, _ in section):
        return sections[-1], False
    numbers = sections[:3]
    if value < 0 and len(numbers) > 1:
        return numbers[1], True
    return numbers[2 if value == 0 and len(numbers) > 2 else 0], False


def _general(value: float) -> str:
    """Return a number without a format: at most 15 digits, as a spreadsheet keeps them."""
    rounded = float(f"{value:.15g}")
    if not abs(rounded) < _MAX_SHOWN or 0 < abs(rounded) < 1e-9:
        return f"{value:.15g}".upper()
    text = f"{Decimal(repr(rounded)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _written(kind: str, text: str) -> str:
    """Return what a token writes that is not a part of a number."""
    if kind == "literal":
        return text[1:] if text[0] == "\\" else text.strip('"')
    if kind in {"ignored", "condition"}:
        return ""
    return " " if kind == "space" else text


def _joined(parts: list[str]) -> str:
    return " ".join("".join(parts).split())


def _number(value: Decimal, tokens: Tokens) -> str:
    kinds = [kind for kind, _ in tokens]
    digits = [place for place, kind in enumerate(kinds) if kind == "digit"]
    if not digits:
        return "".join(_written(kind, text) for kind, text in tokens)
    slash = next((place for place, token in enumerate(tokens) if token == ("other", "/")), None)
    if slash is not None:
        return _with_fraction(value, tokens, slash)
    point = kinds.index("point") if "point" in kinds else len(kinds)
    power = kinds.index("exponent") if "exponent" in kinds else len(kinds)
    whole = [place for place in digits if place < min(point, power)]
    decimals = [place for place in digits if point < place < power]
    last = max([*whole, *decimals], default=0)
    commas = [place for place, kind in enumerate(kinds) if kind == "comma"]
    is_grouped = any(whole and whole[0] < place < whole[-1] for place in commas)
    thousands = sum(place > (whole[-1] if whole else -1) and kinds[place - 1] in {"comma", "digit"} for place in commas)
    value = value * Decimal(100) ** kinds.count("percent") / Decimal(1000) ** thousands
    exponent = 0
    if power < len(kinds) and value:
        exponent = value.adjusted() - max(0, len(whole) - 1) if len(whole) < 2 else value.adjusted() // 3 * 3
        value = value.scaleb(-exponent)
    fixed = f"{value.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP, _EXACT):f}"
    integer, _, fraction = fixed.partition(".")
    written: dict[int, str] = dict(zip(decimals, fraction, strict=True))
    for place in reversed(decimals):
        if tokens[place][1] == "0" or written[place] != "0":
            break
        written[place] = ""
    _write_whole("" if integer == "0" else integer, whole, tokens, is_grouped, written)
    if power < len(kinds):
        places = [place for place in digits if place > power]
        written.update(dict.fromkeys(places, ""))
        sign = "-" if exponent < 0 else "+" if tokens[power][1].endswith("+") else ""
        written[power] = f"E{sign}{abs(exponent):0{max(1, len(places))}}"
    if decimals and not any(written[place] for place in decimals):
        written[point] = ""
    written.update((place, "") for place in commas if (whole or [0])[0] < place <= last + thousands)
    return "".join(written.get(place, _written(kind, text)) for place, (kind, text) in enumerate(tokens))


def _write_whole(digits: str, places: list[int], tokens: Tokens, is_grouped: bool, written: dict[int, str]) -> None:
    """Spread the digits before the point over their places, from the right. The first place takes all that are left."""
    count = 0
    for place in reversed(places):
        taken = digits[-1:] if place != places[0] else digits
        digits = digits[: len(digits) - len(taken)]
        taken = taken or ("0" if tokens[place][1] == "0" else "")
        text = ""
        for digit in reversed(taken):
            text = digit + ("," if is_grouped and count and count % 3 == 0 else "") + text
            count += 1
        written[place] = text


def _with_fraction(value: Decimal, tokens: Tokens, slash: int) -> str:
    """Return a number as `1 3/4`: a whole and a fraction with as many digits as the format has below the line."""
    below = "".join(text for _, text in tokens[slash + 1 :] if text.isdigit() or text in "#?")
    fixed = int(below) if below.isdigit() and int(below) else 0
    nearest = (
        Fraction(round(value * fixed), fixed)
        if fixed
        else Fraction(value).limit_denominator(10 ** max(1, len(below)) - 1)
    )
    above = [place for place, (kind, _) in enumerate(tokens[:slash]) if kind == "digit"]
    has_whole = any(kind in {"other", "literal", "space"} for kind, _ in tokens[above[0] : slash]) if above else False
    whole, rest = divmod(nearest, 1) if has_whole else (0, nearest)
    part = f"{rest.numerator}/{rest.denominator}" if rest or not whole else ""
    return f"{whole or ''} {part}".strip() if has_whole and (whole or rest) else part if rest else "0"


def _moment(value: float, tokens: Tokens, from_1904: bool) -> str:
    """Return a date, a time or a duration. Fractions of a second are cut, unless the format shows them."""
    kinds = [kind for kind, _ in tokens]
    has_date = "date" in kinds or any(kind == "clock" and text[0] in "mM" and len(text) > 2 for kind, text in tokens)
    has_date |= "elapsed" not in kinds and not any(kind == "clock" and text[0] in "hHsS" for kind, text in tokens)
    milliseconds = round(value * 86_400_000)
    if has_date:
        return _date(
            milliseconds,
            any(kind == "half" or text[0] in "hH" for kind, text in tokens if kind in {"half", "clock"}),
            from_1904,
        )
    sign, total = ("-" if milliseconds < 0 else ""), abs(milliseconds) // 1000
    fraction = f"{abs(milliseconds) % 1000:03}"
    units = {"h": total // 3600, "m": total // 60, "s": total}
    parts: list[str] = []
    for kind, text in tokens:
        unit = text.strip("[]")[:1].lower()
        if kind == "elapsed":
            parts.append(f"{units[unit]:0{len(text) - 2}}")
        elif kind == "clock":
            number = units[unit] % (24 if unit == "h" else 60)
            if unit == "h" and "half" in kinds:
                number = (number - 1) % 12 + 1
            parts.append(f"{number:0{min(2, len(text))}}")
        elif kind == "half":
            parts.append(text.split("/")[units["h"] % 24 >= 12].upper())
        else:
            parts.append(f".{fraction[: len(text) - 1]}" if kind == "fraction" else _written(kind, text))
    return _joined([sign, *parts])


def _date(milliseconds: int, has_time: bool, from_1904: bool) -> str:
    day, rest = divmod(milliseconds, 86_400_000)
    time = str(datetime.timedelta(seconds=rest // 1000)).rjust(8, "0")
    if day == 0 and rest and not from_1904:
        return time
    day += _DAYS_TO_1904 if from_1904 else 0
    if not _MIN_DAY <= day <= _MAX_DAY:
        return _general(milliseconds / 86_400_000)  # a sheet shows ####
    if day == 60:  # 1900 is a leap year in a sheet
        date = "1900-02-29"
    else:
        date = (datetime.date(1899, 12, 31 if 0 <= day < 60 else 30) + datetime.timedelta(day)).isoformat()
    return f"{date}T{time}" if has_time and rest else date
