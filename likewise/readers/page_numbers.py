"""The pages of a file: the text of each, and numbers of pages as people write them."""

from __future__ import annotations

from collections.abc import Sequence

from indexer.sources.content import Content


def texts_of_pages(content: Content) -> dict[int, str]:
    """Return the text of each page that has any, by its number."""
    ends = [section.start for section in content.sections[1:]] + [len(content.text)]
    return {
        section.page: content.text[section.start : end].strip()
        for section, end in zip(content.sections, ends, strict=False)
        if section.page is not None
    }


def page_ranges(numbers: Sequence[int]) -> str:
    """Return page numbers in ascending order as ranges: 2-4, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
