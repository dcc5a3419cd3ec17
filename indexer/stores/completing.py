"""Cosines of passages and documents that are given by their ids: what fusion asks of those that only words found."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from indexer.records import Vector
from indexer.stores import reading, vectors
from indexer.stores.snapshot import Ids, View
from indexer.stores.store import Ranking, Unit


def cosines(view: View, vector: Vector, ids: Ids, unit: Unit) -> NDArray[np.float32]:
    """Cosine of each passage, or of the nearest passage of each document (n,); NaN where there is none any more."""
    if unit == "document":
        return _of(nearest(view, vector, ids), ids)
    exist, rows = reading.rows(view, ids)
    found = np.full(len(ids), np.nan, np.float32)
    found[exist] = vectors.cosines(rows, vector)
    return found


def nearest(view: View, vector: Vector, documents: Ids) -> dict[int, tuple[int, float]]:
    """Document to its nearest passage and the cosine of that; of equal ones the first."""
    rows = view.connection.execute(
        "SELECT document_id, id, vector FROM passage WHERE document_id IN (SELECT value FROM json_each(?))"
        " ORDER BY id DESC",
        (json.dumps(np.unique(documents).tolist()),),
    ).fetchall()
    found = vectors.cosines(vectors.from_blobs([blob for _, _, blob in rows], view.state.dimensions), vector)
    best: dict[int, tuple[int, float]] = {}
    for (document, passage, _), cosine in zip(rows, found.tolist(), strict=True):
        if document not in best or cosine >= best[document][1]:
            best[document] = (passage, cosine)
    return best


def passages_of(
    view: View, vector: Vector, documents: Ids, known: Ranking | None = None
) -> tuple[Ids, Ids, NDArray[np.float32]]:
    """Every passage of the documents (passages,): its id, its document, its cosine; by id.

    Args:
        known: passages whose cosines with this vector have been computed: their vectors are not read again.
    """
    rows = view.connection.execute(
        "SELECT id, document_id FROM passage WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(documents.tolist()),),
    ).fetchall()
    ids, owned_by = np.array(rows, np.int64).reshape(-1, 2).T
    found = np.empty(len(ids), np.float32)
    unknown = np.ones(len(ids), np.bool_)
    if known is not None and len(ids):
        at = np.minimum(np.searchsorted(ids, known.passages), len(ids) - 1)
        there = ids[at] == known.passages
        found[at[there]], unknown[at[there]] = known.scores[there], False
    found[unknown] = vectors.cosines(reading.rows(view, ids[unknown])[1], vector)
    return ids, owned_by, found


def _of(best: dict[int, tuple[int, float]], documents: Ids) -> NDArray[np.float32]:
    return np.array([best[id_][1] if id_ in best else np.nan for id_ in documents.tolist()], np.float32)
