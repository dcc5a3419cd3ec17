"""likewise show, list and remove: the documents of an index, one by one."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from indexer.cli.command import IndexCommand, json_option, no_wait_option, resolve_uris, resolve_where
from indexer.cli.terminal import printable, say, say_json, shown, warn


@click.command(cls=IndexCommand)
@click.argument("uri")
@json_option
def show(path: str, uri: str, as_json: bool) -> None:
    """Print the document URI of INDEX as it is stored.

    \b
    likewise show papers.index notes/bread.txt
    """
    from indexer.index import Index

    with Index.open(path) as index:
        document = index.get(resolve_uris(index, [uri])[0])
    if as_json:
        say_json(asdict(document))
        return
    known = [("title", document.title), ("format", document.format), ("modified", document.modified)]
    for name, value in (*known, *document.metadata.items()):
        if value not in (None, ""):
            say(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    say(f"\n{document.text}", tabs=True)


@click.command("list", cls=IndexCommand)
@click.option("--where", metavar="FILTER", help="Only documents that pass, such as 'format = \"pdf\"'.")
@json_option
def list_command(path: str, where: str | None, as_json: bool) -> None:
    """List the documents of INDEX in the order they were added; with --json one object a line.

    \b
    likewise list papers.index --where 'year >= 2020'
    """
    from indexer.filters.parse import parse
    from indexer.index import Index

    where = resolve_where(where)
    with Index.open(path) as index:
        for document in index.store.iterate(parse(where) if where is not None else None):
            if as_json:
                say_json({**asdict(document), "text": None, "characters": len(document.text)})
            else:
                click.echo(f"{printable(shown(document.uri))}\t{printable(document.title)}")


@click.command(cls=IndexCommand)
@click.argument("uris", nargs=-1, required=True, metavar="URI...")
@no_wait_option
@json_option
def remove(path: str, uris: tuple[str, ...], no_wait: bool, as_json: bool) -> None:
    """Remove documents from INDEX; an unknown URI removes nothing.

    \b
    likewise remove papers.index notes/bread.txt doc-17
    """
    from indexer.index import Index

    with Index.open(path) as index, index.store.writer(wait=not no_wait, on_wait=warn):
        removed = index.remove(resolve_uris(index, uris))
    if as_json:
        say_json({"removed": removed})
    else:
        say(f"removed {removed} document{'s' if removed != 1 else ''}")
