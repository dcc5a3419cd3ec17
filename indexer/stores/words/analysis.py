"""Text to terms, the same for documents and questions: words, stems, identifiers, and pairs of characters.

A text is indexed as one string of words between spaces, which the engine (tantivy_index.py) stems. Scripts without
spaces become overlapping pairs of characters, as in Lucene's CJKBigramFilter, also across the end of a line.
Characters that can be a word are indexed beside the words. Katakana is read as hiragana. An accent is left out if it is
only a mark on a letter in the language, and kept if it makes another letter (accents.py).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from indexer.errors import BadInput, IndexDamaged, NoWords
from indexer.lazy_pattern import lazy_pattern
from indexer.lazy_property import LazyProperty
from indexer.stores.words.accents import fold

if TYPE_CHECKING:
    import tantivy

VERSION = 3
"""Version of the rules in this file, accents.py and exact.py, and of the fields of a word index. A word index made with
another version is rebuilt."""

LANGUAGES = {
    **{"ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish"},
    **{"fi": "finnish", "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish"},
}
"""ISO 639-1 code to the name of its Snowball stemmer."""

_STEMMED_BY_ACCENTS = frozenset({"es", "fr", "hu", "it", "pt", "tr"})
"""Languages whose stemmer knows endings by their accents: -ción, -ità, -ée, -lık. Without accents the stemmer keeps
such endings."""

_COMPOUNDING = frozenset({"da", "de", "fi", "nl", "no", "sv"})
"""Languages that write several words as one, such as German `Käsekuchen`."""

_MIN_BEGINNING = 4
"""Minimum letters of a word of a question that finds the compounds that begin with it."""

MIN_COMPOUND_REST = 3
"""Minimum letters of a compound's term after its beginning. Fewer are an ending that the stemmer left."""

Terms: TypeAlias = Mapping[str, str]
"""The different terms of a question, each with the beginning of the compounds that it finds; "" if it finds none."""

_WITHOUT_STOP_WORDS = frozenset({"ar", "el", "ro", "ta", "tr"})

