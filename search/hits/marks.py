"""The words of a question in a passage, with their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from indexer.lazy_pattern import lazy_pattern
from indexer.passages.markup import VisibleText
from indexer.stores.words.analysis import (
    IN_WORDS,
    UNSPACED,
    UNSPACED_RUN,
    Analysis,
    characters,
    is_compound,
    joined_words,
)

_UNSPACED = lazy_pattern(f"[{UNSPACED}]")
_WORD = lazy_pattern(rf"[{IN_WORDS}]+(?:\.[{IN_WORDS}]+)*")
_LETTER = rf"(?:(?![{UNSPACED}])[{IN_WORDS}])"
_WORD_OR_RUN = lazy_pattern(rf"(?P<run>{UNSPACED_RUN})|{_LETTER}+(?:\.{_LETTER}+)*")
_ENDS_INSIDE_WORD = lazy_pattern(rf"[{IN_WORDS}]\.?\Z")
_TO_SPACES = bytes(code if code >= 128 or chr(code).isalnum() or chr(code) in "_." else 32 for code in range(256))
"""For `bytes.translate`: ASCII characters between words become spaces. It is faster than a regular expression, which
then reads only the words with dots and those with other characters."""

_VOCABULARY_WORDS = 1 << 16
"""Maximum words in a vocabulary. After that, a new vocabulary begins."""


class _Vocabulary:
    """The words that passages in one language have had, with their terms: the same words occur in most answers."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self.terms: dict[str, tuple[str, ...]] = {}
        self.words: dict[str, set[str]] = {}  # by their terms

    def learn(self, words: set[str]) -> None:
        """Analyse the words that are new."""
        for word in words.difference(self.terms):
            terms = tuple(self._analysis.terms(word))
            if terms and not word.isascii():  # a word with accents is in the index as it is typed without them, too
                terms = (*terms, *self._analysis.stems(word))
            for term in terms:
                self.words.setdefault(term, set()).add(word)
            # Last, because another thread looks up the words by their terms if it finds this word here.
            self.terms[word] = terms


_vocabularies: dict[Analysis, _Vocabulary] = {}


def visible_places(
    text: str, start: int, format_: str | None, find: Callable[[str], Sequence[tuple[int, int]]]
) -> list[dict[str, Any]]:
    """Return the places that `find` returns for the visible text of a passage, with their offsets in the document.

    Args:
        text, start, format_: as for `QuestionWords.mark`.
    """
    visible = VisibleText.read(text, format_)
    spans = find(visible.text)
    if visible.hidden:
        spans = [(visible.to_source(first), visible.to_source(last - 1) + 1) for first, last in spans]
    return [{"text": text[first:last], "start": start + first, "end": start + last} for first, last in spans]


