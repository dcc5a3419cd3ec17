"""The line that a passage begins in, where the text of its document is the file's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from indexer.records import Document, Span
from indexer.sources.formats import FORMATS

EXTRACTED = frozenset(known.name for known in FORMATS.values() if known.kind != "text")
"""Formats whose text is not the file's own: a line number in it would mislead."""


def with_lines(document: Document, spans: Iterable[Span]) -> Iterator[tuple[Span, int | None]]:
    """Each passage, in order of the text, with the 1-based line it begins in; None where lines would mislead."""
    line, reached = 1, 0
    numbered = document.path is not None and document.format not in EXTRACTED
    for span in spans:
        if numbered:
            line += document.text.count("\n", reached, span.start)
            line -= document.text.count("\n", span.start, reached)  # an overlap goes back a little
            reached = span.start
        yield span, line if numbered else None
