"""likewise index: create or update an index from files, folders, records and standard input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from search.cli.options import IndexCommand, json_option, no_wait_option, recall_option, trust_option
from search.cli.output import number, say, say_json, warn, warn_of
from search.cli.progress import Progress
from search.cli.vector_options import VectorOptions

if TYPE_CHECKING:
    from indexer.core import IndexCore
    from indexer.encoders.hardware import Precision
    from indexer.ingest import Summary
    from indexer.notes import Note
    from indexer.records import Changes
    from indexer.sources import Source
    from indexer.stores.port import Writer

_COUNTS = ("seen", "indexed", "unchanged", "updated", "skipped", "failed", "pruned")


@click.command("index", cls=IndexCommand)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--model", metavar="NAME|PATH", help="The model of a new index.  [default: all-MiniLM-L6-v2]")
@click.option("--pooling", metavar="P", help="Pool hidden states: cls, mean, max, last, pooler, ...")
@click.option("--layers", metavar="L", help="Hidden layers to pool, such as -2 or -4..-1.")
@click.option("--combine", metavar="C", help="How several layers become one: mean, sum, concat.")
@click.option("--max-tokens", type=int, help="Tokens of a passage.  [default: the model's limit]")
@click.option("--overlap", type=int, help="Tokens that neighbouring passages share.  [default: 32, or a quarter]")
@click.option("--dimensions", type=int, metavar="N",
              help="Of a new index of vectors that the records bring, in place of a model's.")  # fmt: skip
@click.option("--glob", multiple=True, metavar="G", help="Of folders, only files that match; may be repeated.")
@click.option("--prune", is_flag=True, help="Remove documents that a SOURCE read whole no longer has.")
@click.option("--yes", is_flag=True, help="Let --prune remove more than half the index.")
@click.option("--rehash", is_flag=True, help="Read every file, also those that seem not to have changed.")
@click.option("--rebuild", is_flag=True, help="Embed the whole index again, with other settings or another model.")
@click.option(
    "--max-file-mb",
    type=click.FloatRange(min=0.001),
    metavar="MB",
    default=64,
    show_default=True,
    help="Skip larger files and records.",
)
@click.option("--id-field", metavar="F", help="Member of a record that is its uri.  [default: _id, id, uri, doc_id]")
@click.option("--title-field", metavar="F", help="Member that is its title.  [default: title]")
@click.option("--text-field", metavar="F", help="Member that is its text.  [default: text, body, content, abstract]")
@click.option("--language", metavar="L", help="Of searching by words: a code or name, or none.  [default: en]")
@recall_option
@click.option("--precision", default="auto", type=click.Choice(["auto", "float32", "bfloat16", "int8"]),
              show_default=True, help="Of the model's weights; int8 is calibrated on the collection.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, metavar="D", help="What computes: cpu, cuda, mps, ...")
@trust_option
@click.option("--stream", is_flag=True, help="Print the committed uris as JSON, one line a commit.")
@no_wait_option
@json_option
def index_command(
    path: str,
    sources: tuple[str, ...],
    model: str | None,
    pooling: str | None,
    layers: str | None,
    combine: str | None,
    max_tokens: int | None,
    overlap: int | None,
    dimensions: int | None,
    glob: tuple[str, ...],
    prune: bool,
    yes: bool,
    rehash: bool,
    rebuild: bool,
    max_file_mb: float,
    id_field: str | None,
    title_field: str | None,
    text_field: str | None,
    language: str | None,
    recall: float | None,
    precision: Precision,
    device: str,
    trust_remote_code: bool,
    stream: bool,
    no_wait: bool,
    as_json: bool,
) -> int:
    """Create or update INDEX from files, folders, globs, .jsonl, .csv or .tsv records, or - (JSON lines).

    What has not changed is passed by. An interrupted run keeps what it committed; run it again to continue.

    \b
    likewise index papers.index ~/papers notes/*.md
    likewise index papers.index records.jsonl --text-field abstract
    likewise index papers.index ~/papers --prune
    likewise index mine.index --dimensions 256 records-with-vectors.jsonl
    """
    from indexer.errors import BadInput
    from indexer.ingest import Run
    from indexer.sources import ReadOptions, open_sources
    from indexer.sources.source import STDIN

    options = ReadOptions(
        glob=glob,
        max_file_mb=max_file_mb,
        id_field=id_field,
        title_field=title_field,
        text_field=text_field,
        # A file's stamp says nothing about the names of a record's members.
        rehash=rehash or any((id_field, title_field, text_field)),
    )
    opened = open_sources(sources, options)
    bare = [source.argument for source in opened if source.argument != "-" and not any(source.files())]
    if len(bare) == len(opened) and not prune:
        raise BadInput(f"{', '.join(bare)}: no file to read{' that --glob lets through' if glob else ''}")
    wanted = VectorOptions(
        *(model, pooling, layers, combine, max_tokens, overlap, precision, device, language, trust_remote_code),
        dimensions,
    )
    _refuse_together(wanted, rebuild, stream)
    if prune and set(sources) == {STDIN}:
        warn("--prune compares with a SOURCE as a whole, and standard input is none: nothing will be pruned")
    pruned, refused, notes = 0, None, list[str]()
    with (
        _index(path, wanted, rebuild, no_wait, notes.append) as index,
        index.store.writer(wait=not no_wait, on_wait=warn) as writer,
        Progress(opened) as progress,
    ):

        def committed(done: Summary, changes: Changes, characters: int) -> None:
            progress.show(done, characters)
            uris = [*changes.added, *changes.replaced, *changes.updated]
            if stream and uris:
                say_json({"committed": uris})

        run = Run(index, writer, options, committed)
        summary = run.feed(opened)
        if prune:
            try:
                pruned = run.prune(opened, summary.stale, yes=yes)
            except BadInput as error:
                refused = error
        writer.settle(recall)
        if run.embedded or _unfinished(index):
            _after_embedding(index, writer, progress, notes.append)
        notes.extend(run.notes)
        with index.store.snapshot() as snapshot:
            documents, passages = snapshot.documents, snapshot.passages
    counts = {name: value for name, value in asdict(summary).items() if name in _COUNTS} | {"pruned": pruned}
    if rebuild:  # what stands as it was read has been embedded anew
        counts |= {"indexed": counts["indexed"] + counts["unchanged"], "unchanged": 0}
    warn_of(notes)
    if bare:
        warn(f"{', '.join(bare)}: no file to read")
    if as_json or stream:
        say_json(counts | {"duplicates": summary.duplicates, "stale": len(summary.stale) - pruned, "notes": notes})
    else:
        parts = [f"{number(counts[name])} {name}" for name in _COUNTS if counts[name] or name in ("seen", "indexed")]
        say(f"{', '.join(parts)}: {number(documents)} documents in {number(passages)} passages")
    _advise(summary, pruned, path)
    if refused is not None:
        raise refused
    return 1 if summary.failed or _unread(opened, summary) else 0


def _unread(sources: Sequence[Source], summary: Summary) -> bool:
    """Whether a source was not read whole, which is said unless a failure has been reported."""
    unread = [source.argument for source in sources if not source.whole and source.argument != "-"]
    if unread and not summary.failed:
        warn(f"{', '.join(unread)}: not read whole")
    return bool(unread)


def _refuse_together(wanted: VectorOptions, rebuild: bool, stream: bool) -> None:
    from indexer.errors import BadInput

    own = wanted.dimensions is not None
    for together, why in (
        (rebuild and stream, "--stream names what can be searched now, --rebuild puts all in place at its end"),
        (rebuild and own, "--dimensions is for a new index: what --rebuild embeds anew has a model"),
        (
            own and (wanted.names_model or wanted.max_tokens is not None or wanted.overlap is not None),
            "--dimensions is for vectors that come with the records: no model makes them, or cuts passages",
        ),
    ):
        if together:
            raise BadInput(f"{why}: leave one of them out")


def _advise(summary: Summary, pruned: int, address: str) -> None:
    if summary.duplicates:
        warn(f"{number(summary.duplicates)} id(s) came more than once; the last of each counts")
    if summary.nameless:
        warn(
            f"{number(summary.nameless)} record(s) of standard input have no id and are named by their line: "
            "those of another run will replace them; give each an id"
        )
    if summary.failed:
        such = "such as: " if summary.failed > 1 else ""
        warn(
            f"{number(summary.failed)} failed, {such}{summary.reason}; likewise info {address} --ledger failed has all"
        )
    if summary.reread:
        warn(f"{number(summary.reread)} file(s) hold what was taken from one that is gone: run again to read them")
    if len(summary.stale) > pruned:
        warn(f"{number(len(summary.stale) - pruned)} documents are no longer in their source; --prune removes them")


@contextmanager
def _index(address: str, wanted: VectorOptions, rebuild: bool, no_wait: bool, note: Note) -> Iterator[IndexCore]:
    """The index to write into: a new one, the existing one, or its rebuilt successor, put in place at the end."""
    from indexer.core import IndexCore
    from indexer.rebuild import rebuilt
    from indexer.stores.open import create_store, is_store

    if not is_store(address):
        settings, encoder = wanted.settings()
        with IndexCore(create_store(address, settings), encoder) as index:
            yield index
        return
    trust = wanted.trust_remote_code
    with IndexCore.open(address, precision=wanted.precision, device=wanted.device, trust_remote_code=trust) as index:
        if rebuild:
            with rebuilt(index, lambda: wanted.settings(index), note=note, wait=not no_wait, on_wait=warn) as successor:
                yield successor
            return
        wanted.require_same(index)
        yield index


def _after_embedding(index: IndexCore, writer: Writer, progress: Progress, note: Note) -> None:
    """Measure what scores mean now, and make questions quick; `note` is told what int8 has cost."""
    from indexer.calibration.background import renew
    from indexer.encoders.torch.int8 import loss
    from indexer.errors import ModelError

    if index.recipe is None:
        return
    try:
        encoder = index.encoder
    except ModelError as error:  # every passage came with its vectors
        note(f"{error}: the vectors are in, but what scores mean was not measured")
        return
    renew(index.store, encoder)
    progress.note("compiling the encoder, so that questions are quick")
    _compile(index, writer, note)
    lost = loss(encoder)
    if lost is not None:
        cosines = f"{lost.mean:.4f} on average and {lost.worst:.4f} at worst"
        note(f"int8: cosines to the model's own vectors of {lost.texts} passages are {cosines}")


def _unfinished(index: IndexCore) -> bool:
    """Whether the run that embedded these documents was interrupted before its end."""
    with index.store.snapshot() as snapshot:
        return not _settled(index) and snapshot.documents > 0


def _settled(index: IndexCore) -> bool:
    """Whether the encoder was compiled, or could not be."""
    return index.store.artifacts().exists() or bool(index.stored_settings().uncompiled)


def _compile(index: IndexCore, writer: Writer, note: Note) -> None:
    """Once: make questions quick, or say why they will not be."""
    from indexer.errors import ModelError

    if _settled(index):
        return
    try:
        index.compile()
    except ModelError as error:
        reason = str(error)
        writer.change(lambda settings: replace(settings, uncompiled=reason))
        note(f"{error}: a question will take some seconds")
