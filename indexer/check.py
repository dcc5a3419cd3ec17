"""Verifying a whole index: its store, the hashes of embedded content, and its compiled encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from indexer.beside import describe_beside, unreadable
from indexer.encoders.openvino.files import damage
from indexer.errors import ModelError
from indexer.settings import Meaning
from indexer.stores.port import CheckReport, Store


def check(store: Store, meaning: Meaning | None, compile_again: Callable[[], None] | None) -> CheckReport:
    """Check an index and, if `compile_again` is given, repair it.

    Args:
        meaning: the settings that went into the hashes of content; None for an index of the user's own vectors.
        compile_again: compiles the encoder; None to check only.
    """
    # The snapshot is opened before a repair too, so that a writer does not migrate an index that cannot be read.
    with store.snapshot() as snapshot:
        report = snapshot.check(meaning) if compile_again is None else CheckReport()
    if compile_again is not None:
        with store.writer() as writer:
            report = writer.repair(meaning)
    beside = describe_beside(store)
    if beside is not None and beside.problem:
        report = replace(report, problems=(*report.problems, unreadable(store.address, beside)))
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
