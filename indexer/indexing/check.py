"""Verifying a whole index: its store, the hashes of embedded content, and its compiled encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from indexer import doors
from indexer.encoders.openvino.files import damage
from indexer.errors import IndexDamaged, ModelError, to_install
from indexer.settings import Meaning
from indexer.stores.addresses.side_index import describe_side_index, unreadable
from indexer.stores.port import CheckReport
from indexer.stores.reading.store import Store

_MAX_LOOKS = 10
"""Maximum number of checks while other processes replace files of the index."""


def check(store: Store, meaning: Meaning | None, compile_again: Callable[[], None] | None) -> CheckReport:
    """Check an index and, if `compile_again` is given, repair it.

    Args:
        meaning: the settings that went into the hashes of content; None for an index of the user's own vectors.
        compile_again: compiles the encoder; None to check only.
    """
    if compile_again is None:
        return _look(store)
    # The snapshot is opened before a repair too, so that a writer does not migrate an index that cannot be read.
    with store.snapshot():
        pass
    with store.writer() as writer:
        return _with_the_rest(store, writer.repair(meaning), compile_again)


def _look(store: Store) -> CheckReport:
    """Check an index. Look again if another process may have replaced its files in the meantime.

    A migration exchanges the whole folder, and a writer removes the segments that it has replaced. A problem is
    reported if it is found twice in the same index.
    """
    earlier: tuple[str, CheckReport] | None = None
    for _ in range(_MAX_LOOKS):
        try:
            with store.snapshot() as snapshot:
                settings, history = snapshot.settings, snapshot.history
                report = snapshot.check(settings.meaning if settings.recipe is not None else None)
            report = _with_the_rest(store, report, None)
        except (FileNotFoundError, IndexDamaged):
            if earlier is not None and earlier[0] == "":
                raise
            history, report = "", CheckReport(problems=("",))
        if report.ok or (history, report) == earlier:
            break
        earlier = history, report
    return report


def _with_the_rest(store: Store, report: CheckReport, compile_again: Callable[[], None] | None) -> CheckReport:
    """Add to a report the checks of what is outside of the store: the map, the side index and the compiled encoder."""
    if (map_door := doors.find("parts", "map")) is not None:
        report = replace(report, problems=(*report.problems, *map_door.problems(store)))
    side = describe_side_index(store)
    if side is not None and side.problem:
        report = replace(report, problems=(*report.problems, unreadable(store.address, side)))
    problem = damage(store.artifacts())
    if problem is None:
        return report
    if compile_again is not None and doors.find("parts", "speed") is None:
        problem = f"{problem}: this needs a part of likewise that is not installed (speed): {to_install()}"
    elif compile_again is not None:
        try:
            compile_again()
            return replace(report, notes=("compiled the encoder again", *report.notes))
        except ModelError as error:
            problem = f"{problem}: this failed: {error}"
    return replace(report, problems=(*report.problems, problem))
