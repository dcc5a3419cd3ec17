"""How well a model reads a question: the pieces into which its tokenizer cuts the words."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

_WORDS = re.compile(r"[^\W\d_]+")


def pieces_per_word(text: str, tokens: NDArray[np.integer]) -> float:
    """Return into how many tokens a tokenizer cuts a word of a text, on average; 1 if the text has no words.

    Args:
        tokens: where the tokens begin and end in the text, in code points (tokens, 2).
    """
    words = len(_WORDS.findall(text))
    pieces = sum(any(map(str.isalpha, text[start:end])) for start, end in tokens.tolist())
    return pieces / words if words else 1.0
