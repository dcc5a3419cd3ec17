"""likewise compare: measure recipes side by side, on sentences and questions that people judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.errors import count_of
from likewise.shell.arguments import options
from likewise.shell.terminal.output import on_terminal, quiet_libraries, say, say_json, warn
from likewise.shell.terminal.tables import print_table

if TYPE_CHECKING:
    from likewise.evaluation.compare import Comparison, RecipeResult
    from likewise.evaluation.significance import Estimate
    from likewise.evaluation.sts import JudgedPairs
    from likewise.evaluation.tasks import Retrieval

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PERCENTILES = (5, 25, 50, 75, 95)


@click.command(cls=options.HelpfulCommand)
@click.option("--recipe", "recipes", multiple=True, required=True, metavar="R",
              help="Recipe to compare, as described above. Repeatable.")  # fmt: skip
@click.option(
    "--sts", "sts_files", multiple=True, type=_FILE, metavar="FILE", help="Judged pairs of sentences. Repeatable."
)
@click.option(
    "--corpus",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE|FOLDER",
    help="Documents to rank: records (.jsonl, .csv, .tsv), or the files of a folder, by their paths in it.",
)
@click.option("--queries", type=_FILE, metavar="FILE", help="Questions: JSON lines with _id and text.")
@click.option(
    "--qrels", type=_FILE, metavar="FILE", help="Judgments: query-id, corpus-id, score; or TREC's four columns."
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the comparison into FILE (.png). Needs the extra map.",
)
@options.device_option
@options.query_prompt_option
@options.document_prompt_option
@options.trust_option
@options.json_option
def compare(
    recipes: tuple[str, ...],
    sts_files: tuple[Path, ...],
    corpus: Path | None,
    queries: Path | None,
    qrels: Path | None,
    picture: Path | None,
    device: str,
    query_prompt: str | None,
    document_prompt: str | None,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Measure recipes side by side on pairs of sentences (--sts) and on questions (--corpus, --queries, --qrels).

    A recipe is MODEL:POOLING@LAYERS+COMBINE+DIMENSIONS. MODEL alone gives the model's own vectors, and
    MODEL:own+DIMENSIONS shortens them. The other parts pool its hidden states (cls, mean, max, ...), choose layers,
    combine them (mean, sum, concat) and shorten the vectors. Each of these may be left out.

    Prints Spearman x 100, nDCG@10, recall@100 and MRR@10, each with a 95 % interval and the p-value against the
    first recipe (paired bootstrap); then dimensions, texts per second and bytes per vector. STS files have the
    columns score, sentence1 and sentence2 (.tsv, .csv or .jsonl).

    \b
    likewise compare --recipe all-MiniLM-L6-v2 --recipe all-MiniLM-L6-v2:mean@-2 --sts stsb-test.tsv
    likewise compare --recipe all-MiniLM-L6-v2 --recipe bert-base-uncased:mean@-4..-1+concat+256 \\
        --corpus corpus.jsonl --queries queries.jsonl --qrels qrels/test.tsv --plot picture.png
    """
    from indexer.encoders.recipes.recipe import RecipeSpec
    from likewise.evaluation.compare import compare as compare_recipes
    from likewise.evaluation.sts import read_sts

    if picture is not None:
        from likewise.shell.terminal.extras import picture_file

        picture_file(picture)
    retrieval = _retrieval(corpus, queries, qrels)
    sts = _distinct([read_sts(file) for file in sts_files], sts_files)
    if not sts and retrieval is None:
        raise click.UsageError("give --sts FILE, or --corpus, --queries and --qrels, to compare with")
    progress: Callable[[str], None] = (lambda text: say(text, err=True)) if on_terminal() else lambda text: None
    specs = [RecipeSpec.parse(recipe).with_prompts(query_prompt, document_prompt) for recipe in recipes]
    quiet_libraries()
    trust = trust_remote_code
    comparison = compare_recipes(specs, sts, retrieval, device=device, trust_remote_code=trust, progress=progress)
    if picture is not None:
        from likewise.evaluation.plot import plot

        plot(comparison, picture)
    if as_json:
        say_json({"recipes": [_as_json(row) for row in comparison.rows], "notes": comparison.notes})
    else:
        _print_text(comparison)


def _retrieval(corpus: Path | None, queries: Path | None, qrels: Path | None) -> Retrieval | None:
    if corpus is None and queries is None and qrels is None:
        return None
    if corpus is None or queries is None or qrels is None:
        raise click.UsageError("--corpus, --queries and --qrels go together: give all three")
    from likewise.evaluation.collection import read_documents
    from likewise.evaluation.measures import read_qrels, read_queries
    from likewise.evaluation.tasks import Retrieval

    texts = read_queries(queries)
    documents = read_documents(corpus)
    distinct = {document.uri: document for document in documents}
    if len(distinct) < len(documents):
        again = count_of(len(documents) - len(distinct), "id")
        warn(f"{corpus}: {again} came more than once, and the last record of each counts")
    task = Retrieval(list(distinct.values()), texts, read_qrels(qrels, texts))
    missing = [
        uri
        for grades in task.qrels.grades.values()
        for uri, grade in grades.items()
        if grade > 0 and uri not in distinct
    ]
    if missing:
        judged = count_of(len(missing), "judged document")
        warn(f"{judged} not in {corpus}, such as {missing[0]!r}: counted as not found")
    return task


def _distinct(sts: Sequence[JudgedPairs], files: Sequence[Path]) -> list[JudgedPairs]:
    """Return the pairs, named by their files' paths where two files have the same name."""
    names = [pairs.name for pairs in sts]
    return [
        replace(pairs, name=str(file)) if names.count(pairs.name) > 1 else pairs
        for pairs, file in zip(sts, files, strict=True)
    ]


def _print_text(comparison: Comparison) -> None:
    """Print two lines per recipe: each value with its p-value, and the interval below it."""
    first = comparison.rows[0]
    lines = [["recipe", *first.measures, "dimensions", "texts/s", "bytes"]]
    for row in comparison.rows:
        values = [f"{_value(name, each.value)}{_p(each, row is first)}" for name, each in row.measures.items()]
        lines.append([row.recipe, *values, *_size(row)])
        lines.append(["", *(_interval(name, each) for name, each in row.measures.items()), "", "", ""])
    print_table(lines)
    say("\n".join(comparison.notes))


def _size(row: RecipeResult) -> list[str]:
    return [str(row.dimensions), f"{row.speed:,.0f}", f"{row.bytes:,}"]


def _value(measure: str, value: float) -> str:
    return f"{value:.2f}" if measure.startswith("STS") else f"{value:.4f}"


def _interval(measure: str, estimate: Estimate) -> str:
    return f"{_value(measure, estimate.low)} to {_value(measure, estimate.high)}"


def _p(estimate: Estimate, first: bool) -> str:
    return "" if first else f" p={estimate.p:.3f}"


def _as_json(row: RecipeResult) -> dict[str, Any]:
    import numpy as np

    cosines = {
        kind: dict(zip(map(str, _PERCENTILES), np.percentile(values, _PERCENTILES).round(4).tolist(), strict=True))
        for kind, values in (("random", row.cosines.random), ("related", row.cosines.related))
        if len(values)
    }
    return {
        "recipe": row.recipe,
        "measures": {name: asdict(estimate) for name, estimate in row.measures.items()},
        "dimensions": row.dimensions,
        "texts_per_second": row.speed,
        "bytes": row.bytes,
        "cut": row.cut,
        "cosines": {**cosines, "separation": row.cosines.separation},
    }
