"""Texts to token ids and offsets, with the `tokenizers` library alone. Every runtime uses this tokenizer.

It handles prompts, special tokens, the token limit and truncation. Each runtime pads its own batches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from json import loads
from math import prod
from typing import Any, TypeVar

import numpy as np
import tokenizers
from numpy.typing import NDArray

from indexer.encoders.recipes.port import Role
from indexer.encoders.tokens.piece_table import PieceTable
from indexer.encoders.tokens.texts import checked_texts
from indexer.errors import ModelError, TextTooLong

Ids = NDArray[np.int32]
"""Token ids (tokens,) of one text."""

T = TypeVar("T")

_BLOCK_CHARACTERS = 1 << 18
"""Characters of a text that are read as tokens at once. The library takes about 240 bytes for each character."""

_TABLE_CHARACTERS = 1 << 14
"""The same for a table of pieces, which takes 0.1 s for so many. A longer text is read without the table."""

_MAX_GROWTH = 1000.0
"""Maximum factor by which the replacements of a tokenizer lengthen a text. A hundred doublings would never end."""

_BETWEEN_WORDS = re.compile(r"(?<=\w)(?= \w)")
"""A place that no token crosses: every tokenizer begins a word at a space."""

_LINE_END = re.compile(r"\n(?=\w)")
"""A place that few tokens cross, for texts without spaces."""


class Tokenizer:
    """A model's tokenizer with its prompts and limit. It keeps no state between calls, so threads can share it."""

    def __init__(
        self,
        json: str | Callable[[], str],
        max_tokens: int,
        query_prompt: str = "",
        document_prompt: str = "",
        special_tokens: bool = True,
        pieces: PieceTable | None = None,
    ) -> None:
        """Read a tokenizer.

        Args:
            json: the text of a tokenizer.json, or a function that reads it when it is needed.
            max_tokens: how many tokens the model reads of one text, special tokens and prompt counted.
            query_prompt, document_prompt: text put before each text of that role.
            special_tokens: whether the model reads special tokens around each text.
            pieces: the table of the same tokenizer, with which the ids of short texts do not need `json`.

        Raises:
            ModelError: `json` is not a tokenizer, or the prompts leave no room for a text.
        """
        self._source = json
        self._pieces = pieces
        self._batch_characters = _BLOCK_CHARACTERS if pieces is None else _TABLE_CHARACTERS
        self.max_tokens = max_tokens
        self.special_tokens = special_tokens
        self._prompts: dict[Role, str] = {"query": query_prompt, "document": document_prompt}
        self.around = self._special_tokens() if special_tokens else ([], [])
        special = sum(map(len, self.around))
        taken_by = zip(self._prompts, map(len, self._ids([query_prompt, document_prompt])), strict=True)
        self._overheads: dict[Role, int] = {role: tokens + special for role, tokens in taken_by}
        for role, taken in self._overheads.items():
            if taken >= max_tokens:
                raise ModelError(
                    f"the {role} prompt and special tokens take {taken} tokens of {max_tokens}: "
                    "raise max_tokens or shorten the prompt"
                )

    @cached_property
    def json(self) -> str:
        """The text of the tokenizer.json."""
        return self._source if isinstance(self._source, str) else self._source()

    @cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        text = self.json
        try:
            tokenizer = tokenizers.Tokenizer.from_str(text)
            normalizer = tokenizer.normalizer
            growth = 1.0 if normalizer is None else _growth(loads(normalizer.__getstate__()))
        except Exception as error:
            raise ModelError(
                f"tokenizer.json cannot be read: it is damaged, or newer than tokenizers {tokenizers.__version__}; "
                "fetch the model again"
            ) from error
        if growth > _MAX_GROWTH:
            raise ModelError(
                f"tokenizer.json makes a text up to {growth:,.0f} times as long, which no sound model does: fetch the "
                "model again from a source that you trust"
            )
        # The file may turn on truncation and padding. Here a text is only truncated when the caller asks for it.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _takes_spaces(self) -> bool:
        """Whether tokens begin with the space before a word."""
        offsets = self._reader(["a b"])[0].encode("a b", add_special_tokens=False).offsets
        return any("a b"[start] == " " for start, _ in offsets)

    def overhead(self, role: Role = "document") -> int:
        """Return how many tokens special tokens and prompt add to every text of this role."""
        return self._overheads[role]

    def offsets(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Return where the tokens of each text begin and end: (tokens, 2) in code points; see `Encoder.offsets`."""
        parts: list[list[NDArray[np.int32]]] = [[] for _ in texts]
        all_blocks = ((number, *block) for number, text in enumerate(texts) for block in _blocks(text))
        for group in _grouped(all_blocks, lambda block: block[2] - block[1], self._batch_characters):
            blocks = [texts[number][start:end] for number, start, end in group]
            with _no_panic():
                encodings = self._reader(blocks)[0].encode_batch(blocks, add_special_tokens=False)
            for (number, start, _), block, encoding in zip(group, blocks, encodings, strict=True):
                spans = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
                if self._takes_spaces:
                    _skip_leading_space(block, spans)
                parts[number].append(spans + np.int32(start))
        return [np.concatenate(spans) for spans in parts]

    def ids(self, texts: Sequence[str], role: Role = "document", truncate: bool = False) -> list[Ids]:
        """Return the token ids of each text as the model reads it: special tokens around prompt and text.

        Raises:
            BadInput: a text is empty, only whitespace or not a string, or one string was given instead of a list.
            TextTooLong: a text is over the limit and `truncate` is False.
        """
        texts = checked_texts(texts, role)
        prompt = self._prompts[role]
        before, after = self.around
        room = self.max_tokens - len(before) - len(after)
        rows: list[Ids] = []
        for group in _grouped((prompt + text for text in texts), len, self._batch_characters):
            for row in self._ids(group):
                if len(row) > room:
                    if not truncate:
                        raise TextTooLong(len(rows), len(row) - room + self.max_tokens, self.max_tokens)
                    del row[room:]
                rows.append(np.array([*before, *row, *after], dtype=np.int32))
        return rows

    def _ids(self, texts: list[str]) -> list[list[int]]:
        """Return the token ids of each text, without special tokens."""
        with _no_panic():
            reader, whole_ids = self._reader(texts)
            rows = [each.ids for each in reader.encode_batch_fast(texts, add_special_tokens=False)]
        return rows if whole_ids is None else [whole_ids[row].tolist() for row in rows]

    def _reader(self, texts: Sequence[str]) -> tuple[tokenizers.Tokenizer, Ids | None]:
        """Return a tokenizer for these texts, and the model's id of each of its ids if they differ."""
        if self._pieces is None or sum(map(len, texts)) > _TABLE_CHARACTERS:
            return self._tokenizer, None
        return self._pieces.tokenizer(texts)

    def decode(self, ids: Sequence[int]) -> str | None:
        """Return the text of token ids, without special tokens; None if one of them is unknown."""
        size = self._tokenizer.get_vocab_size()
        if any(not 0 <= token < size for token in ids):
            return None
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        """Return the ids of the special tokens before and after every text."""
        if self._pieces is not None:
            return self._pieces.around
        plain = self._tokenizer.encode("a", add_special_tokens=False).ids
        special = self._tokenizer.encode("a", add_special_tokens=True).ids
        for start in range(len(special) - len(plain) + 1):
            if special[start : start + len(plain)] == plain:
                return special[:start], special[start + len(plain) :]
        raise ModelError("the tokenizer changes a text when it adds special tokens: likewise cannot count them")


def _growth(normalizer: Any) -> float:
    """Return a bound of the factor by which a normalizer of a tokenizer.json lengthens a text."""
    if not isinstance(normalizer, dict):
        return 1.0
    factor = prod(map(_growth, normalizer.get("normalizers") or ()))
    if normalizer.get("type") == "Prepend":
        factor *= max(1, len(normalizer["prepend"]))
    elif normalizer.get("type") == "Replace":  # A regular expression may match before each character.
        replaced = len(normalizer["pattern"].get("String") or "")
        content = len(normalizer["content"])
        factor *= max(1.0, content / replaced) if replaced else content + 1
    return float(factor)


@contextmanager
def _no_panic() -> Iterator[None]:
    """Raise ModelError where the library panics, as it does if a regular expression of the tokenizer takes too long."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # It does not derive from Exception, and has no other name.
            raise
        reason = " ".join(str(error).split())[:100]
        raise ModelError(
            f"the model's tokenizer fails on a text ({reason}): fetch the model again, or name another model"
        ) from error


def _grouped(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield the items in groups. The sizes of a group add up to `most`, unless a single item is larger."""
    group: list[T] = []
    total = 0
    for item in items:
        if group and total + size(item) > most:
            yield group
            group, total = [], 0
        group.append(item)
        total += size(item)
    if group:
        yield group


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of a text's blocks. A line without spaces is not divided."""
    start, end = 0, _BLOCK_CHARACTERS
    while border := _BETWEEN_WORDS.search(text, end, end + _BLOCK_CHARACTERS) or _LINE_END.search(text, end):
        yield start, border.end()
        start, end = border.end(), border.end() + _BLOCK_CHARACTERS
    yield start, len(text)


def _skip_leading_space(text: str, spans: NDArray[np.int32]) -> None:
    """Move each token's start, in place, past the space that byte-level BPE and SentencePiece count to the word."""
    space = np.fromiter(map(str.isspace, text), np.bool_, len(text))
    starts, ends = spans[:, 0], spans[:, 1]
    while (leading := (starts < ends) & space[np.minimum(starts, len(text) - 1)]).any():
        starts += leading
