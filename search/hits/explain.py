"""Explaining a hit by its sentence that is nearest to the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from indexer.encoders import Encoder, steady
from indexer.errors import NothingKnown
from indexer.passages.cut import visible_parts
from indexer.passages.sentences import sentence_ends
from indexer.records import Vector
from search.hits.hits import Hit
from search.hits.shown import letters_of


def add_sentences(hits: Sequence[Hit], encoder: Encoder, question: Vector) -> list[Hit]:
    """Return the hits with `why["sentence"]`: the sentence nearest to the question, with its offsets and cosine.

    All sentences of all hits are embedded together, without targets and comments. None of them is the
    title, nor in what a hit does not show. A hit without a readable sentence gets None.

    Args:
        question: unit vector (dimensions,).
    """
    spans, texts = [], []
    for hit in hits:
        shown = [(at + start, at + end) for at, last in hit.shown for start, end in sentences(hit.text[at:last])]
        of_hit = [(start, end) for start, end in shown if letters_of(hit.text[start:end]) != letters_of(hit.title)]
        spans += [(hit, start, end) for start, end in of_hit]
        texts += visible_parts(hit.text, hit.format, of_hit)
    readable = [number for number, offsets in enumerate(encoder.offsets(texts)) if len(offsets)]
    cosines = np.full(len(texts), -np.inf)
    while readable:
        try:
            rows = steady(encoder).encode([texts[number] for number in readable], role="document", truncate=True)
        except NothingKnown as error:  # a static model has vectors only for some tokens
            unknown = {readable[text] for text in error.texts}
            readable = [number for number in readable if number not in unknown]
        else:
            cosines[readable] = rows @ question
            break
    if not readable:
        return list(hits)
    best: dict[int, dict[str, Any]] = {}
    for row in np.argsort(cosines, kind="stable").tolist():  # ascending: the nearest sentence of a hit is set last
        if np.isneginf(cosines[row]):
            continue
        hit, start, end = spans[row]
        sentence = {"text": hit.text[start:end], "start": hit.start + start, "end": hit.start + end}
        best[id(hit)] = sentence | {"cosine": float(cosines[row])}
    return [replace(hit, why={**(hit.why or {}), "sentence": best.get(id(hit))}) for hit in hits]


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each sentence of a text in code points, without the white space around it."""
    ends = sentence_ends(text)
    offsets = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        part = text[start:end]
        if stripped := part.strip():
            begin = start + part.index(stripped[0])
            offsets.append((begin, begin + len(stripped)))
    return offsets
