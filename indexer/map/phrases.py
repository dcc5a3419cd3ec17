"""The phrases of documents from which regions of a map are named: words, and words that follow one another.

Lines that many documents begin with the same words (headers of letters and of PEPs, headings, addresses) are left out,
and so are stop words of every language among the documents. A phrase is known by the stems of its words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from indexer.languages.detect import languages_of
from indexer.stores.words.analysis import LANGUAGES, UNSPACED, Analysis

_CHARACTERS = 1500
"""Maximum characters of each text that are read. Beginnings say what a document is about."""
_MAX_WORDS = 3
"""Maximum words of a phrase, and of a script without spaces twice as many characters."""
_MIN_LINE_DOCUMENTS = 4
_LINE_SHARE = 0.12
"""Share of documents from which a line that begins with the same words in each is left out."""

_ADDRESS = re.compile(r"\S+@\S+")
_NOT_TEXT = re.compile(
    r"(?m:^[ \t]*(?:(?:from[ \t]+\S+[ \t]+import|#[ \t]*include)\b.*|import\b(?=.*\bfrom[ \t]*['\"]).*|"
    r"import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w.]+)*[ \t]*;?[ \t]*$|"
    r"\.\.[ \t]+[\w:+-]+::|:[\w -]{1,30}:(?=\s)|(?:`{3,}|~{3,}|:{3,}).*)|\{\{#\w+|(?<=\()[^\W\d_][\w ]{1,27}:)|"
    r"(?:https?:|www\.|file:)\S+|:[\w:+-]+:(?=`)|<[^<>]{0,200}>|\S*[\\/_=]\S*"
)
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W\d_{UNSPACED}](?:[\w'’\-]*[^\W_])?")
_CLAUSE = re.compile(r"[.,;:!?()\[\]{}\"“”„«»…|/*`+<>。、，；：！？（）「」『』《》〈〉·،؛؟]+|\s[-–—]+\s|\n\s*\n")
_LABEL = re.compile(r"^\s*(?:[#*=.-]+\s*)?([^\W\d_][^:\n]{0,28}):(?:\s|$)")
_FUNCTION_CHARACTERS = re.compile("[\u3041-\u309f的了是在和与與之其為为以而及於于個个這这那有不也就都]+")
"""Hiragana, and the commonest Chinese characters that are words without a topic. They separate phrases."""
_ARABIC_STOP_WORDS = frozenset(
    """
    في من على إلى الى عن مع كان كانت هذا هذه ذلك تلك التي الذي الذين قد ما لا أن إن أو او ثم كما حيث بعد قبل بين كل غير
    خلال حتى لم لن هو هي هم وهو وهي وقد ولم ولا وكان وكانت عند عام منذ أي أكثر بعض فقد مثل أيضا به بها له لها فيه فيها
    """.split()  # noqa: SIM905
)
"""The engine has no list for Arabic."""
_PERSON = re.compile(r"([^\W\d_][^,;:<>()\n]{2,50}?)\s*<[^<>\s]+@[^<>\s]+>")
"""A name before an address."""
_HASH = re.compile(r"\d.*\d.*\d|^.{26,}$")

Phrase = tuple[str, ...]
"""The stems of a phrase's words."""


@dataclass(frozen=True)
class Phrases:
    """The phrases of some documents.

    Attributes:
        of_documents: the phrases of each document.
        of_titles: the phrases of each document's title.
        repeated: the phrases that each document has more than once, its title included.
        spelling: how each phrase is written, by frequency.
        people: in how many documents each word is part of a name before an address.
    """

    of_documents: list[set[Phrase]]
    of_titles: list[set[Phrase]]
    repeated: list[set[Phrase]]
    spelling: dict[Phrase, Counter[str]]
    people: Counter[str]

    def written(self, phrase: Phrase) -> str:
        """Return a phrase as it is written most often; in small letters if some documents write it so."""
        forms = self.spelling[phrase]
        small = max((form for form in forms if form.islower()), key=lambda form: forms[form], default="")
        return small if forms[small] * 4 > forms.total() else forms.most_common(1)[0][0]


