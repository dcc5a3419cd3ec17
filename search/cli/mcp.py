"""likewise mcp: answer agents over standard input and output."""

from __future__ import annotations

import os

import click

from search.cli.default_index import find_default
from search.cli.extras import missing_extra


@click.command()
@click.argument("indexes", metavar="[NAME=]INDEX...", nargs=-1)
def mcp(indexes: tuple[str, ...]) -> None:
    """Answer an agent that speaks the Model Context Protocol over standard input and output.

    The client starts this command by itself; `likewise serve` answers the same protocol at /mcp.

    \b
    likewise mcp ~/papers.index
    claude mcp add papers -- likewise mcp ~/papers.index
    """
    indexes = indexes or tuple(filter(None, [os.environ.get("LIKEWISE_INDEX") or find_default()]))
    if not indexes:
        raise click.UsageError("name the INDEX to serve, or set LIKEWISE_INDEX", click.get_current_context())
    from search.served import addresses_by_name

    try:
        import anyio

        from search.mcp import serve_stdio
    except ModuleNotFoundError as error:
        raise missing_extra(error, "serve") from error
    anyio.run(serve_stdio, addresses_by_name(indexes))
