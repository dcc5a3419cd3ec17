"""likewise compact: rewrite the vectors of an index and free disk space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from likewise.shell.arguments.options import IndexCommand, json_option, no_wait_option, recall_option
from likewise.shell.terminal.output import number, say, say_json, warn

if TYPE_CHECKING:
    from indexer.stores.port import Kind


@click.command(cls=IndexCommand)
@click.option(
    "--kind",
    type=click.Choice(["auto", "exact", "approximate"]),
    default="auto",
    show_default=True,
    help="How vectors are searched. auto decides by their number.",
)
@recall_option
@no_wait_option
@json_option
def compact(path: str, kind: Kind, recall: float | None, no_wait: bool, as_json: bool) -> None:
    """Rewrite the vectors of INDEX into one segment and free disk space.

    A search compares the question with every vector of an exact segment. An approximate segment is faster. auto makes
    one from 100,000 passages on.

    \b
    likewise compact papers.index
    likewise compact papers.index --kind approximate --recall 0.99
    """
    from indexer.index import Index

    with Index.open(path) as index, index.lock(wait=not no_wait, on_wait=warn):
        before = index.info().bytes
        index.compact(kind, recall)
        after = index.info()
    if kind == "approximate" and any(row["kind"] == "exact" for row in after.segments):
        warn(f"{number(after.passages)} passages are too few for an approximate segment: it stays exact")
    if as_json:
        say_json({"bytes_before": before, "bytes": after.bytes})
    else:
        say(f"{before / 2**20:.1f} MB before, {after.bytes / 2**20:.1f} MB now")
