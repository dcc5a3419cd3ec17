"""likewise similar: rank the other documents of an index by how near they are to one of them."""

from __future__ import annotations

import click

from likewise.shell.arguments import options
from likewise.shell.hits.hits import folds, print_hits


@click.command(cls=options.RankingCommand)
@click.argument("uri", shell_complete=options.complete_path)
@options.k_option
@options.where_option
@options.fold_option
@options.json_option
def similar(path: str, uri: str, k: int, where: str | None, fold: bool | None, as_json: bool) -> None:
    """Rank the other documents of INDEX by how near they are in meaning to the document URI.

    \b
    likewise similar papers.index notes/bread.txt -k 5
    """
    from search.query.query import Query
    from search.searcher import Searcher

    with Searcher(path) as searcher:
        like = [options.resolve_uri(searcher, path, uri)]
        fold = bool(fold) if as_json else folds(fold)
        print_hits(searcher.answer(Query(k=k, where=options.resolve_where(where), like=like, fold=fold)), as_json)
