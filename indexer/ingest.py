"""One indexing run: it reads sources, commits documents in batches and records every outcome in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from indexer.batches import validate
from indexer.core import IndexCore
from indexer.errors import BadInput, RecipeMismatch
from indexer.exchange import Embedded
from indexer.ledger import HELD, NO_REASON, Code, LedgerState, Reason
from indexer.listener import Commit
from indexer.records import Changes, Document, KnownFile, Span, Stamp, Vector
from indexer.sources import Entry, ReadOptions, Source, read
from indexer.sources.source import STDIN
from indexer.stores.port import (
    Batch,
    EmbeddedDocument,
    LedgerRow,
    RunOutcome,
    Snapshot,
    Writer,
)
from indexer.stores.vectors import stored_rows, unit_rows


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a run. seen = indexed + unchanged + updated + skipped + failed.

    Attributes:
        duplicates: ids that came more than once.
        passages: passages that were embedded.
        nameless: records of standard input without an id.
        reason: the most frequent reason of failures.
        stale: uris of documents that are no longer in their source.
        ignored: uris of documents whose file is ignored now. It exists, so they are kept.
        reread: files that the next run must read again, because they also hold documents that another file has lost.
    """

    seen: int = 0
    indexed: int = 0
    unchanged: int = 0
    updated: int = 0
    skipped: int = 0
    failed: int = 0
    pruned: int = 0
    duplicates: int = 0
    passages: int = 0
    nameless: int = 0
    reason: str = ""
    stale: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    reread: int = 0

    def __add__(self, other: Summary) -> Summary:
        """Return the counts of this run and of one after it."""
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return Summary(**(sums | {"reason": self.reason or other.reason}))


_UNREAD = Stamp(-1, 0, 0, 0)
"""The stamp of a file that has to be opened by the next run that comes to it."""


@dataclass(slots=True)
class _Batch:
    documents: dict[str, tuple[Document, Embedded | None, Entry]] = field(default_factory=dict)
    rows: list[LedgerRow] = field(default_factory=list)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    characters: int = 0


