"""Parsing of a filter's text. The grammar, and with it lark, is imported with the first filter."""

from __future__ import annotations

from indexer.errors import FilterError
from indexer.filters.limits import FROM_PROGRAMS
from indexer.filters.tree import Where


def parse(text: str, max_characters: int = FROM_PROGRAMS.characters) -> Where:
    """Return the tree of a filter. Limits are not checked here: see `indexer.filters.mapping.filter_tree`.

    Raises:
        FilterSyntaxError: the text does not parse. The error names the place and what is possible there.
        FilterError: the filter is not a string.
    """
    if not isinstance(text, str):
        raise FilterError(
            f"the filter is not a string but {type(text).__name__}: write it as in 'year >= 2020', "
            'or as a mapping, {"year": {">=": 2020}}'
        )
    from indexer.filters.grammar import read  # importing lark takes 80 ms

    return read(text, max_characters)
