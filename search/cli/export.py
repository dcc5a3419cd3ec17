"""likewise export: an index as JSON lines that any index can take in."""

from __future__ import annotations

import click

from search.cli.options import IndexCommand
from search.cli.output import say_json


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
