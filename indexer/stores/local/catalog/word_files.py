"""The record that the catalog keeps of the word index."""

from __future__ import annotations

from typing import NamedTuple


class WordFiles(NamedTuple):
    """A row of the table `word_index`.

    Attributes:
        name: folder below words/.
        analysis: version and language of the analysis that made its terms (`str` of an `Analysis`).
        last_id: highest passage id in the word index, which has every passage up to here that existed when it was
            written.
        removed: passages deleted from it since it was written from the whole catalog.
        appended: number of updates since it was written from the whole catalog.
        files: JSON object: names below words/NAME, and the SHA-256 of each.
        stamp: stamp of these files when their content was last verified (`segments.files.stamp_of`).
    """

    name: str
    analysis: str
    last_id: int
    removed: int
    appended: int
    files: str
    stamp: str
