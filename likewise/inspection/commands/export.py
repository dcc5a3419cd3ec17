"""likewise export: print the documents of an index as JSON lines that `likewise index` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.errors import count_of
from likewise.shell.arguments.options import IndexCommand
from likewise.shell.terminal.extras import missing_extra, require_folder
from likewise.shell.terminal.output import quoted, say, say_json, shown, warn

if TYPE_CHECKING:
    from indexer.records import Document


@click.command(cls=IndexCommand)
@click.option(
    "--vectors",
    is_flag=True,
    help="Include passages and vectors, so that an index made of them embeds nothing. "
    "In a table, the mean vector of each document.",
)
@click.option(
    "--parquet",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a table instead: uri, title, text, metadata as JSON, and x and y of the map.",
)
@click.option("--json", "as_json", is_flag=True, help="Changes nothing: the output is always JSON.")
def export(path: str, vectors: bool, parquet: Path | None, as_json: bool) -> None:
    """Print every document of INDEX as a line of JSON that likewise index can read.

    \b
    likewise export papers.index | likewise index copy.index -
    likewise export papers.index --parquet papers.parquet
    """
    from indexer.exchange import Embedded, to_record
    from indexer.stores.addresses.open import open_store

    if parquet is not None:
        _write_parquet(path, parquet, vectors)
        return
    with closing(open_store(path)) as store:
        with store.snapshot() as snapshot:
            recipe = snapshot.settings.recipe
        identity = recipe.identity if recipe else ""
        for item in store.export():
            embedded = None
            if vectors and item.spans is not None and item.vectors is not None:
                embedded = Embedded(item.spans, item.vectors, identity)
            say_json(to_record(item.document, embedded))


def _write_parquet(address: str, file: Path, vectors: bool) -> None:
    """Write the documents as a table. With `vectors`, a column has the mean vector of each document."""
    from search.searcher import Searcher

    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise missing_extra(error, "map") from error
    require_folder(file)
    columns = [(name, arrow.string()) for name in ("uri", "title", "text", "path", "format", "modified", "metadata")]
    columns += [("x", arrow.float32()), ("y", arrow.float32())]
    if vectors:
        columns.append(("vector", arrow.list_(arrow.float32())))
    schema = arrow.schema(columns)
    documents = missing = 0
    with Searcher(address) as searcher:
        drawn = searcher.map()
        places = {} if drawn is None else dict(zip(drawn.uris, drawn.places.tolist(), strict=True))
        temporary = file.with_name(f"{file.name}.new")
        try:
            with parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
                for batch in _batches(searcher.documents()):
                    rows = [
                        {
                            "uri": document.uri,
                            "title": document.title,
                            "text": document.text,
                            "path": document.path,
                            "format": document.format,
                            "modified": document.modified,
                            "metadata": json.dumps(dict(document.metadata), ensure_ascii=False),
                            "x": places.get(document.uri, (None, None))[0],
                            "y": places.get(document.uri, (None, None))[1],
                            **({"vector": searcher.vectors(document.uri).mean(axis=0)} if vectors else {}),
                        }
                        for document in batch
                    ]
                    writer.write_table(arrow.Table.from_pylist(rows, schema))
                    documents += len(rows)
                    missing += sum(row["x"] is None for row in rows)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    if missing:
        advice = f"likewise map {quoted(address)} gives every document a place"
        warn(f"{count_of(missing, 'document')} without x and y: {advice}")
    say(f"{shown(str(file))}: {count_of(documents, 'document')}")


def _batches(documents: Iterator[Document]) -> Iterator[list[Document]]:
    while batch := list(islice(documents, 1000)):
        yield batch
