"""Questions to try on an index, made from its central documents."""

from __future__ import annotations

import re

from indexer.passages.cut import visible_parts
from indexer.stores.port import Passage
from search.explain import sentences
from search.searcher import Searcher

QUESTIONS = 3
MAX_CHARACTERS = 90
MIN_WORDS = 3
MIN_LETTERS = 0.8
"""Minimum share of letters in a question: other sentences are code, numbers and marks."""

_CODE = re.compile(r"\w\(|->|[{}=]|\w_\w")
_MARKS = re.compile(r"[^\w\s'’.,:;()-]+")


def questions_to_try(searcher: Searcher) -> list[str]:
    """Return questions that passages from the middles of the main topics answer: their titles, or first sentences."""
    found = (_question(each) for each in searcher.central_passages(2 * QUESTIONS))
    return list(dict.fromkeys(filter(None, found)))[:QUESTIONS]


def _question(passage: Passage) -> str:
    of_text = visible_parts(passage.text, passage.format, sentences(passage.text))
    for candidate in (passage.title, passage.heading.rpartition(" > ")[2], *of_text):
        plain = " ".join(_MARKS.sub(" ", candidate).split())
        letters = sum(map(str.isalpha, candidate))
        if letters < MIN_LETTERS * len(candidate.replace(" ", "")) or _CODE.search(candidate):
            continue
        if len(plain.split()) >= MIN_WORDS or (plain and not plain.isascii() and len(plain) > 2 * MIN_WORDS):
            return plain if len(plain) <= MAX_CHARACTERS else plain[:MAX_CHARACTERS].rsplit(" ", 1)[0]
    return ""
