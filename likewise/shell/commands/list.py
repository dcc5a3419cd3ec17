"""likewise list: print the uris of the documents of an index, or of the documents that pass a filter."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from likewise.shell.arguments.options import IndexCommand, json_option, resolve_where
from likewise.shell.terminal.output import printable, say_json, shown, warn_of
from likewise.shell.terminal.terminal import Terminal, terminal

if TYPE_CHECKING:
    from indexer.records import Document

_BEGINNING_COLUMNS = 62
_READ_CHARACTERS = 4 * _BEGINNING_COLUMNS
"""Number of characters that are read to show the beginning of a text. They suffice unless the text begins with very
many spaces."""


@click.command("list", cls=IndexCommand)
@click.option("--where", metavar="FILTER", help="List only documents that match, such as 'format = \"pdf\"'.")
@json_option
def list_command(path: str, where: str | None, as_json: bool) -> None:
    """List the documents of INDEX in the order they were added; with --json, one object per line.

    Each line has the uri and the title. A terminal shows the beginning of the text of a document without a title.

    \b
    likewise list papers.index --where 'year >= 2020'
    """
    from search.searcher import Searcher

    condition, screen = resolve_where(where), terminal()
    with Searcher(path) as searcher:
        warn_of(searcher.filter_notes(condition))
        for document in searcher.documents(condition):
            if as_json:
                say_json({**asdict(document), "text": None, "characters": len(document.text)})
            else:
                click.echo(f"{printable(shown(document.uri))}\t{_name(document, screen)}")


def _name(document: Document, screen: Terminal | None) -> str:
    """Return the title. On a terminal, a document without a title gets the beginning of its text."""
    if document.title or screen is None:
        return printable(document.title)
    from rich.text import Text

    beginning = printable(" ".join(document.text[:_READ_CHARACTERS].split()))
    return "".join(Terminal(_BEGINNING_COLUMNS).lines(Text(beginning, "dim"), most=1))
