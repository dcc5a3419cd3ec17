"""The maximum size of a filter. Programs in Python and clients of a service have different limits."""

from __future__ import annotations

from typing import NamedTuple

from indexer.errors import FilterError
from indexer.filters.tree import In, TextMatch, Where, conditions, one_line


class FilterLimits(NamedTuple):
    """The largest filter that is accepted.

    Attributes:
        characters: of a filter that is given as text.
        conditions: in one filter. The values of one `in` are one condition.
        values: maximum values of one `in`.
        pattern: characters of the text after an operator that compares texts, such as `contains`.
    """

    characters: int
    conditions: int
    values: int
    pattern: int

    def check(self, where: Where) -> None:
        """Raise FilterError if a filter is larger; the message names the limit."""
        for number, condition in enumerate(conditions(where), 1):
            if number > self.conditions:
                raise FilterError(
                    f"filter: has more than {self.conditions:,} conditions: write the values of one field as a list "
                    "after in, or ask in parts"
                )
            match condition:
                case In(field, values) if len(values) > self.values:
                    compared = f"{one_line(field, 80)} is compared with {len(values):,} values"
                    raise FilterError(f"filter: {compared}, and at most {self.values:,} are read: ask in parts")
                case TextMatch(field, op, text) if len(text) > self.pattern:
                    given = f"the text after {one_line(field, 80)} {op} has {len(text):,} characters"
                    raise FilterError(f"filter: {given}, and at most {self.pattern:,} are read: give a shorter one")


FROM_PROGRAMS = FilterLimits(characters=1_000_000, conditions=10_000, values=1_000_000, pattern=10_000)
"""A text of this length takes a few seconds to parse; brackets alone take 300 bytes each."""

FROM_CLIENTS = FilterLimits(characters=20_000, conditions=500, values=10_000, pattern=1_000)
"""Each `contains` reads every value of its field: 500 of them take 10 seconds for 5,000 values of 20 KB."""
