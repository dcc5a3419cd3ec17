"""likewise evaluate: how well an index answers judged questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.errors import BadInput
from search.cli.options import (
    IndexCommand,
    json_option,
    mode_option,
    qrels_option,
    queries_option,
    resolve_uris,
    trust_option,
)
from search.cli.output import printable, say, say_json, warn, warn_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from search.evaluation.measures import Qrels, Report, Run
    from search.query import Mode


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
@trust_option
@json_option
def evaluate(
    path: str,
    queries: Path,
    qrels: Path,
    mode: Mode,
    k: int,
    run_file: Path | None,
    against: Path | None,
    per_query: bool,
    markdown: bool,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Ask INDEX every judged question of --queries and --qrels, in BEIR form (.jsonl, .tsv) or TREC's, and score it.

    Judged documents are named by uri, files also by their path from here. Questions without a positive
    judgment are left out; judged documents that INDEX does not have count as not found, and are reported.

    \b
    likewise evaluate papers.index --queries queries.jsonl --qrels qrels/test.tsv --json
    """
    from search.evaluation import measures
    from search.searcher import Searcher

    if k < 100:
        warn(f"with -k {k} no more than {k} hits are judged: measures that look further, such as R@100, say less")
    if markdown and as_json:
        raise click.UsageError("--json and --markdown are two ways to print the same: choose one")
    if markdown and per_query:
        raise click.UsageError("--per-query is for text and --json: a --markdown table has one line a run")
    texts = measures.read_queries(queries)
    read = measures.read_qrels(qrels, texts)
    before = measures.read_run(against) if against is not None else None
    with Searcher(path, trust_remote_code=trust_remote_code) as searcher:
        judged, missing = as_stored(searcher, read)
        other = _judged(searcher, before, judged) if before is not None else None
        asked = list(judged.judged)
        answers = searcher.search_many([texts[query] for query in asked], k, mode)
    notes = list(dict.fromkeys(note for hits in answers for note in hits.notes))
    warn_of(notes)
    run = {query: [(hit.uri, hit.score) for hit in hits] for query, hits in zip(asked, answers, strict=True)}
    report = measures.evaluate(run, judged)
    compared = _compared(report, other) if other is not None else {}
    if missing:
        warn(
            f"{len(missing)} judged documents are not in the index, such as {missing[0]!r}; they count as not found "
            "(the path of a file counts from here)"
        )
    if as_json:
        values: dict[str, Any] = {
            "queries": len(asked),
            "k": k,
            "mode": mode,
            "missing": missing,
            "averages": dict(report.averages),
        }
        values["notes"] = notes
        if compared:
            values["against"] = {name: {"average": value, "p": p} for name, (value, p) in compared.items()}
        rows = {query: dict(row) for query, row in report.per_query.items()}
        say_json(values | ({"per_query": rows} if per_query else {}))
    elif markdown:
        _markdown(report, compared, len(asked))
    else:
        _text(report, compared, f"{len(asked)} questions, {mode}", per_query)
    if run_file is not None:  # last: what was measured is not lost where the run cannot be written
        measures.write_run(run, run_file)


def _judged(index: Container[str], run: Run, qrels: Qrels) -> Report:
    """Another run by the same judgments.

    Raises:
        BadInput: it answers none of the questions.
    """
    from search.evaluation.measures import evaluate

    uris = list({uri: None for ranking in run.values() for uri, _ in ranking})
    stored = dict(zip(uris, resolve_uris(index, uris), strict=True))
    named = {query: [(stored[uri], score) for uri, score in ranking] for query, ranking in run.items()}
    report = evaluate(named, qrels)
    if len(report.empty) == len(report.per_query):
        raise BadInput("the run of --against answers none of the judged questions: is it of other queries?")
    if report.empty:
        warn(f"the run of --against has no answer to {len(report.empty)} of the judged questions, which count as 0")
    return report


def _markdown(report: Report, compared: Mapping[str, tuple[float, float]], asked: int) -> None:
    say(f"| questions | {' | '.join(report.averages)} |\n|{' --- |' * (len(report.averages) + 1)}")
    say(f"| {asked} | {' | '.join(f'{value:.4f}' for value in report.averages.values())} |")
    if compared:
        say(f"| against | {' | '.join(f'{compared[name][0]:.4f}' for name in report.averages)} |")
        say(f"| p | {' | '.join(f'{compared[name][1]:.3f}' for name in report.averages)} |")


def _text(report: Report, compared: Mapping[str, tuple[float, float]], title: str, per_query: bool) -> None:
    say(title)
    for name, value in report.averages.items():
        beside = ""
        if compared:
            before, p = compared[name]
            beside = f"  {value - before:+.4f} against {before:.4f}, p = {p:.3f}"
        say(f"{name:<8} {value:.4f}{beside}")
    if per_query:
        for query, row in report.per_query.items():
            click.echo("\t".join([printable(query), *(f"{name}={value:.4f}" for name, value in row.items())]))


def _compared(report: Report, other: Report) -> dict[str, tuple[float, float]]:
    """Of each measure the other run's average, and the p-value of the difference."""
    import numpy as np

    from search.evaluation.significance import of_averages

    found = {}
    for name, average in other.averages.items():
        sides = [np.array([row[name] for row in each.per_query.values()]) for each in (other, report)]
        found[name] = average, of_averages(sides)[1].p
    return found


def as_stored(index: Container[str], qrels: Qrels) -> tuple[Qrels, list[str]]:
    """The judgments by the uris of the index, and the relevant documents that it does not have."""
    from search.evaluation.measures import Qrels

    given = list({uri: None for grades in qrels.grades.values() for uri in grades})
    stored = dict(zip(given, resolve_uris(index, given), strict=True))
    relevant = {uri for grades in qrels.grades.values() for uri, grade in grades.items() if grade > 0}
    missing = [uri for uri in given if uri in relevant and stored[uri] not in index]
    grades = {query: {stored[uri]: grade for uri, grade in row.items()} for query, row in qrels.grades.items()}
    return Qrels(grades), missing
