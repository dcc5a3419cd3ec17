"""The statements that read passages and filters in the way of PostgreSQL."""

from __future__ import annotations

import numpy as np

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.stores.port import Ids
from indexer.stores.postgres.schema import key_of
from indexer.stores.postgres.views import View
from indexer.stores.vectors import to_float32


def passages_of(view: View, documents: Ids) -> tuple[Ids, Ids, Vector]:
    """Return id (n,), document (n,) and vector (n, dimensions) of every passage of these documents, by id."""
    rows = view.rows(
        "SELECT id, document_id, vector FROM {tables}.passage WHERE document_id = ANY(%s) ORDER BY id",
        documents.tolist(),
    )
    ids = np.array([row[0] for row in rows], np.int64)
    owners = np.array([row[1] for row in rows], np.int64)
    return ids, owners, to_float32(view.halves([row[2] for row in rows]))


def live_ids(view: View) -> Ids:
    """Return the id of every passage (n,), ascending."""
    ((packed,),) = view.rows("SELECT string_agg(int8send(id), ''::bytea) FROM {tables}.passage")
    return np.sort(np.frombuffer(packed or b"", ">i8").astype(np.int64))


def uris(view: View, where: Where | None) -> list[str]:
    """Return the uris of the documents that a filter leaves, in the order they were added."""
    if where is None:
        return [uri for (uri,) in view.rows("SELECT uri FROM {tables}.document ORDER BY id")]
    condition = view.compile(where)
    select = f"SELECT d.uri FROM {{tables}}.document d WHERE {condition.text} ORDER BY d.id"
    return [uri for (uri,) in view.rows(select, *condition.parameters)]


def matches(view: View, uri: str, where: Where) -> bool:
    """Return whether a filter leaves this document; False where there is none."""
    if not view.rows("SELECT FROM {tables}.document WHERE key = %s", key_of(uri)):
        return False
    condition = view.compile(where)
    select = f"SELECT FROM {{tables}}.document d WHERE d.key = %s AND {condition.text}"
    return bool(view.rows(select, key_of(uri), *condition.parameters))


def size(view: View) -> int:
    """Return the bytes of all tables of the index and of their indexes."""
    ((total,),) = view.rows(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
        view.state.row.tables,
    )
    return int(total)
