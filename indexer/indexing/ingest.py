"""One indexing run: it reads sources, commits documents in batches and records every outcome in the ledger."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from indexer.errors import BadInput, count_of
from indexer.exchange import Embedded
from indexer.indexing.batches import Pending, Prepared, validate, vectors_of_record
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import BATCH_CHARACTERS, COMMIT_S
from indexer.ledger import HELD, NO_REASON, Code, LedgerState, Reason
from indexer.listener import Commit
from indexer.records import UNREAD, Changes, Document, KnownFile, Stamp
from indexer.sources import Entry, ReadOptions, Source, read
from indexer.sources.formats import is_read_alike
from indexer.sources.maildir import exists
from indexer.sources.source import STDIN
from indexer.sources.walk import nearest_above
from indexer.stores.port import Batch, EmbeddedDocument, LedgerRow, RunOutcome
from indexer.stores.reading.snapshot import Snapshot
from indexer.stores.reading.store import Writer


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a run. seen = indexed + unchanged + updated + skipped + failed.

    Attributes:
        duplicates: records that were left out, because a later record has the same id.
        passages: passages that were embedded.
        nameless: records of standard input without an id.
        reason: the most frequent reason of failures.
        noted: files that were not read whole; the ledger has notes on what was not read.
        left_out: the first new files, and records of files that were read, that were skipped, with their reasons.
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
    reread: int = 0
    noted: int = 0
    left_out: tuple[tuple[str, Reason], ...] = ()

    def __add__(self, other: Summary) -> Summary:
        """Return the counts of this run and of one after it."""
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return Summary(**(sums | {"reason": self.reason or other.reason}))


NAMED_SKIPS = 3
"""Maximum skipped files and records that a run names."""


@dataclass(slots=True)
class _Batch:
    documents: dict[str, tuple[Document, Embedded | None, Entry]] = field(default_factory=dict)
    rows: list[LedgerRow] = field(default_factory=list)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    characters: int = 0
    began: float = field(default_factory=time.monotonic)
    pending: Pending | None = None

    def split(self, characters: int) -> _Batch:
        """Return a batch of the first documents, which together reach a number of characters, with all rows. This batch
        keeps the rest: the stamps say that a file was read whole, so they are committed with its last documents."""
        taken, first = 0, _Batch(rows=self.rows)
        for uri in list(self.documents):
            if taken >= characters:
                break
            taken += _size(self.documents[uri][0])
            first.documents[uri] = self.documents.pop(uri)
        self.rows = []
        return first


class Run:
    """Reads sources into an index.

    If several records or files have one id, the document is the last of them in the order of the sources, the walk and
    the file, whichever of their files have changed. For this rule, a run also opens an unchanged file if one of the
    file's documents comes from a file that the run has met earlier. Between runs, the record that was read last counts.
    """

    def __init__(self, index: IndexCore, writer: Writer, options: ReadOptions) -> None:
        """Begin a run.

        Args:
            writer: the writer of the index, held until the run has ended.
        """
        self._index, self._writer, self._options = index, writer, options
        self._listener = index.context.listener
        self._batch = _Batch()
        self._under_way: deque[_Batch] = deque()  # in the order in which they are committed
        self._counts = dict.fromkeys(("indexed", "unchanged", "updated", "skipped", "failed"), 0)
        self._notes: dict[str, None] = {}
        self._duplicates = self._passages = self._bytes = self._nameless = 0
        self._files_told = self._read_bytes = 0
        self._reasons: Counter[Reason] = Counter()
        self._skipped: list[tuple[str, Reason]] = []
        self._met_files: set[str] = set()
        self._unopened_files: set[str] = set()  # unchanged since they were read
        self._failed_files: set[str] = set()  # with at least one failed entry, and folders that cannot be listed
        self._ignored: set[str] = set()  # files and folders
        self.sources: Sequence[Source] = ()  # that were read
        self.unlisted: list[str] = []  # SOURCE arguments that are missing or cannot be listed
        self._left: set[str] = set()  # uris of documents whose file now has a record without a text
        self._late_stamps: dict[str, Stamp] = {}  # of files that records may be gone from
        self._read_files: set[str] = set()  # read to their end without a failure
        self._uri_hashes: set[int] = set()  # to notice a uri that comes twice
        self._noted_files: set[str] = set()
        self._left_out: dict[str, set[str]] = {}  # files of documents that only the other index has, by uri
        self._read_again = 0  # files that have not changed, whose reader has
        self._formats: set[str | None] = set()  # of the documents in the file being read, but not of itself
        self._is_one = False  # the file being read is one document, or has failed as a whole
        self._run = writer.begin_run()
        with index.store.snapshot() as snapshot:
            self._known_files = snapshot.files()
            self._owners = _owners(snapshot, self._known_files)
            for row in left_out_rows(snapshot):
                self._left_out.setdefault(row.uri, set()).add(row.file)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on files that were read again, and the notes of the encoder and the writer so far, each once."""
        n = self._read_again
        again = [f"read again because their reader has changed: {count_of(n, 'file')}"] if n else []
        return tuple(dict.fromkeys((*again, *self._notes, *self._writer.notes)))

    @property
    def embedded(self) -> bool:
        """True if this run has written passages."""
        return bool(self._passages)

    @property
    def summary(self) -> Summary:
        return Summary(
            seen=sum(self._counts.values()),
            **self._counts,
            duplicates=self._duplicates,
            passages=self._passages,
            nameless=self._nameless,
            noted=len(self._noted_files),
            left_out=tuple(self._skipped),
            reason=max(self._reasons, key=self._reasons.__getitem__, default=NO_REASON).text(),
        )

    def feed(self, sources: Sequence[Source]) -> Summary:
        """Read the sources to their end and commit what is new. An interruption keeps what was committed."""
        self.sources = sources
        for source in sources:
            file: str | None = None
            last: Entry | None = None
            for entry in read(source, self._options, self._known):
                if last is not None and entry.file != file:
                    self._finish(last)
                if entry.file != file:
                    self._begin(entry)
                if entry.file != file and entry.stamp is not None:
                    self._files_told += 1
                    self._read_bytes += entry.stamp.size
                    self._listener.reading(entry.file, self._files_told, self._read_bytes)
                file, last = entry.file, entry
                if entry.state == "failed" and entry.stamp is None and entry.file == source.root != STDIN:
                    self.unlisted.append(source.argument)
                self._take(entry)
                if self._is_batch_full():
                    self._submit(more_follow=True)
                self._commit(self._index.window())
            if last is not None:
                self._finish(last)
        self._submit()
        self._commit(0)
        self._notes |= dict.fromkeys(self._index.read_languages())
        unmet = (path for path in self._known_files if path not in self._met_files and self.doubt(path) is None)
        gone = [path for path in unmet if any(source.covers(path) for source in sources)]
        # Standard input is left out: it does not have to bring again what an earlier run brought.
        others = self._holders({uri for uri in self._left if hash(uri) not in self._uri_hashes})
        self._late_stamps |= dict.fromkeys(others, UNREAD)
        outcome = RunOutcome([*gone, *(self._read_files - {STDIN})], [*self._unopened_files], self._late_stamps)
        self._keep_left_out(set(outcome.read))
        reread = self._writer.end_run(self._run, outcome) + len(others)
        return replace(self.summary, reread=reread)

    def doubt(self, path: str) -> str | None:
        """Return the path, or the folder above it, that could not be read whole. Its documents may still exist."""
        return None if path == STDIN else nearest_above(path, self._failed_files)

    def ignores(self, file: str) -> bool:
        """Return whether this run has ignored an existing file, or a folder above it."""
        return nearest_above(file, self._ignored) is not None and exists(file)

    def _keep_left_out(self, read: set[str]) -> None:
        """Keep the rows of documents that only the other index has, although these files no longer have them."""
        rows = [
            LedgerRow(file, uri, "gone", Code.LEFT_OUT())
            for uri, files in self._left_out.items()
            for file in files & read
        ]
        if rows:
            self._writer.put(Batch(rows=rows, run=self._run))

    def _known(self, path: str) -> KnownFile | None:
        """Return the ledger's record of a file; with the stamp of an unread file if it must be opened though unchanged.

        It must be opened if the document of one of its records comes from an earlier file: in this run, or in a
        previous run that had another order, did not include this file, or was interrupted before it.
        """
        recorded = self._known_files.get(path)
        for uri, state, reason in recorded.entries if recorded is not None else ():
            if _has_document(state, reason) and (
                hash(uri) in self._uri_hashes or self._owners.get(uri) in self._met_files
            ):
                assert recorded is not None
                return replace(recorded, stamp=UNREAD)
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
            self._duplicates += entry.reason.code is Code.DUPLICATE
            self._unopened_files.add(entry.file)
            return
        if entry.ignored:
            self._ignored.add(entry.file)
        self._is_one |= entry.uri == entry.file
        if entry.state == "unchanged":
            self._comes_again(entry.uri)
        if entry.state != "read":
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
        if not is_file:
            self._formats.add(entry.document.format)
        self._batch.documents[entry.uri] = (entry.document, embedded, entry)
        self._batch.characters += _size(entry.document)

    def _record(self, entry: Entry, state: LedgerState, reason: Reason) -> None:
        """Count an entry without a document and put it into the ledger."""
        self._counts[state] += 1
        if state == "failed":
            self._failed_files.add(entry.file)
            self._reasons[replace(reason, line=None)] += 1
        elif state == "skipped" and self._owners.get(entry.uri) == entry.file:
            self._left.add(entry.uri)
        is_new = entry.stamp is not None and (entry.uri != entry.file or entry.file not in self._known_files)
        if state == "skipped" and is_new and len(self._skipped) < NAMED_SKIPS:
            self._skipped.append((entry.uri, reason))
        self._batch.rows.append(self._row(entry, state, reason))
        self._batch.characters += 256

    def _row(self, entry: Entry, state: LedgerState, reason: Reason) -> LedgerRow:
        """Return the row of an entry. If only the other index has the document, the row still says so."""
        if state in HELD:
            self._left_out.pop(entry.uri, None)
        elif reason.code is not Code.DUPLICATE and entry.uri in self._left_out:
            self._left_out[entry.uri].discard(entry.file)
            reason = reason.left_out()
        notes = entry.notes if state in HELD else ()
        return LedgerRow(entry.file, entry.uri, state, reason, entry.reader, notes)

    def _comes_again(self, uri: str) -> bool:
        """Return whether this run has met the uri before, and count it if so."""
        key = hash(uri)
        again = key in self._uri_hashes
        self._uri_hashes.add(key)
        self._duplicates += again
        return again

    def _own_vectors(self, entry: Entry) -> Embedded | None:
        """Return the passages and vectors of a record, if it has any. The first vectors decide the width of an index
        without one."""
        dimensions = self._index.settings.dimensions
        embedded = vectors_of_record(
            entry,
            self._index.recipe,
            dimensions,
            recipe_advice="export without --vectors, or use likewise copy",
            width_advice="an index for it is made with --dimensions",
        )
        if embedded is not None and not dimensions:
            self._index.take_width(embedded.vectors.shape[1])
        return embedded

    def _begin(self, first: Entry) -> None:
        """Note that a file is read from here on, given its first entry."""
        self._formats, self._is_one = set(), False
        recorded = self._known_files.get(first.file)
        if recorded is None or not first.opened:
            return
        # Until it is read to its end, the next run has to open it: its stamp may still hold.
        self._batch.stamps[first.file] = UNREAD
        changed = first.stamp is None or replace(first.stamp, read_ns=recorded.stamp.read_ns) != recorded.stamp
        if changed or any(state == "failed" for _, state, _ in recorded.entries):
            return  # it would have been read by any reader
        if not is_read_alike(first.file, recorded, self._options.extractors):
            self._read_again += 1

    def _finish(self, last: Entry) -> None:
        """Record that a file was read to its end, given its last entry."""
        if last.file in self._unopened_files:
            return
        if self._is_several_now(last.file):
            self._batch.removed.append(last.file)
        recorded = self._known_files.get(last.file)
        if last.stamp is not None:
            others = recorded is not None and any(uri != last.uri for uri, _, _ in recorded.entries)
            (self._late_stamps if others else self._batch.stamps)[last.file] = last.stamp
        if last.file not in self._failed_files:
            self._read_files.add(last.file)

    def _is_several_now(self, file: str) -> bool:
        """Return whether a file that was one document, of another format, or none, now holds several in its place."""
        recorded = self._known_files.get(file)
        if recorded is None or self._is_one or self._owners.get(file, file) != file:
            return False
        if not any(uri == file and not reason.is_left_out for uri, _, reason in recorded.entries):
            return False
        with self._index.store.snapshot() as snapshot:
            document = snapshot.get(file)
        return document is None or (bool(self._formats) and document.format not in self._formats)

    def _is_batch_full(self) -> bool:
        """Return whether enough was read for the next commits. A slow reader does not hold them up.

        A commit may have fewer characters, but of records with one id only the last is embedded if they were read
        together.
        """
        if self._batch.characters >= BATCH_CHARACTERS:
            return True
        return bool(self._batch.documents) and time.monotonic() - self._batch.began > COMMIT_S

    def _submit(self, *, more_follow: bool = False) -> None:
        """Begin to embed what was read, in parts that are embedded in COMMIT_S seconds each."""
        batch, self._batch = self._batch, _Batch()
        while True:
            part = batch.split(self._index.batch_characters)
            if not batch.documents:
                part.stamps, part.removed = batch.stamps, batch.removed
            if any(uri in earlier.documents for earlier in self._under_way for uri in part.documents):
                self._commit(0)  # The last document of a uri counts, so it is compared with the one before it.
            if part.documents:
                self._listener.embedding(len(part.documents))
            incoming = [(document, embedded) for document, embedded, _ in part.documents.values()]
            part.pending = self._index.submit(incoming, more_follow=more_follow or bool(batch.documents))
            self._under_way.append(part)
            self._commit(self._index.window())
            if not batch.documents:
                break

    def _commit(self, window: int) -> None:
        """Commit the first batches that are embedded. Wait until at most `window` are under way."""
        while self._under_way:
            pending = self._under_way[0].pending
            assert pending is not None
            if len(self._under_way) <= window and not pending.embedding.done():
                break
            prepared = self._index.finish(pending)
            self._put(self._under_way.popleft(), prepared)

    def _put(self, batch: _Batch, prepared: Prepared) -> None:
        self._notes |= dict.fromkeys(prepared.notes)
        states, work = prepared.states(), prepared.work
        reasons = {uri: Code.UNREADABLE() for uri in prepared.empty}
        reasons |= {uri: Code.ENDS_WORKERS(reason) for uri, reason in prepared.failed.items()}
        rows = [
            self._row(entry, states[uri], reasons.get(uri, entry.reason))
            for uri, (_, _, entry) in batch.documents.items()
        ]
        if not rows and not batch.rows and not batch.stamps and not batch.removed:
            return
        earlier, rows = self._with_kept_texts(batch.rows), self._with_kept_texts(rows)
        try:
            changes = self._writer.put(Batch(work, [*earlier, *rows], batch.stamps, self._run, batch.removed))
        except BadInput:
            changes, refused = self._put_each(work)
            rows = [
                replace(row, state="failed", reason=Code.OTHER(refused[row.uri])) if row.uri in refused else row
                for row in rows
            ]
            rows = self._with_kept_texts(rows)
            self._writer.put(Batch((), [*earlier, *rows], batch.stamps, self._run, batch.removed))
            work = tuple(item for item in work if item.document.uri not in refused)
        self._noted_files.update(row.file for row in rows if row.notes and row.state in HELD)
        for row in rows:
            self._counts[row.state] += 1
            if row.state == "failed":
                self._failed_files.add(row.file)
                self._read_files.discard(row.file)
                self._reasons[row.reason] += 1
        self._passages += sum(len(item.spans) for item in work if item.spans)
        self._listener.committed(Commit(self._counts["indexed"], self._passages, self._bytes, changes=changes))

    def _with_kept_texts(self, rows: Sequence[LedgerRow]) -> list[LedgerRow]:
        """Return rows of the ledger. A failed row gets a note if the index still has a document of it."""
        failed = [row.uri for row in rows if row.state == "failed"]
        if not failed:
            return [*rows]
        with self._index.store.snapshot() as snapshot:
            kept = snapshot.hashes(failed)
        note = (Code.EARLIER_TEXT_KEPT(),)
        return [replace(row, notes=note) if row.state == "failed" and row.uri in kept else row for row in rows]

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


def left_out_rows(snapshot: Snapshot) -> list[LedgerRow]:
    """Return the rows of documents that only the index with the other model has."""
    states: tuple[LedgerState, ...] = ("skipped", "failed", "gone")
    return [row for state in states for row in snapshot.ledger(state) if row.reason.is_left_out]


def _has_document(state: LedgerState, reason: Reason) -> bool:
    """Return whether the record of a ledger row can be a document, though a later record may have its id."""
    return state in HELD or (state == "skipped" and reason.code is Code.DUPLICATE)


def _owners(snapshot: Snapshot, files: Mapping[str, KnownFile]) -> dict[str, str]:
    """Return, for each uri that several files have, the file of the stored document, which is the file that was read
    last."""
    first: dict[str, str] = {}
    shared: set[str] = set()
    for path, file in files.items():
        for uri, state, reason in file.entries:
            if _has_document(state, reason) and first.setdefault(uri, path) != path:
                shared.add(uri)
    if not shared:
        return {}
    return {row.uri: row.file for row in snapshot.ledger() if row.uri in shared and row.state in HELD}


def _size(document: Document) -> int:
    """Return what a document counts for in a batch: its characters, and a share for its row."""
    return len(document.text) + 256
