"""A table of the pieces of a Unigram vocabulary: the ids of the library with all pieces."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from indexer.encoders.tokens import piece_table
from indexer.encoders.tokens.piece_table import PieceTable, write_table
from indexer.encoders.tokens.tokenizer import Tokenizer

TEXTS = ["aba cab", "  a  b", "äöü naïve 東京", "", "ab" * 40, "a[x]b [x]", "x [x][x] unknown ☃☃ ☃", "[x"]


def tokenizer(words: str, special: bool) -> str:
    """A tokenizer with random pieces and scores, many of which are equal."""
    draw = random.Random(words)
    pieces = {"".join(draw.choices("ab▁ cxäö東", k=draw.randint(1, 5))) for _ in range(400)} | set("abc▁")
    pieces.discard("x")
    vocabulary = [(piece, float(-draw.randint(2, 6))) for piece in sorted(pieces, key=lambda _: draw.random())]
    vocabulary.insert(7, ("[unk]", 0.0))
    vocabulary += [("[x]", 0.0), ("X", 0.0), ("x", -9.0)]
    made = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=7))
    if words == "metaspace":
        made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
        made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("ä", "X")])
    elif words == "first":
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    if special:
        made.add_special_tokens(["[unk]", "[x]"])
        made.add_tokens([tokenizers.AddedToken("X", normalized=True)])
    made.enable_padding(pad_token="[x]")
    made.enable_truncation(3)
    return made.to_str()


@pytest.mark.parametrize("words", ["metaspace", "first", "unsplit"])
@pytest.mark.parametrize("special", [True, False])
def test_ids_and_places_are_those_of_all_pieces(
    words: str, special: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece_table, "MIN_PIECES", 100)
    text = tokenizer(words, special)
    write_table(text, ([], []), tmp_path)
    whole, small = Tokenizer(text, 900), Tokenizer(str, 900, pieces=PieceTable(tmp_path))
    draw = random.Random(0)
    texts = [*filter(str.strip, TEXTS), *("".join(draw.choices("ab cxäö東☃", k=30)).strip() + "a" for _ in range(200))]
    assert list(map(list, small.ids(texts))) == list(map(list, whole.ids(texts)))
    assert [spans.tolist() for spans in small.offsets(TEXTS)] == [spans.tolist() for spans in whole.offsets(TEXTS)]


def test_only_large_unigram_vocabularies_get_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_written(text: str) -> bool:
        write_table(text, ([], []), tmp_path)
        return any(tmp_path.iterdir())

    text = tokenizer("first", True)
    assert not is_written(text)  # too few pieces
    monkeypatch.setattr(piece_table, "MIN_PIECES", 100)
    long, twice, null, bytes_, added, known, old = (json.loads(text) for _ in range(7))
    long["model"]["vocab"].append(["x" * 33, -1.0])
    twice["model"]["vocab"].append(["a", -1.0])
    null["model"]["vocab"].append(["\0", -1.0])
    bytes_["model"]["byte_fallback"] = True
    added["added_tokens"][0]["content"] = "[not a piece]"
    known["model"]["unk_id"] = None
    old["model"] = {"vocab": {}, "merges": []}
    for other in (
        long,
        twice,
        null,
        bytes_,
        added,
        known,
        old,
        json.loads(tokenizers.Tokenizer(models.BPE()).to_str()),
    ):
        assert not is_written(json.dumps(other))
    assert is_written(text)
