"""likewise info, check, compact and compile: what an index holds, whether it is sound, making it small and quick."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from indexer.cli.command import IndexCommand, json_option, no_wait_option, recall_option, trust_option
from indexer.cli.terminal import number, printable, say, say_json, shown, warn

if TYPE_CHECKING:
    from indexer.encoders import Recipe
    from indexer.encoders.choices import RuntimeInUse
    from indexer.stores.port import Kind

_STATES = ["indexed", "unchanged", "updated", "skipped", "failed", "gone"]


@click.command(cls=IndexCommand)
@click.option(
    "--ledger",
    is_flag=False,
    flag_value="all",
    type=click.Choice(["all", *_STATES]),
    metavar="[STATE]",
    help="List what became of every file and record; only those of STATE (" + ", ".join(_STATES) + ").",
)
@json_option
def info(path: str, ledger: str | None, as_json: bool) -> None:
    """Say what INDEX holds, how its vectors were made, and what became of every source file.

    \b
    likewise info papers.index
    likewise info papers.index --ledger failed
    """
    from indexer.index import Index

    with Index.open(path) as index:
        if ledger:
            with index.store.snapshot() as snapshot:
                rows = list(snapshot.ledger(None if ledger == "all" else ledger))
            for row in rows:
                if as_json:
                    say_json(asdict(row))
                else:
                    said = f"{row.state:<9} {shown(row.uri)}{'  ' + row.reason if row.reason else ''}"
                    say(printable(said))
            return
        known, recipe = index.info(), index.recipe
        with index.store.snapshot() as snapshot:
            ledger_counts = snapshot.ledger_counts()
    runtime = _runtime(recipe) if recipe else None
    if as_json:
        described = {"model": recipe.model if recipe else None, "recipe": asdict(recipe) if recipe else None}
        passages = asdict(index.passage_settings) if index.passage_settings else None
        described |= {"passage_settings": passages, "runtime": asdict(runtime) if runtime else None}
        numbers = asdict(known)
        details = numbers.pop("details")  # beside the numbers, so that the object stays flat
        say_json({**numbers, **details, **described, "ledger": ledger_counts})
        return
    say(f"{shown(index.store.address)}: {number(known.documents)} documents, {number(known.passages)} passages")
    if recipe and index.passage_settings:
        settings = index.passage_settings
        say(f"model      {recipe}, {known.dimensions} dimensions, fingerprint {recipe.fingerprint[:12]}")
        tokens = f"up to {settings.max_tokens} tokens, {settings.overlap} of overlap"
        say(f"passages   {tokens}, {number(known.tokens)} tokens in all")
        if runtime:
            say(printable(f"runtime    {_runtime_line(runtime)}"))
    else:
        say(f"vectors    your own, {known.dimensions} dimensions")
    kinds = ", ".join(f"{number(row['count'])} {row['kind']}" for row in known.segments) or "none"
    say(f"segments   {kinds}; {number(known.unsealed)} passages unsealed")
    say(f"on disk    {known.bytes / 2**20:.1f} MB, format {known.format_version}")
    say(f"fields     {', '.join(('uri', 'title', 'path', 'format', 'modified', *known.fields))}")
    if ledger_counts:
        say("sources    " + ", ".join(f"{number(count)} {state}" for state, count in ledger_counts.items()))


def _runtime(recipe: Recipe) -> RuntimeInUse | None:
    from indexer.encoders.choices import runtime_in_use  # --help loads this file, and should load no more

    return runtime_in_use(recipe)


def _runtime_line(runtime: RuntimeInUse) -> str:
    if runtime.decided_by != "measurement":
        return f"{runtime.chosen}, as {runtime.decided_by} says"
    from indexer.encoders.choices import VARIABLE, choices_file

    again = f"delete {shown(str(choices_file()))} to measure again, or set {VARIABLE}"
    if runtime.reason:
        return f"{runtime.chosen}: {runtime.reason}; {again}"
    speeds = ", ".join(f"{name} {number(round(speed))}" for name, speed in runtime.tokens_per_second.items())
    where = f"{runtime.cpu}, {runtime.threads} thread{'' if runtime.threads == 1 else 's'}"
    return f"{runtime.chosen}, by tokens a second: {speeds} (measured on {where}); {again}"


@click.command(cls=IndexCommand)
@click.option("--repair", is_flag=True, help="Rebuild what can be rebuilt from the catalog.")
@click.option("--recall", is_flag=True, help="Measure how many of the ten nearest passages a search finds.")
@no_wait_option
@json_option
def check(path: str, repair: bool, recall: bool, no_wait: bool, as_json: bool) -> int:
    """Verify every checksum of INDEX; exit 1 when something is wrong.

    \b
    likewise check papers.index --repair
    likewise check papers.index --recall
    """
    from indexer.index import Index

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is damaged is in the report
        index = Index.open(path)
    with index, index.store.writer(wait=not no_wait, on_wait=warn) if repair else nullcontext():
        report = index.check(repair)
        measured = None
        if recall:
            with index.store.snapshot() as snapshot:
                measured = snapshot.recall()
    if as_json:
        said = {"ok": report.ok, "problems": report.problems, "notes": report.notes}
        say_json({**said, "recall": asdict(measured)} if measured else said)
    else:
        for problem in report.problems:
            say(printable(f"problem: {problem}"))
        for note in report.notes:
            say(f"note: {note}")
        if measured:
            bounds = "exact" if measured.exact else f"95 % interval {measured.low:.3f} to {measured.high:.3f}"
            say(f"recall@10 {measured.recall:.3f} ({bounds}), {measured.questions} questions")
        say("ok" if report.ok else f"{len(report.problems)} problem(s); --repair rebuilds what is derived")
    return 0 if report.ok else 1


@click.command(cls=IndexCommand)
@click.option(
    "--kind",
    type=click.Choice(["auto", "exact", "approximate"]),
    default="auto",
    show_default=True,
    help="How the vectors are to be searched.",
)
@recall_option
@no_wait_option
@json_option
def compact(path: str, kind: Kind, recall: float | None, no_wait: bool, as_json: bool) -> None:
    """Rewrite the vectors of INDEX into one segment and give free space back to the disk.

    An exact segment is scanned whole; from 100,000 passages on, auto makes an approximate one, which is faster.

    \b
    likewise compact papers.index
    likewise compact papers.index --kind approximate --recall 0.99
    """
    from indexer.index import Index

    with Index.open(path) as index, index.store.writer(wait=not no_wait, on_wait=warn):
        before = index.info().bytes
        index.compact(kind, recall)
        after = index.info()
    if kind == "approximate" and any(row["kind"] == "exact" for row in after.segments):
        warn(f"{number(after.passages)} passages are too few for an approximate segment: it stays exact")
    if as_json:
        say_json({"bytes_before": before, "bytes": after.bytes})
    else:
        say(f"{before / 2**20:.1f} MB before, {after.bytes / 2**20:.1f} MB now")


@click.command("compile", cls=IndexCommand)
@trust_option
@no_wait_option
@json_option
def compile_command(path: str, trust_remote_code: bool, no_wait: bool, as_json: bool) -> None:
    """Compile the encoder of INDEX, so that a question needs no torch. likewise index does it by itself, once.

    \b
    likewise compile papers.index
    """
    from indexer.index import Index

    trust = trust_remote_code
    with Index.open(path, trust_remote_code=trust) as index, index.store.writer(wait=not no_wait, on_wait=warn):
        index.compile()
        folder = index.store.artifacts()
    size = sum(file.stat().st_size for file in folder.iterdir())
    if as_json:
        say_json({"encoder": str(folder), "bytes": size})
    else:
        say(f"{shown(str(folder))}: {size / 2**20:.1f} MB; its vectors are torch's")
