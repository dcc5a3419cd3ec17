"""likewise map: draw the map of a collection, for the page."""

from __future__ import annotations

from contextlib import closing

import click

from indexer.errors import count_of
from likewise.shell.arguments.options import IndexCommand, json_option
from likewise.shell.terminal.extras import missing_extra
from likewise.shell.terminal.output import number, say, say_json, shown


@click.command("map", cls=IndexCommand)
@json_option
def map_command(path: str, as_json: bool) -> None:
    """Draw the map of INDEX: similar documents are near each other, and each region has a name.

    The page of `likewise serve` shows the map, and `likewise export --parquet` writes it. A later `likewise index`
    draws it again when a quarter of the documents has changed.

    \b
    likewise map papers.index
    """
    from indexer.stores.addresses.open import open_store
    from likewise.map.draw import draw_map
    from likewise.shell.terminal.progress import Steps

    with closing(open_store(path)) as store:
        try:
            with Steps() as console:
                drawn = draw_map(store, console)
        except ModuleNotFoundError as error:
            raise missing_extra(error, "map") from error
        address = store.address
    if as_json:
        largest = [region for region in drawn.regions if region.level == 0]
        regions = [{"documents": region.documents, "terms": region.terms} for region in largest]
        say_json({"documents": len(drawn.uris), "regions": regions})
        return
    say(f"{shown(address)}: {count_of(len(drawn.uris), 'document')} on the map")
    for region in sorted(drawn.regions, key=lambda region: -region.documents):
        if region.level == 0:
            say(f"{number(region.documents):>9}  {' · '.join(region.terms)}")
