"""likewise evaluate: how well an index answers judged questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.command import IndexCommand, json_option, mode_option, queries_option, resolve_uris
from indexer.cli.terminal import printable, say, say_json, warn

if TYPE_CHECKING:
    from indexer.index import Index
    from search.evaluate import Qrels


@click.command(cls=IndexCommand)
@queries_option
@click.option(
    "--qrels",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Judgments: query-id, corpus-id, score; or TREC's four columns.",
)
@mode_option
@click.option("-k", default=100, show_default=True, help="How many hits a question is judged by.")
@click.option(
    "--run", "run_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the run in TREC format."
)
@click.option("--per-query", is_flag=True, help="Print every question's values too.")
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@json_option
def evaluate(
    path: str,
    queries: Path,
    qrels: Path,
    mode: str,
    k: int,
    run_file: Path | None,
    per_query: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """Ask INDEX every judged question of a BEIR-form --queries (.jsonl) and --qrels (.tsv, or TREC) and score it.

    Judged documents are named by uri, files also by their path from here. Questions without a positive
    judgment are left out; judged documents that INDEX does not have count as not found, and are reported.

    \b
    likewise evaluate papers.index --queries queries.jsonl --qrels qrels/test.tsv --json
    """
    from indexer.index import Index
    from search import evaluate as evaluation
    from search.searcher import Searcher

    texts = evaluation.read_queries(queries)
    read = evaluation.read_qrels(qrels, texts)
    with Index.open(path) as index:
        judged, missing = _as_stored(index, read)
    asked = list(judged.judged)
    with Searcher(path) as searcher:
        found = searcher.search_many([texts[query] for query in asked], k, mode)  # type: ignore[arg-type]
    run = {query: [(hit.uri, hit.score) for hit in hits] for query, hits in zip(asked, found, strict=True)}
    report = evaluation.evaluate(run, judged)
    if run_file is not None:
        evaluation.write_run(run, run_file)
    if missing:
        warn(
            f"{len(missing)} judged documents are not in the index, such as {missing[0]!r}; they count as not found "
            "(the path of a file counts from here)"
        )
    if as_json:
        values = {"queries": len(asked), "k": k, "mode": mode, "missing": missing, "averages": dict(report.averages)}
        say_json(values | ({"per_query": report.per_query} if per_query else {}))
        return
    if markdown:
        say(f"| questions | {' | '.join(report.averages)} |\n|{' --- |' * (len(report.averages) + 1)}")
        say(f"| {len(asked)} | {' | '.join(f'{value:.4f}' for value in report.averages.values())} |")
        return
    say(f"{len(asked)} questions, {mode}")
    for name, value in report.averages.items():
        say(f"{name:<8} {value:.4f}")
    if per_query:
        for query, values_ in report.per_query.items():
            click.echo("\t".join([printable(query), *(f"{name}={value:.4f}" for name, value in values_.items())]))


def _as_stored(index: Index, qrels: Qrels) -> tuple[Qrels, list[str]]:
    """The judgments by the uris of the index, and the relevant documents that it does not have."""
    from search.evaluate import Qrels

    given = list({uri: None for grades in qrels.grades.values() for uri in grades})
    stored = dict(zip(given, resolve_uris(index, given), strict=True))
    relevant = {uri for grades in qrels.grades.values() for uri, grade in grades.items() if grade > 0}
    missing = [uri for uri in given if uri in relevant and stored[uri] not in index]
    grades = {query: {stored[uri]: grade for uri, grade in row.items()} for query, row in qrels.grades.items()}
    return Qrels(grades), missing
