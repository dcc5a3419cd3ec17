"""likewise distribute: put the documents of an index in a database on several servers."""

from __future__ import annotations

import click

from search.cli.options import IndexCommand, json_option
from search.cli.output import count_of, say, say_json, shown, without_passwords
from search.cli.progress import counted_documents


@click.command(cls=IndexCommand)
@click.option(
    "--shard",
    "shards",
    multiple=True,
    required=True,
    metavar="DSN",
    help="A server that is to hold a part of the documents; name each. The one of INDEX may be among them.",
)
@json_option
def distribute(path: str, shards: tuple[str, ...], as_json: bool) -> None:
    """Put the documents of INDEX, which is in PostgreSQL, on several servers: each document whole on one of them.

    Searches and writes go on meanwhile, and nothing is embedded. To add a server, name all of them, the new one too.
    After an interruption, the same command goes on where it stopped.

    \b
    likewise distribute "postgresql://db1/search?index=papers" \\
        --shard postgresql://db1/search --shard postgresql://db2/search --shard postgresql://db3/search
    """
    from indexer.copying import distribute as move

    with counted_documents("moving") as progress:
        done = move(path, shards, progress)
    if as_json:
        numbers = {"copied": done.copied, "documents": done.documents, "passages": done.passages}
        names = [without_passwords(shard) for shard in shards]
        say_json({"distribute": without_passwords(path), "shards": names, **numbers, "questions": done.questions})
        return
    documents, passages = count_of(done.documents, "document"), count_of(done.passages, "passage")
    say(f"{shown(path)}: {documents} in {passages}, on {len(shards)} servers")
