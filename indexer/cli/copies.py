"""likewise backup and export: an index as another folder, or as JSON lines that any index can take in."""

from __future__ import annotations

import click

from indexer.cli.command import IndexCommand, json_option
from indexer.cli.terminal import say, say_json, shown


@click.command(cls=IndexCommand)
@click.argument("destination", metavar="DEST")
@json_option
def backup(path: str, destination: str, as_json: bool) -> None:
    """Copy INDEX to the new folder DEST, while it is searched and written to.

    \b
    likewise backup papers.index /mnt/backup/papers.index
    """
    from indexer.index import Index

    with Index.open(path) as index:
        index.backup(destination)
    with Index.open(destination) as copy:
        documents = len(copy)
    if as_json:
        say_json({"backup": destination, "documents": documents})
    else:
        say(f"{shown(destination)}: {documents:,} documents")


@click.command(cls=IndexCommand)
@click.option("--vectors", is_flag=True, help="With passages and their vectors: nothing is embedded when read again.")
@click.option("--json", "as_json", is_flag=True, help="For symmetry: what it prints is JSON in any case.")
def export(path: str, vectors: bool, as_json: bool) -> None:
    """Print every document of INDEX as a line of JSON, which likewise index reads.

    \b
    likewise export papers.index | likewise index copy.index -
    """
    from indexer.exchange import Embedded, to_record
    from indexer.index import Index

    with Index.open(path) as index:
        identity = index.recipe.identity if index.recipe else ""
        for item in index.store.export():
            own = None
            if vectors and item.spans is not None and item.vectors is not None:
                own = Embedded(item.spans, item.vectors, identity)
            say_json(to_record(item.document, own))
