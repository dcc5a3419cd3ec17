"""likewise status: print what has changed in the sources of an index since they were read."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

import click

from indexer.errors import count_of
from likewise.shell.arguments.options import IndexCommand, json_option
from likewise.shell.terminal.output import number, quoted, say, say_json, shown, warn_of

_SHOWN_NAMES = 10
_KINDS = ("new", "changed", "outdated", "gone", "ignored", "failed", "missing")


@click.command(cls=IndexCommand)
@json_option
def status(path: str, as_json: bool) -> None:
    """Print which files of the recorded sources of INDEX are new, changed, gone, ignored or failed since the last run.

    An outdated file was read by an earlier version of its reader. Nothing is written, and no model is loaded.
    likewise update reads what has changed.

    \b
    likewise status papers.index
    likewise status --json
    """
    from indexer.stores.addresses.open import open_store
    from likewise.shell.arguments.configuration import read_extractors
    from likewise.shell.indexing.source_changes import changes

    with closing(open_store(path)) as store, store.snapshot() as snapshot:
        recorded, files, documents = snapshot.settings.sources, snapshot.files(), snapshot.documents
        noticed = [(row.file, row.uri) for row in snapshot.ledger("gone")]
        stored = snapshot.hashes([uri for _, uri in noticed])
        address, leftovers = shown(store.address), store.engine.leftovers()
    kept = [(file, uri) for file, uri in noticed if uri in stored]
    found = asdict(changes(recorded, files, kept, read_extractors()))
    if as_json:
        notes = {"notes": leftovers} if leftovers else {}
        say_json({"documents": documents, "sources": [source.argument for source in recorded], **found, **notes})
        return
    warn_of(leftovers)
    for kind in _KINDS:
        names = found[kind]
        for name in names[:_SHOWN_NAMES]:
            why = f": {found['reasons'][name]}" if kind == "failed" else ""
            say(f"{kind:<9} {shown(name)}{why}")
        if len(names) > _SHOWN_NAMES:
            say(f"{kind:<9} and {number(len(names) - _SHOWN_NAMES)} more; --json names all")
    sources = count_of(len(recorded), "source")
    counts = [f"{number(len(found[kind]))} {kind}" for kind in _KINDS if found[kind]]
    counts.append(f"{number(found['unchanged'])} unchanged")
    say(f"{address}: {count_of(documents, 'document')} of {sources}; files: {', '.join(counts)}")
    command = f"likewise update {'' if address == '.likewise' else quoted(address)}".rstrip()
    if not recorded:
        say(f"no SOURCE is recorded: read one with likewise index {quoted(address)} SOURCE")
    elif found["missing"]:
        say(f"{command} --moved OLD NEW names the new place of what is missing, and --forget SOURCE leaves it out")
    elif found["unlisted"]:
        names = ", ".join(found["unlisted"])
        say(f"{names} cannot be listed: nothing is pruned before it can be, or before {command} --forget SOURCE")
    elif found["gone"]:
        yes = " --yes" if 2 * found["prunable"] > documents else ""
        say(f"{command} --prune{yes} reads the changes and removes what is gone")
    elif found["new"] or found["changed"] or found["outdated"]:
        say(f"{command} reads the changes")
