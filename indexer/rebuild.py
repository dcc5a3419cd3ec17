"""Embedding a whole index again, with another model or other passages, beside the old one until it is complete.

The documents come from the catalog, so that what their sources no longer have is not lost.
"""

from __future__ import annotations

import glob
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import BadInput
from indexer.index import Index
from indexer.prepared import batches
from indexer.stores.copying import exchange
from indexer.stores.store import LedgerRow

if TYPE_CHECKING:
    from indexer.stores.catalog import Catalog


@contextmanager
def rebuilt(
    old: Index, create: Callable[[Path], Index], *, wait: bool = True, waiting: Callable[[str], None] | None = None
) -> Iterator[Index]:
    """The successor of an index, filled with its documents; takes its place when the block ends well.

    Searches go on in the old one until then, and afterwards find the new one by themselves.

    Args:
        wait, waiting: as of the writer lock (lock.py).

    Raises:
        BadInput: the index holds vectors of the user's own, which nothing can embed again.
    """
    folder = old.store.folder.resolve()
    if old.recipe is None:
        raise BadInput(f"{folder}: holds your own vectors; make a new index and add them again")
    sibling = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        with old.store.writing(wait=wait, waiting=waiting):
            _sweep(folder)
            with create(sibling) as new, new.store.writing() as catalog:
                _take_over(old, new, catalog)
                _refill(old, new)
                yield new
            exchange(folder, sibling)
    finally:
        shutil.rmtree(sibling, ignore_errors=True)


def _take_over(old: Index, new: Index, catalog: Catalog) -> None:
    """Settings that hold for the successor too: of the same vectors also what `tune` learnt."""
    names = ["recall", *(["lean"] if old.recipe == new.recipe else [])]
    settings = old.store.settings()
    for name in (name for name in names if name in settings):
        catalog.set(name, settings[name])


def _sweep(folder: Path) -> None:
    """Remove what a rebuild that was killed has left: nobody else makes one while this holds the lock."""
    for path in folder.parent.glob(f".{glob.escape(folder.name)}.*"):
        if re.fullmatch(r"[0-9a-f]{8}", path.name[len(folder.name) + 2 :]):
            shutil.rmtree(path, ignore_errors=True)


def _refill(old: Index, new: Index) -> None:
    rows: dict[str, list[LedgerRow]] = {}
    for row in old.store.ledger():
        rows.setdefault(row.uri, []).append(row)
    for batch in batches(((document, None) for document in old), lambda: new.together):
        _commit(new, batch, rows)
    new.store.put([], [row for left in rows.values() for row in left])  # of what is no document: skipped, failed


def _commit(new: Index, batch: list, rows: dict[str, list[LedgerRow]]) -> None:  # type: ignore[type-arg]
    prepared = new.prepare(batch)
    if prepared.empty:
        warnings.warn(
            f"{len(prepared.empty)} documents, such as {prepared.empty[0]}, have no text that the new model can read "
            "and were left out",
            stacklevel=4,
        )
    left_out = dict.fromkeys(prepared.empty, ("skipped", "no text that the model can read"))
    known = [
        replace(row, state=state, reason=reason)
        for document, _ in batch
        for row in rows.pop(document.uri, ())
        for state, reason in [left_out.get(row.uri, (row.state, row.reason))]
    ]
    new.store.put(prepared.work, known)
