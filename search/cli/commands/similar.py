"""likewise similar: rank the other documents of an index by how near they are to one of them."""

from __future__ import annotations

import click

from search.cli.arguments.options import (
    RankingCommand,
    complete_path,
    fold_option,
    json_option,
    k_option,
    resolve_uri,
    resolve_where,
    where_option,
)
from search.cli.hits.hits import folds, print_hits


@click.command(cls=RankingCommand)
@click.argument("uri", shell_complete=complete_path)
@k_option
@where_option
@fold_option
@json_option
def similar(path: str, uri: str, k: int, where: str | None, fold: bool | None, as_json: bool) -> None:
    """Rank the other documents of INDEX by how near they are in meaning to the document URI.

    \b
    likewise similar papers.index notes/bread.txt -k 5
    """
    from search.query import Query
    from search.searcher import Searcher

    with Searcher(path) as searcher:
        like = [resolve_uri(searcher, path, uri)]
        fold = bool(fold) if as_json else folds(fold)
        print_hits(searcher.answer(Query(k=k, where=resolve_where(where), like=like, fold=fold)), as_json)
