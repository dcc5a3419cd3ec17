"""likewise longest: print the documents of an index with the longest texts."""

from __future__ import annotations

import click

from likewise import Searcher


@click.command()
@click.argument("index")
@click.option("-k", default=3, show_default=True, help="How many documents to print.")
def longest(index: str, k: int) -> None:
    """Print the documents of INDEX with the longest texts."""
    with Searcher(index) as searcher:
        lengths = sorted(((len(document.text), document.uri) for document in searcher.documents()), reverse=True)
    for length, uri in lengths[:k]:
        click.echo(f"{length}\t{uri}")
