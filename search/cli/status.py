"""likewise status: print what has changed in the sources of an index since they were read."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

import click

from search.cli.options import IndexCommand, json_option
from search.cli.output import count_of, number, quoted, say, say_json, shown

_SHOWN_NAMES = 10
_KINDS = ("new", "changed", "gone", "ignored", "failed", "missing")


@click.command(cls=IndexCommand)
@json_option
def status(path: str, as_json: bool) -> None:
    """Print which files of the recorded sources of INDEX are new, changed, gone, ignored or failed since the last run.

    Nothing is written and no model is loaded. `likewise update` reads the changes.

    \b
    likewise status papers.index
    likewise status --json
    """
    from indexer.sources.recorded import changes
    from indexer.stores.open import open_store

    with closing(open_store(path)) as store, store.snapshot() as snapshot:
        recorded, files, documents = snapshot.settings.sources, snapshot.files(), snapshot.documents
        noticed = [(row.file, row.uri) for row in snapshot.ledger("gone")]
        stored = snapshot.hashes([uri for _, uri in noticed])
        address = shown(store.address)
    found = asdict(changes(recorded, files, [(file, uri) for file, uri in noticed if uri in stored]))
    if as_json:
        say_json({"documents": documents, "sources": [source.argument for source in recorded], **found})
        return
    for kind in _KINDS:
        names = found[kind]
        for name in names[:_SHOWN_NAMES]:
            say(f"{kind:<9} {shown(name)}")
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
        say(f"{command} --forget SOURCE leaves out what is missing")
    elif found["gone"]:
        say(f"{command} --prune reads the changes and removes what is gone")
    elif found["new"] or found["changed"]:
        say(f"{command} reads the changes")
