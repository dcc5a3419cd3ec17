"""Word embeddings of sentence-transformers: the words of WordEmbeddings, and the weights of WordWeights."""

from __future__ import annotations

from pathlib import Path
from string import punctuation
from typing import Any

import numpy as np
import tokenizers
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from indexer.encoders.recipes.locate import read_json
from indexer.encoders.tokens.tokenizer import Tokenizer
from indexer.records import Vector

MAX_WORDS = 1_000_000
"""Maximum words of one text for a model whose settings have no limit, as in the library."""


class WordTokenizer(Tokenizer):
    """Finds the words of a vocabulary in a text as the library's WhitespaceTokenizer does.

    Ids and limit are those of known words. Offsets are those of all words and signs of punctuation, which are at least
    as many, so that text in an unknown language is cut into passages too.
    """

    def __init__(self, config: dict[str, Any], max_tokens: int, query_prompt: str, document_prompt: str) -> None:
        """Read a vocabulary: the value of whitespacetokenizer_config.json. Errors are those of `Tokenizer`."""
        super().__init__(words_and_punctuation(), max_tokens, query_prompt, document_prompt)
        self._ids = {word: number for number, word in enumerate(config["vocab"])}
        self._stop_words = frozenset(config["stop_words"])
        self._lower_case = bool(config["do_lower_case"])

    def _read(self, texts: list[str]) -> list[list[int]]:
        return [self._known(text.lower() if self._lower_case else text) for text in texts]

    def _known(self, text: str) -> list[int]:
        known = []
        for word in text.split():
            bare = word.strip(punctuation)
            for form in (word, bare, bare.lower()):
                if form in self._stop_words:
                    break
                if form in self._ids:
                    known.append(self._ids[form])
                    break
        return known


def words_and_punctuation() -> str:
    """Return a tokenizer, as JSON, that counts words and signs of punctuation and knows none of them."""
    tokenizer = tokenizers.Tokenizer(WordLevel({"": 0}, unk_token=""))
    tokenizer.pre_tokenizer = Whitespace()
    return str(tokenizer.to_str())


def read_vocabulary(folder: Path) -> dict[str, Any] | None:
    """Return the settings of the WhitespaceTokenizer of a WordEmbeddings module; None for any other tokenizer."""
    kind = str(read_json(folder / "wordembedding_config.json", {}).get("tokenizer_class", ""))
    config: dict[str, Any] = read_json(folder / "whitespacetokenizer_config.json", {})
    plain = kind.startswith("sentence_transformers.") and kind.endswith(".WhitespaceTokenizer")
    return config if plain and config.keys() == {"vocab", "stop_words", "do_lower_case"} else None


def max_words(folder: Path) -> int:
    """Return how many words of one text a WordEmbeddings module reads."""
    return int(read_json(folder / "wordembedding_config.json", {}).get("max_seq_length", MAX_WORDS))


def word_weights(folder: Path) -> Vector:
    """Return the weight of each word of a WordWeights module (words,), float32."""
    config = read_json(folder / "config.json", {})
    known, other = config["word_weights"], config.get("unknown_word_weight", 1)
    return np.array([known.get(word, known.get(word.lower(), other)) for word in config["vocab"]], np.float32)
