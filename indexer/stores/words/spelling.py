"""Words of a question that no text has, replaced by the most similar words of the index."""

from __future__ import annotations

import re
from collections.abc import Callable

from indexer.stores.words.word_ranking import Words

_WORD = re.compile(r"[^\W\d_]{5,}")
"""Words of five letters or more: too many words are similar to shorter words."""

_AFTER_A_WORD = re.compile(r"(?<=[\w,]\s)[^\W\d_]{5,}")

_READ_PASSAGES = 3
"""Passages in which the spelling of a word is read: in the first, the word may only begin sentences."""

_MAX_WORDS = 16
"""Maximum words of a question that is corrected. A longer one is a text that was pasted, and each word takes time."""

_TWO_EDITS_FROM = 9
"""A word of this many letters or more may be replaced by a word that differs by two letters, a shorter one only by a
word that differs by one letter, as in Meilisearch. Stems alone are alike too often."""


def corrected(question: str, words: Words, text_of: Callable[[int], str]) -> str:
    """Return a question with other words in place of those that no text has; empty if there is nothing to replace.

    The index knows words without their endings, so the replacement is read in a passage.

    Args:
        text_of: returns the title and the text of a passage, given its id.
    """

    def replace(match: re.Match[str]) -> str:
        terms = words.analysis.terms(match[0])
        if len(terms) != 1:  # a stop word, or a script without spaces
            return match[0]
        spelled: list[str] = []
        for near in words.passages.near_terms(terms[0]):
            texts = map(text_of, words.passages.search({near: ""}, _READ_PASSAGES).ids.tolist())
            spelled += [word for word in _spellings(". ".join(texts)) if near in words.analysis.terms(word)]
        if spelled:
            from rapidfuzz.distance import OSA  # here, because importing it takes 20 ms, and few questions need it

            edits, _, best = min(
                (OSA.distance(match[0].lower(), word.lower()), at, word) for at, word in enumerate(spelled)
            )
            if edits <= 1 + (len(match[0]) >= _TWO_EDITS_FROM):
                return best
        return match[0]

    if len(_WORD.findall(question)) > _MAX_WORDS or not words.passages.lacks(words.analysis.terms(question)):
        return ""
    replaced = _WORD.sub(replace, question)
    return "" if replaced == question else replaced


def _spellings(text: str) -> list[str]:
    """Return each word of a text once. A word that has its capital after another word too keeps it: a German noun."""
    written, inside = _WORD.findall(text), {*_AFTER_A_WORD.findall(text)}
    keep = {word for word in inside if word.istitle() and word.lower() not in written}
    return list(dict.fromkeys(word if word in keep else word.lower() for word in written))
