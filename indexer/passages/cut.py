"""Cutting documents into passages that fit into the model.

The encoder's own tokenizer reads the text once. A passage ends between two tokens, at the best place near its maximum
length: the end of a paragraph, a sentence, a line or a word. Nothing is dropped: every token of a document is in at
least one passage. Splitting libraries tokenise each candidate again; docs/decisions.md has the measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import ceil
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from indexer.encoders.recipes.port import Encoder
from indexer.errors import BadInput
from indexer.lazy_pattern import lazy_pattern
from indexer.passages.front_matter import read_front_matter
from indexer.passages.markup import Range, VisibleText
from indexer.passages.sentences import PARAGRAPH, SENTENCE
from indexer.passages.unbroken import unbroken_ranges
from indexer.records import Document, Section, Span

DEFAULT_OVERLAP_TOKENS = 32
"""Number of tokens that neighbouring passages share by default; docs/passages.md has the reason. Passages of fewer
than 128 tokens share a quarter of their length."""

DEFAULT_PASSAGE_TOKENS = 512
"""Maximum tokens of a passage by default, if the model reads more. Models of long context would make one passage of a
whole document, whose one vector says little about any part of it."""

MIN_SECTION_TOKENS = 32
"""Minimum tokens of a section. A shorter section, such as a heading without text, is joined to the next section."""

# Places to cut, the best first. Each match ends where the next unit begins.
_BORDERS = (
    PARAGRAPH,
    SENTENCE,
    lazy_pattern(r"\n\s*"),  # lines
    lazy_pattern(r"\s+|[、，；]"),  # words and clauses
)


@dataclass(frozen=True, slots=True)
class PassageSettings:
    """How an index cuts its documents. The index stores these settings, because the vectors depend on them.

    Attributes:
        max_tokens: maximum tokens of a passage; title or heading, special tokens and prompt count.
        overlap: maximum tokens that a passage repeats from the passage before it.
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

    @staticmethod
    def default_overlap(max_tokens: int) -> int:
        """Return how many tokens neighbouring passages of at most `max_tokens` tokens share by default."""
        return min(DEFAULT_OVERLAP_TOKENS, max_tokens // 4)

    @property
    def identity(self) -> str:
        """The text that goes into every content hash of an index that is cut this way.

        It must never change, even if this class or its fields are renamed: with another text, every document of every
        index would be embedded again.
        """
        return f"PassageSettings(max_tokens={self.max_tokens}, overlap={self.overlap})"


def passages_identity(settings: PassageSettings | None) -> str:
    """Return the text of the settings for content hashes; `settings` is None for an index of the user's own vectors."""
    return "None" if settings is None else settings.identity


def whole_number(name: str, value: object) -> int:
    """Return `value` as an integer. Raises BadInput, with `name`, if it is not a whole number."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise BadInput(f"{name} is {value!r}: give a whole number")
    return int(value)


def embedded_texts(document: Document, spans: Sequence[Span]) -> list[str]:
    """Return the text that is embedded for each passage: title or heading path, a space, and the passage.

    Link targets and comments of reStructuredText and Markdown are left out of the passage.
    """
    passages = visible_parts(document.text, document.format, ((span.start, span.end) for span in spans))
    return [
        f"{span.prefix} {passage}" if span.prefix else passage for span, passage in zip(spans, passages, strict=True)
    ]


def visible_parts(text: str, format_: str | None, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Return what is visible of parts of a document: link targets and comments of its format are left out."""
    visible = VisibleText.read(text, format_)
    return [visible.part(start, end) for start, end in spans]


def visible_text(text: str, format_: str | None) -> str:
    """Return the visible part of a whole text, read as if it were a single passage."""
    return visible_parts(text, format_, [(0, len(text))])[0]


def text_for_people(text: str, format_: str | None) -> str:
    """Return what a person sees of a text: its visible part without the marks of Sphinx and MyST."""
    return VisibleText.read(text, format_, for_people=True).part(0, len(text))


def titled_text(title: str, text: str, format_: str | None) -> str:
    """Return what a model reads of a text as a whole: its title, a space, and what is visible of the text."""
    return f"{title} {visible_text(text, format_)}".strip()


def front_matter(text: str, format_: str | None) -> int:
    """Return where the front matter of a Markdown text ends; 0 if there is no front matter, or no letter or digit below
    it."""
    front = read_front_matter(text) if format_ == "markdown" else None
    return front.end if front and any(map(str.isalnum, islice(text, front.end, None))) else 0


def unbroken_in_passages(text: str, format_: str | None) -> list[Range]:
    """Return the long stretches without a space in the visible part of a text, as offsets in the visible part.

    A picture in the target of a link is not visible.
    """
    return unbroken_ranges(VisibleText.read(text, format_).text) if unbroken_ranges(text) else []


def left_out_ranges(text: str, format_: str | None) -> list[Range]:
    """Return the ranges that no passage holds, in order: the front matter, and long stretches without a space."""
    front = front_matter(text, format_)
    unbroken = [(max(start, front), end) for start, end in unbroken_ranges(text) if end > front]
    return [(0, front), *unbroken] if front else unbroken


def cut(documents: Sequence[Document], encoder: Encoder, settings: PassageSettings, slack: int = 0) -> list[list[Span]]:
    """Cut each document into passages of at most `settings.max_tokens` tokens, prefix included.

    Link targets and comments of reStructuredText and Markdown do not count; they belong to the passage before them. No
    passage holds any of `left_out_ranges`.

    Args:
        slack: number of tokens to leave free, for tokenizers that make more tokens of prefix and passage together than
            of each alone.

    Returns:
        One list of spans per document, in the order of the text; empty for a text without tokens outside of these.
    """
    overhead = encoder.overhead("document")
    room = settings.max_tokens - overhead - slack
    visible = [VisibleText.read(document.text, document.format) for document in documents]
    offsets = encoder.offsets([text.text for text in visible])
    prefixes = _Prefixes(encoder, room // 2)
    return [
        _in_source(text, _spans(_as_visible(document, text), tokens, room, settings.overlap, overhead, prefixes))
        for document, text, tokens in zip(documents, visible, offsets, strict=True)
    ]


def _as_visible(document: Document, visible: VisibleText) -> Document:
    """Return the document with its visible text alone, and without sections whose heading is hidden."""
    if not visible.hidden:
        return document
    sections = tuple(
        replace(section, start=visible.to_visible(section.start))
        for section in document.sections
        if not visible.is_line_hidden(section.start)
    )
    return replace(document, text=visible.text, sections=sections)


def _in_source(visible: VisibleText, spans: Iterable[Span]) -> list[Span]:
    """Return the spans of a visible text as spans of the whole text, with what is hidden around each."""
    if not visible.hidden:
        return list(spans)
    in_source: list[Span] = []
    for span in spans:
        start, end = visible.to_source(span.start), visible.to_source(span.end - 1) + 1
        start, end = visible.with_hidden(start, end, first=not in_source)
        in_source.append(replace(span, start=start, end=end))
    return in_source


class _Prefixes:
    """Prefixes with their token counts. A prefix of more than `longest` tokens is shortened, between two tokens."""

    def __init__(self, encoder: Encoder, longest: int) -> None:
        self._encoder, self._longest = encoder, longest
        self._cached: dict[str, tuple[str, int]] = {"": ("", 0)}

    def __call__(self, text: str) -> tuple[str, int]:
        if text not in self._cached:
            (tokens,) = self._encoder.offsets([text])
            kept = tokens[: self._longest]
            shortened = text if len(kept) == len(tokens) else text[: int(kept[-1, 1])].rstrip()
            self._cached[text] = (shortened, len(kept))
        return self._cached[text]


def _spans(
    document: Document, tokens: NDArray[np.int32], room: int, overlap: int, overhead: int, prefixes: _Prefixes
) -> Iterator[Span]:
    tokens, gaps = _embedded(tokens, left_out_ranges(document.text, document.format))
    starts, ends = tokens[:, 0], tokens[:, 1]
    for section, first, last in _sections(document, starts):
        prefix, cost = prefixes(section.heading or document.title)
        left = room - cost
        for part_first, part_last in pairwise([first, *(gap for gap in gaps if first < gap < last), last]):
            if gaps and not any(map(str.isalnum, document.text[starts[part_first] : ends[part_last - 1]])):
                continue  # quotes and brackets around what is left out
            # A long heading may leave less room than twice the overlap.
            for begin, end in _pieces(document.text, starts, part_first, part_last, left, min(overlap, left // 2)):
                yield Span(
                    start=int(starts[begin]),
                    end=int(ends[end - 1]),
                    prefix=prefix,
                    tokens=overhead + cost + end - begin,
                    heading=section.heading,
                    page=section.page,
                )


def _embedded(tokens: NDArray[np.int32], left_out: Sequence[Range]) -> tuple[NDArray[np.int32], list[int]]:
    """Return the tokens that are kept, and the numbers of the tokens that follow tokens that were left out."""
    gaps: list[int] = []
    for start, end in reversed(left_out):
        first, last = np.searchsorted(tokens[:, 0], start), np.searchsorted(tokens[:, 1], end, side="right")
        if first < last:
            tokens = np.delete(tokens, slice(first, last), axis=0)
            gaps = [int(first), *(gap - int(last - first) for gap in gaps)]
    return tokens, gaps


def _sections(document: Document, starts: NDArray[np.int32]) -> Iterator[tuple[Section, int, int]]:
    """Yield each section with its range of tokens: first and end.

    A section of fewer than MIN_SECTION_TOKENS is joined to the next one of the same page. The joined section keeps the
    first heading, or the heading of a subsection directly below it.
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
    """Yield ranges of tokens that cover first..last: about equally long, and each at most `room` tokens."""
    begin = first
    while last - begin > room:
        # Equal pieces keep the last one from being very short.
        pieces = ceil((last - begin - overlap) / (room - overlap))
        aim = min(room, ceil((last - begin) / pieces) + overlap)
        low, high = begin + max(1, overlap + 1, aim // 2), begin + aim
        end = _border(text, starts, low, high, latest=True)
        yield begin, end
        begin = _border(text, starts, end - overlap, end, latest=False) if overlap else end
    if last > begin:
        yield begin, last


def _border(text: str, starts: NDArray[np.int32], low: int, high: int, *, latest: bool) -> int:
    """Return the token in low..high that follows the best place to cut: the latest or earliest of equally good places.

    If there is no such place, as inside a very long word, the result is `high`.
    """
    left, right = int(starts[low - 1]) if low else 0, int(starts[high])
    for pattern in _BORDERS:
        cuts = [
            low - 1 + int(np.searchsorted(starts[low - 1 : high + 1], match.end()))
            for match in pattern.finditer(text, left, right)
        ]
        cuts = [token for token in cuts if low <= token <= high]
        if cuts:
            return max(cuts) if latest else min(cuts)
    return high
