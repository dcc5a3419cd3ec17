"""Updating a side index: the same documents, with passages and vectors of another model.

It works in both directions: the next index follows the live index, and so does the previous index before a return.
Nothing is written to the other index between two switches. The rules are these:

* Each document of the other index has the content hash that it was made from (`EmbeddedDocument.origin`), so that
  nothing but two hashes is compared where nothing has changed. The same pair of hashes says that two documents have the
  same content, whichever index they are read from. A document that was changed since loses its origin.
* A document that the main index has and the other one lacks, or has with another content or row, is embedded again,
  or only its row is written. One that the other model cannot read is left out: the other index loses an earlier text
  of it, and the main index keeps it. At the switch the other index's ledger gets a row for it (`Code.LEFT_OUT`).
* A document that the other index has and the main one lacks is removed, unless a row of the main index's ledger says
  that its model could not read it (`Reason.is_left_out`). The switch writes this row. It stays, whatever runs find,
  until a run indexes the document or `Writer.remove` removes it, which is what `--prune` calls.
* Sources and ledger go with the documents at each switch. A file with a document that only one model can read gets no
  stamp, so that the next run reads it again and finds the others unchanged.

Documents are read in pages and committed in batches: memory does not grow with the collection, and a kill loses one
batch at most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from indexer.indexing.batches import Incoming, batches
from indexer.indexing.core import IndexCore
from indexer.ledger import HELD, NO_REASON, Code
from indexer.listener import Commit
from indexer.records import UNREAD, Document
from indexer.stores.addresses.copying import pages
from indexer.stores.port import Batch, EmbeddedDocument, LedgerRow, RunOutcome
from indexer.stores.reading.store import Store, Writer

_PAGE_URIS = 2000
"""Number of documents whose hashes are compared in one snapshot."""

_PAGE_DOCUMENTS = 64
"""Number of documents that are read in one snapshot."""

_PAGE_ROWS = 5000
"""Number of rows of the ledger that are written in one commit."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The changes that were made to the other index.

    Attributes:
        documents: how many documents were added, replaced or updated.
        passages: how many passages were embedded.
        removed: how many documents were removed.
        left_out: the documents that the other model cannot read now, each with its content hash in the main index.
        notes: sentences of the encoder and the writer.
    """

    documents: int = 0
    passages: int = 0
    removed: int = 0
    left_out: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __add__(self, later: Followed) -> Followed:
        return Followed(
            self.documents + later.documents,
            self.passages + later.passages,
            self.removed + later.removed,
            later.left_out,
            tuple(dict.fromkeys(self.notes + later.notes)),
        )


def follow(
    main: Store, other: IndexCore, writer: Writer, left_out: Mapping[str, bytes] = MappingProxyType({})
) -> Followed:
    """Bring `other` up to `main`. Others may write to `main` at the same time. Load the model only to embed something.

    Args:
        writer: the writer of `other`.
        left_out: result of an earlier call: documents that are not tried again while their content is the same.

    Raises:
        ModelError: the model of `other` cannot be loaded.
        IndexDamaged: a document of `main` is damaged.
    """
    earlier_notes, listener = len(writer.notes), other.context.listener
    with main.snapshot() as snapshot:
        listed = snapshot.uris()
    # Removed first: it needs no model, and nobody expects a removed text to stay because a model cannot be reached.
    gone = _gone(main, other.store)
    removed = writer.remove(gone) if gone else 0
    origins: dict[str, bytes] = {}
    unread: dict[str, bytes] = {}
    blank: list[str] = []
    done, compared = Followed(), 0

    def outdated() -> Iterator[str]:
        nonlocal compared
        for page in pages(listed, _PAGE_URIS):
            chosen = _outdated(main, other.store, page)
            for uri in page:
                compared += 1
                if uri not in chosen:
                    continue
                if left_out.get(uri) == chosen[uri]:
                    unread[uri] = chosen[uri]
                else:
                    yield uri

    documents = _with_text(_read(main, outdated(), origins), blank)
    for batch in batches(documents, lambda: other.batch_characters):
        prepared = other.finish(other.submit(batch))
        work = [*prepared.work, *_unchanged(batch, prepared.unchanged, other)]
        if work:
            writer.put(Batch([replace(item, origin=origins.pop(item.document.uri)) for item in work]))
        unread |= {uri: origins.pop(uri) for uri in prepared.empty}
        done += Followed(len(work), sum(len(item.spans) for item in work if item.spans), notes=prepared.notes)
        listener.committed(Commit(done.documents, done.passages, compared, len(listed)))
    listener.committed(Commit(done.documents, done.passages, len(listed), len(listed)))
    unread |= {uri: origins.pop(uri) for uri in blank}
    with other.store.snapshot() as snapshot:  # an earlier text of what cannot be read now
        outdated_texts = list(snapshot.hashes(unread))
    removed += writer.remove(outdated_texts) if outdated_texts else 0
    return done + Followed(removed=removed, left_out=unread, notes=writer.notes[earlier_notes:])


def _outdated(main: Store, other: Store, uris: Sequence[str]) -> dict[str, bytes]:
    """Return the content hashes of the documents of `main` that `other` lacks, or has with another content or row."""
    with main.snapshot() as ours, other.snapshot() as theirs:
        wanted, stored = ours.hashes(uris), theirs.hashes(uris)
        origins, reverse = theirs.origins(uris), ours.origins(uris)
    return {
        uri: hashes.content
        for uri, hashes in wanted.items()
        if (known := stored.get(uri)) is None
        or known.row != hashes.row
        or (origins.get(uri) != hashes.content and reverse.get(uri) != known.content)
    }


def _read(main: Store, uris: Iterable[str], origins: dict[str, bytes]) -> Iterator[Document]:
    """Yield documents, and put the content hash of each into `origins`. No snapshot is open between two pages."""
    for page in pages(uris, _PAGE_DOCUMENTS):
        with main.snapshot() as snapshot:
            documents = [document for uri in page if (document := snapshot.get(uri)) is not None]
            origins.update((uri, hashes.content) for uri, hashes in snapshot.hashes(page).items())
        yield from documents


def _with_text(documents: Iterable[Document], blank: list[str]) -> Iterator[Incoming]:
    """Yield documents to embed. The uris of documents without text go into `blank`, so that no model is loaded for
    them."""
    for document in documents:
        if document.text.strip():
            yield document, None
        else:
            blank.append(document.uri)


def _unchanged(batch: Sequence[Incoming], uris: Collection[str], other: IndexCore) -> list[EmbeddedDocument]:
    """Return documents that are already the same in `other`. Only their origin must be written."""
    if not uris:
        return []
    with other.store.snapshot() as snapshot:
        hashes = snapshot.hashes(uris)
    return [EmbeddedDocument(document, hashes[document.uri]) for document, _ in batch if document.uri in hashes]


def waiting(main: Store, other: Store) -> int:
    """Return how many documents of `main` the other index lacks, or has with another content or row."""
    with main.snapshot() as snapshot:
        listed = snapshot.uris()
    return sum(len(_outdated(main, other, page)) for page in pages(listed, _PAGE_URIS))


def _gone(main: Store, other: Store) -> list[str]:
    """Return the documents of `other` that were removed from `main`. Documents that the model of `main` cannot read are
    left out."""
    with other.snapshot() as theirs:
        stored = theirs.uris()
    with main.snapshot() as ours:  # taken later: what was just added is not gone
        wanted = set(ours.uris())
        gone = [uri for uri in stored if uri not in wanted]
        kept = {row.uri for row in ours.ledger() if _is_unreadable(row)} if gone else set[str]()
    return [uri for uri in gone if uri not in kept]


def carry_over(main: Store, other: Store, writer: Writer) -> None:
    """Give `other` the sources, the ledger and the recall of `main`, so that the next run opens the same files.

    Use under the writers of both, after `follow`. A file with a document that the model of `main` cannot read will be
    read again, because the other model may read it.
    """
    with main.snapshot() as snapshot:
        settings, rows, files = snapshot.settings, _by_file(snapshot.ledger()), snapshot.files()
        documents = set(snapshot.uris())
    writer.change(lambda stored: replace(stored, sources=settings.sources, recall=settings.recall))
    with other.snapshot() as snapshot:
        their_rows, their_files, held = _by_file(snapshot.ledger()), snapshot.files(), set(snapshot.uris())
    listed = {row.uri for of_file in rows.values() for row in of_file}
    for uri in sorted(documents - held - listed):
        rows[uri] = [LedgerRow(uri, uri, "indexed")]
    wanted = {path: [_as_held(row, documents, held) for row in of_file] for path, of_file in rows.items()}
    stamps = {path: file.stamp for path, file in files.items()}
    for path, of_file in wanted.items():
        if path not in stamps or any(map(_is_unreadable, (*of_file, *rows[path]))):
            stamps[path] = UNREAD
    changed = [
        path
        for path, stamp in stamps.items()
        if (file := their_files.get(path)) is None
        or (stamp, wanted.get(path, [])) != (file.stamp, their_rows.get(path, []))
    ]
    # Of files that only `other` knows, everything is gone.
    changed += [
        path
        for path in their_files
        if path not in stamps and any(row.state != "gone" for row in their_rows.get(path, ()))
    ]
    kept = {row.uri for of_file in wanted.values() for row in of_file} | held
    old = {row.uri for of_file in their_rows.values() for row in of_file if row.reason.is_left_out} - kept
    if old:  # rows of documents that were only in `main`, and were removed from it
        writer.remove(sorted(old))
    if not changed:
        return
    run = writer.begin_run()
    finished = {path: stamps.get(path, UNREAD) for path in changed}
    for page in pages((row for path in changed for row in wanted.get(path, ())), _PAGE_ROWS):
        writer.put(Batch(rows=page, run=run))
    writer.end_run(run, RunOutcome(read=changed, finished=finished))


def _by_file(rows: Iterable[LedgerRow]) -> dict[str, list[LedgerRow]]:
    by_file: dict[str, list[LedgerRow]] = {}
    for row in rows:
        by_file.setdefault(row.file, []).append(row)
    return by_file


def _is_unreadable(row: LedgerRow) -> bool:
    """Return whether the model of the index could not read the text of this record. Another model may read it."""
    return row.reason.is_left_out or row.reason.code is Code.UNREADABLE


def _as_held(row: LedgerRow, ours: Collection[str], theirs: Collection[str]) -> LedgerRow:
    """Return a row of the main index's ledger, changed so that it describes the other index.

    Args:
        ours, theirs: the documents of both.
    """
    if row.uri in theirs:
        if not _is_unreadable(row):
            return row
        return replace(row, state="gone" if row.state == "gone" else "indexed", reason=NO_REASON)
    if row.uri not in ours or row.reason.code is Code.DUPLICATE:
        return row
    if row.state in HELD:
        return replace(row, state="skipped", reason=Code.LEFT_OUT())
    return replace(row, reason=row.reason.left_out())
