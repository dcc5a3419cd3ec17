"""The accents that a search by words ignores, by language, and letters that have two forms in every language.

The rule comes from the dictionaries of each language, as CLDR's collations record it. An accent is kept if it makes a
separate letter of the alphabet (Swedish å, Spanish ñ, Turkish ş). An accent is left out if it is only a mark on a
letter (French é, Spanish á). So `cafe` finds `café`, and `ano` does not find `año`.

A keyboard decides about the Arabic or Persian form of yeh and kaf. The i with and without a dot are one letter, because
capitals lose the difference where the language of a text is not known.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache

OWN_LETTERS: Mapping[str, str] = {
    **{"da": "æøåäö", "no": "æøåäö", "sv": "åäö", "fi": "åäö"},
    **{"de": "äöü"},  # the stemmer makes them a, o and u, as it does ae, oe and ue
    **{"es": "ñ", "hu": "öüőű", "ro": "ăâîșțşţ", "ru": "й", "tr": "çğöşü"},
    **{"el": "", "en": "", "fr": "", "it": "", "nl": "", "pt": ""},
}
"""The letters with accents that each language keeps. The accents of other languages are left as they are."""

_ALPHABETS = ((0xC0, 0x24F), (0x1E00, 0x1EFF), (0x370, 0x3FF), (0x1F00, 0x1FFF), (0x400, 0x4FF))
"""First and last code point of blocks with letters that have accents: Latin, Greek, Cyrillic."""

_ACCENTS = range(0x300, 0x370)

_SPELT_OUT = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l"}
"""Letters that Unicode does not decompose, with the spelling of people whose keyboard lacks the letter."""

_ONE_FORM = {"\u0649": "\u064a", "\u06cc": "\u064a", "\u06a9": "\u0643", "\u0131": "i", "\u0307": ""}
"""Yeh and kaf in their Arabic form, the i without a dot, and the dot that remains when İ becomes lower case."""


def fold(text: str, language: str) -> str:
    """Return a text in lower case, without the accents that a search in this language ignores.

    Args:
        language: an ISO 639-1 code; a language that is not in OWN_LETTERS ignores none.
    """
    return text if text.isascii() else text.translate(_table(language))


@cache
def _table(language: str) -> dict[int, str]:
    """Return the replacement of each letter, for `str.translate`."""
    if language not in OWN_LETTERS:
        return str.maketrans(_ONE_FORM)
    letters = (chr(code) for first, last in _ALPHABETS for code in range(first, last + 1))
    table = {letter: base for letter in letters if (base := _base(letter)) != letter} | _SPELT_OUT
    kept = OWN_LETTERS[language]
    return str.maketrans({letter: base for letter, base in table.items() if letter not in kept} | _ONE_FORM)


def _base(letter: str) -> str:
    """Return a letter without its accents."""
    apart = unicodedata.normalize("NFD", letter)
    return apart[0] if all(ord(mark) in _ACCENTS for mark in apart[1:]) else letter