# Snowball's list. The engine has Snowball's lists of the other languages, but its English list has no question words.
_ENGLISH_STOP_WORDS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its
itself they them their theirs themselves what which who whom this that these those am is are was were be been being
have has had having do does did doing would should could ought can will just now a an the and but if or because as
until while of at by for with about against between into through during before after above below to from up down in
out on off over under again further then once here there when where why how all any both each few more most other some
such no nor not only own same so than too very s t don
""".split()  # noqa: SIM905

_MAX_TERM_CHARACTERS = 64
"""Longer terms are cut: they are not words, and the engine refuses terms that are much longer."""

DEFAULT = "en"
"""The language of an index whose texts do not say which."""

AUTO = "auto"
"""What a user gives for a language that is to be found from the texts."""

CHINESE_JAPANESE = (
    "\u3005-\u3007\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_NEVER_SPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    f"{CHINESE_JAPANESE}"
)
UNSPACED = f"{_NEVER_SPACED}\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"
"""Characters that are indexed in pairs. Korean, the last of them, has spaces between its words."""
_ONE_CHARACTER_WORD = lazy_pattern(
    "[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003fffd]"
)
"""Characters that can be a word: Chinese characters (also in Japanese), and syllables of Korean."""

_HIRAGANA = {katakana: katakana - 0x60 for katakana in (*range(0x30A1, 0x30F7), 0x30FD, 0x30FE)}
_KATAKANA = lazy_pattern("[\u30a1-\u30f6\u30fd\u30fe]")

_VOWEL_SIGNS = "\u0900-\u0963\u0966-\u0dff"  # of Indic scripts: Python's \w leaves them out
_POINTS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
UNSEEN = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
"""Characters that have no width and do not separate words, such as soft hyphens, zero-width spaces and joiners."""

IN_WORDS = rf"\w{_VOWEL_SIGNS}{_POINTS}{UNSEEN}"
"""Characters of a written word, for a class of a regular expression."""

_BLANK = rf"(?:[^\S\t\n]|[{UNSEEN}])"
_LINE_END = rf"(?:{_BLANK}|\t)*\n(?:{_BLANK}|\t)*"
UNSPACED_RUN = rf"[{UNSPACED}]+(?:(?<=[{_NEVER_SPACED}])(?:{_BLANK}+|{_LINE_END})(?=[{_NEVER_SPACED}])[{UNSPACED}]+)*"
"""Regular expression of characters that are indexed in pairs. White space within is no border of words there. A blank
line is, and so is a tab, which separates the cells of a table."""
_UNSPACED_RUN = lazy_pattern(UNSPACED_RUN)

_SIGNS = "\u3001-\u3003\u3008-\u3011\u3014-\u301f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_BETWEEN_SIGNS = rf"(?<=[{CHINESE_JAPANESE}{_SIGNS}])%s(?=[{CHINESE_JAPANESE}{_SIGNS}])"
_SOURCE_BLANKS = lazy_pattern(_BETWEEN_SIGNS % r"[^\S\t\n]+")
_SOURCE_LINES = lazy_pattern(_BETWEEN_SIGNS % r"(?:[^\S\t\n]+|[^\S\n]*\n[^\S\n]*)")

# A name with dots is one word at first; `_parts` splits it later.
_WORD = lazy_pattern(rf"[\w{_VOWEL_SIGNS}]+(?:\.\w+)*")
_ASCII_WORD = lazy_pattern(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_LEFT_OUT = lazy_pattern(f"[{_POINTS}{UNSEEN}]+")

_PERSIAN_WORD = lazy_pattern("[\u0620-\u06ff]+(?:\u200c[\u0620-\u06ff]+)+")
"""A word with a zero-width non-joiner, such as a noun with its plural ending. Its parts are words too, because many
people type a space or leave the ending out."""

_BORDER = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[._]+")
_VERSION = lazy_pattern(r"v[0-9]+\.[0-9.]+")
_LETTER = rf"[^\W_{UNSPACED}]"
_SHORT = 6
_FIRST_PART = lazy_pattern(rf"(?<![\w-]){_LETTER}{{1,{_SHORT}}}\Z")
_SECOND_PART = lazy_pattern(rf"-{_LETTER}+(?!\w)")
"""A hyphenated word whose first part is short, because few others are also written as one. With these the word index of
SciFact is 2.8 % larger, with all 3.7 %."""
_SEPARATOR = "[,.'\u2019 \u00a0\u2009\u202f]"
_GROUPED = lazy_pattern(
    rf"[1-9](?<![\w.,'\u2019][1-9])[0-9]{{0,2}}(?P<mark>{_SEPARATOR})[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*(?!\w)"
)

_TURKISH_CAPITALS = str.maketrans({"I": "\u0131", "\u0130": "i"})
_SIGNED = lazy_pattern(r"\b[A-Za-z](?:\+\+|#)")  # C++, C#


def is_auto(language: str) -> bool:
    """Return whether a user left the language to be found from the texts."""
    return language.strip().lower() == AUTO


def code(language: str) -> str:
    """Return the ISO 639-1 code of a language given by code or name, or `none`. `auto` is not a language.

    Raises:
        BadInput: the engine has no stemmer for it.
    """
    normalized = language.strip().lower()
    for known_code, name in LANGUAGES.items():
        if normalized in (known_code, name):
            return known_code
    if normalized == "none":
        return normalized
    names = ", ".join(f"{known_code} ({name})" for known_code, name in LANGUAGES.items())
    raise BadInput(
        f"language {language!r} is unknown: use {names}, or none; auto finds it in the texts; "
        "Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are found by words in any of them"
    )


@dataclass(frozen=True)
class Analysis:
    """How text of one language becomes terms. Safe to share among threads."""

    language: str = "en"

    def __str__(self) -> str:
        return f"{VERSION} {self.language}"

    def words(self, text: str) -> list[str]:
        """Return the words of a text as the engine gets them, as often as they occur.

        Their number is the length of the text in BM25. In most languages the engine stems them. Where the stemmer needs
        the accents, they are stems already: accents are left out of the stem, and if the word without its accents has
        another stem, the word also has this stem, because many people type words without accents (`educacion`).
        """
        words = self._written(text)
        return self._stems_by_accents(words) if self.language in _STEMMED_BY_ACCENTS else words

    def _written(self, text: str) -> list[str]:
        """Return the words of a text before stemming, without accents unless the stemmer needs them."""
        pairs: list[str] = []
        if text.isascii():
            written = _ASCII_WORD.findall(text)
        else:
            text = unicodedata.normalize("NFKC", text)
            if "\u200c" in text:
                text = " ".join([text, *(word.replace("\u200c", " ") for word in _PERSIAN_WORD.findall(text))])
            text = _LEFT_OUT.sub("", text)
            if _KATAKANA.search(text):
                text = text.translate(_HIRAGANA)
            pairs = [pair for run in _UNSPACED_RUN.findall(text) for pair in _pairs("".join(run.split()))]
            written = _WORD.findall(_UNSPACED_RUN.sub(" ", text) if pairs else text)
        names = {word: _parts(word) for word in set(written) if _is_name(word)}
        if names:
            written += [part for word in written if word in names for part in names[word]]
        if "++" in text or "#" in text:
            written += _SIGNED.findall(text)
        lower = " ".join(written)
        lower = (lower.translate(_TURKISH_CAPITALS) if self.language == "tr" else lower).lower()
        if self.language not in _STEMMED_BY_ACCENTS:
            lower = fold(lower, self.language)
        words = lower.split() + pairs
        if "_" in text:
            words = [word for word in words if word.strip("_")]
        if max(map(len, words), default=0) > _MAX_TERM_CHARACTERS:
            return [word[:_MAX_TERM_CHARACTERS] for word in words]
        return words

    def _asked(self, question: str) -> list[str]:
        """Return the words of a question before stemming. A space in it separates words in every script."""
        parts = [question] if question.isascii() else question.split()
        parts += [word for *_, word in joined_words(question)]
        return [word for part in parts for word in self._written(part)]

    def _stems_by_accents(self, words: list[str]) -> list[str]:
        """Return the stem of each word, without accents. If the word without accents has another stem, return this stem
        too."""
        different = list(dict.fromkeys(words))
        stems = [fold(stem, self.language) for stem in self._stemmer.analyze(" ".join(different))]
        stem_of = dict(zip(different, stems, strict=True))
        plain_of = {word: plain for word in different if (plain := fold(word, self.language)) != word}
        plain_stems = self._stemmer.analyze(" ".join(plain_of.values()))
        more = {word: stem for word, stem in zip(plain_of, plain_stems, strict=True) if stem != stem_of[word]}
        return [stem_of[word] for word in words] + [more[word] for word in words if word in more]

    @LazyProperty
    def stemmed(self) -> tantivy.TextAnalyzer:
        """The part of the analysis that the engine does: words between spaces to terms."""
        if self.language in _STEMMED_BY_ACCENTS:
            return _between_spaces().build()
        return self._stemmer

    @LazyProperty
    def _stemmer(self) -> tantivy.TextAnalyzer:
        return self._analyzer(stop_words=False)

    @LazyProperty
    def _question_analyzer(self) -> tantivy.TextAnalyzer:
        return self._analyzer(stop_words=True)

    def terms(self, question: str) -> list[str]:
        """Return the different terms of a question, without stop words."""
        stems = self._question_analyzer.analyze(" ".join(self._asked(question)))
        if self.language in _STEMMED_BY_ACCENTS:
            stems = [fold(stem, self.language) for stem in stems]
        return list(dict.fromkeys(stems))

    def question_terms(self, question: str) -> Terms:
        """Return the terms of a question with the beginnings of compounds."""
        if self.language not in _COMPOUNDING:
            return dict.fromkeys(self.terms(question), "")
        terms: dict[str, str] = {}
        for word in self._asked(question):
            for term in self._question_analyzer.analyze(word):
                terms[term] = terms.get(term) or _beginning(word, term)
        return terms

    def required_terms(self, question: str) -> Terms:
        """Return the same as `question_terms` for a question that must have terms.

        Raises:
            NoWords: the question has no word, or only stop words of the language.
        """
        terms = self.question_terms(question)
        if not terms:
            problem = "has only words that are too common to search by" if self.words(question) else "has no word"
            raise NoWords(
                f"the question {question.strip()[:40]!r} {problem}: ask by meaning (mode dense), or add a word"
            )
        return terms

    def stems(self, text: str) -> list[str]:
        """Return the terms of a text as often as they occur, stop words included: as they are in the word index."""
        terms: list[str] = self.stemmed.analyze(" ".join(self.words(text)))
        return terms

    def joined(self, text: str) -> list[str]:
        """Return the terms of what is also written as one word: `email` for `e-mail`, `1000000` for `1,000,000`.

        They are found beside the words of a text, and do not count in its length.
        """
        return list(dict.fromkeys(self.stems(" ".join(word for *_, word in joined_words(text)))))

    def _analyzer(self, stop_words: bool) -> tantivy.TextAnalyzer:
        """`stop_words`: remove them."""
        from tantivy import Filter

        builder = _between_spaces()
        if self.language == "none":
            return builder.build()
        name = LANGUAGES[self.language]
        if stop_words and self.language == "en":
            builder = builder.filter(Filter.custom_stopword(_ENGLISH_STOP_WORDS))
        elif stop_words and self.language not in _WITHOUT_STOP_WORDS:
            builder = builder.filter(Filter.stopword(name))
        return builder.filter(Filter.stemmer(name)).build()


def close_up(text: str, *, lines: bool = False) -> str:
    """Return a text without the blanks between two characters or signs of Chinese and Japanese.

    Args:
        lines: leave single line ends out too. They are those of a page, not of the text.
    """
    if text.isascii():
        return text
    return (_SOURCE_LINES if lines else _SOURCE_BLANKS).sub("", text)


def without_unspaced(text: str) -> str:
    """Return a text without its characters of scripts without spaces."""
    return text if text.isascii() else _UNSPACED_RUN.sub(" ", text)


def _between_spaces() -> tantivy.TextAnalyzerBuilder:
    from tantivy import TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.whitespace())


@cache  # an analysis makes its analyzers when they are first used, which takes twice as long as a question
def stored_analysis(language: str) -> Analysis:
    """Return the analysis of a language that is stored in an index.

    Raises:
        IndexDamaged: there is no such language.
    """
    if language not in (*LANGUAGES, "none"):
        raise IndexDamaged(
            f"the index names an unknown language {language!r}; restore a backup, or remove the index and index again"
        )
    return Analysis(language)


def _beginning(word: str, term: str) -> str:
    """Return the beginning of the terms of compounds with a word; "" if it finds none.

    Args:
        term: of the word. The stemmer of German leaves out the dots of letters, that of Swedish keeps them.
    """
    if len(word) < _MIN_BEGINNING or not word.isalpha():
        return ""
    plain = "".join(filter(str.isalpha, unicodedata.normalize("NFKD", word.replace("ß", "ss"))))
    return next((form for form in (word, plain) if form.startswith(term)), "")


def is_compound(term: str, beginning: str) -> bool:
    """Return whether a term is a compound that begins with a word."""
    return term.startswith(beginning) and len(term) >= len(beginning) + MIN_COMPOUND_REST and term.isalpha()


def characters(text: str) -> list[str]:
    """Return the characters of a text that can be a word, as often as they occur."""
    return [] if text.isascii() else _ONE_CHARACTER_WORD.findall(unicodedata.normalize("NFKC", text))


def joined_words(text: str, *, numbers: bool = True) -> list[tuple[int, int, str]]:
    """Return the start and end of what is also written as one word, with that word: hyphenated words without their
    hyphen, and, with `numbers`, numbers without the separators of their groups."""
    plain = text if text.isascii() else text.replace("\u2010", "-").replace("\u2011", "-")
    found = list[tuple[int, int, str]]()
    hyphen = plain.find("-")
    while hyphen >= 0:  # much faster than a search for the whole pattern, which begins at every word
        first = _FIRST_PART.search(plain, max(0, hyphen - _SHORT), hyphen)
        second = first and _SECOND_PART.match(plain, hyphen)
        if first and second and not (word := f"{first[0]}{second[0][1:]}".lower()).isdigit():
            found.append((first.start(), second.end(), word))
        hyphen = plain.find("-", hyphen + 1)
    groups = _GROUPED.finditer(text) if numbers else ()
    return found + [(*match.span(), match[0].replace(match["mark"], "")) for match in groups]


def _is_name(word: str) -> bool:
    """Return whether a text may be several words written together. The first tests decide about most words."""
    return "." in word or "_" in word or not (word.islower() or word.istitle() or word.isupper() or word.isdigit())


def _parts(word: str) -> list[str]:
    """Return the parts of a name such as parse_json, HTTPServer or v2.3.1, without the name itself."""
    parts = [part for part in _BORDER.split(word) if part]
    version = [word[1:]] if _VERSION.fullmatch(word) else []
    return (parts if parts != [word] else []) + version


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[start : start + 2] for start in range(len(run) - 1)]
