"""Indexing runs of the command line: open the index, read the sources with a progress bar, report what was done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from search.cli.output import count_of, number, quoted, say, say_json, warn, warn_of
from search.cli.progress import RunProgress
from search.cli.vector_options import VectorOptions

if TYPE_CHECKING:
    from indexer.context import Context
    from indexer.core import IndexCore
    from indexer.ingest import Summary
    from indexer.sources import ReadOptions, Source
    from indexer.stores.vector_cache import VectorCache

_COUNTS = ("seen", "indexed", "unchanged", "updated", "skipped", "failed", "pruned")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run that are neither about reading nor about vectors; each is an option of `likewise index`."""

    prune: bool = False
    yes: bool = False
    rebuild: bool = False
    no_wait: bool = False
    stream: bool = False
    as_json: bool = False
    recall: float | None = None
    no_cache: bool = False


def run_and_report(
    address: str,
    groups: Sequence[tuple[ReadOptions, Sequence[Source]]],
    vector_options: VectorOptions,
    options: RunOptions,
    bare: Sequence[str] = (),
) -> int:
    """Read sources into an index and print the outcome.

    Args:
        groups: the sources, with the options that those of each group are read with.
        bare: SOURCE arguments that have no file to read.

    Returns:
        The exit code.

    Raises:
        BadInput: nothing was pruned although that was asked for.
    """
    from indexer.context import Context
    from indexer.runs import index_sources, merged

    progress = RunProgress([source for _, opened in groups for source in opened], stream=options.stream)
    notes: list[str] = []
    with (
        vectors_cached(not options.no_cache, notes) as cache,
        open_for_writing(
            address,
            vector_options,
            Context(vector_options.runtime, cache, progress, wait=not options.no_wait),
            rebuild=options.rebuild,
        ) as (index, rebuild_notes),
        index.writer() as writer,
        progress,
    ):
        notes.extend(rebuild_notes)
        if vector_options.dimensions is not None and not index.settings.dimensions:
            index.take_width(vector_options.dimensions)
        outcome = merged(
            [
                index_sources(
                    index,
                    writer,
                    opened,
                    read_options,
                    prune=options.prune,
                    yes=options.yes,
                    recall=options.recall,
                )
                for read_options, opened in groups
            ]
        )
    notes.extend(outcome.notes)
    summary, pruned = outcome.summary, outcome.pruned
    warn_of(note for note in notes if note not in progress.printed)
    if bare:
        warn(f"{', '.join(bare)}: no file to read")
    counts = _counts(summary, pruned, options.rebuild)
    if options.as_json or options.stream:
        numbers = {
            "duplicates": summary.duplicates,
            "stale": len(summary.stale) - pruned,
            "ignored": len(summary.ignored),
            "notes": [*dict.fromkeys(notes)],
        }
        say_json(counts | numbers)
    else:
        parts = [f"{number(counts[name])} {name}" for name in _COUNTS if counts[name] or name in ("seen", "indexed")]
        say(f"{', '.join(parts)}: {count_of(outcome.documents, 'document')} in {count_of(outcome.passages, 'passage')}")
    _advise(summary, pruned, address)
    if outcome.refused is not None:
        raise outcome.refused
    return 1 if summary.failed or _unread([source for _, opened in groups for source in opened], summary) else 0


@contextmanager
def vectors_cached(wanted: bool, notes: list[str]) -> Iterator[VectorCache | None]:
    """Open the user's cache of vectors; at the end, what was wrong with it is added to the notes."""
    from indexer.stores.vector_cache import open_vector_cache

    cache = open_vector_cache() if wanted else None
    try:
        yield cache
    finally:
        if cache is not None:
            notes.extend(cache.problems)
            cache.close()


@contextmanager
def open_for_writing(
    address: str, options: VectorOptions, context: Context, *, rebuild: bool = False
) -> Iterator[tuple[IndexCore, tuple[str, ...]]]:
    """Open the index to write into: a new one, the existing one, or a rebuilt one that replaces it at the end.

    Yields:
        The index, and the notes of a rebuild.
    """
    from indexer.core import IndexCore
    from indexer.errors import BadInput
    from indexer.rebuild import rebuild_index
    from indexer.stores.open import create_store, is_store

    if not is_store(address):
        settings, encoder = options.settings(cache=context.cache)
        try:
            store = create_store(address, settings)
        except BadInput:
            if not is_store(address):
                raise
            # Another run has made it meanwhile: this one adds to it.
        else:
            with IndexCore(store, encoder, context) as index:
                yield index, ()
            return
    with IndexCore.open(address, context=context) as index:
        if rebuild:
            with rebuild_index(index, lambda: options.settings(index, context.cache)) as successor:
                yield successor
        else:
            yield options.chosen(index), ()


def _counts(summary: Summary, pruned: int, rebuild: bool) -> dict[str, int]:
    """Return the counts to print; a rebuild has also embedded the documents that the run found unchanged."""
    counts = {name: value for name, value in asdict(summary).items() if name in _COUNTS} | {"pruned": pruned}
    if rebuild:
        counts |= {"indexed": counts["indexed"] + counts["unchanged"], "unchanged": 0}
    return counts


def _unread(sources: Sequence[Source], summary: Summary) -> bool:
    """Return whether a source was not read whole, and warn of it unless a failure was reported."""
    unread = [source.argument for source in sources if not source.whole and source.argument != "-"]
    if unread and not summary.failed:
        warn(f"{', '.join(unread)}: not read whole")
    return bool(unread)


def _advise(summary: Summary, pruned: int, address: str) -> None:
    if summary.duplicates:
        warn(f"{number(summary.duplicates)} id(s) came more than once; the last of each counts")
    if summary.nameless:
        warn(
            f"{number(summary.nameless)} record(s) of standard input have no id and are named by their line: "
            "those of another run will replace them; give each an id"
        )
    if summary.failed:
        such = "such as: " if summary.failed > 1 else ""
        ledger = f"likewise info {quoted(address)} --ledger failed"
        warn(f"{number(summary.failed)} failed, {such}{summary.reason}; {ledger} has all")
    if summary.reread:
        warn(f"{number(summary.reread)} file(s) also hold documents that another file has lost: run again to read them")
    if len(summary.stale) > pruned:
        left = len(summary.stale) - pruned
        one = "1 document is no longer in its source; --prune removes it"
        warn(one if left == 1 else f"{number(left)} documents are no longer in their source; --prune removes them")
    if summary.ignored:
        warn(
            f"{number(len(summary.ignored))} document(s) of files that are ignored now were kept, such as "
            f"{summary.ignored[0]}: likewise remove {quoted(address)} URI... removes them, "
            "--no-ignore reads their files again"
        )
