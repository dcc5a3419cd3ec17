"""Rows of documents and passages, written and erased inside one of the catalog's transactions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import count

from indexer.stores.commits import passage_rows
from indexer.stores.fields.flatten import scalars, with_dates
from indexer.stores.local.catalog import filter_sql
from indexer.stores.port import EmbeddedDocument
from indexer.stores.reading.document_rows import MEMBERS, member_values


def highest_id(connection: sqlite3.Connection, table: str) -> int:
    """Return the highest id that was ever given in a table."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return int(row[0]) if row else 0


_COUNTS = ("tokens", "passages")
_COLUMNS = ("uri", *MEMBERS, "content_hash", "row_hash")
_SET = ", ".join(
    [
        *(f"{column} = excluded.{column}" for column in _COLUMNS),
        # Where the metadata alone changed, the counts are -1.
        *(f"{count} = iif(excluded.{count} < 0, {count}, excluded.{count})" for count in _COUNTS),
    ]
)


def write_documents(
    connection: sqlite3.Connection, documents: Sequence[EmbeddedDocument], known: Mapping[str, int]
) -> dict[str, int]:
    """Write the rows of new and known documents.

    Args:
        known: ids of the records that are documents already, by uri.

    Returns:
        The id of each document by its uri.

    Raises:
        BadInput: metadata that no filter can hold.
    """
    ids = dict(known)
    next_id = highest_id(connection, "document") + 1
    for item in documents:
        if item.document.uri not in ids:
            ids[item.document.uri], next_id = next_id, next_id + 1
    names = ", ".join((*_COLUMNS, *_COUNTS))
    connection.executemany(
        f"INSERT INTO document (id, {names}) VALUES (?{', ?' * len((*_COLUMNS, *_COUNTS))})"
        f" ON CONFLICT (id) DO UPDATE SET {_SET}",
        (
            (
                *(ids[document.uri], document.uri, *member_values(document, _json)),
                *(item.hashes.content, item.hashes.row),
                *((-1, -1) if item.spans is None else (sum(span.tokens for span in item.spans), len(item.spans))),
            )
            for item in documents
            for document in (item.document,)
        ),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO document_text (document_id, text, sections) VALUES (?, ?, ?)",
        (
            (ids[document.uri], document.text, _json([(s.start, s.heading, s.page) for s in document.sections]))
            for document in (item.document for item in documents)
        ),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO origin VALUES (?, ?, ?)",
        ((ids[item.document.uri], item.hashes.content, item.origin) for item in documents if item.origin is not None),
    )
    filter_sql.write(
        connection,
        [
            (ids[document.uri], with_dates(scalars(document.uri, document.metadata), document.modified))
            for document in (item.document for item in documents)
        ],
    )
    return ids


_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=dict).encode


def write_passages(
    connection: sqlite3.Connection, documents: Sequence[EmbeddedDocument], ids: Mapping[str, int]
) -> None:
    """Write the passages of documents with their vectors and checksums.

    Args:
        ids: the id of each document by its uri.
    """
    next_id = count(highest_id(connection, "passage") + 1)
    connection.executemany(
        "INSERT INTO passage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                *(next(next_id), ids[row.uri], row.span.start, row.span.end, row.line, row.span.heading),
                *(row.span.page, row.checksum, row.blob),
            )
            for row in passage_rows(documents)
        ),
    )


def renew_passages(connection: sqlite3.Connection, document_id: int) -> None:
    """Give the passages of a document new ids, so that the word index reads them again."""
    columns = "document_id, start, stop, line, heading, page, checksum, vector"
    passages = connection.execute(
        f"SELECT {columns} FROM passage WHERE document_id = ? ORDER BY id", (document_id,)
    ).fetchall()
    erase_passages(connection, document_id)
    connection.executemany(f"INSERT INTO passage ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", passages)


def erase_passages(connection: sqlite3.Connection, document_id: int) -> None:
    """Delete a document's passages, and record them as dead if a segment or the word index still holds them."""
    for dead, derived in (("dead", "segment"), ("dead_word", "word_index")):
        connection.execute(
            f"INSERT OR IGNORE INTO {dead} SELECT id FROM passage WHERE document_id = ?"
            f" AND id <= (SELECT coalesce(max(last_id), 0) FROM {derived})",
            (document_id,),
        )
    connection.execute("DELETE FROM passage WHERE document_id = ?", (document_id,))
