"""Indexing runs of the command line: open the index, read the sources with a progress bar, report what was done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from indexer import doors
from indexer.errors import BadInput, OlderFormat, count_of, in_shell
from likewise.shell.indexing.vector_options import VectorOptions
from likewise.shell.terminal.output import number, quoted, say, say_json, shown, warn, warn_of
from likewise.shell.terminal.progress import RunProgress

if TYPE_CHECKING:
    from indexer.encoders import Encoder
    from indexer.indexing.context import Cache, Context
    from indexer.indexing.core import IndexCore
    from indexer.indexing.embedder import Embedder, Workers
    from indexer.indexing.ingest import Summary
    from indexer.indexing.runs import Outcome
    from indexer.listener import Listener
    from indexer.settings import RecordedSource, Settings
    from indexer.sources import ReadOptions, Source
    from indexer.sources.formats import Program

_COUNTS = ("seen", "indexed", "unchanged", "updated", "skipped", "failed", "pruned")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run that concern neither reading nor vectors. Each is an option of `likewise index`."""

    prune: bool = False
    yes: bool = False
    rebuild: bool = False
    no_wait: bool = False
    stream: bool = False
    as_json: bool = False
    recall: float | None = None
    no_cache: bool = False
    shards: int | None = None
    workers: str | None = None
    worker_resources: Mapping[str, float] = field(default_factory=dict)
    dry_run: bool = False


def recorded_groups(
    address: str, recorded: Sequence[RecordedSource], extractors: tuple[Program, ...]
) -> list[tuple[ReadOptions, list[str]]]:
    """Return the arguments of recorded sources, with the options that each group is read with.

    Raises:
        BadInput: none is recorded.
    """
    from indexer.sources.folders.recorded import groups

    if not recorded:
        raise BadInput(f"{address}: no SOURCE is recorded; read one with likewise index {quoted(address)} SOURCE")
    return [(replace(options, extractors=extractors), names) for options, names in groups(recorded)]


_M_ARENA_MAX = -8
"""The parameter of mallopt in <malloc.h>."""


def limit_arenas() -> bool:
    """Keep the memory of a long run flat: return whether the C library shares two heaps among all threads.

    Each commit starts threads of the word index, and glibc gives a new thread a heap of its own (up to eight per core).
    Memory that is freed in one of them stays there, and the process grows with the number of commits.
    """
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, 2))


def run_and_report(
    address: str,
    groups: Sequence[tuple[ReadOptions, Sequence[Source]]],
    vector_options: VectorOptions,
    options: RunOptions,
    bare: Sequence[str] = (),
) -> int:
    """Read sources into an index and print the outcome.

    Args:
        groups: the sources, grouped by the options for reading them.
        bare: SOURCE arguments that have no file to read.

    Returns:
        The exit code.

    Raises:
        BadInput: nothing was pruned although pruning was requested.
    """
    from indexer.indexing.context import Context
    from indexer.indexing.runs import index_sources

    if options.dry_run:
        return _rehearse(address, groups, options)
    limit_arenas()
    progress = RunProgress([source for _, opened in groups for source in opened], stream=options.stream)
    notes: list[str] = []
    with (
        vectors_cached(not options.no_cache, notes) as cache,
        ThreadPoolExecutor(1, "embed") as beside,
        progress,  # Its end also ends an embedding beside that an error has left.
        opened_workers(options.workers, options.worker_resources, progress, notes) as workers,
        open_for_writing(
            address,
            vector_options,
            Context(vector_options.runtime, cache, progress, wait=not options.no_wait, workers=workers, beside=beside),
            groups,
            rebuild=options.rebuild,
            shards=options.shards,
        ) as (index, rebuild_notes),
        index.writer() as writer,
    ):
        notes.extend(rebuild_notes)
        if options.workers is None and index.recipe is not None and (part := doors.find("parts", "workers")):
            progress.quicker = partial(part.quicker, index)
        if (width := vector_options.dimensions) is not None and not index.settings.dimensions:
            index.take_width(width)
        try:
            outcome = index_sources(index, writer, groups, prune=options.prune, yes=options.yes, recall=options.recall)
        except KeyboardInterrupt:
            if not options.rebuild:  # an interrupted rebuild leaves the index as it was
                say(
                    f"likewise: {count_of(progress.kept, 'new or changed document')} kept; run again to continue",
                    err=True,
                )
            raise
    notes.extend(outcome.notes)
    summary, pruned = outcome.summary, outcome.pruned
    warn_of(note for note in notes if note not in progress.printed)
    if bare:
        warn(f"{', '.join(bare)}: no file to read")
    counts = _counts(summary, pruned, options.rebuild)
    if options.as_json or options.stream:
        numbers = {
            "duplicates": summary.duplicates,
            "stale": len(outcome.lost.uris) - pruned,
            "ignored": len(outcome.lost.ignored),
            "noted": summary.noted,
            "notes": [in_shell(note) for note in dict.fromkeys(notes)],
        }
        if index.recipe is not None and index.settings.model_reason:
            numbers |= {"model": index.recipe.model, "model_reason": index.settings.model_reason}
        say_json(counts | numbers)
    else:
        parts = [f"{number(counts[name])} {name}" for name in _COUNTS if counts[name] or name in ("seen", "indexed")]
        say(f"{', '.join(parts)}: {count_of(outcome.documents, 'document')} in {count_of(outcome.passages, 'passage')}")
    warn_of(advice(outcome, address))
    if outcome.refused is not None:
        raise outcome.refused
    return 1 if summary.newly_failed else 0


