"""The order of reading in lines of a PDF with Arabic or Hebrew, found by the places of the letters.

PDFium guesses whether a file holds such a line as it is read or as it stands on the page. It guesses wrong for many
words in files that browsers print: their letters come out from left to right, and no search finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal, TypeVar
from unicodedata import bidirectional

from likewise.readers.formats.pdf_annotations import Rectangle

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

Direction = Literal["R", "L", "N"]
"""From right to left, from left to right, or as its neighbours."""

_DIRECTIONS: dict[str, Direction] = {"R": "R", "AL": "R", "L": "L", "EN": "L", "AN": "L"}
_RUNS = {"R": re.compile("L(?:[LN]*L)?"), "L": re.compile("R(?:[RN]*R)?")}
"""The runs of the other direction within a line or word of a direction."""

_Item = TypeVar("_Item")

_MIN_WORD_GAP = 0.14
"""Minimum gap between two words, in heights of a line. Gaps beside Arabic letters that do not join are half of it."""

_MIN_UNMARKED_GAP = 0.5
"""Minimum gap between two words that PDFium has no blank between."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A character on a page.

    Attributes:
        index: PDFium's index of it.
        word: number of the word that it is in for PDFium, line by line.
    """

    text: str
    index: int
    place: Rectangle
    word: int

    @property
    def center(self) -> float:
        return (self.place.left + self.place.right) / 2


def rows(
    lines: Sequence[str], indexes: Sequence[Sequence[int]], places: Mapping[int, Rectangle]
) -> Iterator[tuple[str, list[int]]]:
    """Yield the lines of a page with those of Arabic and Hebrew as they are read.

    PDFium also divides such a line in two if the file holds its end first. The parts are joined.

    Args:
        lines: PDFium's lines.
        indexes: PDFium's index of each character that is not a blank, of each line.
        places: the place of each index.
    """
    held, letters = list[str](), list[Letter]()
    for line, line_indexes in [*zip(lines, indexes, strict=True), ("", [])]:
        words = (number for number, word in enumerate(line.split(), len(letters)) for _ in word)
        characters = zip("".join(line.split()), line_indexes, words, strict=True)
        new = [Letter(text, index, places[index], word) for text, index, word in characters]
        if letters and new and RIGHT_TO_LEFT.search("".join(held) + line) and _are_one_row(letters, new):
            held.append(line)
            letters += new
            continue
        if held:
            yield _as_read(held, letters)
        held, letters = [line], new


def _as_read(lines: Sequence[str], letters: Sequence[Letter]) -> tuple[str, list[int]]:
    """Return the text of one row, and the indexes of its letters."""
    text = "\n".join(lines)
    if letters and RIGHT_TO_LEFT.search(text) and _is_row(letters):
        words = reading_order(letters)
        text = " ".join("".join(letter.text for letter in word) for word in words)
        letters = [letter for word in words for letter in word]
    return text, [letter.index for letter in letters]


def _is_row(letters: Sequence[Letter]) -> bool:
    """Return whether letters are in one row: those of turned text are not."""
    middles = [letter.place.middle for letter in letters]
    # Some files give the place of a glyph as that of its ink, so the highest letter counts.
    return max(middles) - min(middles) < max(letter.place.top - letter.place.bottom for letter in letters)


def _are_one_row(first: Sequence[Letter], second: Sequence[Letter]) -> bool:
    """Return whether two lines are side by side in one row."""
    if not _is_row([*first, *second]):
        return False
    starts = [min(letter.place.left for letter in line) for line in (first, second)]
    ends = [max(letter.place.right for letter in line) for line in (first, second)]
    return max(starts) >= min(ends)


def reading_order(letters: Sequence[Letter]) -> list[list[Letter]]:
    """Return the words of a line as they are read.

    Args:
        letters: the letters of one line without blanks, in PDFium's order.
    """
    words = list(_words(_from_the_left(letters)))
    directions: list[Direction] = []
    for word in words:
        kinds = {_direction(letter) for letter in word if not letter.text.isdecimal()}
        directions.append("R" if "R" in kinds else "L" if "L" in kinds else "N")
    line: Direction = "R" if directions.count("R") >= directions.count("L") else "L"
    return [
        [*_read_from_right(word)] if way == "R" else word
        for word, way in _turned([*zip(words, directions, strict=True)], directions, line)
    ]


def _direction(letter: Letter) -> Direction:
    return _DIRECTIONS.get(bidirectional(letter.text), "N")


def _turned(items: Sequence[_Item], directions: Sequence[Direction], whole: Direction) -> list[_Item]:
    """Return items in the order of reading, given from the left of the page, in a line or word of a direction."""
    step = -1 if whole == "R" else 1
    read, codes = [*items[::step]], "".join(directions[::step])
    for run in _RUNS[whole].finditer(codes):
        read[run.start() : run.end()] = read[run.start() : run.end()][::-1]
    return read


def _from_the_left(letters: Sequence[Letter]) -> list[Letter]:
    """Return letters as they stand on the page. Those in one place, such as a ligature's, are ordered by their run."""
    oriented: list[Letter] = []
    run: list[Letter] = []
    for letter in [*letters, None]:
        if letter is not None and RIGHT_TO_LEFT.match(letter.text):
            run.append(letter)
            continue
        oriented += run if _is_as_placed(run) else run[::-1]
        run = []
        if letter is not None:
            oriented.append(letter)
    return sorted(oriented, key=lambda letter: letter.center)


def _words(letters: Sequence[Letter]) -> Iterator[list[Letter]]:
    """Yield the words from the left of the page to its right."""
    # The median, because a single tall letter would join all words of its line.
    height = median(letter.place.top - letter.place.bottom for letter in letters)
    word, right = list[Letter](), letters[0].place.right
    for letter in letters:
        is_same = bool(word) and letter.word == word[-1].word
        if letter.place.left - right > (_MIN_UNMARKED_GAP if is_same else _MIN_WORD_GAP) * height:
            yield word
            word = []
        word.append(letter)
        right = max(right, letter.place.right)
    yield word


def _read_from_right(word: Sequence[Letter]) -> Iterator[Letter]:
    """Yield the letters of a word that is read from the right."""
    turned = _turned(word, [*map(_direction, word)], "R")
    bases = [letter for letter in turned if not _is_sign(letter)]
    as_given = [letter for letter in sorted(word, key=lambda letter: letter.index) if not _is_sign(letter)]
    signs: dict[int, list[Letter]] = {}
    if as_given == bases:  # PDFium has the order, and each sign after its letter
        holder = bases[0].index if bases else -1
        for letter in sorted(word, key=lambda letter: letter.index):
            if _is_sign(letter):
                signs.setdefault(holder, []).append(letter)
            else:
                holder = letter.index
    else:
        for sign in filter(_is_sign, word):
            nearest = min(bases, key=lambda letter: abs(letter.center - sign.center), default=sign)
            signs.setdefault(nearest.index, []).append(sign)
    for letter in bases:
        yield letter
        yield from signs.get(letter.index, ())
    if not bases:
        yield from word


def _is_sign(letter: Letter) -> bool:
    """Return whether a character is a vowel sign, which is over or below a letter."""
    return bidirectional(letter.text) == "NSM"


def _is_as_placed(letters: Sequence[Letter]) -> bool:
    """Return whether letters are given in their order on the page, from the left."""
    steps = [second.center - first.center for first, second in pairwise(letters)]
    return sum(step > 0 for step in steps) > sum(step < 0 for step in steps)
