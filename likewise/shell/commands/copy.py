"""likewise copy: copy an index between folders and databases, without embedding anything."""

from __future__ import annotations

from contextlib import closing

import click

from indexer.errors import count_of
from likewise.shell.arguments.options import HelpfulCommand, complete_path, json_option, shards_option
from likewise.shell.terminal.output import number, say, say_json, shown, warn_of, without_passwords


@click.command("copy", cls=HelpfulCommand)
@click.argument("source", metavar="FROM", shell_complete=complete_path)
@click.argument("destination", metavar="TO", required=False, shell_complete=complete_path)
@click.option("--drop", is_flag=True, help="Remove what an interrupted copy to TO has left. Give TO alone.")
@shards_option
@json_option
def copy_command(source: str, destination: str | None, drop: bool, shards: int | None, as_json: bool) -> None:
    """Copy the index FROM to TO. Each of them is a folder or an index in a database.

    Documents, vectors, the ledger and all that was learned are the same in the copy, and nothing is embedded. A new TO
    appears when it is complete. FROM may be searched and written to during that time: a folder is copied into a new
    folder as of one commit.

    If a copy from or to a database is interrupted, the same command continues it. A TO that exists gets what it lacks.
    It is refused if it holds documents that FROM does not have. At the end both are compared.

    What an interrupted copy has left takes room until the same command runs again, or until --drop removes it. likewise
    check names it in a database. In a folder, each command on TO names what a killed copy has left.

    \b
    likewise copy papers.index /mnt/papers.index
    likewise copy papers.index "postgresql://user@host/db?index=papers"
    likewise copy "postgresql://user@host/db?index=papers" papers.index
    likewise copy --drop "postgresql://user@host/db?index=papers"
    """
    if drop and destination is not None:
        raise click.UsageError("--drop removes what an interrupted copy to TO has left: give TO alone")
    if drop:
        _drop(source, as_json)
        return
    if destination is None:
        raise click.UsageError("Missing argument 'TO'.")
    from indexer.stores.addresses.copying import copy
    from indexer.stores.addresses.open import open_store
    from likewise.shell.terminal.progress import DocumentProgress

    with closing(open_store(source)) as store, DocumentProgress("copying") as progress:
        done = copy(store, destination, progress, shards)
    warn_of(done.notes)
    if as_json:
        numbers = {"copied": done.copied, "documents": done.documents, "passages": done.passages}
        say_json({"copy": without_passwords(destination), **numbers, "notes": done.notes})
        return
    documents, passages = count_of(done.documents, "document"), count_of(done.passages, "passage")
    say(f"{number(done.copied)} copied, {shown(destination)}: {documents} in {passages}")


def _drop(destination: str, as_json: bool) -> None:
    from indexer.stores.addresses.copying import drop_unfinished

    size = drop_unfinished(destination)
    if as_json:
        say_json({"dropped": without_passwords(destination), "bytes": size})
        return
    say(f"{shown(destination)}: what the interrupted command left was removed, {size / 2**20:,.1f} MB")
