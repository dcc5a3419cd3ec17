"""likewise mcp: answer agents over standard input and output."""

from __future__ import annotations

import sys

import click

from likewise.shell.arguments.default_index import indexes_to_serve
from likewise.shell.arguments.options import HelpfulCommand
from likewise.shell.terminal.extras import missing_extra


@click.command(cls=HelpfulCommand)
@click.argument("indexes", metavar="[NAME=]INDEX...", nargs=-1)
def mcp(indexes: tuple[str, ...]) -> None:
    """Answer an agent that speaks the Model Context Protocol (MCP) over standard input and output.

    The agent starts this command itself. likewise serve answers the same protocol at /mcp.

    \b
    likewise mcp ~/papers.index
    claude mcp add papers -- likewise mcp ~/papers.index
    """
    addresses = indexes_to_serve(indexes)
    try:
        import anyio

        from likewise.service.mcp import serve_stdio
    except ModuleNotFoundError as error:
        raise missing_extra(error, "serve") from error
    sys.stdout.write("")  # raises the error of a closed output, which the server could not report
    anyio.run(serve_stdio, addresses)
