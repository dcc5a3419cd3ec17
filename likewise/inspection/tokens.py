"""The tokens that a model reads in a text, and the words that they belong to. No weights are loaded.

The vectors of tokens are in hidden_states.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from indexer.encoders.recipes.locate import read_json
from indexer.encoders.torch.automodel import from_padding
from indexer.encoders.torch.checkpoint import TOKENS_WITHOUT_LIMIT, Checkpoint
from indexer.errors import BadInput, ModelError, TextTooLong


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the model reads it.

    Attributes:
        token: its name in the vocabulary (`##ber`, `Ġbank`, `[CLS]`).
        id: its number in the vocabulary.
        segment: 0; or 1 in the second text of a pair, if the model distinguishes the two.
        mask: 1 if the model attends to it; only padding would have 0.
        text: the part of the text that it stands for; empty for a special token.
        start, end: offsets of that part in its text, in code points.
        sequence: 0, or 1 in the second text of a pair; None for a special token.
        word: number of its word, counted over both texts; None for a special token.
    """

    token: str
    id: int
    segment: int
    mask: int
    text: str
    start: int
    end: int
    sequence: int | None
    word: int | None


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the tokenizer splits a text before it splits words into tokens.

    Attributes:
        positions: positions of its tokens.
    """

    text: str
    positions: tuple[int, ...]


class TokenReader:
    """A model's tokenizer, with its special tokens around one text or a pair of texts."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Raises ModelError if the model's files hold no tokenizer."""
        import tokenizers

        place = checkpoint.transformer
        self._special = place is not None  # Static embeddings read no special tokens.
        self.limit = token_limit(checkpoint)
        config = read_json((place or checkpoint.folder) / "config.json", {})
        # The tokenizers of DistilBERT and MPNet number segments, although the models have no embeddings for them.
        self._segments = config.get("type_vocab_size", 2 if config.get("model_type") == "bert" else 1) > 1
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(
                checkpoint.tokenizer_json(place or checkpoint.static or checkpoint.folder)
            )
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                "tokenizer.json cannot be read: it is damaged, or newer than the package tokenizers"
            ) from error
        self._tokenizer.no_padding()

    def read(self, text: str, pair: str | None = None, truncate: bool = False) -> list[Token]:
        """Return the tokens of a text, or of a pair of texts, with special tokens. No prompt is added.

        Raises:
            BadInput: a text is empty or only whitespace.
            TextTooLong: there are more tokens than the model reads, and `truncate` is False.
        """
        texts = [text] if pair is None else [text, pair]
        for number, content in enumerate(texts, 1):
            if not content or content.isspace():
                raise BadInput(f"text {number} is empty: it has no tokens")
        if truncate:
            self._tokenizer.enable_truncation(self.limit)
        else:
            self._tokenizer.no_truncation()
        encoding = self._tokenizer.encode(text, pair, add_special_tokens=self._special)
        if len(encoding.ids) > self.limit:
            raise TextTooLong(0, len(encoding.ids), self.limit)
        words: dict[tuple[int, int], int] = {}
        tokens = []
        for position, token_id in enumerate(encoding.ids):
            start, end = encoding.offsets[position]
            segment = encoding.type_ids[position] if self._segments else 0
            sequence, word = encoding.sequence_ids[position], encoding.word_ids[position]
            covered, word_number = "", None
            if sequence is not None and word is not None:
                covered = texts[sequence][start:end].strip()
                word_number = words.setdefault((sequence, word), len(words))
            name, mask = encoding.tokens[position], encoding.attention_mask[position]
            tokens.append(Token(name, token_id, segment, mask, covered, start, end, sequence, word_number))
        return tokens


def words_of(tokens: Sequence[Token], *texts: str) -> list[Word]:
    """Return the words of a text, or of a pair of texts, in order. Special tokens belong to no word."""
    words = []
    for number, members in groupby(enumerate(tokens), key=lambda item: item[1].word):
        group = list(members)
        first, last = group[0][1], group[-1][1]
        if number is not None and first.sequence is not None:
            text = texts[first.sequence][first.start : last.end].strip()
            words.append(Word(text, tuple(position for position, _ in group)))
    return words


def token_limit(checkpoint: Checkpoint) -> int:
    """Return how many tokens a model reads of one text, special tokens counted. Only reads configuration files."""
    place = checkpoint.transformer
    if place is None:
        return checkpoint.spec.max_tokens or TOKENS_WITHOUT_LIMIT
    config = read_json(place / "config.json", {})
    positions = int(config.get("max_position_embeddings") or 2**20)
    return checkpoint.limit(place, positions - from_padding(config))
