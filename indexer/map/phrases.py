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
from pathlib import PurePath

from indexer.languages.detect import languages_of
from indexer.records import Document
from indexer.sources.formats import SOURCE_CODE
from indexer.stores.words.analysis import LANGUAGES, UNSPACED, Analysis

CHARACTERS = 1500
"""Maximum characters of each text that are to be read. Beginnings say what a document is about."""
_MAX_WORDS = 3
"""Maximum words of a phrase, and of a script without spaces twice as many characters."""
_MIN_LINE_DOCUMENTS = 4
_LINE_SHARE = 0.02
"""Share of documents from which a line that begins with the same words in each is left out."""
_PERSON_FIELDS = ("author", "authors", "creator", "from", "to", "cc")
_COMMENT = re.compile(r'"{3}.*?"{3}|(?m:^[ \t]*(?:#|//|/?\*|--)[^\n]*)', re.DOTALL)
_ANSWER = re.compile(r"(?:(?:re|fwd?|aw|wg|sv|tr)[ \t]*:\s*)+", re.IGNORECASE)
"""Beginnings of the subjects of answers and forwarded messages."""

_ADDRESS = re.compile(r"\S+@\S+")
_NOT_TEXT = re.compile(
    r"(?m:^[ \t]*(?:(?:from[ \t]+\S+[ \t]+import|#[ \t]*include)\b.*|import\b(?=.*\bfrom[ \t]*['\"]).*|"
    r"import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w.]+)*[ \t]*;?[ \t]*$|"
    r"\.\.[ \t]+[\w:+-]+::|:[\w -]{1,30}:(?=\s)|(?:`{3,}|~{3,}|:{3,}).*)|\{\{#\w+|(?<=\()[^\W\d_][\w ]{1,27}:)|"
    r"\b[A-Z][A-Z ]{3,}:|(?i:copyright\b|©)[^\n]*|"
    r"(?:https?:|www\.|file:)\S+|:[\w:+-]+:(?=`)|<[^<>]{0,200}>|\S*[\\/_=]\S*"
)
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W\d_{UNSPACED}](?:(?:[^\W{UNSPACED}]|['’\-])*[^\W_{UNSPACED}])?|\d+")
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
TITLE_CHARACTERS = 60
_HASH = re.compile(r"^\d|\d.*\d.*\d|^.{26,}$")

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


def read_phrases(documents: Sequence[Document], analysis: Analysis) -> Phrases:
    """Return the phrases of documents.

    Args:
        analysis: analysis of the collection's language, which gives the stem of a word.
    """
    languages = {"en", *languages_of([each.text for each in documents])} & LANGUAGES.keys() - {analysis.language}
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

    common = _common_lines([each.text for each in documents])
    phrases = Phrases([], [], [], defaultdict(Counter), Counter())
    for document in documents:
        fields = (str(document.metadata.get(name, "")) for name in _PERSON_FIELDS)
        names = _phrases(" | ".join([*_PERSON.findall(document.text), *fields]), stem)
        phrases.people.update({word for phrase, spelling in names if spelling.istitle() for word in phrase})
        title, text = _readable(document, common)
        of_title, of_text = Counter[Phrase](), Counter[Phrase]()
        for counts, part in ((of_title, title), (of_text, text)):
            for phrase, spelling in _phrases(part, stem):
                counts[phrase] += 1
                phrases.spelling[phrase][spelling] += 1
        whole = tuple(filter(None, map(stem, _WORD.findall(title))))
        if len(whole) > 1 and len(title) <= TITLE_CHARACTERS and not re.search(r"\d", title):
            of_title[whole] = 2  # the title of several documents is a phrase that they repeat
            phrases.spelling[whole][title] += 1
        every = of_title + of_text
        phrases.of_titles.append(set(of_title))
        phrases.of_documents.append(set(every))
        phrases.repeated.append({phrase for phrase, count in every.items() if count > 1})
    return phrases


def _readable(document: Document, common: set[str]) -> tuple[str, str]:
    """Return what a person calls a document, and what a person reads in it: of source code its folder and its comments,
    of a row without a title its table and its cells."""
    title, path = _ANSWER.sub("", document.title).replace("_", " "), PurePath(document.path or "")
    if document.title == path.stem and re.search(r"\d", title):
        words = re.sub(r"[\W\d]+", " ", title).split()
        title = " ".join(words) if len(words) > 1 else ""  # "scan-12" says nothing
    text = document.text
    if document.format in SOURCE_CODE:
        title, text = f"{path.parent.name} | {title}", "\n".join(_COMMENT.findall(text))
    own = "\n".join(_own_lines(text, common)).strip()
    return title or (not own and path.stem) or "", own or "\n\n".join(
        _LABEL.sub("", line) for line in text.splitlines()
    )


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
