"""Families: of hits whose passages have nearly the same text, the best takes the others. Nothing here ranks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from indexer.lazy_pattern import lazy_pattern
from indexer.stores.hashes import MAILS
from indexer.stores.words.analysis import UNSPACED

NEAR = 0.7
"""Minimum share of common words of two passages of one family. docs/asking.md has the measurement."""

FOLDED_DEPTH = 2
"""Number of hits that are ranked at first for each family that is asked for."""

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


def families(words: Sequence[Words]) -> list[list[int]]:
    """Return the positions of texts, given as their words, as families in the order of their first texts.

    Each text belongs to the first text that founded a family and that it is near to; without one it founds a family.
    So a text that is near to a member, and not to the founder, is not in the family: there are no chains.

    Two texts are near only if one of the rarest words of the one is among the rarest words of the other: of n words the
    n - NEAR * n + 1 rarest (prefix filtering: Chaudhuri, Ganti, Kaushik 2006). So few pairs are compared.
    """
    frequency = Counter(word for each in words for word in each)
    founded: list[list[int]] = []
    by_word: dict[tuple[str, int], list[int]] = {}
    for position, own in enumerate(words):
        rarest = sorted(own, key=lambda word: (frequency[word], word))[: len(own) - math.ceil(NEAR * len(own)) + 1]
        candidates = sorted({family for word in rarest for family in by_word.get(word, ())})
        same = next((one for one in candidates if common_share(own, words[founded[one][0]]) >= NEAR), None)
        if same is not None:
            founded[same].append(position)
            continue
        for word in rarest:
            by_word.setdefault(word, []).append(len(founded))
        founded.append([position])
    return founded
