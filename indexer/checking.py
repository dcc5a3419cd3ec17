"""Verifying a whole index: its store, that documents are what was embedded, and its compiled encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from indexer.encoders.compiled import damage
from indexer.errors import ModelError
from indexer.stores.store import Report

if TYPE_CHECKING:
    from indexer.index import Index


def check(index: Index, repair: bool) -> Report:
    """What is wrong, and what is worth knowing; `repair` rebuilds what can be rebuilt."""
    report = index.store.check(repair, index.meaning if index.recipe else None)
    found = damage(index.store.folder / "encoder")
    if found is None:
        return report
    if repair:
        try:
            index.compile()
            return replace(report, notes=("compiled the encoder again", *report.notes))
        except ModelError as error:
            found = f"{found}, which failed: {error}"
    return replace(report, problems=(*report.problems, found))
