"""likewise index: create or update an index from files, folders, records or standard input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from indexer.errors import BadInput
from likewise.shell.arguments import options
from likewise.shell.arguments.workers import resources_of, worker_resources_option, workers_option
from likewise.shell.terminal.output import warn

if TYPE_CHECKING:
    from likewise.shell.indexing.vector_options import VectorOptions


@click.command("index", cls=options.SourceCommand)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...", shell_complete=options.complete_path)
@click.option(
    "--model",
    metavar="NAME|PATH|URL#NAME",
    help="Model of a new index: its name, its folder, or an endpoint.  [default: auto, one that reads the texts]",
)
@options.rare(
    "--tokenizer",
    metavar="NAME|PATH",
    help="Tokenizer that cuts passages for an endpoint.  [default: passages are cut by characters]",
)
@options.rare("--input-type", is_flag=True,
              help="Send input_type to the endpoint of a new index: query or document.")  # fmt: skip
@options.rare("--pooling", metavar="P", help="How to pool hidden states into a vector: cls, mean, max, last, ...")
@options.rare("--layers", metavar="L", help="Which hidden layers to pool, such as -2 or -4..-1.")
@options.rare("--combine", metavar="C", help="How to combine several layers: mean, sum or concat.")
@click.option(
    "--max-tokens",
    type=int,
    metavar="N",
    help="Maximum tokens of a passage. Required for a new endpoint.  [default: the model's limit, at most 512]",
)
@options.rare(
    "--overlap",
    type=int,
    metavar="N",
    help="Tokens that neighbouring passages share.  [default: 32, or a quarter of --max-tokens below 128]",
)
@options.rare("--dimensions", type=int, metavar="N",
              help="With --model, keep the first N dimensions of its vectors. Without --model, make an index without "
              "a model, for records with vectors of N numbers.")  # fmt: skip
@options.query_prompt_option
@options.document_prompt_option
@options.glob_option
@options.prune_option
@options.prune_yes_option
@options.dry_run_option
@options.no_ignore_option
@options.rehash_option
@click.option("--rebuild", is_flag=True, help="Embed all documents again, with other settings or another model.")
@click.option("--max-file-mb", type=click.FloatRange(min=0.001), metavar="MB", default=64, show_default=True,
              help="Skip files and records that are larger.")  # fmt: skip
@click.option(
    "--id-field",
    metavar="F",
    help="Field of a record with its uri. Then a uri is one document in all files.  [default: _id, id, uri, doc_id]",
)
@click.option("--title-field", metavar="F", help="Field of a record with its title.  [default: title]")
@click.option(
    "--text-field", metavar="F", help="Field of a record with its text.  [default: text, body, content, abstract]"
)
@click.option(
    "--language",
    metavar="L",
    help="Language whose word endings a search by words ignores, such as en; or none.  [default: auto, by the texts]",
)
@options.recall_option
@options.rare("--precision", default="auto", type=click.Choice(["auto", "float32", "bfloat16", "int8"]),
              show_default=True, help="Precision of the weights. int8 is quick on old CPUs.")  # fmt: skip
@options.device_option
@options.trust_option
@options.no_cache_option
@workers_option
@worker_resources_option
@options.rare("--stream", is_flag=True, help="Print the uris of each commit as a line of JSON.")
@options.shards_option
@options.no_wait_option
@options.json_option
def index_command(
    path: str,
    sources: tuple[str, ...],
    model: str | None,
    glob: tuple[str, ...],
    prune: bool,
    yes: bool,
    dry_run: bool,
    no_ignore: bool,
    rehash: bool,
    rebuild: bool,
    max_file_mb: float,
    id_field: str | None,
    title_field: str | None,
    text_field: str | None,
    language: str | None,
    recall: float | None,
    no_cache: bool,
    workers: str | None,
    worker_resources: tuple[str, ...],
    stream: bool,
    shards: int | None,
    no_wait: bool,
    as_json: bool,
    **vectors: Any,
) -> int:
    """Create or update INDEX from files, folders, globs, records (.jsonl, .csv, .tsv), or - (JSON lines on stdin).

    Documents that have not changed are not embedded again. An interrupted run keeps what it has committed. Run it
    again to continue. Without INDEX, one SOURCE goes into the default index: .likewise in this folder, or in the
    nearest folder above that has one. If there is none, it is made in this folder.

    \b
    likewise index ~/papers
    likewise index papers.index ~/papers notes/*.md
    likewise index papers.index records.jsonl --text-field abstract
    likewise index papers.index ~/papers --prune
    likewise index papers.index ~/papers --model http://localhost:11434/v1#nomic-embed-text --max-tokens 512
    likewise index mine.index --dimensions 256 records-with-vectors.jsonl
    """
    # vectors: the options that VectorOptions takes under the same names.
    from indexer.indexing.new_index import AUTO_MODEL
    from indexer.sources import ReadOptions, open_sources
    from indexer.sources.folders.source import STDIN
    from indexer.stores.addresses.open import holds_store
    from likewise.shell.arguments.configuration import read_extractors
    from likewise.shell.indexing.runs import RunOptions, run_and_report
    from likewise.shell.indexing.vector_options import VectorOptions

    chooses_again = rebuild and model == AUTO_MODEL
    model, language = options.unless_configured(path, model=model, language=language)

    read_options = ReadOptions(
        glob=glob,
        max_file_mb=max_file_mb,
        id_field=id_field,
        title_field=title_field,
        text_field=text_field,
        # The same file may give other documents if other fields of its records are read.
        rehash=rehash or any((id_field, title_field, text_field)),
        ignore=not no_ignore,
        extractors=read_extractors(),
    )
    opened = open_sources(sources, read_options, holds_store)
    bare = [source.argument for source in opened if source.argument != "-" and not any(source.files())]
    if len(bare) == len(opened) and not prune:
        raise BadInput(f"{', '.join(bare)}: no file to read{' that fits --glob' if glob else ''}: name another place")
    vector_options = VectorOptions(model=model, language=language, chooses_again=chooses_again, **vectors)
    _refuse_together(vector_options, rebuild, stream)
    if prune and set(sources) == {STDIN}:
        warn("--prune does nothing with standard input, because it is not a whole collection")
    resources = resources_of(workers, worker_resources)
    run_options = RunOptions(
        prune, yes, rebuild, no_wait, stream, as_json, recall, no_cache, shards, workers, resources, dry_run
    )
    return run_and_report(path, [(read_options, opened)], vector_options, run_options, bare)


def _refuse_together(chosen: VectorOptions, rebuild: bool, stream: bool) -> None:
    """Raise BadInput for options that contradict each other."""

    own_vectors = chosen.own_vectors
    of_model = (chosen.tokenizer, chosen.max_tokens, chosen.overlap, chosen.query_prompt, chosen.document_prompt)
    needs_model = chosen.input_type or any(value is not None for value in of_model)
    for contradict, why in (
        (rebuild and stream, "--stream prints what can be searched now, but --rebuild replaces the index at its end"),
        (rebuild and own_vectors, "--dimensions alone is for an index without a model, and --rebuild needs one"),
        (own_vectors and needs_model, "--dimensions without --model is for vectors that come with the records"),
    ):
        if contradict:
            raise BadInput(f"{why}: leave one of them out")