def read_phrases(titles: Sequence[str], texts: Sequence[str], analysis: Analysis) -> Phrases:
    """Return the phrases of documents, given the title and the text of each.

    Args:
        analysis: analysis of the collection's language, which gives the stem of a word.
    """
    languages = {"en", *languages_of(texts)} & LANGUAGES.keys() - {analysis.language}
    others = [Analysis(language) for language in sorted(languages)]  # English: texts of any language quote it

    @cache
    def stem(word: str) -> str:
        """Return the stem of a word, and "" for stop words and what is not a word."""
        if len(word) < 2 or _HASH.search(word) or word in _ARABIC_STOP_WORDS:
            return ""
        if not all(other.terms(re.split("['’]", word)[0]) for other in (*others, analysis)):
            return ""
        terms = analysis.terms(word)
        return terms[0] if terms and (len(word) > 2 or word.isupper()) else ""

    starts = [text[:_CHARACTERS] for text in texts]
    common = _common_lines(starts)
    phrases = Phrases([], [], [], defaultdict(Counter), Counter())
    for title, start in zip(titles, starts, strict=True):
        names = _phrases(" | ".join(_PERSON.findall(start)), stem)
        phrases.people.update({word for phrase, spelling in names if spelling.istitle() for word in phrase})
        found: list[Counter[Phrase]] = []
        for text in (title, "\n".join(_own_lines(start, common)).strip() or start):
            found.append(Counter())
            for phrase, spelling in _phrases(text, stem):
                found[-1][phrase] += 1
                phrases.spelling[phrase][spelling] += 1
        every = found[0] + found[1]
        phrases.of_titles.append(set(found[0]))
        phrases.of_documents.append(set(every))
        phrases.repeated.append({phrase for phrase, count in every.items() if count > 1})
    return phrases


def _phrases(text: str, stem: Callable[[str], str]) -> Iterator[tuple[Phrase, str]]:
    """Yield every phrase of a text with its spelling."""
    for clause in _CLAUSE.split(_NOT_TEXT.sub(" | ", text)):
        run: list[tuple[str, str]] = []
        for word in _WORD.findall(clause or ""):
            if re.match(f"[{UNSPACED}]", word):
                run.clear()
                for part in _FUNCTION_CHARACTERS.split(word):
                    yield from ((tuple(gram), gram) for gram in _grams(part))
                continue
            stemmed = stem(word)
            if not stemmed:
                run.clear()
                continue
            run.append((stemmed, word))
            for length in range(1, min(len(run), _MAX_WORDS) + 1):
                yield tuple(each for each, _ in run[-length:]), " ".join(each for _, each in run[-length:])


def _grams(text: str) -> Iterator[str]:
    """Yield every part of a text without spaces that may be a phrase."""
    for length in range(2, 2 * _MAX_WORDS + 1):
        for start in range(len(text) - length + 1):
            yield text[start : start + length]


def _common_lines(texts: Sequence[str]) -> set[str]:
    """Return the beginnings of lines that many documents have: a label before a colon, or a line as a whole."""
    documents: Counter[str] = Counter()
    for text in texts:
        documents.update({key for line in text.splitlines() for key in _keys(line)})
    least = max(_MIN_LINE_DOCUMENTS, _LINE_SHARE * len(texts))
    return {key for key, count in documents.items() if count >= least}


def _keys(line: str) -> Iterator[str]:
    """Yield what a line has in common with the same line of other documents."""
    if label := _LABEL.match(line):
        yield label[1].strip().lower() + ":"
    if line.strip():
        yield re.sub(r"\d+", "#", line.strip().lower())


def _own_lines(text: str, common: set[str]) -> Iterator[str]:
    """Yield the lines that are a document's own and have no address. Indented lines belong to the label above them."""
    left_out = False
    for line in text.splitlines():
        if any(key in common for key in _keys(line)):
            left_out = True
        elif not (left_out and line[:1].isspace() and line.strip()):
            left_out = False
            yield "" if _ADDRESS.search(line) else line
