"""Text as the words that a condition of a question compares: as they are written, with accents and endings.

Case, white space and punctuation do not count. A word is a run of letters and digits, and of underscores between them;
in scripts without spaces every character is a word, so that words in a row are found anywhere in such a text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

from indexer.lazy_pattern import lazy_pattern
from indexer.stores.words.accents import fold
from indexer.stores.words.analysis import IN_WORDS, UNSEEN, UNSPACED

BORDER = "."
"""Is put between title and text, because no words in a row reach from one into the other. No word is written so."""

_MAX_WORD_CHARACTERS = 64
"""The end of a longer word is replaced by its hash, because the engine refuses terms that are much longer."""

_ASCII_WORD = lazy_pattern(r"[^\W_]+(?:_+[^\W_]+)*", re.ASCII)
_LETTER = f"(?![_{UNSPACED}])[{IN_WORDS}]"
_WORD = lazy_pattern(rf"[{UNSPACED}]|(?![{UNSPACED}])[^\W_](?:{_LETTER})*(?:_+(?:{_LETTER})+)*")
_UNSEEN = lazy_pattern(f"[{UNSEEN}]+")
_DASHES = r"\-\u2010\u2011\u2013\u2212\uff0d"
_DASHED = lazy_pattern(
    # The dash is first, because a search for a set of characters is fast. The en dash is a minus only before a digit.
    rf"[{_DASHES}](?<![{_DASHES}{IN_WORDS}\u0300-\u036f)\]}}%].)(?:(?<!\u2013)|(?=\d))([^\W_][{IN_WORDS}]*)"
)


def exact_words(text: str) -> list[str]:
    """Return the words of a text in their order, in lower case and in one Unicode form."""
    if text.isascii():
        words = _ASCII_WORD.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        words = _WORD.findall(_UNSEEN.sub("", fold(folded, "none")))
    return [word if len(word) <= _MAX_WORD_CHARACTERS else _shortened(word) for word in words]


def dashed_words(text: str) -> list[str]:
    """Return the first word after each dash that begins a word, with a hyphen: `-xzf`, and `-std` of `-std=c++20`.

    The dash of `covid-19` is inside a word, and `--force` has two dashes.
    """
    words = (exact_words(word)[:1] for word in dict.fromkeys(_DASHED.findall(text)))
    return [f"-{word}" for own in words for word in own]


def places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and end of each place where a text has these words in a row, in code points."""
    spans = [(word, *match.span()) for match in _WORD.finditer(text) for word in exact_words(match[0])]
    of_text, wanted = [word for word, _, _ in spans], list(words)
    starts = (start for start in range(len(spans)) if of_text[start : start + len(wanted)] == wanted)
    return [(spans[start][1], spans[start + len(wanted) - 1][2]) for start in starts]


def _shortened(word: str) -> str:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return word[: _MAX_WORD_CHARACTERS - len(digest)] + digest
