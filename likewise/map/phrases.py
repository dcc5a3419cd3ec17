"""The phrases of documents from which regions of a map are named: words, and words that follow one another.

Lines that many documents begin with the same words (headers of letters and of PEPs, headings, addresses) are left out,
and so are stop words of every language among the documents. A phrase is known by the stems of its words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from pathlib import PurePath

from indexer.languages.detect import languages_of
from indexer.records import Document
from indexer.sources.formats import FORMATS
from indexer.stores.words.analysis import LANGUAGES, UNSPACED, Analysis

CHARACTERS = 1500
"""Maximum characters of each text that are to be read. Beginnings say what a document is about."""
_MAX_WORDS = 3
"""Maximum words of a phrase, and of a script without spaces twice as many characters."""
_MIN_LINE_DOCUMENTS = 4
_LINE_SHARE = 0.02
"""Share of documents from which a line that begins with the same words in each is left out."""
_PERSON_FIELDS = ("author", "authors", "creator", "from", "to", "cc")
_PROSE = {"text", "subtitles", "asciidoc", "latex"}
_SOURCE_CODE = {each.name for each in FORMATS.values() if each.kind == "text" and not each.reader} - _PROSE
"""Formats whose texts are for a machine and not for a reader, except their comments."""
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
_STOP_WORDS = ("dass", "wurde", "wurden", "beim", "est")
"""German and French words that are not in the engine's lists."""
_STOP_FOLDERS = {"archive", "data", "docs", "documents", "dokumente", "files", "inbox", "misc", "other"}
"""Names of folders that say nothing of the files in them."""
_NUMBER = re.compile(r"(?=.*\d)\s*(?:\S+\s*){,3}$")
"""A cell of a row with a number and at most three words: it says little of the row."""
_TAG = re.compile("<[^<>]{0,200}>")
_PERSON = re.compile(r"([^\W\d_][^,;:<>()\n]{2,50}?)\s*<[^<>\s]+@[^<>\s]+>")
"""A name before an address."""
TITLE_CHARACTERS = 72
"""Maximum characters of the titles of a name together."""
_HASH = re.compile(r"^\d|\d.*\d.*\d|^.{26,}$")

Phrase = tuple[str, ...]
"""The stems of a phrase's words."""


@dataclass(frozen=True)
class Phrases:
    """The phrases of some documents.

    Attributes:
        of_documents: how often each document has each phrase. A phrase of its title counts twice.
        spelling: how each phrase is written, by frequency.
        people: in how many documents each word is part of a name before an address.
        folders: the folders of each document.
        titles: what each document is called.
        of_paths: phrases that are the name of a folder or a file.
    """

    of_documents: list[Counter[Phrase]]
    spelling: dict[Phrase, Counter[str]]
    people: Counter[str]
    folders: list[list[str]]
    titles: list[str]
    of_paths: set[Phrase]

    def written(self, phrase: Phrase) -> str:
        """Return a phrase as it is written most often; in small letters if some documents write it so."""
        forms = self.spelling[phrase]
        small = max((form for form in forms if form.islower()), key=lambda form: forms[form], default="")
        return small if forms[small] * 4 > forms.total() else forms.most_common(1)[0][0]


def read_phrases(documents: Sequence[Document], analysis: Analysis, paths: Collection[str] = ()) -> Phrases:
    """Return the phrases of documents.

    Args:
        analysis: analysis of the collection's language, which gives the stem of a word.
        paths: of the files of the collection.
    """
    languages = {"en", *languages_of([each.text for each in documents])} & LANGUAGES.keys() - {analysis.language}
    others = [Analysis(language) for language in sorted(languages)]  # English: texts of any language quote it

    @cache
    def stem(word: str) -> str:
        """Return the stem of a word, and "" for stop words and what is not a word."""
        if len(word) < 2 or _HASH.search(word) or word.lower() in _STOP_WORDS:
            return ""
        if not all(other.terms(re.split("['’]", word)[0]) for other in (*others, analysis)):
            return ""
        terms = analysis.terms(word)
        return terms[0] if terms and (len(word) > 2 or word.isupper()) else ""

    common = _common_lines([each.text for each in documents])
    phrases = Phrases([], defaultdict(Counter), Counter(), [], [], _of_paths(paths, stem))
    for document in documents:
        fields = (str(document.metadata.get(name, "")) for name in _PERSON_FIELDS)
        names = _phrases(" | ".join([*_PERSON.findall(document.text), *fields]), stem)
        phrases.people.update({word for phrase, spelling in names if spelling.istitle() for word in phrase})
        title, text = _readable(document, common)
        phrases.titles.append(_called(document, title, text))
        every = Counter[Phrase]()
        for phrase, spelling in chain.from_iterable(_phrases(each, stem) for each in (title, title, text)):
            every[phrase] += 1
            phrases.spelling[phrase][spelling] += 1
        whole = tuple(filter(None, map(stem, _WORD.findall(title))))
        if len(whole) > 1 and len(title) <= TITLE_CHARACTERS and not re.search(r"\d", title):
            every[whole] = 2  # the title of several documents is a phrase that they repeat
            phrases.spelling[whole][title] += 1
        phrases.of_documents.append(every)
        phrases.folders.append(_folders(document))
    return phrases


