"""Copies between stores of any kind: documents, passages, vectors bit for bit, the ledger and all settings.

Nothing is embedded. A folder becomes a new folder as of one commit. Every other copy continues where it stopped when it
was interrupted, because a document that is in both with the same hashes is not copied again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from indexer.errors import BadInput, IndexDamaged, count_of
from indexer.listener import SILENT, Commit, Listener
from indexer.records import Stamp
from indexer.stores.addresses.life_cycle import draft, unfinished
from indexer.stores.addresses.open import engine_of, is_uri, require_shards
from indexer.stores.port import Batch, RunOutcome
from indexer.stores.reading.store import Engine, Store, Writer

T = TypeVar("T")

BATCH_DOCUMENTS = 256
ROUNDS = 3
"""Maximum rounds of a copy. Each round copies the documents that writers have changed during the round before."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The outcome of a copy.

    Attributes:
        copied: documents that were written; the others were there already.
        removed: documents of an interrupted copy that the original no longer has.
        documents, passages: how many the copy holds.
        notes: facts about the original and the copy that the caller should know.
    """

    copied: int
    removed: int
    documents: int
    passages: int
    notes: tuple[str, ...] = ()


def copy(source: Store, destination: str, listener: Listener = SILENT, shards: int | None = None) -> Copied:
    """Make the index at `destination` equal to `source`.

    A new index appears only when it is complete. From a folder into a new folder, it is the source as of one commit.
    Any other copy that was interrupted continues when it is started again, and the listener receives its commits. An
    existing index at `destination` gets the documents that it lacks.

    Args:
        shards: number of shards of a new index in a database with Citus; see `engine_of`.

    Raises:
        BadInput: the existing index has another model, another number of shards, or documents that the source does not
            have.
        IndexLocked: another process is filling the unfinished copy at `destination`.
        IndexDamaged: the two are not equal at the end, or a document of the source is damaged.
        StorageError: the disk or the database refuses.
    """
    with closing(engine_of(destination, shards)) as engine:
        if engine.exists():
            target = engine.open()
            require_shards(target, shards)
            _require_part(source, target)
            return copy_into(source, target, listener)
        if not is_uri(source.address) and not is_uri(destination):
            if engine.exists("unfinished"):  # of an interrupted copy from a database
                engine.discard("unfinished")
            notes = copy_commit(source, engine)
            with engine.open().snapshot() as copied:
                return Copied(copied.documents, 0, copied.documents, copied.passages, notes)
        with source.snapshot() as snapshot:
            settings = snapshot.settings
        with unfinished(engine, settings) as target:
            return copy_into(source, target, listener)


def drop_unfinished(address: str) -> int:
    """Remove what an interrupted copy, and what a killed command was making, at an address; return its size in bytes.

    Raises:
        BadInput: there is no such thing.
        IndexLocked: another process is filling it.
        StorageError: the disk or the database refuses.
    """
    with closing(engine_of(address)) as engine:
        swept = engine.sweep()
        if engine.exists("unfinished"):
            return swept + engine.discard("unfinished")
        if not swept:
            raise BadInput(f"{engine.address}: no unfinished copy is there")
        return swept


def copy_into(source: Store, target: Store, listener: Listener = SILENT) -> Copied:
    """Make a store equal to another: an empty one, or one that an interrupted copy left.

    Writers may change the source during the copy. Their changes are copied too, unless they never pause. Until the
    end the target has a run that did not finish, which `check` reports.

    Raises:
        BadInput: the target has another recipe or other passages.
        IndexDamaged: the two are not equal at the end, or a document of the source is damaged.
    """
    with target.writer() as writer:
        _require_same_kind(source, target)
        run = writer.begin_run()
        copied = removed = 0
        for _ in range(ROUNDS):
            more, fewer = _copy_documents(source, target, writer, listener)
            copied, removed = copied + more, removed + fewer
            if not more and not fewer:
                break
        finished = _copy_ledger(source, writer, run)
        _copy_settings(source, target, writer)
        writer.settle()
        writer.end_run(run, RunOutcome(finished=finished))
    return _verified(source, target, copied, removed)


def copy_commit(store: Store, destination: Engine) -> tuple[str, ...]:
    """Copy an index, or nothing at all: from a folder to a folder as of one commit, otherwise as `copy_into` does.

    Returns:
        Facts about the copy that the caller should know.

    Raises:
        BadInput: something exists there already.
        StorageError: the disk or the database refuses.
    """
    with store.snapshot() as snapshot:
        settings = snapshot.settings
    with closing(destination), draft(destination, settings) as copy:
        notes = store.duplicate(copy)
        return copy_into(store, copy).notes if notes is None else notes


def _require_part(source: Store, target: Store) -> None:
    """Refuse a target whose documents a copy would remove."""
    with source.snapshot() as one, target.snapshot() as other:
        if one.history == other.history:
            raise BadInput(f"{target.address}: is the index that is to be copied: give the copy another name")
        strangers = other.hashes().keys() - one.hashes().keys()
    if strangers:
        raise BadInput(
            f"{target.address}: holds {count_of(len(strangers), 'document')} that {source.address} does not have, such "
            f"as {min(strangers)}: nothing was copied; give the copy another name"
        )


def _require_same_kind(source: Store, target: Store) -> None:
    with source.snapshot() as one, target.snapshot() as other:
        if one.settings.kind != other.settings.kind:
            raise BadInput(
                f"{target.address}: has another model, or other passages, than {source.address}: nothing was copied; "
                "give the copy another name"
            )


def _copy_documents(source: Store, target: Store, writer: Writer, listener: Listener) -> tuple[int, int]:
    """Copy what differs; return how many documents were copied and removed."""
    with source.snapshot() as one, target.snapshot() as other:
        wanted, held = dict(one.hashes()), other.hashes()
    gone = [uri for uri in held if uri not in wanted]
    if gone:
        writer.remove(gone)
    missing = {uri for uri, hashes in wanted.items() if held.get(uri) != hashes}
    done, copied, passages = len(wanted) - len(missing), 0, 0
    if missing:
        chosen = (item for item in source.export() if item.document.uri in missing)
        for batch in pages(chosen, BATCH_DOCUMENTS):
            # With the hashes from before it was read: if it was changed in between, the next round copies it again.
            changes = writer.put(Batch([replace(item, hashes=wanted[item.document.uri]) for item in batch]))
            copied += len(batch)
            passages += sum(len(item.spans or ()) for item in batch)
            listener.committed(Commit(copied, passages, done + copied, len(wanted), changes))
    return copied, len(gone)


def _copy_ledger(source: Store, writer: Writer, run: int) -> dict[str, Stamp]:
    """Write every entry of the ledger as an entry of this run; return the files that the end of the run must finish."""
    with source.snapshot() as snapshot:
        files, rows = snapshot.files(), list(snapshot.ledger())
    for batch in pages(rows, 10 * BATCH_DOCUMENTS):
        writer.put(Batch(rows=batch, run=run))
    return {path: file.stamp for path, file in files.items() if file.stamp.size >= 0}


def _copy_settings(source: Store, target: Store, writer: Writer) -> None:
    """Copy what was measured and learned, the compiled encoder and the map."""
    with source.snapshot() as one:
        settings = one.settings
    writer.change(lambda _: settings)
    for original, copy in ((source.artifacts(), target.artifacts()), (source.derived(), target.derived())):
        if original.is_dir() and not copy.exists():
            shutil.copytree(original, copy)


def _verified(source: Store, target: Store, copied: int, removed: int) -> Copied:
    with source.snapshot() as one, target.snapshot() as other:
        if one.hashes() != other.hashes() or one.passages != other.passages:
            raise IndexDamaged(
                f"{target.address}: has {other.documents} documents and {other.passages} passages, and the original "
                f"has {one.documents} and {one.passages}, or some changed during the copy: run the same copy again"
            )
        return Copied(copied, removed, other.documents, other.passages, one.notes)


def pages(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of `size`, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
