"""likewise evaluate: measure how well an index answers judged questions."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.errors import BadInput, count_of
from likewise.shell.arguments import options
from likewise.shell.terminal.extras import require_folder
from likewise.shell.terminal.output import printable, say, say_json, warn, warn_of
from likewise.shell.terminal.tables import print_table

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from likewise.evaluation.measures import Evaluation, Qrels, Run
    from search.query.query import Mode


@click.command(cls=options.IndexCommand)
@options.queries_option
@options.qrels_option
@options.mode_option
@click.option("-k", default=100, type=click.IntRange(1), show_default=True, metavar="N",
              help="How many hits of each question to judge.")  # fmt: skip
@click.option(
    "--run",
    "run_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the rankings to FILE in TREC format.",
)
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RUN",
    help="Compare with the rankings in RUN, a TREC run: differences and p-values (paired bootstrap).",
)
@click.option("--per-query", is_flag=True, help="Also print the values of every question.")
@options.trust_option
@options.json_option
def evaluate(
    path: str,
    queries: Path,
    qrels: Path,
    mode: Mode,
    k: int,
    run_file: Path | None,
    against: Path | None,
    per_query: bool,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Ask INDEX the questions of --queries and measure its answers by the judgments of --qrels.

    Both files have BEIR's form (.jsonl and .tsv). Judgments may also have TREC's form. They name documents by uri, or
    files by their path relative to a recorded SOURCE, to its folder or to the current folder. Questions without a
    relevant document are left out. Judged documents that INDEX does not have are reported, and count as not found.

    \b
    likewise evaluate papers.index --queries queries.jsonl --qrels qrels/test.tsv --json
    """
    from likewise.evaluation import measures
    from search.searcher import Searcher

    if run_file is not None:
        require_folder(run_file)
    if k < 100:
        warn(f"only {k} hits of each question are judged: measures that need more, such as R@100, are too low")
    texts = measures.read_queries(queries)
    judgments = measures.read_qrels(qrels, texts)
    other_run = measures.read_run(against) if against is not None else None
    with Searcher(path, trust_remote_code=trust_remote_code) as searcher:
        judged, missing = as_stored(searcher, judgments, path)
        other = _evaluate_other(searcher, other_run, judged, path) if other_run is not None else None
        queries_judged = list(judged.judged)
        answers = searcher.search_many([texts[query] for query in queries_judged], k, mode=mode)
    notes = list(dict.fromkeys(note for hits in answers for note in hits.notes))
    warn_of(notes)
    run = {query: [(hit.uri, hit.score) for hit in hits] for query, hits in zip(queries_judged, answers, strict=True)}
    report = measures.evaluate(run, judged)
    compared = _compare(report, other) if other is not None else {}
    # The measures are printed even if the run cannot be written. It is written even if a reader has closed the pipe.
    try:
        if as_json:
            values: dict[str, Any] = {
                "queries": len(queries_judged),
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
        else:
            _print_text(report, compared, f"{count_of(len(queries_judged), 'question')}, {mode}", per_query)
    finally:
        if run_file is not None:
            measures.write_run(run, run_file)


def _evaluate_other(index: Container[str], run: Run, qrels: Qrels, address: str) -> Evaluation:
    """Evaluate another run by the same judgments.

    Raises:
        BadInput: it answers none of the questions.
    """
    from likewise.evaluation.measures import evaluate

    stored = _stored_uris(index, {uri: None for ranking in run.values() for uri, _ in ranking}, address)
    resolved = {query: [(stored[uri], score) for uri, score in ranking] for query, ranking in run.items()}
    report = evaluate(resolved, qrels)
    if len(report.empty) == len(report.per_query):
        raise BadInput("the run of --against answers none of the judged questions: give a run of these questions")
    if report.empty:
        warn(f"the run of --against does not answer {len(report.empty)} of the judged questions; they count as 0")
    return report


def _print_text(report: Evaluation, compared: Mapping[str, tuple[float, float]], title: str, per_query: bool) -> None:
    say(title)
    rows = []
    for name, value in report.averages.items():
        difference = ""
        if compared:
            other, p = compared[name]
            difference = f"{value - other:+.4f} against {other:.4f}, p = {p:.3f}"
        rows.append((name, f"{value:.4f}", difference))
    print_table(rows)
    if per_query:
        for query, row in report.per_query.items():
            click.echo("\t".join([printable(query), *(f"{name}={value:.4f}" for name, value in row.items())]))


def _compare(report: Evaluation, other: Evaluation) -> dict[str, tuple[float, float]]:
    """Return the other run's average and the p-value of the difference, by measure."""
    import numpy as np

    from likewise.evaluation.significance import estimate_averages

    compared = {}
    for name, average in other.averages.items():
        sides = [np.array([row[name] for row in run.per_query.values()]) for run in (other, report)]
        compared[name] = average, estimate_averages(sides)[1].p
    return compared


def as_stored(index: Container[str], qrels: Qrels, address: str) -> tuple[Qrels, list[str]]:
    """Return the judgments with the uris of an index, and the relevant documents that it does not have, after a
    warning."""
    from likewise.evaluation.measures import Qrels

    stored = _stored_uris(index, {uri: None for grades in qrels.grades.values() for uri in grades}, address)
    relevant = {uri for grades in qrels.grades.values() for uri, grade in grades.items() if grade > 0}
    missing = [uri for uri in stored if uri in relevant and stored[uri] not in index]
    if missing:
        warn(
            f"{count_of(len(missing), 'judged document')} not in the index, such as {missing[0]!r}: counted as not "
            "found (paths of files are absolute, or relative to a recorded SOURCE or to the current folder)"
        )
    grades = {query: {stored[uri]: grade for uri, grade in row.items()} for query, row in qrels.grades.items()}
    return Qrels(grades), missing


def _stored_uris(index: Container[str], names: Iterable[str], address: str) -> dict[str, str]:
    """Return the uri of each judged name in the index: the name itself, or the file with this path below a recorded
    SOURCE.

    The folder that holds a SOURCE is tried after the SOURCE itself, and the working folder last, so that the uris
    seldom depend on the working folder.
    """
    from indexer.sources.folders.recorded import folders_of
    from indexer.stores.addresses.open import open_store

    with closing(open_store(address)) as store, store.snapshot() as snapshot:
        folders = [*folders_of(snapshot.settings.sources), os.getcwd()]  # noqa: PTH109
    stored: dict[str, str] = {}
    several: list[str] = []
    for name in names:
        paths = [] if name in index else [os.path.normpath(os.path.join(folder, name)) for folder in folders]  # noqa: PTH118
        files = [path for path in dict.fromkeys(paths) if path in index]
        stored[name] = files[0] if files else name
        if len(files) > 1:
            several.append(name)
    if several:
        first = several[0]
        warn(
            f"{count_of(len(several), 'judged document')} may be several files, such as {first!r} (taken as "
            f"{stored[first]}): write absolute paths"
        )
    return stored
