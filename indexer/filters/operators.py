"""The operators of filters: their names, and what they mean in Python. The engines have the SQL of each.

The grammar, mappings, and the lists of operators in messages and in descriptions for programs come from here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from indexer.filters.like import is_like

Op = Literal["=", "!=", "<", "<=", ">", ">="]

COMPARISONS: tuple[Op, ...] = get_args(Op)

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""All comparisons except `!=`, which must hold for all values of a field and not for one of them."""


class TextOperator(NamedTuple):
    """An operator that compares texts.

    Attributes:
        passes: whether a text of the field passes the test of the text in the filter.
        takes_pattern: in the filter's text, % and _ may be escaped.
    """

    passes: Callable[[str, str], bool]
    takes_pattern: bool = False


TEXT_OPERATORS: Mapping[str, TextOperator] = {
    "contains": TextOperator(operator.contains),
    "startswith": TextOperator(str.startswith),
    "endswith": TextOperator(str.endswith),
    "like": TextOperator(is_like, takes_pattern=True),
}
"""The operators of texts by name. Each operator also has an entry in the `filter_sql.py` of every engine."""

ON_FIELDS = " ".join([*COMPARISONS, "in", "exists", *TEXT_OPERATORS])
"""Every operator that follows a field, for people."""
