"""likewise pairs: print the most similar pairs of texts of a file, or of passages of an index."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from indexer.errors import count_of
from likewise.shell.arguments.default_index import find_default
from likewise.shell.arguments.options import HelpfulCommand, device_option, json_option, trust_option
from likewise.shell.terminal.output import quiet_libraries, say, say_json, shown, warn

if TYPE_CHECKING:
    from likewise.evaluation.pairs import PairReport, Side


class _FileOrIndex(click.Path):
    """The path of something that exists, or a DSN."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        from indexer.stores.addresses.open import is_uri

        return value if is_uri(value) else super().convert(value, parameter, context)


_EXISTING = _FileOrIndex(exists=True)


@click.command(cls=HelpfulCommand)
@click.argument("source", metavar="FILE|INDEX", required=False, envvar="LIKEWISE_INDEX", type=_EXISTING)
@click.option("--index", "index", metavar="PATH", type=_EXISTING,
              help="The index, in place of the INDEX argument or LIKEWISE_INDEX.")  # fmt: skip
@click.option(
    "-n", "count", default=20, show_default=True, type=click.IntRange(1), metavar="N", help="How many pairs to print."
)
@click.option("--min-score", default=-1.0, metavar="S", help="Leave out pairs with a cosine below S.")
@click.option("--model", metavar="NAME", help="Model or recipe that embeds FILE.  [default: all-MiniLM-L6-v2]")
@click.option("--text-field", metavar="F", help="Field of the records in FILE with their text.")
@device_option
@trust_option
@json_option
def pairs(
    source: str | None,
    index: str | None,
    count: int,
    min_score: float,
    model: str | None,
    text_field: str | None,
    device: str,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Print the most similar pairs of texts in FILE, or of passages in INDEX, best first.

    FILE has one text per line, or records (.jsonl, .csv, .tsv). Its texts are embedded. Repeated texts are listed and
    count once. In INDEX, passages of different documents are compared by their stored vectors.

    The result is exact: no pair that is left out has a higher score than the last one printed. Memory holds all
    vectors (4 bytes per dimension for FILE, 2 for INDEX), but never all pairs.

    \b
    likewise pairs questions.txt -n 100 --min-score 0.8
    likewise pairs papers.index --json
    """
    from indexer.stores.addresses.open import is_uri

    typed = click.get_current_context().get_parameter_source("source") == ParameterSource.COMMANDLINE
    if index and typed:
        raise click.UsageError("give --index, or a FILE or INDEX as an argument, not both")
    if (source := index or source) is None and (default := find_default()) is not None:
        source = default
    if source is None:
        raise click.UsageError("name a FILE or an INDEX first, or set LIKEWISE_INDEX")
    if math.isnan(min_score):
        raise click.UsageError("--min-score is nan: give a number")
    if (is_index := is_uri(source) or Path(source).is_dir()) and (model or text_field or device != "auto"):
        raise click.UsageError("--model, --text-field and --device are for a FILE: an INDEX has its vectors")
    if is_index:
        report = _pairs_of_index(source, count, min_score)
    else:
        report = _pairs_of_file(Path(source), count, min_score, model, text_field, device, trust_remote_code)
    if report.cut:
        warn(f"longer than the model reads, so that only the beginning was compared: {count_of(report.cut, 'text')}")
    if as_json:
        say_json(_as_json(report))
        return
    for pair in report.pairs:
        say(f"{pair.score:.4f}  {_line(pair.first)}\n        {_line(pair.second)}")
    for text in report.repeated[:count]:
        say(f"{text.count} times  {_line(text)}")
    repeated = f"; {count_of(len(report.repeated), 'text')} more than once in the file" if report.repeated else ""
    compared = count_of(report.texts, "passage" if is_index else "text")
    say(f"{count_of(len(report.pairs), 'pair')} of {compared}{repeated}", err=True)


def _pairs_of_index(path: str, count: int, min_score: float) -> PairReport:
    from indexer.stores.addresses.open import open_store
    from likewise.evaluation.pairs import pairs_of_passages

    with closing(open_store(path)) as store:
        return pairs_of_passages(store, count, min_score)


def _pairs_of_file(
    path: Path, count: int, min_score: float, model: str | None, text_field: str | None, device: str, trust: bool
) -> PairReport:
    from indexer.encoders import get_encoder
    from indexer.encoders.machine.runtime import Runtime
    from indexer.encoders.recipes.locate import DEFAULT_MODEL
    from likewise.evaluation.collection import read_documents
    from likewise.evaluation.pairs import pairs_of_texts

    documents = read_documents(path, text_field)
    quiet_libraries()
    runtime = Runtime(device=device, trust_remote_code=trust)
    return pairs_of_texts(documents, get_encoder(model or DEFAULT_MODEL, runtime), count, min_score)


def _line(side: Side) -> str:
    from indexer.passages.cut import text_for_people

    text = " ".join(text_for_people(side.text, side.format).split())
    return f"{shown(side.uri)}: {text if len(text) <= 100 else text[:99] + '…'}"


def _as_json(report: PairReport) -> dict[str, Any]:
    return {
        "texts": report.texts,
        "cut": report.cut,
        "exact": True,
        "pairs": [
            {"score": pair.score, "first": _side(pair.first), "second": _side(pair.second)} for pair in report.pairs
        ],
        "repeated": [_side(text) for text in report.repeated],
    }


def _side(side: Side) -> dict[str, Any]:
    return {"uri": side.uri, "text": side.text, "start": side.start, "count": side.count}