def _rehearse(address: str, groups: Sequence[tuple[ReadOptions, Sequence[Source]]], options: RunOptions) -> int:
    """Print what pruning would remove. The exit code is that of the run."""
    from indexer.indexing.core import IndexCore
    from indexer.indexing.runs import rehearse

    if not options.prune or options.rebuild or options.stream:
        remedy = "leave out --rebuild and --stream" if options.prune else "add --prune"
        raise BadInput(f"--dry-run prints what --prune would remove: {remedy}")
    with IndexCore.open(address) as index:
        lost = rehearse(index, groups)
    warn_of(lost.notes())
    if options.as_json:
        say_json({"documents": lost.total, "gone": lost.uris, "ignored": lost.ignored, "notes": lost.notes()})
    else:
        names = [f"gone      {shown(uri)}" for uri in lost.uris]
        count = f"{number(len(lost.uris))} of {count_of(lost.total, 'document')}"
        say("\n".join([*names, f"{shown(address)}: --prune would remove {count}"]))
    if refused := lost.refusal(yes=options.yes):
        raise refused
    return 0


def vectors_cached(wanted: bool, notes: list[str]) -> AbstractContextManager[Cache | None]:
    """Return a block that gives the user's cache of vectors, or None. At its end, its problems are added to the
    notes."""
    opened = doors.find("parts", "cache") if wanted else None
    cache: AbstractContextManager[Cache | None] = nullcontext() if opened is None else opened(notes)
    return cache


def opened_workers(
    named: str | None, resources: Mapping[str, float], listener: Listener, notes: list[str]
) -> AbstractContextManager[Callable[[Embedder], Workers] | None]:
    """Return a block that gives what makes the workers of --workers; None without. At its end they are closed, and
    their notes added."""
    if named is None:
        return nullcontext()
    found = doors.require("parts", "workers", "--workers")
    workers: AbstractContextManager[Callable[[Embedder], Workers]] = found.opened(named, resources, listener, notes)
    return workers