class Run:
    """Reads sources into an index.

    If several records or files have one id, the document is the last of them in the order of the sources, the walk and
    the file, whichever of their files have changed. To keep to that, a run also opens an unchanged file if one of its
    documents comes from a file that the run has met before it. Between runs, the record that was read last counts.
    """

    def __init__(self, index: IndexCore, writer: Writer, options: ReadOptions) -> None:
        """Begin a run.

        Args:
            writer: the writer of the index, held until the run has ended.
        """
        self._index, self._writer, self._options = index, writer, options
        self._listener = index.context.listener
        self._batch = _Batch()
        self._counts = dict.fromkeys(("indexed", "unchanged", "updated", "skipped", "failed"), 0)
        self._notes: dict[str, None] = {}
        self._duplicates = self._passages = self._bytes = self._nameless = 0
        self._files_told = self._read_bytes = 0
        self._reasons: Counter[Reason] = Counter()
        self._met_files: set[str] = set()
        self._unopened_files: set[str] = set()  # unchanged since they were read
        self._failed_files: set[str] = set()  # with at least one failed entry
        self._ignored: set[str] = set()  # files and folders
        self._left: set[str] = set()  # uris of documents whose file now has a record without a text
        self._late_stamps: dict[str, Stamp] = {}  # of files that records may be gone from
        self._read_files: set[str] = set()  # read to their end without a failure
        self._uri_hashes: set[int] = set()  # to notice a uri that comes twice
        self._left_out: dict[str, set[str]] = {}  # files of documents that only the other index has, by uri
        self._run = writer.begin_run()
        with index.store.snapshot() as snapshot:
            self._known_files = snapshot.files()
            self._owners = _owners(snapshot, self._known_files)
            for row in _left_out(snapshot):
                self._left_out.setdefault(row.uri, set()).add(row.file)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the encoder and the writer so far, each once."""
        return tuple(dict.fromkeys((*self._notes, *self._writer.notes)))

    @property
    def embedded(self) -> bool:
        """Whether this run has written passages."""
        return bool(self._passages)

    @property
    def summary(self) -> Summary:
        return Summary(
            seen=sum(self._counts.values()),
            indexed=self._counts["indexed"],
            unchanged=self._counts["unchanged"],
            updated=self._counts["updated"],
            skipped=self._counts["skipped"],
            failed=self._counts["failed"],
            duplicates=self._duplicates,
            passages=self._passages,
            nameless=self._nameless,
            reason=max(self._reasons, key=self._reasons.__getitem__, default=NO_REASON).text(),
        )

    def feed(self, sources: Sequence[Source]) -> Summary:
        """Read the sources to their end and commit what is new. An interruption keeps what was committed."""
        for source in sources:
            file: str | None = None
            last: Entry | None = None
            for entry in read(source, self._options, self._known):
                if last is not None and entry.file != file:
                    self._finish(last)
                if entry.file != file and entry.opened and entry.file in self._known_files:
                    # Until it is read to its end, the next run has to open it: its stamp may still hold.
                    self._batch.stamps[entry.file] = _UNREAD
                if entry.file != file and entry.stamp is not None:
                    self._files_told += 1
                    self._read_bytes += entry.stamp.size
                    self._listener.reading(entry.file, self._files_told, self._read_bytes)
                file, last = entry.file, entry
                self._take(entry)
                if self._batch.characters >= self._index.batch_characters:
                    self._commit()
            if last is not None:
                self._finish(last)
        self._commit()
        whole = [source for source in sources if source.whole]
        unmet = (path for path in self._known_files if path not in self._met_files)
        gone = [path for path in unmet if any(source.covers(path) for source in whole)]
        # Standard input is left out: it does not have to bring again what an earlier run brought.
        others = self._holders({uri for uri in self._left if hash(uri) not in self._uri_hashes})
        self._late_stamps |= dict.fromkeys(others, _UNREAD)
        outcome = RunOutcome([*gone, *(self._read_files - {STDIN})], [*self._unopened_files], self._late_stamps)
        self._keep_left_out(set(outcome.read))
        reread = self._writer.end_run(self._run, outcome) + len(others)
        stale, ignored = self._lost(sources)
        return replace(self.summary, stale=stale, ignored=ignored, reread=reread)

    def prune(self, sources: Sequence[Source], stale: Sequence[str], *, yes: bool) -> int:
        """Remove documents that are no longer in their source. Standard input is not a whole source and prunes none.

        Raises:
            BadInput: a source was not read whole, or without `yes` more than half of the index would be removed.
        """
        for source in sources:
            if not source.whole and source.root != STDIN:
                raise BadInput(f"{source.argument}: was not read whole, so nothing was pruned; see the ledger")
        with self._index.store.snapshot() as snapshot:
            documents = snapshot.documents
        if 2 * len(stale) > documents and not yes:
            raise BadInput(
                f"pruning would remove {len(stale)} of {documents} documents, more than half: nothing was "
                "pruned; add --yes if that is meant"
            )
        return self._writer.remove([*stale, *self._lost_elsewhere(sources)])

    def _keep_left_out(self, read: set[str]) -> None:
        """Keep the rows of documents that only the other index has, although these files no longer have them."""
        rows = [
            LedgerRow(file, uri, "gone", Code.LEFT_OUT())
            for uri, files in self._left_out.items()
            for file in files & read
        ]
        if rows:
            self._writer.put(Batch(rows=rows, run=self._run))

    def _lost_elsewhere(self, sources: Sequence[Source]) -> list[str]:
        """Return the uris of documents that only the other index has, and that a run with its model would prune."""
        with self._index.store.snapshot() as snapshot:
            return [
                row.uri
                for row in _left_out(snapshot)
                if row.state == "gone" or (row.state == "skipped" and row.reason.code is Code.LEFT_OUT_SINCE)
                if any(source.covers(row.file) for source in sources) and not self._is_ignored(row.file)
            ]

    def _lost(self, sources: Sequence[Source]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the uris of documents that these sources cover but no longer contain, or skip now.

        Returns:
            Those to prune, and those of which a file is only ignored now.
        """
        kept: set[str] = set()
        ignored: set[str] = set()
        uris: dict[str, None] = {}
        with self._index.store.snapshot() as snapshot:
            for row in snapshot.ledger_of_documents():
                uris[row.uri] = None
                missing = row.state == "gone" or (row.state == "skipped" and row.reason.code is not Code.DUPLICATE)
                if not missing or not any(source.covers(row.file) for source in sources):
                    kept.add(row.uri)
                elif self._is_ignored(row.file):
                    ignored.add(row.uri)
        lost = [uri for uri in uris if uri not in kept]
        return tuple(uri for uri in lost if uri not in ignored), tuple(uri for uri in lost if uri in ignored)

    def _is_ignored(self, file: str) -> bool:
        """Return whether this run has ignored an existing file, or a folder above it."""
        path = Path(file)
        return any(str(each) in self._ignored for each in (path, *path.parents)) and path.exists()

    def _known(self, path: str) -> KnownFile | None:
        """Return the ledger's record of a file; None if it has none, or must be opened even if it has not changed.

        That is so if the document of one of its records comes from a file before it: in this run, or in an earlier one
        that had another order, did not come to this file, or was interrupted before it.
        """
        recorded = self._known_files.get(path)
        for uri, state, reason in recorded.entries if recorded is not None else ():
            if _has_document(state, reason) and (
                hash(uri) in self._uri_hashes or self._owners.get(uri) in self._met_files
            ):
                return None
        return recorded

    def _holders(self, uris: set[str]) -> list[str]:
        """Return the files that also have one of these uris and were not opened in this run."""
        if not uris:
            return []
        return [
            path
            for path, file in self._known_files.items()
            if path in self._unopened_files or path not in self._met_files
            if any(uri in uris and _has_document(state, reason) for uri, state, reason in file.entries)
        ]

    def _take(self, entry: Entry) -> None:
        """Put the document of an entry into the batch, or record why it has none."""
        self._met_files.add(entry.file)
        if not entry.opened:
            self._counts[entry.state] += 1
            self._unopened_files.add(entry.file)
            return
        if entry.ignored:
            self._ignored.add(entry.file)
        if entry.state in ("skipped", "failed"):
            self._record(entry, entry.state, entry.reason)
            return
        assert entry.document is not None
        try:
            validate(entry.document, empty=entry.embedded is not None)
            embedded = self._own_vectors(entry)
        except BadInput as error:
            self._record(entry, "failed", Code.OTHER(error))
            return
        if embedded is None and self._index.recipe is None:
            self._record(entry, "failed", Code.NO_VECTOR())
            return
        if self._comes_again(entry.uri) and (earlier := self._batch.documents.pop(entry.uri, None)) is not None:
            self._counts["skipped"] += 1
            self._batch.rows.append(self._row(earlier[2], "skipped", Code.DUPLICATE()))
        self._nameless += entry.uri.startswith(f"{STDIN}:") and entry.uri[2:].isdecimal()
        is_file = entry.uri == entry.file
        self._bytes += entry.stamp.size if is_file and entry.stamp else len(entry.document.text)
        self._batch.documents[entry.uri] = (entry.document, embedded, entry)
        self._batch.characters += len(entry.document.text) + 256

    def _record(self, entry: Entry, state: LedgerState, reason: Reason) -> None:
        """Count an entry without a document and put it into the ledger."""
        self._counts[state] += 1
        if state == "failed":
            self._failed_files.add(entry.file)
            self._reasons[replace(reason, line=None)] += 1
        elif self._owners.get(entry.uri) == entry.file:
            self._left.add(entry.uri)
        self._batch.rows.append(self._row(entry, state, reason))
        self._batch.characters += 256

    def _row(self, entry: Entry, state: LedgerState, reason: Reason) -> LedgerRow:
        """Return the row of an entry. It still says that only the other index has the document, if that is so."""
        if state in HELD:
            self._left_out.pop(entry.uri, None)
        elif reason.code is not Code.DUPLICATE and entry.uri in self._left_out:
            self._left_out[entry.uri].discard(entry.file)
            reason = reason.left_out()
        return LedgerRow(entry.file, entry.uri, state, reason)

    def _comes_again(self, uri: str) -> bool:
        """Return whether this run has met the uri before, and count it if so."""
        key = hash(uri)
        again = key in self._uri_hashes
        self._uri_hashes.add(key)
        self._duplicates += again
        return again

    def _own_vectors(self, entry: Entry) -> Embedded | None:
        """Return the passages and unit vectors that a record brings; None where it brings none."""
        assert entry.document is not None
        if (embedded := entry.embedded) is not None:
            recipe = self._index.recipe
            if embedded.recipe != (recipe.identity if recipe else ""):
                raise RecipeMismatch(
                    f"{entry.uri}: its vectors were made by another recipe than the index's (whiten or center that "
                    "is fitted again makes another recipe): export without --vectors, or copy the index with backup"
                )
            return replace(
                embedded, vectors=self._rows(stored_rows, embedded.vectors, [entry.uri] * len(embedded.spans))
            )
        if entry.vector is None:
            return None
        vector = np.array([entry.vector], np.float32)
        dimensions = self._index.settings.dimensions
        if dimensions and len(entry.vector) != dimensions:
            advice = "; an index for it is made with --dimensions" if self._index.recipe is not None else ""
            raise BadInput(f"its vector has {len(entry.vector)} dimensions and the index {dimensions}{advice}")
        return Embedded((Span(0, len(entry.document.text)),), self._rows(unit_rows, vector, [entry.uri]))

    def _rows(self, check: Callable[[Vector, int, list[str]], Vector], vectors: Vector, names: list[str]) -> Vector:
        """Return valid rows; the first ones give their width to an index that has none. A refused one gives none."""
        rows = check(vectors, self._index.settings.dimensions or vectors.shape[1], names)
        if not self._index.settings.dimensions:
            self._index.take_width(rows.shape[1])
        return rows

    def _finish(self, last: Entry) -> None:
        """Record that a file was read to its end, given its last entry."""
        if last.file in self._unopened_files:
            return
        recorded = self._known_files.get(last.file)
        if last.stamp is not None:
            others = recorded is not None and any(uri != last.uri for uri, _, _ in recorded.entries)
            (self._late_stamps if others else self._batch.stamps)[last.file] = last.stamp
        if last.file not in self._failed_files:
            self._read_files.add(last.file)

    def _commit(self) -> None:
        batch, self._batch = self._batch, _Batch()
        if batch.documents:
            self._listener.embedding(len(batch.documents))
        prepared = self._index.prepare([(document, embedded) for document, embedded, _ in batch.documents.values()])
        self._notes |= dict.fromkeys(prepared.notes)
        states, work = prepared.states(), prepared.work
        rows = [
            self._row(entry, states[uri], Code.UNREADABLE() if states[uri] == "skipped" else entry.reason)
            for uri, (_, _, entry) in batch.documents.items()
        ]
        if not rows and not batch.rows and not batch.stamps:
            return
        try:
            changes = self._writer.put(Batch(work, [*batch.rows, *rows], batch.stamps, self._run))
        except BadInput:
            changes, refused = self._put_each(work)
            rows = [
                replace(row, state="failed", reason=Code.OTHER(refused[row.uri])) if row.uri in refused else row
                for row in rows
            ]
            self._writer.put(Batch((), [*batch.rows, *rows], batch.stamps, self._run))
            work = tuple(item for item in work if item.document.uri not in refused)
        for row in rows:
            self._counts[row.state] += 1
            if row.state == "failed":
                self._failed_files.add(row.file)
                self._read_files.discard(row.file)
                self._reasons[row.reason] += 1
        self._passages += sum(len(item.spans) for item in work if item.spans)
        self._listener.committed(Commit(self._counts["indexed"], self._passages, self._bytes, changes=changes))

    def _put_each(self, work: Sequence[EmbeddedDocument]) -> tuple[Changes, dict[str, str]]:
        """Commit documents one by one, because the store cannot hold one of them.

        Returns:
            What changed, and the reasons of the documents that were refused, by uri.
        """
        changes, refused = Changes(), dict[str, str]()
        for item in work:
            try:
                changes += self._writer.put(Batch([item]))
            except BadInput as error:
                refused[item.document.uri] = str(error)
        return changes, refused


def _left_out(snapshot: Snapshot) -> list[LedgerRow]:
    """Return the rows of documents that only the index with the other model has."""
    states: tuple[LedgerState, ...] = ("skipped", "failed", "gone")
    return [row for state in states for row in snapshot.ledger(state) if row.reason.is_left_out]


def _has_document(state: LedgerState, reason: Reason) -> bool:
    """Return whether the record of a ledger row can be a document, though a later record may have its id."""
    return state in HELD or (state == "skipped" and reason.code is Code.DUPLICATE)


def _owners(snapshot: Snapshot, files: Mapping[str, KnownFile]) -> dict[str, str]:
    """Return, by each uri that several files have, the file of the record that is the document: the one read last."""
    first: dict[str, str] = {}
    shared: set[str] = set()
    for path, file in files.items():
        for uri, state, reason in file.entries:
            if _has_document(state, reason) and first.setdefault(uri, path) != path:
                shared.add(uri)
    if not shared:
        return {}
    return {row.uri: row.file for row in snapshot.ledger() if row.uri in shared and row.state in HELD}
