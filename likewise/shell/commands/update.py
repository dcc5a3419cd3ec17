"""likewise update: read the recorded sources of an index again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from indexer.errors import BadInput, SourceError, count_of, in_shell
from likewise.shell.arguments import options
from likewise.shell.arguments.workers import resources_of, worker_resources_option, workers_option
from likewise.shell.terminal.output import quoted, say, shown, warn

if TYPE_CHECKING:
    from indexer.stores.reading.store import Store


@click.command(cls=options.IndexCommand)
@options.prune_option
@options.prune_yes_option
@options.dry_run_option
@options.rehash_option
@click.option(
    "--forget",
    multiple=True,
    metavar="SOURCE",
    help="From now on, do not read this SOURCE. Its documents are kept until likewise remove --where 'under "
    '"SOURCE"\' removes them. Repeatable.',
)
@click.option(
    "--moved",
    type=(str, str),
    multiple=True,
    metavar="OLD NEW",
    help="The folder or file OLD is at NEW now. Its documents are kept, and nothing is embedded. Repeatable.",
)
@options.trust_option
@workers_option
@worker_resources_option
@options.no_wait_option
@options.json_option
def update(
    path: str,
    prune: bool,
    yes: bool,
    dry_run: bool,
    rehash: bool,
    forget: tuple[str, ...],
    moved: tuple[tuple[str, str], ...],
    trust_remote_code: bool,
    workers: str | None,
    worker_resources: tuple[str, ...],
    no_wait: bool,
    as_json: bool,
) -> int:
    """Read the recorded sources of INDEX again, each with the options that likewise index was given for it.

    If a SOURCE no longer exists, nothing is read. Then give its new place with --moved, or leave it out with --forget.

    \b
    likewise update --prune
    likewise update papers.index
    likewise update --moved ~/notes ~/archive/notes
    """
    from indexer.sources import open_sources
    from indexer.stores.addresses.open import holds_store, open_store
    from likewise.shell.arguments.configuration import read_extractors
    from likewise.shell.indexing.runs import RunOptions, recorded_groups, run_and_report
    from likewise.shell.indexing.vector_options import VectorOptions

    if dry_run and (forget or moved):
        raise BadInput("--forget and --moved change the index, and --dry-run writes nothing: leave one of them out")
    resources = resources_of(workers, worker_resources)
    with closing(open_store(path)) as store:
        _record_moves(store, moved, wait=not no_wait)
        with store.snapshot() as snapshot:
            recorded = snapshot.settings.sources
        if forget:
            names = {name: os.path.abspath(name) for name in forget}  # noqa: PTH100
            known = {source.argument for source in recorded}
            if unknown := [name for name, argument in names.items() if argument not in known]:
                raise BadInput(
                    f"{', '.join(unknown)}: not a recorded SOURCE: name one of {', '.join(map(shown, sorted(known)))}"
                )
            recorded = tuple(source for source in recorded if source.argument not in names.values())
            with store.writer(wait=not no_wait) as writer:
                writer.change(lambda settings: replace(settings, sources=recorded))
            if not recorded:
                warn(f"{shown(path)}: {', '.join(forget)} is forgotten, and no SOURCE is left to read")
                return 0
    rereading = [
        (replace(options, rehash=rehash), names)
        for options, names in recorded_groups(path, recorded, read_extractors())
    ]
    try:
        opened = [(options, open_sources(names, options, holds_store)) for options, names in rereading]
    except SourceError as error:
        forget_it = f"likewise update {quoted(path)} --forget SOURCE"
        raise SourceError(
            f"{in_shell(error)}, name the new place of what was moved with --moved OLD NEW, or leave out what is gone "
            f"for good: {forget_it}"
        ) from error
    as_it_is = VectorOptions(trust_remote_code=trust_remote_code)
    run_options = RunOptions(
        prune, yes, no_wait=no_wait, as_json=as_json, workers=workers, worker_resources=resources, dry_run=dry_run
    )
    return run_and_report(path, opened, as_it_is, run_options)


def _record_moves(store: Store, moved: Sequence[tuple[str, str]], *, wait: bool) -> None:
    """Record new places of sources.

    Raises:
        BadInput: nothing is at a new place, or none of the files of its old place.
    """
    from indexer.stores.move import Move

    pairs = [(os.path.abspath(old), os.path.abspath(new)) for old, new in moved]  # noqa: PTH100
    if missing := [new for _, new in pairs if not os.path.lexists(new)]:
        raise BadInput(f"{', '.join(map(shown, missing))}: does not exist: nothing was moved")
    for old, new in pairs:
        move = Move.named(old, new, is_file=False)
        with store.snapshot() as snapshot:
            places = [place for name in snapshot.files() if (place := move.place(name)) != name]
        if places and not any(map(os.path.lexists, places)):
            files = count_of(len(places), "file")
            raise BadInput(
                f"{shown(new)}: has none of the {files} of {shown(old)}, such as {shown(places[0])}: nothing was moved"
            )
        with store.writer(wait=wait) as writer:
            count = writer.move(old, new)
        say(f"likewise: moved {count_of(count, 'document')} from {shown(old)} to {shown(new)}", err=True)
