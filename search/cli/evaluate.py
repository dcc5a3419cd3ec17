"""likewise evaluate: how well an index answers judged questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.command import IndexCommand, json_option, mode_option, qrels_option, queries_option, resolve_uris
from indexer.cli.terminal import printable, say, say_json, warn

if TYPE_CHECKING:
    from indexer.index import Index
    from search.evaluate import Qrels, Report


@click.command(cls=IndexCommand)
@queries_option
@qrels_option
@mode_option
@click.option("-k", default=100, show_default=True, help="How many hits a question is judged by.")
@click.option(
    "--run", "run_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the run in TREC format."
)
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RUN",
    help="Compare with a run in TREC format: differences and p-values (paired bootstrap).",
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
    against: Path | None,
    per_query: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """Ask INDEX every judged question of --queries and --qrels, in BEIR form (.jsonl, .tsv) or TREC's, and score it.

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
        judged, missing = as_stored(index, read)
    asked = list(judged.judged)
    with Searcher(path) as searcher:
        found = searcher.search_many([texts[query] for query in asked], k, mode)  # type: ignore[arg-type]
    run = {query: [(hit.uri, hit.score) for hit in hits] for query, hits in zip(asked, found, strict=True)}
    report = evaluation.evaluate(run, judged)
    if run_file is not None:
        evaluation.write_run(run, run_file)
    other = evaluation.evaluate(evaluation.read_run(against), judged) if against is not None else None
    compared = _compared(report, other) if other is not None else {}
    if missing:
        warn(
            f"{len(missing)} judged documents are not in the index, such as {missing[0]!r}; they count as not found "
            "(the path of a file counts from here)"
        )
    if as_json:
        values = {"queries": len(asked), "k": k, "mode": mode, "missing": missing, "averages": dict(report.averages)}
        if compared:
            values["against"] = {name: {"average": value, "p": p} for name, (value, p) in compared.items()}
        say_json(values | ({"per_query": report.per_query} if per_query else {}))
        return
    if markdown:
        say(f"| questions | {' | '.join(report.averages)} |\n|{' --- |' * (len(report.averages) + 1)}")
        say(f"| {len(asked)} | {' | '.join(f'{value:.4f}' for value in report.averages.values())} |")
        return
    say(f"{len(asked)} questions, {mode}")
    for name, value in report.averages.items():
        beside = ""
        if compared:
            before, p = compared[name]
            beside = f"  {value - before:+.4f} against {before:.4f}, p = {p:.3f}"
        say(f"{name:<8} {value:.4f}{beside}")
    if per_query:
        for query, values_ in report.per_query.items():
            click.echo("\t".join([printable(query), *(f"{name}={value:.4f}" for name, value in values_.items())]))


def _compared(report: Report, other: Report) -> dict[str, tuple[float, float]]:
    """Of each measure the other run's average, and the p-value of the difference."""
    import numpy as np

    from search.significance import of_averages

    found = {}
    for name, average in other.averages.items():
        sides = [np.array([row[name] for row in each.per_query.values()]) for each in (other, report)]
        found[name] = average, of_averages(sides)[1].p
    return found


def as_stored(index: Index, qrels: Qrels) -> tuple[Qrels, list[str]]:
    """The judgments by the uris of the index, and the relevant documents that it does not have."""
    from search.evaluate import Qrels

    given = list({uri: None for grades in qrels.grades.values() for uri in grades})
    stored = dict(zip(given, resolve_uris(index, given), strict=True))
    relevant = {uri for grades in qrels.grades.values() for uri, grade in grades.items() if grade > 0}
    missing = [uri for uri in given if uri in relevant and stored[uri] not in index]
    grades = {query: {stored[uri]: grade for uri, grade in row.items()} for query, row in qrels.grades.items()}
    return Qrels(grades), missing
