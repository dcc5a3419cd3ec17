"""The language of a question: how well a model reads it, and what it shares with texts in another language."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexer.languages.models import reads_many_languages
from indexer.lazy_pattern import lazy_pattern
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.words.analysis import UNSPACED

MIN_KNOWN_SHARE = 0.6
"""A question is in the language of the texts if they hold at least this share of its words (docs/fusion.md)."""

_WORDS = lazy_pattern(r"[^\W\d_]+")
_SPACED = lazy_pattern(rf"[^\W_{UNSPACED}]+")


def pieces_per_word(text: str, tokens: NDArray[np.integer]) -> float:
    """Return into how many tokens a tokenizer cuts a word of a text, on average; 1 if the text has no words.

    Args:
        tokens: where the tokens begin and end in the text, in code points (tokens, 2).
    """
    words = len(_WORDS.findall(text))
    pieces = sum(any(map(str.isalpha, text[start:end])) for start, end in tokens.tolist())
    return pieces / words if words else 1.0


def known_share_of(question: str, snapshot: Snapshot) -> float:
    """Return the share of a question's words that the texts of an index hold, as typed or corrected; 1 unless its model
    reads many languages."""
    if not question or not reads_many_languages(snapshot.settings.recipe):
        return 1.0
    share = snapshot.known_share(question)
    corrected = snapshot.corrected(question) if share < MIN_KNOWN_SHARE else ""
    return max(share, snapshot.known_share(corrected)) if corrected else share


def names(question: str) -> str:
    """Return the names and numbers of a question, which texts in another language hold too.

    A name has a capital letter. The first word does not count, because it has one in any case. In a question in a
    script without capitals, all words in other scripts are names.
    """
    letters = list(filter(str.isalpha, question))
    is_cased = 2 * sum(letter.lower() != letter.upper() for letter in letters) > len(letters)
    found = _SPACED.findall(question)
    return " ".join(
        word
        for place, word in enumerate(found)
        if any(map(str.isdigit, word)) or (word != word.lower() and place > 0 if is_cased else word.isascii())
    )
