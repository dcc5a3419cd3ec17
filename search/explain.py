"""Explaining a hit: the words it shares with the question, and its sentence that is nearest to the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from indexer.encoders import Encoder, steady
from indexer.passages.cut import titled_text
from indexer.passages.markup import VisibleText
from indexer.passages.sentences import sentence_ends
from indexer.records import Vector
from indexer.stores.words.analysis import IN_WORDS, UNSPACED, Analysis, is_compound
from search.hits import Hit

_WORD = re.compile(r"\w+(?:\.\w+)*")
_LETTER = rf"(?:(?![{UNSPACED}])[{IN_WORDS}])"
_WORD_OR_RUN = re.compile(rf"(?P<run>[{UNSPACED}]+)|{_LETTER}+(?:\.{_LETTER}+)*")

_CACHED_WORDS = 1 << 16
"""Maximum words per analysis whose terms are kept in memory."""

_terms_of_words: dict[str, dict[str, tuple[str, ...]]] = {}
"""The terms of each word, by analysis, because the same words occur in most answers."""


def mark_words(
    text: str, start: int, analysis: Analysis, query: str, format_: str | None = None
) -> list[dict[str, Any]]:
    """Return each visible word of a passage that matches a word of the question, with its offsets in the document.

    Args:
        text: the passage.
        start: offset of the passage in its document, in code points.
        format_: format of the document, which decides what is hidden (indexer/passages/markup.py).
    """
    matcher = _Matcher(analysis, query)
    visible = VisibleText.read(text, format_)
    places = (
        (visible.to_source(first), visible.to_source(last - 1) + 1) for first, last in _matches(visible.text, matcher)
    )
    return [{"text": text[first:last], "start": start + first, "end": start + last} for first, last in places]


def holds_all_words(hits: Sequence[Hit], analysis: Analysis, query: str) -> bool:
    """Return whether the first hit holds every term of the question, such as an error number that no vector knows."""
    terms = set(analysis.terms(query))
    if not terms or not hits:
        return False
    text = titled_text(hits[0].title, hits[0].text, hits[0].format)
    return terms <= set(analysis.stems(text, single_characters=True))


def _matches(text: str, matcher: _Matcher) -> Iterator[tuple[int, int]]:
    """Yield the offsets of matching words; in scripts without spaces, of runs of matching characters and pairs."""
    if text.isascii():
        yield from (match.span() for match in _WORD.finditer(text) if matcher[match[0]])
        return
    for match in _WORD_OR_RUN.finditer(text):
        start, end = match.span()
        if match["run"] is None or end - start == 1:
            if matcher[match[0]]:
                yield start, end
            continue
        marked = np.zeros(end - start + 2, np.bool_)  # one more on each side, so that every run has two borders
        for offset in range(end - start):
            for length in (1, 2):
                if offset + length <= end - start and matcher[text[start + offset : start + offset + length]]:
                    marked[offset + 1 : offset + 1 + length] = True
        borders = np.flatnonzero(marked[1:] != marked[:-1]).reshape(-1, 2)
        yield from ((start + first, start + last) for first, last in borders.tolist())


class _Matcher(dict[str, bool]):
    """Decides whether a word matches the question. Each word is analysed once, because texts repeat their words."""

    def __init__(self, analysis: Analysis, query: str) -> None:
        super().__init__()
        terms = analysis.question_terms(query)
        self._analysis, self._query_terms = analysis, frozenset(terms)
        self._beginnings = [beginning for beginning in terms.values() if beginning]
        self._terms = _terms_of_words.setdefault(str(analysis), {})

    def __missing__(self, word: str) -> bool:
        if (terms := self._terms.get(word)) is None:
            if len(self._terms) >= _CACHED_WORDS:
                self._terms.clear()
            terms = self._terms[word] = tuple(self._analysis.terms(word))
            if terms and not word.isascii():  # a word with accents is in the index as it is typed without them, too
                terms = self._terms[word] = (*terms, *self._analysis.stems(word))
        matches = not self._query_terms.isdisjoint(terms)
        if self._beginnings and not matches:
            matches = any(is_compound(term, beginning) for term in terms for beginning in self._beginnings)
        self[word] = matches
        return matches


def add_sentences(hits: Sequence[Hit], encoder: Encoder, question: Vector) -> list[Hit]:
    """Return the hits with `why["sentence"]`: the sentence nearest to the question, with its offsets and cosine.

    All sentences of all hits are embedded together, without targets and comments. A hit without a readable sentence
    gets None.

    Args:
        question: unit vector (dimensions,).
    """
    spans, texts = [], []
    for hit in hits:
        visible = VisibleText.read(hit.text, hit.format)
        for start, end in sentences(hit.text):
            spans.append((hit, start, end))
            texts.append(visible.part(start, end))
    readable = [number for number, offsets in enumerate(encoder.offsets(texts)) if len(offsets)]
    if not readable:
        return list(hits)
    spans, texts = [spans[number] for number in readable], [texts[number] for number in readable]
    cosines = steady(encoder).encode(texts, role="document", truncate=True) @ question
    best: dict[int, dict[str, Any]] = {}
    for row in np.argsort(cosines, kind="stable").tolist():  # ascending: the nearest sentence of a hit is set last
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
