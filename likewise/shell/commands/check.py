"""likewise check: verify an index, and repair it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict

import click

from indexer.errors import count_of, in_shell
from likewise.shell.arguments.options import IndexCommand, json_option, no_wait_option
from likewise.shell.terminal.output import printable, say, say_json, warn


@click.command(cls=IndexCommand)
@click.option("--repair", is_flag=True, help="Rebuild everything that can be rebuilt from the catalog.")
@click.option("--recall", is_flag=True, help="Measure the share of the ten nearest passages that a search finds.")
@no_wait_option
@json_option
def check(path: str, repair: bool, recall: bool, no_wait: bool, as_json: bool) -> int:
    """Verify every checksum of INDEX; exit with 1 if something is wrong.

    \b
    likewise check papers.index --repair
    likewise check papers.index --recall
    """
    from indexer.index import Index

    with Index.open(path) as index, index.lock(wait=not no_wait, on_wait=warn) if repair else nullcontext():
        report = index.check(repair)
        measured = index.recall() if recall else None
    if as_json:
        problems, notes = ([*map(in_shell, each)] for each in (report.problems, report.notes))
        result = {"ok": report.ok, "problems": problems, "notes": notes}
        say_json({**result, "recall": asdict(measured)} if measured else result)
    else:
        for problem in report.problems:
            say(printable(f"problem: {in_shell(problem)}"))
        for note in report.notes:
            say(f"note: {in_shell(note)}")
        if measured:
            bounds = "exact" if measured.exact else f"95 % interval {measured.low:.3f} to {measured.high:.3f}"
            say(f"recall@10 {measured.recall:.3f} ({bounds}), {count_of(measured.questions, 'question')}")
        say(
            "ok" if report.ok else f"{count_of(len(report.problems), 'problem')}; --repair rebuilds what can be rebuilt"
        )
    return 0 if report.ok else 1
