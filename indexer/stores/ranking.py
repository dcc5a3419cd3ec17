"""Exact ranking by cosine over every part of a snapshot, with a filter, by document or by passage.

FAISS proposes, the catalog's own vectors decide: candidates are scored again from their BLOBs, and more are fetched
until no passage that was left out could still enter the answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexer.records import Vector
from indexer.stores import reading
from indexer.stores.snapshot import Flags, Part, View
from indexer.stores.store import Ranking, Unit
from indexer.where import Where

_SLACK = 2e-6
"""How far FAISS's score of a row may lie from ours: float32 sums in another order, its length (vectors.py)."""


def rank(view: View, vector: Vector, k: int, where: Where | None, unit: Unit) -> Ranking:
    """The k best documents (each by its best passage) or passages for a unit vector (dimensions,)."""
    allowed = reading.allowed_documents(view, where)
    masks = [_mask(part, allowed) for part in view.state.parts]
    rows = sum(
        len(part.passages) if mask is None else int(mask.sum())
        for part, mask in zip(view.state.parts, masks, strict=True)
    )
    documents = view.state.documents if allowed is None else int(allowed.sum())
    matched = rows if unit == "passage" else documents
    wanted = min(k, matched)
    fetched = (wanted if unit == "passage" else 3 * wanted) + 32
    while wanted:
        passages, documents, scores, floor = _nearest(view, masks, vector, fetched)
        best = _first_of_each(documents, wanted) if unit == "document" else np.arange(min(wanted, len(passages)))
        complete = fetched >= rows
        if complete or (len(best) == wanted and scores[best[-1]] > floor + _SLACK):
            return Ranking(passages[best], scores[best], matched, exact=True)
        fetched *= 4
    return Ranking(np.empty(0, np.int64), np.empty(0, np.float32), matched, exact=True)


def _mask(part: Part, allowed: Flags | None) -> Flags | None:
    if allowed is None:
        return part.alive
    mask = allowed[part.documents]
    return mask if part.alive is None else mask & part.alive


def _nearest(
    view: View, masks: list[Flags | None], vector: Vector, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], float]:
    """The n nearest passages with their documents and cosines, best first, and what no other passage exceeds."""
    passages, documents, scores = [], [], []
    for part, mask in zip(view.state.parts, masks, strict=True):
        found, positions = part.segment.search(vector, n, mask)
        scores.append(found)
        passages.append(part.passages[positions])
        documents.append(part.documents[positions])
    near = np.concatenate(scores)
    order = np.argsort(-near, kind="stable")[:n]
    floor = float(near[order[-1]]) if len(order) else -1.0
    ids, owners = np.concatenate(passages)[order], np.concatenate(documents)[order]
    exist, rows = reading.rows(view, ids)
    ids, owners, cosines = ids[exist], owners[exist], rows @ vector
    # Equal scores in the order the passages were added, so that answers do not depend on how they are stored.
    order = np.lexsort((ids, -cosines))
    return ids[order], owners[order], cosines[order], floor


def _first_of_each(documents: NDArray[np.int64], wanted: int) -> NDArray[np.intp]:
    """Positions of the first passage of each document, in the order of the ranking."""
    _, first = np.unique(documents, return_index=True)
    return np.sort(first)[:wanted]