@contextmanager
def open_for_writing(
    address: str,
    options: VectorOptions,
    context: Context,
    groups: Sequence[tuple[ReadOptions, Sequence[Source]]],
    *,
    rebuild: bool = False,
    shards: int | None = None,
) -> Iterator[tuple[IndexCore, tuple[str, ...]]]:
    """Open the index to write into: a new index, the existing index, or a rebuilt index that replaces it at the end.

    Args:
        groups: the sources, whose texts choose the model of a new index.
        shards: number of shards of a new index in a database with Citus; see `engine_of`.

    Yields:
        The index, and the notes of a rebuild.
    """
    from indexer.indexing.core import IndexCore
    from indexer.stores.addresses.open import create_store, is_store, open_store, require_shards
    from likewise.shell.indexing.rebuild import rebuild_index, replace_older

    def describe(like: IndexCore | None = None) -> tuple[Settings, Encoder | None]:
        from indexer.sources.files.sample import sample_texts

        if not options.own_vectors:
            context.listener.step(f"{'' if options.names_model else 'choosing and '}loading the model")
        settings, encoder = options.settings(like, context.cache, lambda: sample_texts(groups))
        if settings.model_note:
            context.listener.chosen(settings.model_note)
        return settings, encoder

    if not is_store(address):
        settings, encoder = describe()
        try:
            store = create_store(address, settings, shards)
        except BadInput:
            if not is_store(address):
                raise
            # Another run has made it in between: this run adds to it.
        else:
            with IndexCore(store, encoder, context) as index:
                yield index, ()
            return
    store = open_store(address, shards)
    with closing(store.engine):
        try:
            index = IndexCore(store, None, context)
        except OlderFormat:
            if not rebuild:
                raise
            with replace_older(store, describe, context) as successor:
                yield successor
            return
        if rebuild:
            with rebuild_index(index, lambda: describe(index)) as successor:
                yield successor
        else:
            require_shards(store, shards)
            yield options.chosen(index), ()


def _counts(summary: Summary, pruned: int, rebuild: bool) -> dict[str, int]:
    """Return the counts to print; a rebuild has also embedded the documents that the run found unchanged."""
    counts = {name: value for name, value in asdict(summary).items() if name in _COUNTS} | {"pruned": pruned}
    if rebuild:
        counts |= {"indexed": counts["indexed"] + counts["unchanged"], "unchanged": 0}
    return counts


def advice(outcome: Outcome, address: str) -> Iterator[str]:
    """Yield what the user of a run should know or do."""
    summary, lost = outcome.summary, outcome.lost
    if summary.duplicates:
        yield f"{count_of(summary.duplicates, 'record')} left out, because a later record has the same id"
    if summary.nameless:
        yield (
            f"no id in {count_of(summary.nameless, 'record')} of standard input: each is named by its line, and the "
            "next run replaces the document of the same line; give each record an id"
        )
    if summary.newly_failed:
        example = shown(summary.example)
        what = f"such as {example}: {summary.reason}" if summary.newly_failed > 1 else f"{summary.reason} in {example}"
        ledger = f"likewise info {quoted(address)} --ledger failed"
        yield f"{number(summary.newly_failed)} failed, {what}; {ledger} lists all"
    if known := summary.failed - summary.newly_failed:
        yield f"{number(known)} failed as before: likewise status {quoted(address)} says why"
    if summary.left_out:
        such = "such as " if summary.skipped > len(summary.left_out) else ""
        reasons = ((shown(uri), replace(why, line=None).text().partition(": ")[0]) for uri, why in summary.left_out)
        names = ", ".join(f"{name} ({reason})" for name, reason in reasons)
        yield f"skipped: {such}{names}; likewise info {quoted(address)} --ledger skipped lists all"
    if summary.noted:
        files = count_of(summary.not_whole or summary.noted, "file")
        what = "not read whole" if summary.not_whole else "with a note"
        yield f"{files} {what}: likewise info {quoted(address)} --ledger noted"
    if summary.reread:
        yield f"run again: {count_of(summary.reread, 'file')} may hold documents that are gone from another file"
    if lost_note := _note_of_lost(outcome):
        yield lost_note
    if lost.ignored:
        yield (
            f"kept: {count_of(len(lost.ignored), 'document')} of files that are ignored now, such as "
            f"{lost.ignored[0]}: likewise remove {quoted(address)} URI... removes them, "
            "--no-ignore reads their files again"
        )


def _note_of_lost(outcome: Outcome) -> str:
    """Return a sentence about documents that their source no longer has; empty if none are or pruning was refused."""
    lost = outcome.lost
    left = len(lost.uris) - outcome.pruned
    if left <= 0 or outcome.refused is not None:
        return ""
    gone, them = ("is no longer in its", "it") if left == 1 else ("are no longer in their", "them")
    remedy = f"--prune{' --yes' if lost.is_most else ''} removes {them}"
    if lost.unlisted:
        remedy = f"nothing is pruned while {', '.join(lost.unlisted)} cannot be listed"
    return f"{count_of(left, 'document')} {gone} source; {remedy}"
