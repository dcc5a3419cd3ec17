"""The record that the catalog keeps of the word index."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WordFiles:
    """What the catalog records of the word index; schema.py says what each is."""

    name: str
    analysis: str
    last_id: int
    removed: int
    appended: int
    files: str
    stamp: str
