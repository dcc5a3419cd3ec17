"""likewise info: what an index holds, and what became of each file."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from search.cli.options import IndexCommand, json_option
from search.cli.output import number, printable, say, say_json, shown, warn_of

if TYPE_CHECKING:
    from indexer.encoders import Recipe
    from indexer.encoders.runtime_in_use import RuntimeInUse

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
    from indexer.stores.open import open_store

    with closing(open_store(path)) as store, store.snapshot() as snapshot:
        if ledger:
            for row in list(snapshot.ledger(None if ledger == "all" else ledger)):
                if as_json:
                    say_json(asdict(row))
                else:
                    said = f"{row.state:<9} {shown(row.uri)}{'  ' + row.reason if row.reason else ''}"
                    say(printable(said))
            return
        known, recipe, settings = snapshot.info(), snapshot.settings.recipe, snapshot.settings.passages
        ledger_counts, notes, address = snapshot.ledger_counts(), snapshot.notes, store.address
    warn_of(notes)
    runtime = _runtime(recipe) if recipe else None
    if as_json:
        described = {"model": recipe.model if recipe else None, "recipe": asdict(recipe) if recipe else None}
        passages = asdict(settings) if settings else None
        described |= {"passage_settings": passages, "runtime": asdict(runtime) if runtime else None}
        numbers = asdict(known)
        details = numbers.pop("details")  # beside the numbers, so that the object stays flat
        say_json({**numbers, **details, **described, "ledger": ledger_counts, "notes": notes})
        return
    say(f"{shown(address)}: {number(known.documents)} documents, {number(known.passages)} passages")
    if recipe and settings:
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
    from indexer.encoders.runtime_in_use import runtime_in_use  # --help loads this file, and should load no more

    return runtime_in_use(recipe)


def _runtime_line(runtime: RuntimeInUse) -> str:
    if runtime.decided_by != "measurement":
        return f"{runtime.chosen}, as {runtime.decided_by} says"
    from indexer.encoders.choices import RUNTIME_VARIABLE, choices_file

    again = f"delete {shown(str(choices_file()))} to measure again, or set {RUNTIME_VARIABLE}"
    if runtime.reason:
        return f"{runtime.chosen}: {runtime.reason}; {again}"
    speeds = ", ".join(f"{name} {number(round(speed))}" for name, speed in runtime.tokens_per_second.items())
    where = f"{runtime.cpu}, {runtime.threads} thread{'' if runtime.threads == 1 else 's'}"
    return f"{runtime.chosen}, by tokens a second: {speeds} (measured on {where}); {again}"
