"""The line that a passage begins in, where the text of its document is the file's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from indexer.records import Document, Span
from indexer.sources.formats import is_extracted


def with_lines(document: Document, spans: Iterable[Span]) -> Iterator[tuple[Span, int | None]]:
    """Yield each passage with the line it begins in, counted from 1; None if a line number would mislead.

    Args:
        spans: in the order of the text.
    """
    line, counted_to = 1, 0
    numbered = document.path is not None and not is_extracted(document.format)
    for span in spans:
        if numbered:
            line += document.text.count("\n", counted_to, span.start)
            line -= document.text.count("\n", span.start, counted_to)  # an overlap goes back a little
            counted_to = span.start
        yield span, line if numbered else None
