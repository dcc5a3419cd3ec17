"""A whole indexing run: read sources, prune, settle, measure the cosines and compile the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from indexer import doors
from indexer.encoders import steady
from indexer.errors import BadInput, ModelError
from indexer.indexing.compiler import Compiler
from indexer.indexing.core import IndexCore
from indexer.indexing.ingest import Run, Summary
from indexer.indexing.prune import Lost, find_lost
from indexer.sources import ReadOptions, Source
from indexer.sources.folders.recorded import record
from indexer.sources.folders.source import by_one_name, root_of
from indexer.stores.reading.store import Writer


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        summary: the counts of the run.
        pruned: how many documents were removed because their source no longer has them.
        lost: the documents that their sources no longer have, before any were removed.
        refused: why nothing was pruned although pruning was requested.
        notes: sentences that the caller should read.
        documents, passages: how many the index has now.
    """

    summary: Summary
    pruned: int
    lost: Lost
    refused: BadInput | None
    notes: tuple[str, ...]
    documents: int
    passages: int


def index_sources(
    index: IndexCore,
    writer: Writer,
    groups: Sequence[tuple[ReadOptions, Sequence[Source]]],
    *,
    prune: bool = False,
    yes: bool = False,
    recall: float | None = None,
) -> Outcome:
    """Read sources into an index, which remembers them for `likewise update`.

    Args:
        groups: the sources, grouped by the options for reading them.
        prune: remove documents that are no longer in their source; with `yes` even more than half of the index.
        recall: share of the ten nearest passages that an approximate segment must find.
    """
    runs: list[Run] = []
    summary = Summary()
    for options, sources in groups:
        named = _by_name(index, sources)
        _remember(index, writer, named, options)
        runs.append(Run(index, writer, options))
        summary += runs[-1].feed(named)
    # Only now, because a document that one group has lost may be in the sources of a later group.
    with index.store.snapshot() as snapshot:
        lost = find_lost(snapshot, [run.seen for run in runs])
    refused = lost.refusal(yes=yes) if prune else None
    pruned = writer.remove([*lost.uris, *lost.elsewhere]) if prune and refused is None else 0
    notes = [*lost.notes()] if prune else []
    of_runs = [note for run in runs for note in run.notes]
    runs.clear()  # They hold the names of all files and records, and what follows needs memory of its own.
    writer.settle(recall)
    if summary.passages or is_unfinished(index):
        notes.extend(after_embedding(index, writer))
    notes.extend(dict.fromkeys((*of_runs, *writer.notes)))
    if (map_door := doors.find("parts", "map")) is not None:
        notes.extend(map_door.redraw_if_outdated(index.store, index.context.listener))
    with index.store.snapshot() as snapshot:
        return Outcome(summary, pruned, lost, refused, tuple(notes), snapshot.documents, snapshot.passages)


def rehearse(index: IndexCore, groups: Sequence[tuple[ReadOptions, Sequence[Source]]]) -> Lost:
    """Read what has changed, and return the documents that `index_sources` would find lost. Nothing is written or
    embedded."""
    runs: list[Run] = []
    for options, sources in groups if index.settings.dimensions else ():  # without a width, there are no documents
        runs.append(Run(index, None, options))
        runs[-1].feed(_by_name(index, sources))
    with index.store.snapshot() as snapshot:
        lost = find_lost(snapshot, [run.seen for run in runs])
        read = {row.uri for run in runs for row in run.seen.after(())}
        return replace(lost, total=lost.total + len(read - snapshot.hashes(read).keys()))


def _by_name(index: IndexCore, sources: Sequence[Source]) -> list[Source]:
    """Return the sources by the names under which they are recorded."""
    return by_one_name(sources, [root_of(source.argument) for source in index.stored_settings().sources])


def _remember(index: IndexCore, writer: Writer, sources: Sequence[Source], options: ReadOptions) -> None:
    """Record the sources, so that `likewise update` reads them again."""
    earlier = index.stored_settings().sources
    if (remembered := tuple(record(earlier, sources, options))) != earlier:
        writer.change(lambda settings: replace(settings, sources=remembered))


def after_embedding(index: IndexCore, writer: Writer) -> list[str]:
    """Measure the index's cosines and compile its encoder. Return notes."""
    from indexer.calibration.background import renew

    if index.recipe is None:
        return []
    index.context.listener.step("measuring the cosines")
    try:
        renew(index.store, index.context.cached(steady(index.encoder)))
    except ModelError as error:  # possible where every passage came with its vectors
        return [f"{error}: the vectors are stored, but searches will not say when nothing answers"]
    compiler: Compiler | None = doors.find("parts", "speed")
    return [] if compiler is None else compiler.compile_new(index, writer)


def is_unfinished(index: IndexCore) -> bool:
    """Return whether the run that embedded these documents was interrupted before its end."""
    compiler: Compiler | None = doors.find("parts", "speed")
    if compiler is None or compiler.is_settled(index):
        return False
    with index.store.snapshot() as snapshot:
        return snapshot.documents > 0
