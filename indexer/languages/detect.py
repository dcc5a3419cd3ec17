"""Detecting the languages of texts from a small sample.

English is recognised by its most frequent words, without a library. All other texts go to py3langid, a naive Bayes
classifier over byte n-grams (Lui, Baldwin 2011). It takes 0.6 s to load and 0.15 ms per excerpt.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count, islice
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SAMPLE_TEXTS = 64
"""Maximum texts in the sample, evenly spread."""

EXCERPT_CHARACTERS = 300
"""Number of characters from the middle of each text in the sample. Texts begin with licences, tables and names."""

MIN_LETTERS = 60
"""Minimum letters in all excerpts together. Fewer letters say nothing about a language."""

MIN_NAMED_SHARE = 0.05
"""Minimum share of a language that is reported. Smaller shares are single names and quotations, or mistakes."""

MIN_CONFIDENCE = 0.7
"""Minimum probability of the classifier's answer. Below it, an excerpt counts as being in no known language."""

NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{"af": "Afrikaans", "ar": "Arabic", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "bs": "Bosnian"},
        **{"ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek"},
        **{"en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian"},
        **{"fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "gu": "Gujarati", "he": "Hebrew"},
        **{"hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "is": "Icelandic"},
        **{"it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada"},
        **{"ko": "Korean", "la": "Latin", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian"},
        **{"ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "my": "Burmese", "ne": "Nepali"},
        **{"nl": "Dutch", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian"},
        **{"ru": "Russian", "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian"},
        **{"sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog"},
        **{"tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese"},
    }
)
"""ISO 639-1 code to the English name of each language that is recognized: languages with many written texts."""

_COUNTED_AS = {"arz": "ar", "ary": "ar", "nn": "no", "wuu": "zh", "yue": "zh"}
"""Varieties of a language as the classifier has them, and the language that they count as."""

_NO_LANGUAGE = "zxx"
"""The classifier's answer for numbers, markup and identifiers."""

_WORDS = re.compile(r"[a-z]+")

_ENGLISH = frozenset(
    "the of and to that with this are from it which not be these is by for was in as or an on".split()  # noqa: SIM905
)
"""Frequent English words. Some are words of other languages too, so an excerpt must also have one of _ENGLISH_ALONE."""

_ENGLISH_ALONE = frozenset(("the", "and"))

_MIN_ENGLISH_SHARE = 0.08
"""Minimum share of these words in an English excerpt. 97 % of the excerpts of SciFact and 98 % of XQuAD's English
excerpts reach it; of XQuAD's German and Arabic excerpts none does, and of 240 Chinese excerpts one."""

_MIN_ENGLISH_LETTERS = 0.8
"""Minimum share of letters in English excerpts. If it is reached, the other excerpts in ASCII count as names, tables
and code, which they nearly always are. Otherwise the classifier would have to be loaded for most English
collections."""


_ENGLISH_HINTS = frozenset("the that this these with from which have are to for by what how when can".split())  # noqa: SIM905
"""English words that are rare in ASCII texts of other languages."""

_SYMBOLS = re.compile(r"""[^\w\s,.;!?'"()-]|_""")
_MIN_PROSE_LETTERS, _MAX_PROSE_SYMBOLS = 0.75, 0.02
"""Minimum share of letters, and maximum share of _SYMBOLS, in excerpts in ASCII that may be sentences. In the PEPs and
the Rust book, 2 % of the letters at most are in such excerpts that are not recognised as English."""


def languages_of(texts: Sequence[str], *, least: float | None = None) -> dict[str, float]:
    """Return the share of each language among some texts, by ISO 639-1 code, the most frequent first.

    Shares are by letters and add up to 1. Excerpts in no known language (numbers, code) are left out. The result is
    empty if there are fewer than MIN_LETTERS letters in a known language.

    Args:
        least: look at every text, and for other languages than English only if they may have this share together. In
            other scripts any answer of the classifier counts. None looks at a sample, and counts texts in ASCII among
            mostly English ones as names, tables and code.
    """
    letters: Counter[str] = Counter()
    unclear: list[tuple[str, int]] = []
    for excerpt in _excerpts(texts, SAMPLE_TEXTS if least is None else len(texts)):
        length = sum(map(str.isalpha, excerpt))
        if _is_english(excerpt):
            letters["en"] += length
        elif length:
            unclear.append((excerpt, length))
    seen = letters.total() + sum(length for _, length in unclear)
    if least is not None:
        prose = sum(length for excerpt, length in unclear if _may_be_prose(excerpt, length))
        unclear = unclear if prose >= least * (prose + letters["en"]) else []
    elif letters["en"] >= _MIN_ENGLISH_LETTERS * seen:
        unclear = [(excerpt, length) for excerpt, length in unclear if not excerpt.isascii()]
    if unclear and seen >= MIN_LETTERS:
        try:
            classifier = _classifier()
        except OSError:  # no room for its temporary file: nothing is known yet, and later texts are asked about again
            return {}
        for excerpt, length in unclear:
            code, probability = classifier.classify(excerpt)
            is_sure = probability >= MIN_CONFIDENCE or (least is not None and _script(excerpt) != "LATIN")
            if code != _NO_LANGUAGE and is_sure:
                letters[_COUNTED_AS.get(code, code)] += length
    total = letters.total()
    return {code: length / total for code, length in letters.most_common()} if total >= MIN_LETTERS else {}


def say_something(texts: Sequence[str]) -> bool:
    """Return whether texts have the letters that `languages_of` needs."""
    return sum(sum(map(str.isalpha, excerpt)) for excerpt in _excerpts(texts, SAMPLE_TEXTS)) >= MIN_LETTERS


def listed(shares: Mapping[str, float]) -> dict[str, float]:
    """Return the languages that are reported, with their shares."""
    return {code: share for code, share in shares.items() if share >= MIN_NAMED_SHARE}


def named(shares: Mapping[str, float]) -> str:
    """Return shares as people read them: `English 92 %, German 8 %`. Shares below MIN_NAMED_SHARE are left out."""
    return ", ".join(f"{NAMES[code]} {share:.0%}".replace("%", " %") for code, share in listed(shares).items())


def _excerpts(texts: Sequence[str], count: int) -> Iterable[str]:
    """Yield the middle of evenly spread texts. Short texts of one script are joined, because a single short text says
    little."""
    step = -(-len(texts) // (count or 1)) or 1
    joined: dict[str, str] = {}
    for text in islice(texts, 0, None, step):
        start = max(0, (len(text) - EXCERPT_CHARACTERS) // 2)
        excerpt = text[start : start + EXCERPT_CHARACTERS]
        script = _script(excerpt)
        excerpt = f"{joined.pop(script, '')} {excerpt}".strip()
        if len(excerpt) >= EXCERPT_CHARACTERS // 2:
            yield excerpt
        else:
            joined[script] = excerpt
    yield from filter(None, joined.values())


def _script(text: str) -> str:
    """Return the script of most letters, such as "LATIN" or "HIRAGANA"."""
    if text.isascii():
        return "LATIN"
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha())
    return scripts.most_common(1)[0][0] if scripts else "LATIN"


def _is_english(excerpt: str) -> bool:
    words = _WORDS.findall(excerpt.lower())
    frequent = [word for word in words if word in _ENGLISH]
    enough = len(words) >= 10 and len(frequent) >= _MIN_ENGLISH_SHARE * len(words)
    return enough and not _ENGLISH_ALONE.isdisjoint(frequent)


def _may_be_prose(excerpt: str, letters: int) -> bool:
    """Return whether an excerpt may have sentences in another language than English: two letters outside ASCII, or the
    letters and the punctuation of sentences without an English word. Code, tables and names in ASCII have neither."""
    if not excerpt.isascii():
        return sum(character.isalpha() for character in excerpt if character > "\x7f") >= 2
    if not _ENGLISH_HINTS.isdisjoint(_WORDS.findall(excerpt.lower())):
        return False
    symbols = len(_SYMBOLS.findall(excerpt))
    return letters >= _MIN_PROSE_LETTERS * len(excerpt) and symbols <= _MAX_PROSE_SYMBOLS * len(excerpt)


_loads = count()


def _classifier() -> LanguageIdentifier:
    """Return the classifier, which takes 90 MB. It is kept in memory only from the second call on, because most
    processes need it once."""
    return _kept_classifier() if next(_loads) else _load_classifier()


def _load_classifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    classifier.set_languages([*NAMES, *_COUNTED_AS, _NO_LANGUAGE])
    return classifier


_kept_classifier = cache(_load_classifier)
