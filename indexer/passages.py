"""Cutting documents into passages that the model reads whole.

The text is tokenised once by the encoder's own tokenizer; cuts fall on token borders, at the best place near the
end of the room: a paragraph, a sentence, a line, a word. Nothing is dropped: every token of a document lies in at
least one passage. Splitting libraries tokenise each candidate again; docs/decisions.md has the measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.port import Encoder
from indexer.errors import BadInput
from indexer.records import Document, Section, Span
from indexer.sentences import PARAGRAPH, SENTENCE

DEFAULT_OVERLAP_TOKENS = 32
"""Tokens shared by neighbouring passages, unless asked otherwise: docs/passages.md has the table. Passages of fewer
than 128 tokens share a quarter."""

MIN_SECTION_TOKENS = 32
"""A section of fewer tokens (a lone heading, say) joins the one after it."""

# Each pattern ends where the next unit begins; the best comes first.
_BORDERS = (
    PARAGRAPH,
    SENTENCE,
    re.compile(r"\n\s*"),  # lines
    re.compile(r"\s+|[、，；]"),  # words and clauses
)


@dataclass(frozen=True, slots=True)
class PassageSettings:
    """How an index cuts its documents; stored in the index, as its vectors depend on it.

    Attributes:
        max_tokens: tokens of a passage with its title, special tokens and prompt counted.
        overlap: tokens that a passage repeats of the one before it, at most.
    """

    max_tokens: int
    overlap: int = DEFAULT_OVERLAP_TOKENS

    def __post_init__(self) -> None:
        if self.max_tokens < 16:
            raise BadInput(f"max tokens {self.max_tokens} is too few to hold a sentence: use 16 or more")
        if not 0 <= self.overlap <= self.max_tokens // 2:
            raise BadInput(
                f"overlap {self.overlap} does not fit passages of {self.max_tokens} tokens: "
                f"use 0 to {self.max_tokens // 2}"
            )

    @property
    def identity(self) -> str:
        """The text that goes into every content hash of an index cut this way.

        It is hashed and must never change, whatever becomes of this class, its name or its fields: another text
        would embed every document of every index again.
        """
        return f"PassageSettings(max_tokens={self.max_tokens}, overlap={self.overlap})"


def identity_of(settings: PassageSettings | None) -> str:
    """The passage settings as they go into every content hash; None is an index of the user's own vectors."""
    return "None" if settings is None else settings.identity


def whole(name: str, value: object) -> int:
    """The number, where it is a whole one; else BadInput that names it."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise BadInput(f"{name} is {value!r}: give a whole number")
    return int(value)


def usual_overlap(max_tokens: int) -> int:
    return min(DEFAULT_OVERLAP_TOKENS, max_tokens // 4)


def embedded(document: Document, span: Span) -> str:
    """What the encoder is given for a passage: the title or heading path, a space, the passage."""
    passage = document.text[span.start : span.end]
    return f"{span.prefix} {passage}" if span.prefix else passage


def cut(documents: Sequence[Document], encoder: Encoder, settings: PassageSettings, slack: int = 0) -> list[list[Span]]:
    """Cut each document into passages of at most `settings.max_tokens` tokens, prefix included.

    Args:
        slack: tokens to leave free, for tokenizers that read a joined text as more tokens than its parts.

    Returns:
        One list a document, in order of the text; empty where the text holds no token.
    """
    overhead = encoder.overhead("document")
    room = settings.max_tokens - overhead - slack
    offsets = encoder.offsets([document.text for document in documents])
    prefixes = _Prefixes(encoder, room // 2)
    return [
        list(_spans(document, tokens, room, settings.overlap, overhead, prefixes))
        for document, tokens in zip(documents, offsets, strict=True)
    ]


class _Prefixes:
    """Prefixes and their token counts; one longer than `longest` tokens is shortened to a token border."""

    def __init__(self, encoder: Encoder, longest: int) -> None:
        self._encoder, self._longest = encoder, longest
        self._known: dict[str, tuple[str, int]] = {"": ("", 0)}

    def __call__(self, text: str) -> tuple[str, int]:
        if text not in self._known:
            (tokens,) = self._encoder.offsets([text])
            kept = tokens[: self._longest]
            shortened = text if len(kept) == len(tokens) else text[: int(kept[-1, 1])].rstrip()
            self._known[text] = (shortened, len(kept))
        return self._known[text]


def _spans(
    document: Document,
    tokens: NDArray[np.int32],
    room: int,
    overlap: int,
    overhead: int,
    prefixes: _Prefixes,
) -> Iterator[Span]:
    starts, ends = tokens[:, 0], tokens[:, 1]
    for section, first, last in _sections(document, starts):
        prefix, cost = prefixes(section.heading or document.title)
        left = room - cost  # beside a long heading there may be less than twice the overlap
        for begin, end in _pieces(document.text, starts, first, last, left, min(overlap, left // 2)):
            yield Span(
                start=int(starts[begin]),
                end=int(ends[end - 1]),
                prefix=prefix,
                tokens=overhead + cost + end - begin,
                heading=section.heading,
                page=section.page,
            )


def _sections(document: Document, starts: NDArray[np.int32]) -> Iterator[tuple[Section, int, int]]:
    """Each section with its range of tokens; small ones are carried into the next of the same page.

    A heading is that of where a range begins; of headings that stand above each other the lowest.
    """
    sections = document.sections
    if not sections or sections[0].start > 0:
        sections = (Section(0), *sections)
    borders = [*np.searchsorted(starts, [section.start for section in sections]).tolist(), len(starts)]
    first, heading = borders[0], ""
    for section, following, end in zip(sections, [*sections[1:], None], borders[1:], strict=True):
        if not heading or section.heading.startswith(f"{heading} > "):
            heading = section.heading
        carried = following is not None and following.page == section.page
        if end - first < MIN_SECTION_TOKENS and carried:
            continue
        if end > first:
            yield replace(section, heading=heading), first, end
        first, heading = end, ""


def _pieces(
    text: str, starts: NDArray[np.int32], first: int, last: int, room: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Ranges of tokens that cover first..last, about equally long, each within `room`."""
    begin = first
    while last - begin > room:
        # Aim at equal pieces: the last one is then no crumb.
        pieces = ceil((last - begin - overlap) / (room - overlap))
        aim = min(room, ceil((last - begin) / pieces) + overlap)
        low, high = begin + max(1, overlap + 1, aim // 2), begin + aim
        end = _border(text, starts, low, high, latest=True)
        yield begin, end
        begin = _border(text, starts, end - overlap, end, latest=False) if overlap else end
    if last > begin:
        yield begin, last


def _border(text: str, starts: NDArray[np.int32], low: int, high: int, *, latest: bool) -> int:
    """The token in low..high that follows the best border of the text; among equals the latest or earliest.

    Without any border, as inside an endless word, `high` itself.
    """
    left, right = int(starts[low - 1]) if low else 0, int(starts[high])
    for pattern in _BORDERS:
        found = [
            low - 1 + int(np.searchsorted(starts[low - 1 : high + 1], m.end()))
            for m in pattern.finditer(text, left, right)
        ]
        found = [token for token in found if low <= token <= high]
        if found:
            return max(found) if latest else min(found)
    return high
