"""likewise migrate: change the model of an index while it is searched and written to, and return to the one before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.errors import BadInput, count_of
from likewise.shell.arguments import options
from likewise.shell.terminal.output import number, quoted, say, say_json, shown, warn_of
from likewise.shell.terminal.tables import print_table

if TYPE_CHECKING:
    from indexer.indexing.core import IndexCore
    from likewise.evaluation.measures import Qrels
    from likewise.migration.verdict import Verdict
    from likewise.shell.indexing.vector_options import VectorOptions

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=options.IndexCommand)
@click.option("--model", metavar="NAME|PATH|URL#NAME", help="The new model: its name, its folder, or an endpoint.")
@options.rare("--tokenizer", metavar="NAME|PATH", help="Tokenizer that cuts passages for an endpoint.")
@click.option("--max-tokens", type=int, metavar="N", help="Maximum tokens of a passage. Required for an endpoint.")
@options.rare("--input-type", is_flag=True, help="Send input_type to the endpoint: query or document.")
@click.option("--queries", type=_FILE, metavar="FILE", help="Judged questions for the verdict: JSON lines.")
@click.option(
    "--qrels", type=_FILE, metavar="FILE", help="Judgments: query-id, corpus-id, score; or TREC's four columns."
)
@click.option("--yes", is_flag=True, help="Switch without asking.")
@click.option("--back", is_flag=True, help="Bring the old vectors up to date, and return to them.")
@click.option(
    "--drop", is_flag=True, help="Remove the vectors that are not searched: the old ones, or unfinished new ones."
)
@options.trust_option
@options.no_cache_option
@options.no_wait_option
@options.json_option
def migrate(
    path: str,
    model: str | None,
    queries: Path | None,
    qrels: Path | None,
    yes: bool,
    back: bool,
    drop: bool,
    trust_remote_code: bool,
    no_cache: bool,
    no_wait: bool,
    as_json: bool,
    **vectors: Any,
) -> None:
    """Change the model of INDEX: embed its documents with it, compare both models, and switch.

    INDEX can be searched and written to during the build. An interrupted build continues if the same command runs
    again. The comparison has nDCG@10 if --queries and --qrels are given. The switch is one commit. The old vectors are
    kept until --drop removes them. --back embeds with the old model what has changed since, and returns to it.

    \b
    likewise migrate papers.index --model BAAI/bge-small-en-v1.5
    likewise migrate papers.index --model e5-small-v2 --queries queries.jsonl --qrels qrels.tsv --yes
    likewise migrate papers.index --back
    likewise migrate papers.index --drop
    """
    if sum((model is not None, back, drop)) != 1:
        raise click.UsageError("choose one of --model NAME, --back and --drop")
    if (queries is None) != (qrels is None):
        raise click.UsageError("--queries and --qrels belong together: give both")
    of_model = any(value is not None and value is not False for value in vectors.values())
    if model is None and (queries or yes or of_model):
        raise click.UsageError("--queries, --qrels, --tokenizer, --max-tokens, --input-type and --yes are for --model")
    if back:
        _back(path, no_wait, no_cache, trust_remote_code, as_json)
    elif drop:
        _drop(path, no_wait, as_json)
    else:
        from likewise.shell.indexing.vector_options import VectorOptions

        vector_options = VectorOptions(model=model, trust_remote_code=trust_remote_code, **vectors)
        _change(path, vector_options, queries, qrels, yes, no_cache, no_wait, as_json)


def _change(
    path: str,
    vector_options: VectorOptions,
    queries: Path | None,
    qrels: Path | None,
    yes: bool,
    no_cache: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    from indexer.indexing.context import Context
    from indexer.indexing.core import IndexCore
    from likewise.migration.migrate import build, open_next, still_there, switch
    from likewise.migration.verdict import compare_vectors
    from likewise.shell.indexing.runs import vectors_cached
    from likewise.shell.terminal.progress import DocumentProgress

    texts, judgments = _judged(path, queries, qrels)
    notes: list[str] = []
    progress = DocumentProgress("comparing documents")
    with (
        vectors_cached(not no_cache, notes) as cache,
        IndexCore.open(path, context=Context(vector_options.runtime, cache, progress, wait=not no_wait)) as main,
    ):
        if main.recipe is None:
            raise BadInput(f"{path}: holds your own vectors, which no model can make again: make a new index")
        settings, encoder = vector_options.settings(main, cache)
        assert encoder is not None
        other = open_next(main, settings, encoder, disk=_tell_disk)
        with still_there(main, other), progress:
            done = build(main, other)
            verdict = compare_vectors(
                main.store, other.store, progress, texts, judgments, trust_remote_code=vector_options.trust_remote_code
            )
        notes += [*done.notes, *verdict.notes, *_left_out([*done.left_out], str(other.recipe))]
        old, new = str(main.recipe), str(other.recipe)
        with other.store.snapshot() as snapshot:
            documents, passages = snapshot.documents, snapshot.passages
        warn_of(note for note in notes if note not in progress.printed)
        if not as_json:
            _print_verdict(verdict, old, new)
        switched = yes or _asked(new)
        if switched:
            after = _lost_with(main)
            switch(main, other, done.left_out)
            warn_of(after)
            notes += after
    if as_json:
        rest = {"left_out": len(done.left_out), "notes": [*dict.fromkeys(notes)]}
        say_json(_numbers(old, new, documents, passages, switched, verdict) | rest)
    elif switched:
        say(f"{shown(path)}: {count_of(documents, 'document')} in {count_of(passages, 'passage')} of {new}")
        say(f"the vectors of {old} are kept: --back returns to them, --drop removes them")
    if not switched:
        message = f"{path}: nothing is switched, and what was embedded is kept: run it again"
        if not _on_terminal():
            raise BadInput(f"{message} with --yes")
        say(f"{message}, or likewise migrate {quoted(path)} --drop", err=True)


def _left_out(uris: Sequence[str], model: str) -> list[str]:
    """Return the note about documents that a model cannot read."""
    if not uris:
        return []
    count = count_of(len(uris), "document")
    return [f"{model} can read no text of {count}, such as {uris[0]}: only the other model has vectors for them"]


def _judged(path: str, queries: Path | None, qrels: Path | None) -> tuple[dict[str, str] | None, Qrels | None]:
    """Return the judged questions and their judgments by the uris of the index."""
    if queries is None or qrels is None:
        return None, None
    from likewise.evaluation.commands.evaluate import as_stored
    from likewise.evaluation.measures import read_qrels, read_queries
    from search.searcher import Searcher

    texts = read_queries(queries)
    with Searcher(path) as searcher:
        judged, _ = as_stored(searcher, read_qrels(qrels, texts), path)
    return texts, judged


def _tell_disk(needed: int, free: int | None) -> None:
    room = "" if free is None else f", and {free / 2**20:,.0f} MB are free"
    say(f"the new vectors need about {needed / 2**20:,.1f} MB of disk beside the old ones{room}", err=True)


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _asked(model: str) -> bool:
    """Ask whether to switch. If nobody can be asked, the answer is no."""
    try:
        return _on_terminal() and click.confirm(f"Switch to {model}?", default=False, err=True)
    except click.Abort:
        click.echo(err=True)  # what is printed next begins on a line of its own
        raise


def _lost_with(main: IndexCore) -> list[str]:
    """Return the parts that belong to the old vectors and must be made again for the new vectors."""
    settings, notes = main.stored_settings(), []
    if settings.map is not None:
        notes.append("the map shows the old vectors: likewise map draws it again")
    if settings.words_bias is not None:
        notes.append("the result of likewise tune is valid only for the old vectors: run it again")
    return notes


def _back(path: str, no_wait: bool, no_cache: bool, trust_remote_code: bool, as_json: bool) -> None:
    from indexer.encoders.machine.runtime import Runtime
    from indexer.indexing.context import Context
    from indexer.indexing.core import IndexCore
    from likewise.migration.migrate import back
    from likewise.shell.indexing.runs import vectors_cached
    from likewise.shell.terminal.progress import DocumentProgress

    runtime, progress = Runtime(trust_remote_code=trust_remote_code), DocumentProgress("comparing documents")
    notes: list[str] = []
    with (
        vectors_cached(not no_cache, notes) as cache,
        IndexCore.open(path, context=Context(runtime, cache, progress, wait=not no_wait)) as main,
    ):
        left = str(main.recipe)
        with progress:
            followed = back(main)
    with IndexCore.open(path) as now, now.store.snapshot() as snapshot:
        model, documents, passages = str(now.recipe), snapshot.documents, snapshot.passages
    notes += [*followed.notes, *_left_out([*followed.left_out], model)]
    warn_of(note for note in notes if note not in progress.printed)
    if as_json:
        rest = {"followed": followed.documents, "removed": followed.removed, "left_out": len(followed.left_out)}
        say_json(_numbers(left, model, documents, passages, True) | rest | {"notes": notes})
        return
    removed = f", and {number(followed.removed)} removed" if followed.removed else ""
    say(f"{count_of(followed.documents, 'changed document')} brought up to date{removed}")
    say(f"{shown(path)}: {count_of(documents, 'document')} in {count_of(passages, 'passage')} of {model}")
    say(f"the vectors of {left} are kept: --back returns to them, --drop removes them")


def _drop(path: str, no_wait: bool, as_json: bool) -> None:
    from indexer.indexing.context import Context
    from indexer.indexing.core import IndexCore
    from likewise.migration.migrate import drop
    from likewise.shell.terminal.progress import Console

    with IndexCore.open(path, context=Context(listener=Console(), wait=not no_wait)) as main:
        dropped = drop(main)
        with main.store.snapshot() as snapshot:
            model, documents, passages = str(main.recipe), snapshot.documents, snapshot.passages
    if as_json:
        say_json(_numbers(dropped.model, model, documents, passages, False) | {"freed": dropped.bytes})
        return
    if dropped.problem:
        say(f"{shown(path)}: the vectors of another model, which could not be read, are removed")
        return
    say(f"{shown(path)}: the vectors of {dropped.model} are removed, {dropped.bytes / 2**20:,.1f} MB")


def _numbers(
    old: str, new: str, documents: int, passages: int, switched: bool, verdict: Verdict | None = None
) -> dict[str, Any]:
    """Return the members that --json prints for every form of the command."""
    return {
        "from": old,
        "to": new,
        "documents": documents,
        "passages": passages,
        "verdict": None if verdict is None else verdict.as_json(),
        "switched": switched,
    }


def _print_verdict(verdict: Verdict, old: str, new: str) -> None:
    rows = [("", old, new, "")]
    for name, label, form in (
        ("ndcg@10", "nDCG@10 of the judged questions", ".4f"),
        ("ndcg@10_hybrid", "nDCG@10, hybrid", ".4f"),
        ("success@10", f"found in ten, of {verdict.sentences} held-out sentences", ".1%"),
        ("question_ms", "milliseconds per question", ".1f"),
        ("passages_per_second", "passages embedded per second", ",.0f"),
        ("passages", "passages", ",.0f"),
        ("dimensions", "dimensions", ",.0f"),
        ("bytes", "bytes on disk", ",.0f"),
    ):
        if (sides := verdict.sides.get(name)) is not None:
            p = "" if sides.p is None else f"p = {sides.p:.3f}"
            rows.append((label, format(sides.old, form), format(sides.new, form), p))
    print_table(rows, right=(1, 2, 3))
    if verdict.overlap is not None:
        asked = "judged questions" if "ndcg@10" in verdict.sides else "sentences of the collection"
        say(f"of ten hits {10 * verdict.overlap:.1f} are the same, on average over {verdict.questions} {asked}")
    if "ndcg@10" not in verdict.sides and verdict.overlap is not None:
        say("only judged questions can tell which model answers better: give --queries and --qrels")
