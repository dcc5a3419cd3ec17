"""The language of a question: too few words for a classifier, so only the most frequent words and the script decide.

How well a model reads a question shows in the pieces into which its tokenizer cuts the words.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

_WORDS = re.compile(r"[^\W\d_]+")

_FREQUENT = {
    "German": "der die das und ist nicht ein eine wie was wer wo warum mit für auf den dem zu von bei kann ich wird",
    "French": "le la les des est une et dans que qui quoi comment pourquoi avec pour sur du au ne pas quel quelle",
    "Spanish": "el la los las es una y en que qué cómo por para con del se cuál dónde cuándo quién",
    "Italian": "il lo gli della che è una come perché con per di del nella quale dove quando chi sono",
    "Portuguese": "o os as uma é em que como por para com do da não qual onde quando quem são",
    "Dutch": "de het een en is niet van hoe wat wie waar waarom met voor op zijn wordt",
}
_FREQUENT_WORDS = {language: frozenset(words.split()) for language, words in _FREQUENT.items()}
_ENGLISH = frozenset(
    "the of and to in is are was for what how why who where when which does do it this that a an".split()  # noqa: SIM905
)

MIN_WORDS = 2
"""Minimum frequent words of a language in a question. One of them may be a name or an English word."""


def other_language(question: str) -> str | None:
    """Return a name for the language of a question that is surely not English; None for any other question."""
    letters = [letter for letter in question if letter.isalpha()]
    others = [letter for letter in letters if not unicodedata.name(letter, "LATIN").startswith("LATIN")]
    if 2 * len(others) > len(letters):
        script = unicodedata.name(others[0]).partition(" ")[0].capitalize()
        return "Chinese or Japanese" if script == "Cjk" else script
    words = frozenset(_WORDS.findall(question.lower()))
    counts = {language: len(words & frequent) for language, frequent in _FREQUENT_WORDS.items()}
    language = max(counts, key=lambda each: counts[each])
    return language if counts[language] >= MIN_WORDS and counts[language] > len(words & _ENGLISH) else None


def pieces_per_word(text: str, tokens: NDArray[np.integer]) -> float:
    """Return into how many tokens a tokenizer cuts a word of a text, on average; 1 if the text has no words.

    Args:
        tokens: where the tokens begin and end in the text, in code points (tokens, 2).
    """
    words = len(_WORDS.findall(text))
    pieces = sum(any(map(str.isalpha, text[start:end])) for start, end in tokens.tolist())
    return pieces / words if words else 1.0
