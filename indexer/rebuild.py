"""Embedding a whole index again, with another model or other passages, beside the old one until it is complete.

The documents come from the catalog, so that what their sources no longer have is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from indexer.batches import Incoming, batches
from indexer.core import IndexCore
from indexer.encoders import Encoder
from indexer.errors import BadInput
from indexer.notes import Note
from indexer.settings import Settings
from indexer.stores.port import Batch, LedgerRow, Writer


@contextmanager
def rebuilt(
    old: IndexCore,
    describe: Callable[[], tuple[Settings, Encoder | None]],
    *,
    note: Note,
    wait: bool = True,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[IndexCore]:
    """The successor of an index, filled with its documents; takes its place when the block ends well.

    Searches go on in the old one until then, and afterwards find the new one by themselves.

    Args:
        describe: returns the settings and the encoder of the successor.
        note: is told of documents that the new model cannot read, and what the encoder has to tell.
        wait, on_wait: as of `Store.writer`.

    Raises:
        BadInput: the index holds vectors of the user's own, which nothing can embed again.
    """
    if old.recipe is None:
        raise BadInput(f"{old.address}: holds your own vectors; make a new index and add them again")
    with old.store.writer(wait=wait, on_wait=on_wait):
        settings, encoder = describe()
        successor = old.store.successor(_taken_over(old.stored_settings(), settings))
        with successor as store, IndexCore(store, encoder) as new, store.writer() as writer:
            _refill(old, new, writer, note)
            for message in writer.notes:
                note(message)
            yield new


def _taken_over(old: Settings, new: Settings) -> Settings:
    """The new settings with those of the old that hold for it too: of the same vectors also what `tune` learned."""
    return replace(new, recall=old.recall, words_bias=old.words_bias if old.recipe == new.recipe else None)


def _refill(old: IndexCore, new: IndexCore, writer: Writer, note: Note) -> None:
    rows: dict[str, list[LedgerRow]] = {}
    with old.store.snapshot() as snapshot:
        for row in snapshot.ledger():
            rows.setdefault(row.uri, []).append(row)
    for batch in batches(((document, None) for document in old.store.iterate()), lambda: new.batch_characters):
        _commit(new, writer, batch, rows, note)
    # What remains belongs to no document: it was skipped, or failed.
    writer.put(Batch(rows=[row for remaining in rows.values() for row in remaining]))


def _commit(
    new: IndexCore, writer: Writer, batch: Sequence[Incoming], rows: dict[str, list[LedgerRow]], note: Note
) -> None:
    prepared = new.prepare(batch)
    for message in prepared.notes:
        note(message)
    if prepared.empty:
        note(
            f"{len(prepared.empty)} documents, such as {prepared.empty[0]}, have no text that the new model can read "
            "and were left out"
        )
    left_out = dict.fromkeys(prepared.empty, ("skipped", "no text that the model can read"))
    known = [
        replace(row, state=state, reason=reason)
        for document, _ in batch
        for row in rows.pop(document.uri, ())
        for state, reason in [left_out.get(row.uri, (row.state, row.reason))]
    ]
    writer.put(Batch(prepared.work, known))
