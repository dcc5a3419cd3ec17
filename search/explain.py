"""Why a hit is there: the words it shares with the question, and its sentence nearest to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from indexer.encoders import Encoder, steady
from indexer.records import Vector
from indexer.sentences import sentence_ends
from indexer.stores.analysis import IN_WORDS, UNSPACED, Analysis
from search.hits import Hit

_WORD = re.compile(r"\w+(?:\.\w+)*")
_LETTER = rf"(?:(?![{UNSPACED}])[{IN_WORDS}])"
_WORD_OR_RUN = re.compile(rf"(?P<run>[{UNSPACED}]+)|{_LETTER}+(?:\.{_LETTER}+)*")


def marked_words(text: str, start: int, analysis: Analysis, query: str) -> list[dict[str, Any]]:
    """Return each word of a passage that the question asks for, with its offsets in the document.

    Args:
        text: of the passage, which begins at `start` in its document.
    """
    asked = _Asked(analysis, query)
    return [
        {"text": text[first:last], "start": start + first, "end": start + last}
        for first, last in _asked_for(text, asked)
    ]


def all_words(hits: Sequence[Hit], analysis: Analysis, query: str) -> bool:
    """Return whether the first hit holds every term that is asked for: an error's number, say, that no vector knows."""
    terms = set(analysis.terms(query))
    return bool(terms and hits) and terms <= set(analysis.stems(f"{hits[0].title} {hits[0].text}"))


def _asked_for(text: str, asked: _Asked) -> Iterator[tuple[int, int]]:
    """Offsets of the words of a text that are asked for; in scripts without spaces, of the pairs of characters."""
    if text.isascii():
        yield from (match.span() for match in _WORD.finditer(text) if asked[match[0]])
        return
    for match in _WORD_OR_RUN.finditer(text):
        start, end = match.span()
        if match["run"] is None or end - start == 1:
            if asked[match[0]]:
                yield start, end
            continue
        held = np.zeros(end - start + 2, np.bool_)  # with a border on both sides
        for at in range(end - start - 1):
            if asked[text[start + at : start + at + 2]]:
                held[at + 1 : at + 3] = True
        borders = np.flatnonzero(held[1:] != held[:-1]).reshape(-1, 2)
        yield from ((start + first, start + last) for first, last in borders.tolist())


class _Asked(dict[str, bool]):
    """Whether a question asks for a word; found out once a word, as texts repeat them."""

    def __init__(self, analysis: Analysis, query: str) -> None:
        super().__init__()
        self._analysis, self._terms = analysis, set(analysis.terms(query))
        self._known = _known.setdefault(str(analysis), {})

    def __missing__(self, word: str) -> bool:
        if (terms := self._known.get(word)) is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            terms = self._known[word] = tuple(self._analysis.terms(word))
        self[word] = asked = not self._terms.isdisjoint(terms)
        return asked


_KEPT = 1 << 16
_known: dict[str, dict[str, tuple[str, ...]]] = {}
"""Terms of words by analysis: the same words come again, in every answer."""


def with_sentences(hits: Sequence[Hit], encoder: Encoder, question: Vector) -> list[Hit]:
    """The hits with `why["sentence"]`: the one nearest to the question (dimensions,), with offsets and cosine.

    All sentences of all hits go through the encoder together.
    """
    spans = [(hit, start, end) for hit in hits for start, end in sentences(hit.text)]
    read = encoder.offsets([hit.text[start:end] for hit, start, end in spans])
    spans = [span for span, tokens in zip(spans, read, strict=True) if len(tokens)]  # some hold nothing to be read
    if not spans:
        return list(hits)
    texts = [hit.text[start:end] for hit, start, end in spans]
    cosines = steady(encoder).encode(texts, role="document", truncate=True) @ question
    best: dict[int, dict[str, Any]] = {}
    for at in np.argsort(cosines, kind="stable").tolist():  # the last one stays
        hit, start, end = spans[at]
        sentence = {"text": texts[at], "start": hit.start + start, "end": hit.start + end}
        best[id(hit)] = sentence | {"cosine": float(cosines[at])}
    return [_more(hit, "sentence", best.get(id(hit))) for hit in hits]


def sentences(text: str) -> list[tuple[int, int]]:
    """Offsets of the sentences of a text, without the space around them."""
    ends = sentence_ends(text)
    spans = zip([0, *ends], [*ends, len(text)], strict=True)
    found = []
    for start, end in spans:
        part = text[start:end]
        if stripped := part.strip():
            begin = start + part.index(stripped[0])
            found.append((begin, begin + len(stripped)))
    return found


def _more(hit: Hit, name: str, value: Any) -> Hit:
    return replace(hit, why={**(hit.why or {}), name: value})
