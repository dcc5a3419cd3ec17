"""likewise backup: copy an index to another place while it is in use."""

from __future__ import annotations

import click

from indexer.errors import count_of
from search.cli.arguments.options import IndexCommand, json_option
from search.cli.terminal.output import say, say_json, shown, warn_of, without_passwords


@click.command(cls=IndexCommand)
@click.argument("destination", metavar="DEST")
@json_option
def backup(path: str, destination: str, as_json: bool) -> None:
    """Copy INDEX to DEST, a new folder or DSN, even while it is searched and written to.

    \b
    likewise backup papers.index /mnt/backup/papers.index
    """
    from indexer.index import Index

    with Index.open(path) as index:
        notes = index.backup(destination)
    with Index.open(destination) as copy:
        documents = len(copy)
    warn_of(notes)
    if as_json:
        result = {"backup": without_passwords(destination), "documents": documents}
        say_json(result | ({"notes": notes} if notes else {}))
    else:
        say(f"{shown(destination)}: {count_of(documents, 'document')}")
