"""Families: of hits whose passages have nearly the same text, the best takes the others. Nothing here ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from indexer.lazy_pattern import lazy_pattern
from indexer.stores.hashes import MAILS
from indexer.stores.words.analysis import UNSPACED

NEAR = 0.7
"""Minimum share of common words of two passages of one family. docs/measured.md has the measurement."""

FOLDED_DEPTH = 2
"""Number of hits that are ranked at first for each family that is asked for."""

MAX_FOLDED = 10_000
"""Maximum passages that are compared, or FOLDED_DEPTH for each family if this is more. Then the search stops, even if
there are fewer families than were asked for."""

MAX_COMPARISONS = 200_000
"""Maximum comparisons of the words of two passages for one question: about a second."""

_HASHES = 256
"""Number of different hashes of words."""

_ROWS = {"csv", "tsv"}
"""Formats whose documents are rows of a table."""

_WORD = lazy_pattern(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")

Words = frozenset[tuple[str, int]]


def words_of(text: str) -> Words:
    """Return the words of a text in one case, each with its number among equal words. In scripts without spaces each
    character is a word."""
    seen: Counter[str] = Counter()
    words = []
    for word in _WORD.findall(text.casefold()):
        seen[word] += 1
        words.append((word, seen[word]))
    return frozenset(words)


def words_of_passage(text: str, format_: str | None) -> Words:
    """Return the words of a passage for `common_share`. A whole row of a table counts as one word, because rows that
    say different things have most of their words in common. The numbers of a mail are marked by 0."""
    if format_ in _ROWS:
        return frozenset({(text, 1)})
    marked = ((word, 0 if format_ in MAILS and word[0].isdigit() else count) for word, count in words_of(text))
    return frozenset(marked)


def common_share(first: Words, second: Words) -> float:
    """Return the number of common words divided by the number of all words; 0 for two texts without words, and for
    mails that each have a number that the other lacks, such as another amount."""
    common = len(first & second)
    if all(any(count == 0 for _, count in rest) for rest in (first - second, second - first)):
        return 0.0
    return common / ((len(first) + len(second) - common) or 1)


def families(
    passages: Sequence[tuple[str, str | None]], k: int, check: Callable[[], None] = lambda: None
) -> tuple[list[list[int]], int]:
    """Return the first k families as positions of their passages, and how many passages were compared.

    Each passage belongs to the first passage that founded a family and that it is near to; without one it founds a
    family. So a passage that is near to a member, and not to the founder, is not in the family: there are no chains.

    Numbers are compared before sets: two passages have at most as many words in common as they have in common by the
    hashes of their words.

    Args:
        passages: text and format of each.
        k: maximum number of families. Passages of further families are left out.
        check: raises an error if the question must end.
    """
    founded, founders, family_of, comparisons = list[list[int]](), list[Words](), dict[tuple[str, str | None], int](), 0
    counts = np.zeros((min(k, len(passages)), _HASHES), np.int32)
    sizes, numbers = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.uint64)
    for position, passage in enumerate(passages):
        check()
        if (family := family_of.get(passage)) is None:
            own, so_many = words_of_passage(*passage), len(founded)
            of_own = np.bincount([hash(word) % _HASHES for word in own], minlength=_HASHES)
            marks = np.uint64(sum({1 << hash(word) % 64 for word in own if word[1] == 0}))  # one bit per number
            common = np.minimum(counts[:so_many], of_own).sum(axis=1)
            may_be_near = common / np.maximum(sizes[:so_many] + len(own) - common, 1) >= NEAR
            may_be_near &= (numbers[:so_many] & ~marks == 0) | (marks & ~numbers[:so_many] == 0)
            family = -1
            for candidate in np.flatnonzero(may_be_near).tolist():
                if (comparisons := comparisons + 1) > MAX_COMPARISONS:
                    return founded, position
                if common_share(own, founders[candidate]) >= NEAR:
                    family = candidate
                    break
            if family < 0 and so_many < k:
                family = so_many
                founded.append([])
                founders.append(own)
                counts[family], sizes[family], numbers[family] = of_own, len(own), marks
            if own:  # texts without words are not near to each other
                family_of[passage] = family
        if family >= 0:
            founded[family].append(position)
    return founded, len(passages)


def note_on_stop(compared: int) -> str:
    """Return the note if no more passages were compared."""
    return f"fold: only the best {compared:,} passages were compared: there may be more hits, and more copies of them"
