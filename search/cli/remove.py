"""likewise remove: remove documents from an index by uri."""

from __future__ import annotations

import click

from search.cli.options import IndexCommand, complete_path, json_option, no_wait_option, resolve_uris
from search.cli.output import say, say_json, warn


@click.command(cls=IndexCommand)
@click.argument("uris", nargs=-1, required=True, metavar="URI...", shell_complete=complete_path)
@no_wait_option
@json_option
def remove(path: str, uris: tuple[str, ...], no_wait: bool, as_json: bool) -> None:
    """Remove documents from INDEX. If one URI is unknown, nothing is removed.

    \b
    likewise remove papers.index notes/bread.txt doc-17
    """
    from indexer.index import Index

    with Index.open(path) as index, index.lock(wait=not no_wait, on_wait=warn):
        removed = index.remove(resolve_uris(index, uris))
    if as_json:
        say_json({"removed": removed})
    else:
        say(f"removed {removed} document{'s' if removed != 1 else ''}")
