"""likewise export: print the documents of an index as JSON lines that `likewise index` reads."""

from __future__ import annotations

from contextlib import closing

import click

from search.cli.options import IndexCommand
from search.cli.output import say_json


@click.command(cls=IndexCommand)
@click.option(
    "--vectors", is_flag=True, help="Include passages and vectors, so that an index made of them embeds nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Changes nothing: the output is always JSON.")
def export(path: str, vectors: bool, as_json: bool) -> None:
    """Print every document of INDEX as a line of JSON that likewise index can read.

    \b
    likewise export papers.index | likewise index copy.index -
    """
    from indexer.exchange import Embedded, to_record
    from indexer.stores.open import open_store

    with closing(open_store(path)) as store:
        with store.snapshot() as snapshot:
            recipe = snapshot.settings.recipe
        identity = recipe.identity if recipe else ""
        for item in store.export():
            embedded = None
            if vectors and item.spans is not None and item.vectors is not None:
                embedded = Embedded(item.spans, item.vectors, identity)
            say_json(to_record(item.document, embedded))
