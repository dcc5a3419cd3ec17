"""The grammar of filters, parsed with lark, and messages that tell a person where and why a text does not parse.

The meaning of the tree is in tree.py. Importing this file imports lark, so parse.py does it with the first filter.
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken

from indexer.errors import FilterError
from indexer.filters.dates import Date, Unit, before_now, read_date
from indexer.filters.operators import COMPARISONS, ON_FIELDS, TEXT_OPERATORS
from indexer.filters.tree import (
    BARE,
    COLUMNS,
    MAX_DEPTH,
    And,
    Compare,
    Exists,
    FilterSyntaxError,
    In,
    Not,
    Or,
    TextMatch,
    Under,
    Value,
    Where,
    absolute_folder,
    metadata_field,
)

# A keyword before a comparison sign is a field, and so is a word such as `contains` that no text in quotes follows: no
# field stands before one. Quoted texts are matched without backtracking (`++`, `*+`), for which Python keeps 900 bytes
# for each character.
_BEFORE_TEXT = r"""(?=\s*["'])"""
_NO_FIELD = r"(?![\w.-])(?!\s*(?:!=|[=<>]))"
_PLAIN = "|".join(name for name, op in TEXT_OPERATORS.items() if not op.takes_pattern)
_WITH_PATTERN = "|".join(name for name, op in TEXT_OPERATORS.items() if op.takes_pattern)
_GRAMMAR = rf"""
?start: either
?either: both (_OR both)*
?both: condition (_AND condition)*
?condition: _NOT condition -> negation
    | "(" either ")"
    | field OP value -> compare
    | field _IN "(" values ")" -> contained
    | field _NOT _IN "(" values ")" -> not_contained
    | field _EXISTS -> exists
    | _EXISTS field -> exists
    | _EXISTS "(" field ")" -> exists
    | field TEXT_OP text -> text_match
    | field _NOT TEXT_OP text -> no_text_match
    | field LIKE pattern -> text_match
    | field _NOT LIKE pattern -> no_text_match
    | UNDER text -> under
    | field UNDER text -> path_under
values: value ("," value)* ","?
?value: text | DATE | AGO | NUMBER | BOOLEAN
text: STRING
pattern: STRING
field: NAME | QUOTED

TEXT_OP.4: /({_PLAIN}){_BEFORE_TEXT}/i
LIKE.4: /({_WITH_PATTERN}){_BEFORE_TEXT}/i
UNDER.4: /under{_BEFORE_TEXT}/i
_AND.3: /and{_NO_FIELD}/i
_OR.3: /or{_NO_FIELD}/i
_NOT.3: /not(?![\w.-])/i
_IN.3: /in{_NO_FIELD}/i
_EXISTS.3: /exists{_NO_FIELD}/i
BOOLEAN.3: /(true|false){_NO_FIELD}/i
OP: /[=!<>]+/
STRING: /"([^"\\]++|\\.)*+"|'([^'\\]++|\\.)*+'/s
DATE.2: /\d{{4}}-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?)?)?(?![\w.:-])/
AGO.2: /-\d+({"|".join(get_args(Unit))})(?![\w.-])/
NUMBER: /-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?(?![\w.-])/i
QUOTED: /`([^`\\]++|\\.)*+`/s
NAME: /{BARE}/
%ignore /\s+/
"""

_MEANT = {"==": "=", "===": "=", "<>": "!=", "!==": "!=", "=<": "<=", "=>": ">=", "!": "not"}
_VALUE_HINT = "text in quotes, a number, a date such as 2024-01-31, true or false"
_AGO_HINT = "the time that has passed is written -12h, -7d, -3w, -6mo or -1y"
_QUOTE_HINT = "put it in quotes if it is text"
_WORD_OPS = ("in", "exists", *TEXT_OPERATORS)


class _Mistake(Exception):
    """A token that the grammar accepts but a filter does not."""

    def __init__(self, token: Token, problem: str, hint: str) -> None:
        self.problem, self.hint, self.position = problem, hint, token.start_pos or 0


def read(text: str, max_characters: int) -> Where:
    """Return the tree of a filter; see `indexer.filters.parse.parse`."""
    if not text.strip():
        hint = "write a condition such as year >= 2020, or leave the filter out"
        raise FilterSyntaxError("the filter is empty", hint, text, 0)
    if len(text) > max_characters:
        problem = f"the filter has {len(text):,} characters, and at most {max_characters:,} are read"
        raise FilterSyntaxError(problem, "ask in parts, or give the filter as a mapping", text, max_characters)
    if broken := re.search("[\ud800-\udfff]", text):
        raise FilterSyntaxError("half a surrogate pair", "write the filter in UTF-8", text, broken.start())
    try:
        tree: Where = _parser().parse(text)  # type: ignore[assignment]
    except UnexpectedCharacters as error:
        position = error.pos_in_stream or 0
        raise FilterSyntaxError(*_character(text, position), text, position) from None
    except UnexpectedToken as error:
        end = error.token.type == "$END"
        position = len(text) if end else error.token.start_pos or 0
        raise FilterSyntaxError(*_token(error, text), text, position) from None
    except _Mistake as error:
        raise FilterSyntaxError(error.problem, error.hint, text, error.position) from None
    if _depth(tree) > MAX_DEPTH:
        hint = "write the values of one field as a list after in"
        raise FilterSyntaxError(f"more than {MAX_DEPTH} levels of and, or and not", hint, text, 0)
    return tree


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=_Build())


class _Build(Transformer[Token, Where]):
    """Builds the tree while parsing, bottom up and without recursion, however deep the filter is."""

    def either(self, parts: list[Where]) -> Where:
        return Or(tuple(parts))

    def both(self, parts: list[Where]) -> Where:
        return And(tuple(parts))

    def negation(self, parts: list[Where]) -> Where:
        return Not(parts[0])

    def compare(self, parts: list[Any]) -> Where:
        name, op, value = parts
        if op not in COMPARISONS:
            meant = _MEANT.get(op)
            raise _Mistake(op, f'"{op}" is not a comparison', f"write {meant}" if meant else ON_FIELDS)
        return Compare(name, str(op), value)  # type: ignore[arg-type]

    def contained(self, parts: list[Any]) -> Where:
        return In(parts[0], tuple(parts[1]))

    def not_contained(self, parts: list[Any]) -> Where:
        return In(parts[0], tuple(parts[1]), negated=True)

    def exists(self, parts: list[str]) -> Where:
        return Exists(parts[0])

    def text_match(self, parts: list[str]) -> Where:
        name, op, text = parts
        return TextMatch(name, op.lower(), text)

    def no_text_match(self, parts: list[str]) -> Where:
        name, op, text = parts
        return TextMatch(name, op.lower(), text, negated=True)

    def under(self, parts: list[Any]) -> Where:
        token, folder = parts
        try:
            return Under(absolute_folder(folder))
        except FilterError as error:
            problem, _, hint = str(error).removeprefix("filter: ").partition(": ")
            raise _Mistake(token, problem, hint) from None

    def path_under(self, parts: list[Any]) -> Where:
        name, *rest = parts
        if name != "path":
            raise _Mistake(rest[0], f"{name} is not a path", 'write under "FOLDER" without a field')
        return self.under(rest)

    def values(self, parts: list[Value]) -> list[Value]:
        return parts

    def field(self, parts: list[Token]) -> str:
        token = parts[0]
        name = _unescape(token) if token.type == "QUOTED" else str(token)
        if name == "metadata":
            raise _Mistake(token, "metadata is not a field of its own", "write metadata.NAME")
        if token.type == "NAME" and name.lower() == "null":
            raise _Mistake(token, "null is not a field", "a field of that name is written `null`")
        path = name.removeprefix("metadata.")
        return name if path == name and name in COLUMNS else metadata_field(path)

    def text(self, parts: list[Token]) -> str:
        return _unescape(parts[0])

    def pattern(self, parts: list[Token]) -> str:
        return _unescape(parts[0], kept="%_")

    def DATE(self, token: Token) -> Date:
        date = read_date(str(token))
        if date is None:
            raise _Mistake(token, f"{token} is not a date", _QUOTE_HINT)
        return date

    def AGO(self, token: Token) -> Date:
        unit = token.lstrip("-0123456789")
        try:
            return before_now(int(token[1 : -len(unit)]), unit)  # type: ignore[arg-type]  # the grammar's own units
        except ValueError:
            raise _Mistake(token, f"{token[:20]} is before the year 1", "write a date such as 2024-01-31") from None

    def NUMBER(self, token: Token) -> int | float:
        try:
            number = int(token)
        except ValueError:
            if not math.isfinite(real := float(token)):
                raise _Mistake(token, f"the number {token} is too large", _QUOTE_HINT) from None
            return real
        if -(2**63) <= number < 2**63:
            return number
        raise _Mistake(token, "a whole number of more than 64 bits", _QUOTE_HINT)

    def BOOLEAN(self, token: Token) -> bool:
        return token.lower() == "true"


def _unescape(token: Token, kept: str = "") -> str:
    """Return the text in a pair of quotes. A backslash before a character of `kept` stays: patterns read it."""

    def plain(escape: re.Match[str]) -> str:
        if escape[1] in "\\\"'`":
            return escape[1]
        if escape[1] in kept:
            return escape[0]
        raise _Mistake(token, f"unknown escape {escape[0]}", "write \\\\ for a backslash")

    return re.sub(r"\\(.)", plain, token[1:-1], flags=re.DOTALL)


def _depth(where: Where) -> int:
    levels, level = 0, [where]
    while level:
        levels += 1
        level = [
            part
            for where in level
            for part in ((where.part,) if isinstance(where, Not) else getattr(where, "parts", ()))
        ]
    return levels


def _character(text: str, position: int) -> tuple[str, str]:  # noqa: PLR0911 - one per mistake
    """Return problem and hint for a character with which no token begins."""
    character = text[position]
    if character in "\"'`":
        return f"the quote {character} is not closed", f"inside the quotes, {character} is written \\{character}"
    if character in "&|":
        return f'unexpected "{character}"', f"write {'and' if character == '&' else 'or'}"
    if re.match(r"-\d+[a-z]", text[position:], re.IGNORECASE):
        return "neither a number nor a date", _AGO_HINT
    if dotted := re.match(r"(\d\d?)\.(\d\d?)\.(\d{4})(?!\d)", text[position:], re.ASCII):
        day, month, year = dotted.groups()
        return f"{dotted[0]} is not a date here", f"write {year}-{month:0>2}-{day:0>2}, without quotes"
    if short := re.match(r"(\d{4})-(?!\d\d-\d\d)(\d\d?)-(\d\d?)(?!\d)", text[position:], re.ASCII):
        return f"{short[0]} is not a date here", f"write {short[1]}-{short[2]:0>2}-{short[3]:0>2}"
    if character in "-+." or character.isdigit():
        return "neither a number nor a date", "put text in quotes, and a field that begins so in backticks"
    return f'unexpected "{character}"', "put text in quotes, and a field with such a character in backticks"


def _token(error: UnexpectedToken, text: str) -> tuple[str, str]:  # noqa: PLR0911, PLR0912 - one per mistake
    """Return problem and hint for a token that does not fit."""
    token, possible, position = error.token, error.accepts, error.token.start_pos or 0
    stack = error.interactive_parser.parser_state.value_stack
    previous = stack[-1] if stack else None
    kind = previous.type if isinstance(previous, Token) else ""
    if kind == "STRING":
        previous = str(previous)[1:-1]
    after = f' after "{previous}"' if isinstance(previous, str) else ""
    if token in _MEANT and kind != "OP":
        return f'unexpected "{token}"', f"write {_MEANT[token]}"
    if "STRING" in possible:
        if token.type != "NAME":
            return f"expected a value{after}", _VALUE_HINT
        if token.lower() in ("null", "none", "nil"):
            return f"{token} is not a value", "write exists FIELD, or not exists FIELD"
        condition = re.search(rf"(?:{BARE}\s*[=!<>]+\s*)?$", text[max(0, position - 100) : position])
        meant = f'{condition[0] if condition else ""}"{token}"'
        return f'expected a value{after}, and "{token}" has no quotes', f"write {meant}"
    if "NAME" in possible:
        hint = "a condition begins with a field, as in year >= 2020"
        if token.type == "STRING":
            hint = "a field is written without quotes, or in backticks"
        elif token.type in ("TEXT_OP", "LIKE"):
            hint = f'a condition begins with a field, as in title {token} "x"'
        elif token.type == "BOOLEAN" or (token.type.startswith("_") and token.type != "_RPAR"):
            hint = f"a field of the name {token} is written `{token}`"
        return f"expected a field{after}", hint
    if kind == "_IN":
        shown = f'"{token}"' if token.type == "NAME" else token if token.type != "$END" else '"en"'
        return f"expected a list in parentheses{after}", f"write in ({shown})"
    if "OP" in possible and token.type == "NAME" and token.lower() in (*TEXT_OPERATORS, "under"):
        word = re.match(rf"\s+({BARE})", text[position + len(token) :])
        return f'expected text in quotes after "{token}"', f'as in {previous} {token} "{word[1] if word else "x"}"'
    if "OP" in possible:
        hint = ON_FIELDS
        if isinstance(previous, str) and previous.lower() == "under":
            hint = 'a folder is written in quotes, under "notes"'
        elif token.type == "NAME" and (near := get_close_matches(token.lower(), _WORD_OPS, 1, 0.75)):
            hint = f"write {near[0]}"
        return f"expected a comparison{after}", hint
    if token.type == "RPAR" and "RPAR" not in possible:
        return 'unexpected ")"', 'there is no "(" for it'
    words = {"_AND": "and", "_OR": "or", "COMMA": ",", "RPAR": ")", "_IN": "in", "TEXT_OP": "contains", "LIKE": "like"}
    wanted = [f'"{word}"' for name, word in words.items() if name in possible]
    if re.match(r"\d\d:\d\d", text[position:]):
        return f"expected {' or '.join(wanted)}{after}", "a date and its time are written as 2024-05-02T08:00"
    return f"expected {' or '.join(wanted)}{after}", 'a "(" is not closed' if token.type == "$END" else ""
