"""Embedding a whole index again, with another model or other passages. The old index is used until the new index is
complete.

The documents are read from the old index, so that documents whose source is gone are not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from shlex import quote

from indexer.encoders import Encoder
from indexer.errors import BadInput, count_of
from indexer.indexing.batches import Pending, batches, refuse_unembedded, windowed
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.ledger import Code
from indexer.settings import Settings
from indexer.stores.addresses.life_cycle import draft
from indexer.stores.port import SIDE_SLOTS, Batch, LedgerRow
from indexer.stores.reading.store import Store, Writer


@contextmanager
def rebuild_index(
    old: IndexCore, describe: Callable[[], tuple[Settings, Encoder | None]]
) -> Iterator[tuple[IndexCore, tuple[str, ...]]]:
    """Make the successor of an index, filled with its documents. It replaces the index if the block ends without error.

    Searches use the old index until then, and find the new one by themselves afterwards.

    Args:
        describe: returns the settings and the encoder of the successor.

    Yields:
        The successor, and notes: on documents that the new model cannot read, and the notes of the encoder.

    Raises:
        BadInput: the index holds the user's own vectors, which no model can make again.
    """
    if old.recipe is None:
        raise BadInput(f"{old.address}: holds your own vectors: make a new index, and add them again")
    engine = old.store.engine
    with old.exclusive():
        if any(map(engine.exists, SIDE_SLOTS)):
            raise BadInput(
                f"{old.address}: has vectors of another model too, and a rebuild would remove them: remove them with "
                f"likewise migrate {quote(old.address)} --drop, or change the model with likewise migrate"
            )
        settings, encoder = describe()
        successor = draft(engine, _carry_over(old.stored_settings(), settings))
        with successor as store, IndexCore(store, encoder, old.context) as new, store.writer() as writer:
            notes = _copy_documents(old, new, writer)
            yield new, (*notes, *writer.notes)


@contextmanager
def replace_older(
    old: Store, describe: Callable[[], tuple[Settings, Encoder | None]], context: Context
) -> Iterator[tuple[IndexCore, tuple[str, ...]]]:
    """Make an empty index that replaces an index from before the first release if the block ends without error.

    Args:
        describe: returns the settings and the encoder of the new index.

    Yields:
        The new index, and a note.
    """
    with old.engine.exclusive(wait=context.wait, listener=context.listener):
        settings, encoder = describe()
        for slot in filter(old.engine.exists, SIDE_SLOTS):
            old.engine.discard(slot)
        with draft(old.engine, settings) as store, IndexCore(store, encoder, context) as new:
            yield new, (f"{old.address}: was made before the first release, and none of it was taken over",)


def _carry_over(old: Settings, new: Settings) -> Settings:
    """Return the new settings with the old recall and sources, and with what belongs to an equal recipe."""
    if old.recipe == new.recipe:
        new = replace(new, words_bias=old.words_bias, model_reason=new.model_reason or old.model_reason)
    return replace(new, recall=old.recall, sources=old.sources)


def _copy_documents(old: IndexCore, new: IndexCore, writer: Writer) -> list[str]:
    """Copy the documents and the ledger, and return notes."""
    notes: list[str] = []
    rows: dict[str, list[LedgerRow]] = {}
    with old.store.snapshot() as snapshot:
        for row in snapshot.ledger():
            rows.setdefault(row.uri, []).append(row)
    documents = batches(((document, None) for document in old.store.iterate()), lambda: new.batch_characters)
    for pending in windowed(map(new.submit, documents), new.window()):
        notes.extend(_commit(new, writer, pending, rows))
    # The remaining rows belong to no document: files and records that were skipped or failed.
    writer.put(Batch(rows=[row for remaining in rows.values() for row in remaining]))
    return notes


def _commit(new: IndexCore, writer: Writer, pending: Pending, rows: dict[str, list[LedgerRow]]) -> tuple[str, ...]:
    prepared = new.finish(pending)
    refuse_unembedded(prepared, empty=True)
    notes = prepared.notes
    if prepared.empty:
        notes = (
            *notes,
            f"left out, because the new model can read none of their text: "
            f"{count_of(len(prepared.empty), 'document')}, such as {prepared.empty[0]}",
        )
    left_out = dict.fromkeys(prepared.empty, Code.UNREADABLE())
    carried = [
        replace(row, state="skipped", reason=left_out[row.uri]) if row.uri in left_out else row
        for document, _ in pending.batch
        for row in rows.pop(document.uri, ())
    ]
    writer.put(Batch(prepared.work, carried))
    return notes
