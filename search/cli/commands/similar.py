"""likewise similar: rank the other documents of an index by how near they are to one of them."""

from __future__ import annotations

import click

from search.cli.arguments.options import (
    RankingCommand,
    complete_path,
    json_option,
    k_option,
    resolve_uri,
    resolve_where,
    where_option,
)
from search.cli.hits.hits import print_hits


@click.command(cls=RankingCommand)
@click.argument("uri", shell_complete=complete_path)
@k_option
@where_option
@json_option
def similar(path: str, uri: str, k: int, where: str | None, as_json: bool) -> None:
    """Rank the other documents of INDEX by how near they are in meaning to the document URI.

    \b
    likewise similar papers.index notes/bread.txt -k 5
    """
    from search.searcher import Searcher

    with Searcher(path) as searcher:
        hits = searcher.similar(resolve_uri(searcher, path, uri), k, resolve_where(where))
        print_hits(hits, as_json)
