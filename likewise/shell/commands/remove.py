"""likewise remove: remove documents from an index by uri or by filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from indexer.errors import BadInput, count_of
from likewise.shell.arguments import options
from likewise.shell.terminal.output import say, say_json, warn, warn_of

if TYPE_CHECKING:
    from indexer.filters.tree import Where
    from indexer.index import Index


class RemoveCommand(options.IndexCommand):
    """A command that takes uris or a filter, never the words of a question."""

    def _count(self) -> tuple[int, int | None]:
        return 1, None


@click.command(cls=RemoveCommand)
@click.argument("uris", nargs=-1, metavar="[URI...]", shell_complete=options.complete_path)
@click.option("--where", metavar="FILTER", help="Remove the documents that match, such as 'under \"old/notes\"'.")
@click.option("--yes", is_flag=True, help="Allow --where to remove more than half of the index.")
@options.no_wait_option
@options.json_option
def remove(path: str, uris: tuple[str, ...], where: str | None, yes: bool, no_wait: bool, as_json: bool) -> None:
    """Remove documents from INDEX, by URI or by a filter. If one URI is unknown, nothing is removed.

    likewise list --where shows what a filter would remove.

    \b
    likewise remove papers.index notes/bread.txt doc-17
    likewise remove papers.index --where 'under "old/notes"'
    """
    from indexer.index import Index

    condition = options.resolve_where(where)
    if bool(uris) == (condition is not None):
        raise click.UsageError("give either URIs or --where FILTER")
    with Index.open(path) as index, index.lock(wait=not no_wait, on_wait=warn):
        if condition is None:
            removed = index.remove(options.resolve_uris(index, uris))
        else:
            removed = _remove_matching(index, path, condition, yes)
    if as_json:
        say_json({"removed": removed})
    else:
        say(f"removed {count_of(removed, 'document')}")


def _remove_matching(index: Index, path: str, condition: Where, yes: bool) -> int:
    """Remove the documents that pass a filter and return how many there were.

    Raises:
        BadInput: without `yes`, more than half of the index would be removed.
        FilterError: the filter does not fit the fields of the index.
    """
    from search.searcher import Searcher

    with Searcher(path) as searcher:
        matched, documents = searcher.count(condition), searcher.count()
        warn_of(searcher.filter_notes(condition))
    if matched * 2 > documents and not yes:
        raise BadInput(
            f"the filter would remove {matched} of {documents} documents, more than half: nothing was removed; if that "
            "is meant, run it again with --yes"
        )
    return index.remove(where=condition)