def _readable(document: Document, common: set[str]) -> tuple[str, str]:
    """Return what a person calls a document, and what a person reads in it: of source code its comments, of a row its
    cells."""
    text = "\n".join(_COMMENT.findall(document.text)) if document.format in _SOURCE_CODE else document.text
    own = "\n".join(_own_lines(text, common)).strip()
    cells = (_LABEL.sub("", line) for line in text.splitlines())
    return _ANSWER.sub("", document.title).replace("_", " "), own or "\n\n".join(cells)


def _called(document: Document, title: str, text: str) -> str:
    """Return the title of a document as a name; the beginning of its text if the title is empty or its file's name."""
    path = PurePath(document.path or "")
    if title in ("", path.name.replace("_", " "), path.stem.replace("_", " ")):
        parts = (
            " ".join(_LABEL.sub("", line).strip(" \t#=*-") for line in part.splitlines())
            for part in re.split(r"\n\s*\n", _TAG.sub("", text))
        )
        title = ", ".join(part for part in parts if part.strip() and not _NUMBER.match(part))
    return " ".join(title.split())


def shortened(title: str, characters: int) -> str:
    """Return a title of at most this many characters."""
    return title if len(title) <= characters else title[: characters - 1].rstrip() + "…"


def _folders(document: Document) -> list[str]:
    """Return the folders of a file but those whose names say nothing, with more slashes before an inner one."""
    folders = PurePath(document.path or "").parts[1:-1]
    return ["/" * depth + f"{name}/" for depth, name in enumerate(folders) if name.lower() not in _STOP_FOLDERS]


def _of_paths(paths: Collection[str], stem: Callable[[str], str]) -> set[Phrase]:
    """Return the names of folders and files as phrases, with and without their suffixes."""
    parts = set(chain.from_iterable(PurePath(path).parts for path in paths))
    names = {
        re.sub(marks, " ", name) for part in parts for name in (part, PurePath(part).stem) for marks in ("_", r"[\W_]+")
    }

    def stems(word: str) -> Sequence[str]:
        return word if re.match(f"[{UNSPACED}]", word) else [stem(word) or word.lower()]

    return {tuple(chain.from_iterable(map(stems, _WORD.findall(name)))) for name in names}


def _phrases(text: str, stem: Callable[[str], str]) -> Iterator[tuple[Phrase, str]]:
    """Yield every phrase of a text with its spelling."""
    for clause in _CLAUSE.split(_NOT_TEXT.sub(" | ", text)):
        run: list[tuple[str, str]] = []
        for word in _WORD.findall(clause or ""):
            if re.match(f"[{UNSPACED}]", word):
                run.clear()
                for part, length in product(_FUNCTION_CHARACTERS.split(word), range(2, 2 * _MAX_WORDS + 1)):
                    grams = (part[start : start + length] for start in range(len(part) - length + 1))
                    yield from ((tuple(gram), gram) for gram in grams)
                continue
            stemmed = stem(word)
            if not stemmed:
                run.clear()
                continue
            run.append((stemmed, word))
            for length in range(1, min(len(run), _MAX_WORDS) + 1):
                yield tuple(each for each, _ in run[-length:]), " ".join(each for _, each in run[-length:])


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
