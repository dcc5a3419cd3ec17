"""likewise pairs: what in a collection says nearly the same."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from search.cli.options import json_option, trust_option
from search.cli.output import number, quiet_libraries, say, say_json, shown, warn

if TYPE_CHECKING:
    from search.pairs import Report, Text

_THERE = click.Path(exists=True, path_type=Path)


@click.command()
@click.argument("source", metavar="FILE|INDEX", required=False, envvar="LIKEWISE_INDEX", type=_THERE)
@click.option("--index", "index", metavar="PATH", type=_THERE, help="The index, in place of FILE|INDEX.")
@click.option("-n", "count", default=20, show_default=True, type=click.IntRange(1), help="How many pairs.")
@click.option("--min-score", default=-1.0, metavar="S", help="Leave out pairs of a lower cosine.")
@click.option("--model", metavar="NAME", help="Model or recipe for a FILE.  [default: all-MiniLM-L6-v2]")
@click.option("--text-field", metavar="F", help="The field of a FILE's records to compare.")
@click.option("--device", default="auto", show_default=True, help="Of the model: cpu, cuda, ...")
@trust_option
@json_option
def pairs(
    source: Path | None,
    index: Path | None,
    count: int,
    min_score: float,
    model: str | None,
    text_field: str | None,
    device: str,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Print the most similar pairs of a collection, each once, best first.

    Of a FILE (one sentence a line; .jsonl, .csv and .tsv: a record each) its texts are embedded and compared; a
    text that stands in it more than once counts as one, and is listed. Of an INDEX the stored vectors are
    compared: pairs of passages of different documents.

    Nothing is approximated: no pair that is left out has a higher score than the last one shown. Memory holds the
    vectors (FILE: 4 bytes a dimension, INDEX: 2) and what is compared at the moment, never all pairs.

    \b
    likewise pairs questions.txt -n 100 --min-score 0.8
    likewise pairs papers.index --json
    """
    typed = click.get_current_context().get_parameter_source("source") == ParameterSource.COMMANDLINE
    if index and typed:
        raise click.UsageError("give --index, or a FILE or INDEX as an argument, not both")
    if (source := index or source) is None:
        raise click.UsageError("name a FILE or an INDEX first, or set LIKEWISE_INDEX")
    if math.isnan(min_score):
        raise click.UsageError("--min-score is no number")
    if source.is_dir() and (model or text_field or device != "auto"):
        raise click.UsageError("--model, --text-field and --device are for a FILE: an INDEX has its vectors")
    report = _of_index(source, count, min_score) if source.is_dir() else None
    if report is None:
        report = _of_file(source, count, min_score, model, text_field, device, trust_remote_code)
    if report.cut:
        warn(f"{number(report.cut)} texts are longer than the model reads and were compared by their beginning")
    if as_json:
        say_json(_as_json(report))
        return
    for pair in report.pairs:
        say(f"{pair.score:.4f}  {_line(pair.first)}\n        {_line(pair.second)}")
    for text in report.repeated[:count]:
        say(f"{text.count} times  {_line(text)}")
    repeated = f"; {number(len(report.repeated))} stand in the file more than once" if report.repeated else ""
    say(f"{number(len(report.pairs))} pairs of {number(report.texts)} texts{repeated}", err=True)


def _of_index(path: Path, count: int, min_score: float) -> Report:
    from indexer.stores.open import open_store
    from search.pairs import pairs_of_passages

    with closing(open_store(path)) as store:
        return pairs_of_passages(store, count, min_score)


def _of_file(
    path: Path, count: int, min_score: float, model: str | None, text_field: str | None, device: str, trust: bool
) -> Report:
    from indexer.encoders import load_with_recipe
    from indexer.encoders.locate import DEFAULT_MODEL
    from indexer.encoders.runtime import Runtime
    from search.evaluation.collection import read_documents
    from search.pairs import pairs_of_texts

    documents = read_documents(path, text_field)
    with quiet_libraries():
        runtime = Runtime(device=device, trust_remote_code=trust)
        encoder, recipe = load_with_recipe(model or DEFAULT_MODEL, runtime)
        return pairs_of_texts(documents, encoder, recipe, count, min_score)


def _line(side: Text) -> str:
    text = " ".join(side.text.split())
    return f"{shown(side.uri)}: {text if len(text) <= 100 else text[:99] + '…'}"


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "texts": report.texts,
        "cut": report.cut,
        "exact": True,
        "pairs": [
            {"score": pair.score, "first": _side(pair.first), "second": _side(pair.second)} for pair in report.pairs
        ],
        "repeated": [_side(text) for text in report.repeated],
    }


def _side(side: Text) -> dict[str, Any]:
    return {"uri": side.uri, "text": side.text, "start": side.start, "count": side.count}
