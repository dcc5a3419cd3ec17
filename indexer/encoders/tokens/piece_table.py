"""A Unigram vocabulary in a mapped file, for processes that read a few texts.

The library opens the 250,000 pieces of XLM-RoBERTa's vocabulary in 0.8 s and 280 MB. A Unigram model (Kudo 2018)
divides a word into pieces that occur in it, so the library is given only the pieces that occur in the texts. It finds
the same ids. sentencepiece takes 0.5 s, and may choose another of two divisions that have the same score.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

FILES = _PIECES, _VALUES, _REST = "pieces.npy", "piece_values.npy", "tokenizer_rest.json"
"""The files of a table: the pieces in the order of their code points, their ids and scores in the same order, and the
tokenizer.json without pieces."""

MIN_PIECES = 50_000
"""Minimum pieces of a vocabulary that is kept in a table. The library opens a smaller one in 0.1 s."""

_MAX_PIECE_CHARACTERS = 32
_VALUE = np.dtype([("id", "<i4"), ("score", "<f8")])


def write_table(tokenizer_json: str, around: Sequence[Sequence[int]], folder: Path) -> None:
    """Write the table of a tokenizer into a folder. A tokenizer that is not a large Unigram model gets none.

    Args:
        around: ids of the special tokens before and after every text.
    """
    rest: dict[str, Any] = {"added_tokens": [], **json.loads(tokenizer_json)}
    model = rest["model"]
    is_unigram = model.get("type") == "Unigram" and model.get("unk_id") is not None
    if not is_unigram or model.get("byte_fallback") or len(model["vocab"]) < MIN_PIECES:
        return
    pieces = sorted((piece, number, score) for number, (piece, score) in enumerate(model["vocab"]))
    positions = {piece: position for position, (piece, _, _) in enumerate(pieces)}
    added = [token["content"] for token in rest["added_tokens"]]
    if max(map(len, positions)) > _MAX_PIECE_CHARACTERS or not positions.keys() >= {*added}:
        return
    names = np.array([piece for piece, _, _ in pieces])
    if names.tolist() != list(positions):  # A piece occurs twice, or ends with the character 0, which arrays leave out.
        return
    # An unknown character gets its score from the lowest score of all pieces.
    lowest = min(range(len(pieces)), key=lambda position: pieces[position][2])
    unknown = positions[model["vocab"][model["unk_id"]][0]]
    model["vocab"] = []
    rest |= {"truncation": None, "padding": None}  # A text is only truncated when the caller asks for it.
    np.save(folder / _PIECES, names)
    np.save(folder / _VALUES, np.array([(number, score) for _, number, score in pieces], _VALUE))
    always = sorted({lowest, unknown, *map(positions.__getitem__, added)})
    content = {"tokenizer": rest, "around": around, "always": always}
    (folder / _REST).write_text(json.dumps(content), encoding="utf-8")


class PieceTable:
    """The table of a tokenizer. Threads can share it."""

    def __init__(self, folder: Path) -> None:
        """Open the files that `write_table` wrote. They must have been verified."""
        self._pieces: NDArray[np.str_] = np.load(folder / _PIECES, mmap_mode="r")
        self._values = np.load(folder / _VALUES, mmap_mode="r")
        rest = json.loads((folder / _REST).read_text(encoding="utf-8"))
        self._rest: dict[str, Any] = rest["tokenizer"]
        self.around: tuple[list[int], list[int]] = tuple(rest["around"])
        self._always: set[int] = set(rest["always"])
        added = [re.escape(token["content"]) for token in self._rest["added_tokens"]]
        self._added = re.compile("|".join(added) or r"(?!)")
        self._words_alone = self._opened(self._always)[0]

    def tokenizer(self, texts: Sequence[str]) -> tuple[tokenizers.Tokenizer, NDArray[np.int32]]:
        """Return a tokenizer with the pieces that these texts need, and the model's id of each of its ids."""
        width = self._pieces.dtype.itemsize // 4
        words = {word for text in texts for word in self._words(self._added.sub(" ", text))}
        parts = {
            word[start:end]
            for word in words
            for start in range(len(word))
            for end in range(start + 1, min(len(word), start + width) + 1)
        }
        return self._opened(self._always.union(self._found(parts)))

    def _words(self, text: str) -> list[str]:
        """Return the words of a text, as the tokenizer divides them into pieces."""
        normalizer, splitter = self._words_alone.normalizer, self._words_alone.pre_tokenizer
        normalized = text if normalizer is None else normalizer.normalize_str(text)
        normalized = self._added.sub(" ", normalized)  # Some added tokens are looked for in the normalized text.
        return [normalized] if splitter is None else [word for word, _ in splitter.pre_tokenize_str(normalized)]

    def _found(self, parts: set[str]) -> list[int]:
        """Return the positions in the table of those parts of words that are pieces."""
        keys = np.array(sorted(parts), dtype=self._pieces.dtype)
        positions = np.minimum(np.searchsorted(self._pieces, keys), len(self._pieces) - 1)
        found: list[int] = positions[self._pieces[positions] == keys].tolist()
        return found

    def _opened(self, positions: set[int]) -> tuple[tokenizers.Tokenizer, NDArray[np.int32]]:
        """Return a tokenizer with some pieces, and their ids in the whole vocabulary."""
        places = np.array(sorted(positions))
        ids, scores = self._values["id"][places], self._values["score"][places]
        model = {
            **self._rest["model"],
            "vocab": list(zip(self._pieces[places].tolist(), scores.tolist(), strict=True)),
            "unk_id": int(np.flatnonzero(ids == self._rest["model"]["unk_id"])[0]),
        }
        return tokenizers.Tokenizer.from_str(json.dumps({**self._rest, "model": model})), ids
