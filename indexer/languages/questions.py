"""The language of a question: how well a model reads it, and what it shares with texts in another language."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipes.recipe import Recipe
from indexer.errors import Message
from indexer.languages.models import published_name, reads_english_alone, reads_many_languages
from indexer.lazy_pattern import lazy_pattern
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.words.analysis import UNSPACED

MIN_KNOWN_SHARE = 0.6
"""A question is in the language of the texts if they hold at least this share of its words (docs/fusion.md)."""

_WORDS = lazy_pattern(r"[^\W\d_]+")
_SPACED = lazy_pattern(rf"[^\W_{UNSPACED}]+")


MIN_FREQUENT_WORDS = 2
"""Minimum frequent words of a language in a question. One of them may be a name or an English word."""


_BY_SCRIPT = {"Cjk": "Chinese or Japanese", "Hiragana": "Japanese", "Katakana": "Japanese", "Hangul": "Korean"}
"""Languages by their script, where they have other names than it."""


def unread_question_note(recipe: Recipe | None, question: str, mode: str) -> str | None:
    """Return a note if the model of an index reads English alone and a question is surely in another language."""
    if recipe is None or not reads_english_alone(recipe.for_questions) or not (language := other_language(question)):
        return None
    from indexer.encoders.recipes.locate import MULTILINGUAL_MODEL

    seems = f"this question seems to be {language}, and {published_name(recipe)} reads English alone"
    model = f"{MULTILINGUAL_MODEL} is a model that reads it"
    if mode == "hybrid":
        return Message(f"{seems}: {model}", f" (likewise migrate INDEX --model {MULTILINGUAL_MODEL})")
    return Message(
        f'{seems}: the mode "hybrid" compares its words too, and {model}',
        f" (--mode hybrid; likewise migrate INDEX --model {MULTILINGUAL_MODEL})",
    )


def other_language(question: str) -> str | None:
    """Return a name for the language of a question that is surely not English; None for any other question.

    A question has too few words for a classifier, so only the most frequent words and the script decide.
    """
    letters = [letter for letter in unicodedata.normalize("NFKC", question) if letter.isalpha()]
    others = [letter for letter in letters if not unicodedata.name(letter, "LATIN").startswith("LATIN")]
    if 2 * len(others) > len(letters):
        script = unicodedata.name(others[0]).partition(" ")[0].capitalize()
        return _BY_SCRIPT.get(script, script)
    frequent = dict(_frequent_words())
    of_names, asking = frequent.pop("names"), frequent.pop("asking")
    words = frozenset(_WORDS.findall(question.lower()))
    found = {language: words & of_language for language, of_language in frequent.items()}
    counts = {language: len(each) + len(each & asking) for language, each in found.items()}
    language = max(counts, key=lambda each: counts[each])  # the first of equal ones: English
    showing = found[language] - of_names - frequent["English"]
    return language if showing and counts[language] >= MIN_FREQUENT_WORDS else None


@cache
def _frequent_words() -> Mapping[str, frozenset[str]]:
    """Return the frequent words of each language by its name.

    `asking` has the words that begin questions and are not English: they count as two. `names` has frequent parts of
    names and abbreviations: like English words, they do not show another language.
    """
    text = Path(__file__).with_name("frequent_words.txt").read_text(encoding="utf-8")
    return {name: frozenset(words.split()) for name, _, words in (line.partition(": ") for line in text.splitlines())}


def pieces_per_word(text: str, tokens: NDArray[np.integer]) -> float:
    """Return into how many tokens a tokenizer cuts a word of a text, on average; 1 if the text has no words.

    Args:
        tokens: where the tokens begin and end in the text, in code points (tokens, 2).
    """
    words = len(_WORDS.findall(text))
    pieces = sum(any(map(str.isalpha, text[start:end])) for start, end in tokens.tolist())
    return pieces / words if words else 1.0


def known_share_of(question: str, snapshot: Snapshot) -> float:
    """Return the share of a question's words that the texts of an index hold, as typed or corrected; 1 unless its model
    reads many languages."""
    if not question or not reads_many_languages(snapshot.settings.recipe):
        return 1.0
    share = snapshot.known_share(question)
    corrected = snapshot.corrected(question) if share < MIN_KNOWN_SHARE else ""
    return max(share, snapshot.known_share(corrected)) if corrected else share


def names(question: str) -> str:
    """Return the names and numbers of a question, which texts in another language hold too.

    A name has a capital letter. The first word does not count, because it has one in any case. In a question in a
    script without capitals, all words in other scripts are names.
    """
    letters = list(filter(str.isalpha, question))
    is_cased = 2 * sum(letter.lower() != letter.upper() for letter in letters) > len(letters)
    found = _SPACED.findall(question)
    return " ".join(
        word
        for place, word in enumerate(found)
        if any(map(str.isdigit, word)) or (word != word.lower() and place > 0 if is_cased else word.isascii())
    )
