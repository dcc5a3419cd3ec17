"""Small random cross-encoders as folders, and pairs of texts that they score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.architectures import ARCHITECTURES, make_folder

SEGMENTED = ("bert", "nomic_bert", "gte")
"""Architectures with an embedding of the segment, which differs between question and text."""
WORDS = [
    "vaccines",
    "train",
    "the",
    "immune",
    "system",
    "and",
    "need",
    "no",
    "disease",
    ",",
    "as",
    "bread",
    "needs",
    "salt",
]
PAIRS = [
    *(("how do vaccines work", " ".join(WORDS[:count])) for count in (14, 1, 9, 9, 3, 0)),
    *((" ".join(WORDS * times), " ".join(WORDS[::-1] * 12)) for times in (1, 5, 20)),
    ("", ""),
    *((word, other) for word in WORDS for other in WORDS[:2]),
]
"""More pairs than sentence-transformers scores at once, of all lengths; both sides of some are over the limit."""


def scorer_folder(name: str, folder: Path, **settings: Any) -> Path:
    """Make a small random cross-encoder that reads 128 tokens."""
    small = {**ARCHITECTURES[name][1], "max_position_embeddings": 130, "num_labels": 1, **settings}
    make_folder(name, folder, small, head="ForSequenceClassification", large=True)
    segments = ["token_type_ids"] if name in SEGMENTED else []
    names = ["input_ids", *segments, "attention_mask"]
    change(folder, "tokenizer_config.json", model_max_length=128, model_input_names=names)
    return folder


def change(folder: Path, file: str, **members: Any) -> None:
    read = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**read, **members}))
