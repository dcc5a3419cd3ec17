"""Copies between stores of any kind: documents, passages, vectors bit for bit, the ledger and all settings.

Nothing is embedded. A copy that was interrupted goes on where it stopped, because a document that is in both with the
same hashes is not copied again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np

from indexer.errors import BadInput, IndexDamaged
from indexer.stores.open import distributed_store, draft_store, is_uri
from indexer.stores.port import Batch, EmbeddedDocument, Hashes, RunOutcome, Snapshot, Store, Writer

T = TypeVar("T")

BATCH_DOCUMENTS = 256
ROUNDS = 3
"""How often documents are looked for that writers have changed while they were copied."""

QUESTIONS = 25
"""Questions that both are asked at the end."""

_HITS = 10
_MAX_SCORE_ERROR = 2e-6

Progress = Callable[[int, int], None]
"""Gets how many documents are copied and how many there are."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did.

    Attributes:
        copied: documents that were written; the others were there already.
        removed: documents of an interrupted copy that are not in the original any more.
        documents, passages: how many the copy holds.
        questions: how many questions both answered with the same hits.
    """

    copied: int
    removed: int
    documents: int
    passages: int
    questions: int


def copy_into(source: Store, target: Store, progress: Progress | None = None) -> Copied:
    """Make a store equal to another: an empty one, or one that an interrupted copy left.

    Writers may change the source meanwhile: what they change is copied too, unless they do not pause.

    Raises:
        BadInput: the target has another recipe, other passages, or documents that the source does not have.
        IndexDamaged: the two are not equal at the end, or a document of the source is damaged.
    """
    with target.writer() as writer:
        _require_room(source, target)
        copied = removed = 0
        for _ in range(ROUNDS):
            more, fewer = _copy_documents(source, target, writer, progress)
            copied, removed = copied + more, removed + fewer
            if not more and not fewer:
                break
        _copy_ledger(source, writer)
        _copy_settings(source, target, writer)
        writer.settle()
    return _verified(source, target, copied, removed)


def backup(store: Store, destination: str) -> tuple[str, ...]:
    """Copy an index as of one commit, or nothing; between a folder and a database as `copy_into` does.

    Returns:
        Facts about the copy that the caller should know.

    Raises:
        BadInput: something exists there already.
        StorageError: the disk or the database refuses.
    """
    if is_uri(store.address) == is_uri(destination):
        return store.backup(destination)
    with store.snapshot() as snapshot:
        settings = snapshot.settings
    with draft_store(destination, settings) as draft:
        copy_into(store, draft)
    return ()


def distribute(address: str, shards: Sequence[str], progress: Progress | None = None) -> Copied:
    """Move the documents of an index in a database to several servers, or to others than they are on.

    Everything is copied while the index is searched and written to, and takes its place in one commit. A move that was
    interrupted goes on where it stopped when it is given the same servers.

    Raises:
        BadInput, NotAnIndex, StorageError: as `distributed_store`.
    """
    with distributed_store(address, shards) as (source, target, lock):
        first = copy_into(source, target, progress)
        lock()
        rest = copy_into(source, target)  # what was written meanwhile
    return replace(rest, copied=first.copied + rest.copied, removed=first.removed + rest.removed)


def _require_room(source: Store, target: Store) -> None:
    with source.snapshot() as one, target.snapshot() as other:
        if one.settings.kind != other.settings.kind:
            raise BadInput(f"{target.address}: has another model, or other passages, than {source.address}")
        strangers = other.hashes().keys() - one.hashes().keys()
    if strangers and len(strangers) == other.documents:
        raise BadInput(f"{target.address}: holds other documents, such as {min(strangers)}: copy to a new index")


def _copy_documents(source: Store, target: Store, writer: Writer, progress: Progress | None) -> tuple[int, int]:
    """Copy what differs; return how many documents were copied and removed."""
    with source.snapshot() as one, target.snapshot() as other:
        wanted, held = dict(one.hashes()), other.hashes()
    gone = [uri for uri in held if uri not in wanted]
    if gone:
        writer.remove(gone)
    missing = {uri for uri, hashes in wanted.items() if held.get(uri) != hashes}
    done, copied = len(wanted) - len(missing), 0
    if missing:
        chosen = (item for item in source.export() if item.document.uri in missing)
        for batch in _batches(chosen, BATCH_DOCUMENTS):
            with source.snapshot() as snapshot:
                hashes = snapshot.hashes([item.document.uri for item in batch])
            writer.put(Batch([_with(item, hashes[item.document.uri]) for item in batch if item.document.uri in hashes]))
            copied += len(batch)
            if progress is not None:
                progress(done + copied, len(wanted))
    return copied, len(gone)


def _with(item: EmbeddedDocument, hashes: Hashes) -> EmbeddedDocument:
    return replace(item, hashes=hashes)


def _copy_ledger(source: Store, writer: Writer) -> None:
    """Write every entry and every file again: they belong to one run, which has ended."""
    with source.snapshot() as snapshot:
        files, rows = snapshot.files(), list(snapshot.ledger())
    run = writer.begin_run()
    read = {path: file.stamp for path, file in files.items() if file.stamp.size >= 0}
    for batch in _batches(rows, 10 * BATCH_DOCUMENTS):
        writer.put(Batch(rows=batch, run=run))
    writer.end_run(run, RunOutcome(finished=read))


def _copy_settings(source: Store, target: Store, writer: Writer) -> None:
    """Copy what was measured and learned, the fitted parameters, the compiled encoder and the map."""
    with source.snapshot() as one, target.snapshot() as other:
        settings, fitted, has_fitted = one.settings, one.fitted_parameters(), other.fitted_parameters() is not None
    writer.change(lambda _: settings, None if has_fitted else fitted)
    for original, copy in ((source.artifacts(), target.artifacts()), (source.derived(), target.derived())):
        if original.is_dir() and not copy.exists():
            shutil.copytree(original, copy)


def _verified(source: Store, target: Store, copied: int, removed: int) -> Copied:
    with source.snapshot() as one, target.snapshot() as other:
        if one.hashes() != other.hashes() or one.passages != other.passages:
            raise IndexDamaged(
                f"{target.address}: has {other.documents} documents and {other.passages} passages, and the original "
                f"{one.documents} and {one.passages}, or others of them changed meanwhile: run the same copy again"
            )
        asked = _questions(one)
        for vector in asked:
            mine, theirs = (_hits(snapshot, vector) for snapshot in (one, other))
            if not _agree(mine, theirs):
                raise IndexDamaged(f"{target.address}: answers a question with other hits than the original")
        return Copied(copied, removed, other.documents, other.passages, len(asked))


def _questions(snapshot: Snapshot) -> list[np.ndarray]:
    """Return questions made of the index's own vectors: means of three random passages, unless they cancel out."""
    rows = snapshot.sample(3 * QUESTIONS, seed=3).vectors
    random, questions = np.random.default_rng(3), []
    for _ in range(QUESTIONS if len(rows) else 0):
        total = rows[random.integers(len(rows), size=3)].sum(axis=0)
        length = float(np.linalg.norm(total))
        questions.append(np.asarray(total / length if length > 1e-3 else rows[0], np.float32))
    return questions


def _hits(snapshot: Snapshot, vector: np.ndarray) -> list[tuple[str, int, float]]:
    ranking = snapshot.dense(vector, _HITS, None, "passage", exact=True)
    passages = snapshot.passages_by_id(ranking.passages.tolist())
    return [(p.uri, p.start, float(score)) for p, score in zip(passages, ranking.scores, strict=True)]


def _agree(one: Sequence[tuple[str, int, float]], other: Sequence[tuple[str, int, float]]) -> bool:
    """Return whether hits are the same; those of nearly equal scores may change places."""
    if len(one) != len(other) or any(
        abs(mine[2] - theirs[2]) > _MAX_SCORE_ERROR for mine, theirs in zip(one, other, strict=True)
    ):
        return False
    last = one[-1][2] + _MAX_SCORE_ERROR if one else 0.0
    return {hit[:2] for hit in one if hit[2] > last} == {hit[:2] for hit in other if hit[2] > last}


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
