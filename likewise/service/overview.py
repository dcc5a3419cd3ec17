"""Questions to try on an index, made from its central documents."""

from __future__ import annotations

import re

from indexer.passages.cut import visible_parts
from indexer.stores.port import Passage
from search.hits.explain import sentences
from search.searcher import Searcher

QUESTIONS = 3
MAX_CHARACTERS = 120
MIN_WORDS = 3
MIN_LETTERS = 0.8
"""Minimum share of letters in a question: other sentences are code, numbers and marks."""

_CODE = re.compile(r"\w\(|->|[{}=]|\w_\w")
_MARKS = re.compile(r"[^\w\s'’.,:;()?？؟-]+")
_ASKING = ("?", "？", "؟")
_ANSWERS = re.compile(r"(?:(?:re|fwd?|aw|wg): *)+", re.IGNORECASE)
"""What mail programs write before the subject of an answer."""


def questions_to_try(searcher: Searcher) -> list[str]:
    """Return questions that passages from the middles of the main topics answer: titles, or sentences that ask. Those
    of several formats come first."""
    asked = [(each.format, text) for each in searcher.central_passages(8 * QUESTIONS) if (text := _question(each))]
    first_of_formats = reversed(dict(reversed(asked)).values())
    return list(dict.fromkeys([*first_of_formats, *(text for _, text in asked)]))[:QUESTIONS]


def _question(passage: Passage) -> str:
    of_text = visible_parts(passage.text, passage.format, sentences(passage.text))
    for candidate in (_ANSWERS.sub("", passage.title), passage.heading.rpartition(" > ")[2], *of_text):
        plain = " ".join(_MARKS.sub(" ", candidate).split())
        if not plain.endswith(_ASKING) or len(plain) > MAX_CHARACTERS:
            continue
        letters = sum(map(str.isalpha, candidate))
        if letters < MIN_LETTERS * len(candidate.replace(" ", "")) or _CODE.search(candidate):
            continue
        if len(plain.split()) >= MIN_WORDS or (plain and not plain.isascii() and len(plain) > 2 * MIN_WORDS):
            return plain
    return ""
