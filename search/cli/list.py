"""likewise list: print the uris of the documents of an index, or of those that pass a filter."""

from __future__ import annotations

from dataclasses import asdict

import click

from search.cli.options import IndexCommand, json_option, resolve_where
from search.cli.output import printable, say_json, shown, warn_of


@click.command("list", cls=IndexCommand)
@click.option("--where", metavar="FILTER", help="List only documents that match, such as 'format = \"pdf\"'.")
@json_option
def list_command(path: str, where: str | None, as_json: bool) -> None:
    """List the documents of INDEX in the order they were added; with --json, one object per line.

    \b
    likewise list papers.index --where 'year >= 2020'
    """
    from search.searcher import Searcher

    condition = resolve_where(where)
    with Searcher(path) as searcher:
        warn_of(searcher.filter_notes(condition))
        for document in searcher.documents(condition):
            if as_json:
                say_json({**asdict(document), "text": None, "characters": len(document.text)})
            else:
                click.echo(f"{printable(shown(document.uri))}\t{printable(document.title)}")
