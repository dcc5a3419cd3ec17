"""One indexing run: it reads sources, commits documents in batches and records every outcome in the ledger."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import chain, groupby
from operator import attrgetter

from indexer.errors import BadInput, IndexDamaged, count_of
from indexer.exchange import Embedded
from indexer.indexing.batches import Pending, Prepared, validate, vectors_of_record
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import BATCH_CHARACTERS, COMMIT_S, FIRST_BATCH_CHARACTERS, FIRST_BATCH_S
from indexer.ledger import HELD, NO_REASON, Code, LedgerState, Reason
from indexer.listener import Commit
from indexer.records import UNREAD, Changes, Document, KnownFile, Stamp
from indexer.sources import Entry, ReadOptions, Source, read
from indexer.sources.folders.maildir import exists
from indexer.sources.folders.source import STDIN
from indexer.sources.folders.walk import nearest_above
from indexer.sources.formats import is_read_alike
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
        newly_failed: failures of a file that has changed since it failed, whose reader has, or that is new.
        reason: the most frequent reason of new failures.
        example: the first file or record that failed for this reason.
        noted: files on which the ledger has notes.
        not_whole: those that were not read whole. The notes on the others are on cells that stay text.
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
    newly_failed: int = 0
    reason: str = ""
    example: str = ""
    reread: int = 0
    noted: int = 0
    not_whole: int = 0
    left_out: tuple[tuple[str, Reason], ...] = ()

    def __add__(self, other: Summary) -> Summary:
        """Return the counts of this run and of one after it."""
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        first = self if self.reason else other
        return Summary(**(sums | {"reason": first.reason, "example": first.example}))


_VECTOR_ADVICE = "export without --vectors, or use likewise copy", "an index for it is made with --dimensions"
"""What to do about passages of another recipe, and about a vector of another width than those of the model."""

NAMED_SKIPS = 3
"""Maximum skipped files and records, and files with the same ids, that a run names."""


@dataclass(slots=True)
class _Batch:
    documents: dict[str, tuple[Document, Embedded | None, Entry, int]] = field(default_factory=dict)  # with positions
    rows: list[LedgerRow] = field(default_factory=list)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    characters: int = 0
    began: float = 0.0  # when its first document was read

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


@dataclass(frozen=True, slots=True)
class _Ledger:
    """The ledger when a run begins.

    Attributes:
        files: its files, by path.
        owners: the file that each uri belongs to, by the hash of the uri; empty for a document of no file, or that its
            file has lost. Of several files it is that of the stored document. A run adds the uris that it reads.
        shared: uris that several files have.
    """

    files: Mapping[str, KnownFile]
    owners: dict[int, str]
    shared: set[str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Ledger:
        files, owners, shared, held = snapshot.files(), dict[int, str](), set[str](), 0
        for path, file in files.items():
            for uri, state, _ in file.entries:
                held += state in HELD and hash(uri) not in owners
                if owners.setdefault(hash(uri), path) != path:
                    shared.add(uri)
        if shared or held != snapshot.documents:
            owners |= ((hash(uri), path or "") for uri, path in snapshot.files_of_documents())
        return cls(files, owners, shared)


@dataclass(slots=True)
class Seen:
    """What a run has seen of its sources.

    Attributes:
        sources: the sources that it reads.
        unlisted: SOURCE arguments that are missing or cannot be listed.
        files: files with an entry, and folders that are left out or cannot be listed.
        unopened: files that have not changed since they were read.
        failed: files with at least one failed entry, and folders that cannot be listed.
        known_failures: uris that have failed before, in files that are read again as they were.
        ignored: files and folders that a rule leaves out.
        noted: files on which the ledger has notes, each with whether it was not read whole.
        emptied: uris of documents whose file now has a record without a text.
        uri_hashes: hashes of the uris of opened files, to notice a uri that comes twice.
        states: number of entries, by state.
        counts: number of duplicates, of nameless records, of new failures, and of passages that were embedded.
        reasons: number of new failures, by reason.
        examples: the first file or record that failed, by reason.
        skipped: the first new files and records that were skipped.
        joined: files that have the same uris by a member that the user has named.
        listed: number of files so far, and their bytes, without those that could not be looked into.
        other_readers: number of files that have not changed, whose reader has.
        notes: notes of the encoder and the writer, each once.
        unwritten: the rows that a run without a writer would write, by file and uri.
        unwritten_files: files that it has read whole, or that are missing.
    """

    sources: Sequence[Source] = ()
    unlisted: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    unopened: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    known_failures: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    noted: dict[str, bool] = field(default_factory=dict)
    emptied: set[str] = field(default_factory=set)
    uri_hashes: set[int] = field(default_factory=set)
    states: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)
    examples: dict[Reason, str] = field(default_factory=dict)
    skipped: list[tuple[str, Reason]] = field(default_factory=list)
    joined: set[str] = field(default_factory=set)
    listed: tuple[int, int] = 0, 0
    other_readers: int = 0
    notes: dict[str, None] = field(default_factory=dict)
    unwritten: dict[tuple[str, str], LedgerRow] = field(default_factory=dict)
    unwritten_files: set[str] = field(default_factory=set)

    @property
    def summary(self) -> Summary:
        reason = max(self.reasons, key=self.reasons.__getitem__, default=NO_REASON)
        return Summary(
            seen=self.states.total(),
            **self.states,
            **self.counts,
            noted=len(self.noted),
            not_whole=sum(self.noted.values()),
            left_out=tuple(self.skipped),
            reason=reason.text(),
            example=self.examples.get(reason, ""),
        )

    def covers(self, file: str) -> bool:
        """Return whether one of the sources would have this file."""
        return any(source.covers(file) for source in self.sources)

    def doubt(self, path: str) -> str | None:
        """Return the path, or the folder above it, that could not be read whole. Its documents may still exist."""
        return None if path == STDIN else nearest_above(path, self.failed)

    def ignores(self, file: str) -> bool:
        """Return whether this run has ignored an existing file, or a folder above it."""
        return nearest_above(file, self.ignored) is not None and exists(file)

    def after(self, rows: Iterable[LedgerRow]) -> Iterator[LedgerRow]:
        """Yield the rows of documents as the run leaves them, also if it writes nothing, given those that are
        stored."""
        for row in rows:
            later = replace(row, state="gone") if row.file in self.unwritten_files else row
            yield self.unwritten.get((row.file, row.uri), later)
        yield from (row for row in self.unwritten.values() if row.state in HELD)

    def comes_again(self, uri: str) -> bool:
        """Return whether the uri was seen before, and count it if so."""
        key = hash(uri)
        again = key in self.uri_hashes
        self.uri_hashes.add(key)
        self.counts["duplicates"] += again
        return again

    def add(self, file: str, uri: str, state: LedgerState, reason: Reason) -> None:
        """Count the outcome of a file or record."""
        self.states[state] += 1
        if state == "failed":
            self.failed.add(file)
            if uri not in self.known_failures:
                self.counts["newly_failed"] += 1
                self.reasons[without_line := replace(reason, line=None)] += 1
                self.examples.setdefault(without_line, uri)


class _Commits:
    """What a run will write: a batch that is being filled, and batches that are being embedded.

    Attributes:
        batch: what was read since the last batch was submitted.
        late_stamps: stamps of files that records may be gone from, by path. They are written when the run ends.
    """

    def __init__(self, index: IndexCore, writer: Writer | None, seen: Seen) -> None:
        self.batch = _Batch()
        self.late_stamps: dict[str, Stamp] = {}
        self._index, self._seen = index, seen
        if writer is not None:
            self._writer, self._run = writer, writer.begin_run()
        self._under_way: deque[tuple[_Batch, Pending]] = deque()  # in the order in which they are committed
        self._is_first = True  # until a batch was submitted
        self._left_out: dict[str, set[str]] = {}  # files of documents that only the other index has, by uri
        with index.store.snapshot() as snapshot:
            for row in left_out_rows(snapshot):
                self._left_out.setdefault(row.uri, set()).add(row.file)

    @property
    def is_full(self) -> bool:
        """Whether enough was read for the next commits. A slow reader does not hold them up, and the first comes soon.

        A commit may have fewer characters, but of records with one id only the last is embedded if they were read
        together, and the first batch chooses the model if it is open. So only whole files are committed soon.
        """
        soon = self._is_first and self._index.settings.model_open is None
        soon = soon and all(uri == entry.file for uri, (_, _, entry, _) in self.batch.documents.items())
        characters, seconds = (FIRST_BATCH_CHARACTERS, FIRST_BATCH_S) if soon else (BATCH_CHARACTERS, COMMIT_S)
        if self.batch.characters >= characters:
            return True
        return bool(self.batch.documents) and time.monotonic() - self.batch.began > seconds

    def row(self, entry: Entry, state: LedgerState, reason: Reason) -> LedgerRow:
        """Return the row of an entry. If only the other index has the document, the row still says so."""
        if state in HELD:
            self._left_out.pop(entry.uri, None)
        elif reason.code is not Code.DUPLICATE and entry.uri in self._left_out:
            self._left_out[entry.uri].discard(entry.file)
            reason = reason.left_out()
        notes = entry.notes if state in HELD else ()
        return LedgerRow(entry.file, entry.uri, state, reason, entry.reader, notes)

    def submit(self, *, more_follow: bool = False) -> None:
        """Begin to embed what was read, in parts that are embedded in at most COMMIT_S seconds each."""
        batch, self.batch, self._is_first = self.batch, _Batch(), False
        self._index.choose_model([(document, embedded) for document, embedded, *_ in batch.documents.values()])
        while True:
            part = batch.split(self._index.batch_characters)
            if not batch.documents:
                part.stamps, part.removed = batch.stamps, batch.removed
            if any(uri in earlier.documents for earlier, _ in self._under_way for uri in part.documents):
                self.commit(0)  # The last document of a uri counts, so it is compared with the one before it.
            if part.documents:
                self._index.context.listener.embedding(len(part.documents))
            incoming = [(document, embedded) for document, embedded, *_ in part.documents.values()]
            pending = self._index.submit(incoming, more_follow=more_follow or bool(batch.documents))
            self._under_way.append((part, pending))
            self.commit(self._index.window())
            if not batch.documents:
                break

    def commit(self, window: int) -> None:
        """Commit the first batches that are embedded. Wait until at most `window` are under way."""
        while self._under_way:
            batch, pending = self._under_way[0]
            if len(self._under_way) <= window and not pending.embedding.done():
                break
            prepared = self._index.finish(pending)
            self._under_way.popleft()
            self._put(batch, prepared)

    def put_all(self) -> None:
        """Commit everything so far."""
        self.submit()
        self.commit(0)

    def document(self, uri: str) -> Document | None:
        """Return the document that the index has of a uri, or will have after the commits that are under way."""
        for batch in (self.batch, *(batch for batch, _ in reversed(self._under_way))):
            if uri in batch.documents:
                return batch.documents[uri][0]
        with self._index.store.snapshot() as snapshot, suppress(IndexDamaged):
            return snapshot.get(uri)
        return None

    def end(self, read: Sequence[str]) -> int:
        """End the run, and return how many files are to be read again.

        Args:
            read: files that were read whole or are missing. Documents that only the other index has keep their rows,
                although these files no longer have them.
        """
        files = set(read)
        kept = [(file, uri) for uri, holders in self._left_out.items() for file in holders & files]
        if rows := [LedgerRow(file, uri, "gone", Code.LEFT_OUT()) for file, uri in kept]:
            self._writer.put(Batch(rows=rows, run=self._run))
        self._seen.notes |= dict.fromkeys(
            (*self._index.first.read_languages(), *self._index.first.judge_languages(), *self._writer.notes)
        )
        return self._writer.end_run(self._run, RunOutcome(read, [*self._seen.unopened], self.late_stamps))

    def _put(self, batch: _Batch, prepared: Prepared) -> None:
        seen = self._seen
        seen.notes |= dict.fromkeys(prepared.notes)
        states, work = prepared.states(), prepared.work
        reasons = {**dict.fromkeys(prepared.empty, Code.UNREADABLE()), **prepared.failed}
        rows = [
            self.row(entry, states[uri], reasons.get(uri, entry.reason))
            for uri, (_, _, entry, _) in batch.documents.items()
        ]
        if not rows and not batch.rows and not batch.stamps and not batch.removed:
            return
        try:
            changes = self._write(work, batch, rows)
        except BadInput:
            changes, refused = self._put_each(work)
            rows = [
                replace(row, state="failed", reason=Code.OTHER(refused[row.uri])) if row.uri in refused else row
                for row in rows
            ]
            self._write((), batch, rows)
            work = tuple(item for item in work if item.document.uri not in refused)
        for row in rows:
            if row.notes and row.state in HELD:
                is_cut = any(note.code is not Code.CELL_OF_ANOTHER_TYPE for note in row.notes)
                seen.noted[row.file] = is_cut or seen.noted.get(row.file, False)
            seen.add(row.file, row.uri, row.state, row.reason)
        seen.counts["passages"] += sum(len(item.spans) for item in work if item.spans)
        *_, position = next(reversed(batch.documents.values()), seen.listed)
        commit = Commit(seen.states["indexed"], seen.counts["passages"], position, changes=changes)
        self._index.context.listener.committed(commit)

    def _write(self, work: Sequence[EmbeddedDocument], batch: _Batch, rows: Sequence[LedgerRow]) -> Changes:
        """Commit documents and rows. A failed row gets a note if the index still has a document of it."""
        rows = [*batch.rows, *rows]
        if failed := {row.uri for row in rows if row.state == "failed"}:
            with self._index.store.snapshot() as snapshot:
                failed &= snapshot.hashes(failed).keys()
            note = (Code.EARLIER_TEXT_KEPT(),)
            rows = [replace(row, notes=note) if row.state == "failed" and row.uri in failed else row for row in rows]
        return self._writer.put(Batch(work, rows, batch.stamps, self._run, batch.removed))

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


class _Rehearsal(_Commits):
    """Writes nothing. `Seen` keeps what a run would write."""

    def submit(self, *, more_follow: bool = False) -> None:
        read = (self.row(entry, "indexed", entry.reason) for _, _, entry, _ in self.batch.documents.values())
        self._seen.unwritten |= {(row.file, row.uri): row for row in (*self.batch.rows, *read)}
        self.batch = _Batch()

    def end(self, read: Sequence[str]) -> int:
        self._seen.unwritten_files |= {*read}
        return 0


class Run:
    """Reads sources into an index.

    An id is an address only within its file, unless the user has named its member with --id-field. The first file that
    brings it keeps it as it is, and in any other file the record is "FILE#ID". An address that was given once stays.
    A record of standard input replaces the document of its id, as one that is added in Python does.

    If several records of one file have one id, the document is the last of them. With --id-field this also holds for
    several files: the last in the order of the sources, the walk and the file, whichever of the files have changed. For
    this rule, a run also opens an unchanged file if one of the file's documents comes from a file that the run has seen
    before. Between runs, the record that was read last counts.
    """

    def __init__(self, index: IndexCore, writer: Writer | None, options: ReadOptions) -> None:
        """Begin a run.

        Args:
            writer: the writer of the index, held until the run has ended; None writes and embeds nothing.
        """
        self._index, self._options = index, options
        self.seen = Seen()
        self._commits = (_Commits if writer else _Rehearsal)(index, writer, self.seen)
        with index.store.snapshot() as snapshot:
            self._ledger = _Ledger.of(snapshot)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on files that were read again, and the notes of the encoder and the writer, after the run."""
        n = self.seen.other_readers
        again = [f"read again because their reader has changed: {count_of(n, 'file')}"] if n else []
        if joined := sorted(self.seen.joined):
            more = [count_of(n, "other file")] if (n := len(joined) - NAMED_SKIPS) > 0 else []
            named = " and ".join([*joined[:NAMED_SKIPS], *more])
            again.append(f"{named} have records with the same ids: one document per id, of the last record")
        return (*again, *self.seen.notes)

    def feed(self, sources: Sequence[Source]) -> Summary:
        """Read the sources to their end and commit what is new. An interruption keeps what was committed."""
        seen, commits = self.seen, self._commits
        seen.sources = sources
        for source in sources:
            read_entries = read(source, self._options, self._known, commits.put_all)
            for _, entries in groupby(read_entries, attrgetter("file")):
                self._read_file(source, entries)
        commits.put_all()
        unseen = (path for path in self._ledger.files if path not in seen.files and seen.doubt(path) is None)
        missing = [path for path in unseen if seen.covers(path)]
        # Standard input is left out: it does not have to bring again what an earlier run brought.
        read_whole = seen.files - seen.unopened - seen.failed - {STDIN}
        others = self._holders({uri for uri in seen.emptied if hash(uri) not in seen.uri_hashes})
        commits.late_stamps |= dict.fromkeys(others, UNREAD)
        reread = commits.end([*missing, *read_whole]) + len(others)
        return replace(seen.summary, reread=reread)

    def _known(self, path: str) -> KnownFile | None:
        """Return the ledger's record of a file; with the stamp of an unread file if it must be opened though unchanged.

        It must be opened if the document of one of its records comes from an earlier file: in this run, or in a
        previous run that had another order, did not include this file, or was interrupted before it.
        """
        recorded, seen, ledger = self._ledger.files.get(path), self.seen, self._ledger
        if recorded is not None and any(
            hash(uri) in seen.uri_hashes or (uri in ledger.shared and ledger.owners[hash(uri)] in seen.files)
            for uri in _document_uris(recorded)
        ):
            return replace(recorded, stamp=UNREAD)
        return recorded

    def _holders(self, uris: set[str]) -> list[str]:
        """Return the files that also have one of these uris and were not opened in this run."""
        seen = self.seen
        if not uris:
            return []
        return [
            path
            for path, file in self._ledger.files.items()
            if path in seen.unopened or path not in seen.files
            if not uris.isdisjoint(_document_uris(file))
        ]

    def _read_file(self, source: Source, entries: Iterator[Entry]) -> None:
        """Take the entries of one file, and commit what is embedded."""
        is_one, formats = False, set[str | None]()
        first = entry = next(entries)
        self._begin(first)
        for entry in map(self._addressed, chain((first,), entries)):
            if entry.state == "failed" and entry.stamp is None and entry.file == source.root != STDIN:
                self.seen.unlisted.append(source.argument)
            document = self._take(entry)
            is_one |= entry.uri == entry.file
            if document is not None and entry.uri != entry.file:
                formats.add(document.format)
            if self._commits.is_full:
                self._commits.submit(more_follow=True)
            self._commits.commit(self._index.window())
        if entry.file not in self.seen.unopened:
            self._finish(entry, None if is_one else formats)

    def _addressed(self, entry: Entry) -> Entry:
        """Return the entry with an address that no document of another file has, unless the user has named the id."""
        owners, file, uri = self._ledger.owners, entry.file, entry.uri
        if not entry.opened or (uri == file and entry.document is None):
            return entry
        if file != STDIN and not self._options.id_field:
            if owners.get(hash(within := f"{file}#{uri}")) == file:
                uri = within
            while (owner := owners.get(hash(uri), file)) != file and not self._may_take(entry, uri, owner):
                uri = f"{file}#{uri}"
        owner = owners.setdefault(hash(uri), file)
        if owner != file and entry.document is not None:
            owners[hash(uri)] = file
            if self._options.id_field and os.path.lexists(owner):
                self.seen.joined |= {owner, file}
        return entry if uri == entry.uri else entry.at(uri)

    def _may_take(self, entry: Entry, uri: str, owner: str) -> bool:
        """Return whether an entry may have a uri that belongs to another file.

        It may if the stored document is its own: the path of its file, a record that was exported, or one that has
        moved here with its text, as in a renamed file.
        """
        document, is_whole, is_gone = entry.document, uri == entry.file, not os.path.lexists(owner)
        if is_whole and is_gone:
            return True
        if not (is_whole or is_gone or entry.is_exported):
            return False
        stored = self._commits.document(uri)
        if stored is None or stored.path == entry.file:
            return is_whole or is_gone
        if document is None or not is_gone:
            return stored == document
        return (stored.title, stored.text) == (document.title, document.text)

    def _take(self, entry: Entry) -> Document | None:
        """Put the document of an entry into the batch and return it, or record why there is none."""
        seen, batch = self.seen, self._commits.batch
        seen.files.add(entry.file)
        if not entry.opened:
            assert entry.state != "read"
            if entry.state == "failed":
                seen.known_failures.add(entry.uri)
            seen.add(entry.file, entry.uri, entry.state, entry.reason)
            seen.counts["duplicates"] += entry.reason.code is Code.DUPLICATE
            seen.unopened.add(entry.file)
            return None
        if entry.ignored:
            seen.ignored.add(entry.file)
        if entry.state == "unchanged":
            seen.comes_again(entry.uri)
        if entry.state != "read":
            self._record(entry, entry.state, entry.reason)
            return None
        assert entry.document is not None
        try:
            validate(entry.document, empty=entry.embedded is not None)
            embedded = self._own_vectors(entry)
            problem = Code.NO_VECTOR() if embedded is None and self._index.recipe is None else NO_REASON
        except BadInput as error:
            problem = Code.OTHER(error)
        if problem:
            self._record(entry, "failed", problem)
            return None
        if seen.comes_again(entry.uri) and (earlier := batch.documents.pop(entry.uri, None)) is not None:
            seen.states["skipped"] += 1
            batch.rows.append(self._commits.row(earlier[2], "skipped", Code.DUPLICATE()))
        seen.counts["nameless"] += entry.uri.startswith(f"{STDIN}:") and entry.uri[2:].isdecimal()
        if not batch.documents:
            batch.began = time.monotonic()
        batch.documents[entry.uri] = (entry.document, embedded, entry, seen.listed[1] - entry.left)
        batch.characters += _size(entry.document)
        return entry.document

    def _record(self, entry: Entry, state: LedgerState, reason: Reason) -> None:
        """Count an entry without a document and put it into the ledger."""
        seen, batch, ledger = self.seen, self._commits.batch, self._ledger
        seen.add(entry.file, entry.uri, state, reason)
        if state == "skipped" and entry.uri in ledger.shared and ledger.owners[hash(entry.uri)] == entry.file:
            seen.emptied.add(entry.uri)
        is_new = entry.stamp is not None and (entry.uri != entry.file or entry.file not in ledger.files)
        if state == "skipped" and is_new and len(seen.skipped) < NAMED_SKIPS:
            seen.skipped.append((entry.uri, reason))
        batch.rows.append(self._commits.row(entry, state, reason))
        batch.characters += 256

    def _own_vectors(self, entry: Entry) -> Embedded | None:
        """Return the passages and vectors of a record, if it has any. The first vectors decide the width of an index
        without one."""
        dimensions = self._index.settings.dimensions
        embedded = vectors_of_record(entry, self._index.recipe, dimensions, *_VECTOR_ADVICE)
        if embedded is not None and not dimensions:
            self._index.take_width(embedded.vectors.shape[1])
        return embedded

    def _begin(self, first: Entry) -> None:
        """Note that a file is read from here on, given its first entry."""
        if first.stamp is not None:
            files, size = self.seen.listed
            self.seen.listed = files + 1, size + first.stamp.size
            self._index.context.listener.reading(first.file, *self.seen.listed)
        recorded = self._ledger.files.get(first.file)
        if recorded is None or not first.opened:
            return
        # Until it is read to its end, the next run has to open it: its stamp may still hold.
        self._commits.batch.stamps[first.file] = UNREAD
        stamp, is_unopened = first.stamp, first.stamp is None and first.file != STDIN
        is_unchanged = stamp is not None and replace(stamp, read_ns=recorded.stamp.read_ns) == recorded.stamp
        failed = {uri for uri, state, _ in recorded.entries if state == "failed"}
        if not failed:  # a file that has failed is read again by any reader
            other = is_unchanged and not is_read_alike(first.file, recorded, self._options.extractors)
            self.seen.other_readers += other
        elif first.reader in recorded.readers and (is_unchanged or is_unopened):
            self.seen.known_failures |= failed

    def _finish(self, last: Entry, formats: set[str | None] | None) -> None:
        """Record that a file was read to its end.

        Args:
            last: its last entry.
            formats: formats of its documents; None if it is one document, or has failed as a whole.
        """
        batch, recorded = self._commits.batch, self._ledger.files.get(last.file)
        if recorded is not None and formats is not None and self._was_one(recorded, last.file, formats):
            batch.removed.append(last.file)
        if last.stamp is not None:
            others = recorded is not None and any(uri != last.uri for uri, _, _ in recorded.entries)
            (self._commits.late_stamps if others else batch.stamps)[last.file] = last.stamp

    def _was_one(self, recorded: KnownFile, file: str, formats: set[str | None]) -> bool:
        """Return whether a file was one document of another format, or none, and now holds several of these formats."""
        if self._ledger.owners.get(hash(file), file) != file:
            return False
        if not any(uri == file and not reason.is_left_out for uri, _, reason in recorded.entries):
            return False
        with self._index.store.snapshot() as snapshot:
            document = snapshot.get(file)
        return document is None or (bool(formats) and document.format not in formats)


def left_out_rows(snapshot: Snapshot) -> list[LedgerRow]:
    """Return the rows of documents that only the index with the other model has."""
    states: tuple[LedgerState, ...] = ("skipped", "failed", "gone")
    return [row for state in states for row in snapshot.ledger(state) if row.reason.is_left_out]


def _document_uris(file: KnownFile) -> Iterator[str]:
    """Yield the uris of the records of a file that can be documents, though a later record may have their id."""
    for uri, state, reason in file.entries:
        if state in HELD or (state == "skipped" and reason.code is Code.DUPLICATE):
            yield uri


def _size(document: Document) -> int:
    """Return what a document counts for in a batch: its characters, and a share for its row."""
    return len(document.text) + 256
