"""Verifying a whole index: its store, that documents are what was embedded, and its compiled encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from indexer.encoders.openvino.files import damage
from indexer.errors import ModelError
from indexer.settings import Meaning
from indexer.stores.port import CheckReport, Store


def check(store: Store, meaning: Meaning | None, compile_again: Callable[[], None] | None) -> CheckReport:
    """Report what is wrong and what is worth knowing.

    Args:
        meaning: what the hashes of embedded content were made with; None for an index of the user's own vectors.
        compile_again: compiles the encoder; given where what can be rebuilt is to be.
    """
    # Also before a repair: what cannot be read at all is not to be migrated by a writer.
    with store.snapshot() as snapshot:
        report = snapshot.check(meaning) if compile_again is None else CheckReport()
    if compile_again is not None:
        with store.writer() as writer:
            report = writer.repair(meaning)
    problem = damage(store.artifacts())
    if problem is None:
        return report
    if compile_again is not None:
        try:
            compile_again()
            return replace(report, notes=("compiled the encoder again", *report.notes))
        except ModelError as error:
            problem = f"{problem}, which failed: {error}"
    return replace(report, problems=(*report.problems, problem))