class QuestionWords:
    """The words of one question. The question is analysed once for all hits of its answer.

    Args:
        names_alone: these are only the names of a question in another language. They are marked where the text has a
            capital letter or a digit too, and no text counts as holding the question.
    """

    def __init__(self, analysis: Analysis, question: str, *, names_alone: bool = False) -> None:
        self._analysis, self._question, self._names_alone = analysis, question, names_alone
        self._known = 0, set[str]()  # the size of the vocabulary, and its words that match a term of the question

    @cached_property
    def _terms(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """The terms of the question, and the beginnings of compounds that it finds."""
        terms = self._analysis.question_terms(self._question)
        return frozenset(terms), tuple(filter(None, terms.values()))

    @cached_property
    def _vocabulary(self) -> _Vocabulary:
        vocabulary = _vocabularies.get(self._analysis)
        if vocabulary is None or len(vocabulary.terms) >= _VOCABULARY_WORDS:
            # Not emptied: other threads may be reading the earlier one.
            vocabulary = _vocabularies[self._analysis] = _Vocabulary(self._analysis)
        return vocabulary

    def mark(self, text: str, start: int = 0, format_: str | None = None) -> list[dict[str, Any]]:
        """Return each visible word of a passage that matches a word of the question, with its offsets in the document.

        Args:
            text: the passage.
            start: offset of the passage in its document, in code points.
            format_: format of the document, which decides what is hidden (indexer/passages/markup.py).
        """
        places = visible_places(text, start, format_, self._spans)
        if self._names_alone:
            return [place for place in places if place["text"] != place["text"].lower() or not place["text"].isalpha()]
        return places

    def share_in(self, text: str) -> float:
        """Return the share of the question's terms and characters that a text holds; 0 if there is none. What the
        question joins is in it in parts."""
        terms = self._terms[0].difference(self._analysis.joined(self._question)).union(characters(self._question))
        if self._names_alone or not terms:
            return 0.0
        held = {*self._analysis.stems(text), *characters(text), *self._analysis.joined(text)}
        return len(terms & held) / len(terms)

    def _matching(self, words: set[str]) -> set[str]:
        """Return the words that match a word of the question."""
        vocabulary, (terms, beginnings) = self._vocabulary, self._terms
        vocabulary.learn(words)
        if self._known[0] != len(vocabulary.terms):
            self._known = len(vocabulary.terms), set().union(*(vocabulary.words.get(term, ()) for term in terms))
        matching = words & self._known[1]
        for beginning in beginnings:
            for word in words - matching:
                if any(is_compound(term, beginning) for term in vocabulary.terms[word]):
                    matching.add(word)
        return matching

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the offsets of matching words, and of those that match joined (`e-mail` for `email`)."""
        (terms, _), vocabulary = self._terms, self._vocabulary
        apart = joined_words(text, numbers=any(map(str.isdigit, terms)))
        vocabulary.learn({word for *_, word in apart})
        joined = [(start, end) for start, end, word in apart if not terms.isdisjoint(vocabulary.terms[word])]
        words = self._spans_of_words(text)
        return sorted(joined + [span for span in words if not any(start <= span[0] < end for start, end in joined)])

    def _spans_of_words(self, text: str) -> list[tuple[int, int]]:
        """Return the offsets of matching words; in scripts without spaces, of runs of matching characters and pairs."""
        if not text.isascii() and _UNSPACED.search(text):
            return list(self._spans_among_runs(text))
        # Sets, because a passage has few words that match: a look at each word in its place took twice as long.
        words = set(text.encode().translate(_TO_SPACES).decode().split())
        others = {word for word in words if "." in word}
        if not text.isascii():
            others.update(word for word in words if not word.isascii())
        spans = []
        for word in self._matching((words - others).union(_WORD.findall(" ".join(others)))):
            first = text.find(word)
            while first >= 0:
                last = first + len(word)
                inside = first and text[first - 1] != " " and _ENDS_INSIDE_WORD.search(text, max(0, first - 2), first)
                # Most words stand between spaces, and need no regular expression.
                is_whole = text[last : last + 1] == " " or ((match := _WORD.match(text, first)) and match.end() == last)
                if is_whole and not inside:
                    spans.append((first, last))
                first = text.find(word, last)
        return spans

    def _spans_among_runs(self, text: str) -> Iterator[tuple[int, int]]:
        found = list(_WORD_OR_RUN.finditer(text))
        places = {  # of the characters of each run, without the white space between them
            match: [offset for offset in range(*match.span()) if _UNSPACED.match(text, offset)]
            for match in found
            if match["run"] is not None
        }
        runs = {match: "".join(text[offset] for offset in offsets) for match, offsets in places.items()}
        pairs = {run[first : first + length] for run in runs.values() for first in range(len(run)) for length in (1, 2)}
        matching = self._matching(pairs | {match[0] for match in found})
        for match in found:
            start, end = match.span()
            run, offsets = runs.get(match, ""), places.get(match, [])
            if len(run) <= 1:
                if match[0] in matching:
                    yield start, end
                continue
            marked = np.zeros(len(run) + 2, np.bool_)  # one more on each side, so that every run has two borders
            for first in range(len(run)):
                for length in (1, 2):
                    if first + length <= len(run) and run[first : first + length] in matching:
                        marked[first + 1 : first + 1 + length] = True
            borders = np.flatnonzero(marked[1:] != marked[:-1]).reshape(-1, 2)
            yield from ((offsets[first], offsets[last - 1] + 1) for first, last in borders.tolist())
