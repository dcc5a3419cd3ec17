"""likewise show: print one document of an index."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from search.cli.arguments.options import IndexCommand, complete_path, json_option, resolve_uri
from search.cli.terminal.output import say, say_json


@click.command(cls=IndexCommand)
@click.argument("uri", shell_complete=complete_path)
@json_option
def show(path: str, uri: str, as_json: bool) -> None:
    """Print the document URI of INDEX as it is stored.

    The end of a path is enough, where only one document has it.

    \b
    likewise show papers.index notes/bread.txt
    likewise show bread.txt
    """
    from search.searcher import Searcher

    with Searcher(path) as searcher:
        document = searcher.get(resolve_uri(searcher, path, uri))
    if as_json:
        say_json(asdict(document))
        return
    members = [("title", document.title), ("format", document.format), ("modified", document.modified)]
    for name, value in (*members, *document.metadata.items()):
        if value not in (None, ""):
            say(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    say(f"\n{document.text}", tabs=True)
