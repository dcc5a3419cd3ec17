"""One indexing run: sources read, documents committed in batches, everything accounted for in the ledger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from indexer.batches import validate
from indexer.core import IndexCore
from indexer.errors import BadInput, RecipeMismatch
from indexer.exchange import Embedded
from indexer.records import Changes, Document, Span, Stamp
from indexer.sources import Entry, ReadOptions, Source, read
from indexer.sources.source import STDIN
from indexer.stores.port import DUPLICATE, Batch, LedgerRow, RunOutcome, Writer
from indexer.stores.vectors import stored_rows, unit_rows


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did. seen = indexed + unchanged + updated + skipped + failed.

    Attributes:
        reason: why the most of those that failed did.
        reread: files to be read again, as documents that they hold too were taken from files that are gone.
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
    reread: int = 0


@dataclass(slots=True)
class _Batch:
    documents: dict[str, tuple[Document, Embedded | None, str]] = field(default_factory=dict)
    rows: list[LedgerRow] = field(default_factory=list)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    characters: int = 0


class Run:
    """Feeds sources into an index."""

    def __init__(
        self,
        index: IndexCore,
        writer: Writer,
        options: ReadOptions,
        committed: Callable[[Summary, Changes, int], None],
    ) -> None:
        """Begin a run.

        Args:
            writer: of the index, held until the run has ended.
            committed: told after each commit: the run so far, what this commit changed, bytes read so far.
        """
        self._index, self._writer, self._options, self._committed = index, writer, options, committed
        self._batch = _Batch()
        self._counts = dict.fromkeys(("indexed", "unchanged", "updated", "skipped", "failed"), 0)
        self._notes: dict[str, None] = {}
        self._duplicates = self._passages = self._bytes = self._nameless = 0
        self._reasons: Counter[str] = Counter()
        self._met: set[str] = set()  # files of this run
        self._passed: set[str] = set()  # files that were not opened, as they have not changed
        self._broken: set[str] = set()  # files of which something failed
        self._read: set[str] = set()  # files read to their end, nothing failing
        self._seen: set[int] = set()  # hashes of uris, to tell a second one of the same run
        self._run = writer.begin_run()
        with index.store.snapshot() as snapshot:
            self._known = snapshot.files()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the encoder and the writer had to tell so far, each once."""
        return tuple(dict.fromkeys((*self._notes, *self._writer.notes)))

    @property
    def embedded(self) -> bool:
        """Whether the model was needed."""
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
            reason=max(self._reasons, key=self._reasons.__getitem__, default=""),
        )

    def feed(self, sources: Sequence[Source]) -> Summary:
        """Read the sources to their end and commit what is new; what was committed before an interruption stays."""
        for source in sources:
            file: str | None = None
            last: Entry | None = None
            for entry in read(source, self._options, self._known.get):
                if last is not None and entry.file != file:
                    self._finish(last)
                file, last = entry.file, entry
                self._take(entry)
                if self._batch.characters >= self._index.batch_characters:
                    self._commit()
            if last is not None:
                self._finish(last)
        self._commit()
        gone = [
            path for path in self._known if path not in self._met and any(s.whole and s.covers(path) for s in sources)
        ]
        # What standard input once brought it need not bring again.
        outcome = RunOutcome([*gone, *(self._read - {STDIN})], [*self._passed])
        reread = self._writer.end_run(self._run, outcome)
        return replace(self.summary, stale=tuple(self._stale(sources)), reread=reread)

    def prune(self, sources: Sequence[Source], stale: Sequence[str], *, yes: bool) -> int:
        """Remove documents that their source no longer has; standard input is no whole, and prunes none.

        Raises:
            BadInput: a source was not read whole, or more than half the index would go without `yes`.
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
        return self._writer.remove(stale)

    def _stale(self, sources: Sequence[Source]) -> list[str]:
        """Documents that lie under these sources and were not found there: gone, or skipped by now."""
        found: dict[str, bool] = {}
        with self._index.store.snapshot() as snapshot:
            for row in snapshot.ledger_of_documents():
                lost = row.state == "gone" or (row.state == "skipped" and row.reason != DUPLICATE)
                lost = lost and any(source.covers(row.file) for source in sources)
                found[row.uri] = found.get(row.uri, True) and lost
        return [uri for uri, lost in found.items() if lost]

    def _take(self, entry: Entry) -> None:
        self._met.add(entry.file)
        if not entry.opened:
            self._counts[entry.state] += 1
            self._passed.add(entry.file)
            return
        if entry.state in ("skipped", "failed"):
            self._note(entry, entry.state, entry.reason)
            return
        assert entry.document is not None
        try:
            validate(entry.document, empty=entry.embedded is not None)
            own = self._own(entry)
            if own is None and self._index.recipe is None:
                raise BadInput('brings no "vector", and the index holds your own: it has no model to embed with')
        except BadInput as error:
            self._note(entry, "failed", str(error))
            return
        if self._doubled(entry.uri) and (earlier := self._batch.documents.pop(entry.uri, None)) is not None:
            self._counts["skipped"] += 1
            self._batch.rows.append(LedgerRow(earlier[2], entry.uri, "skipped", DUPLICATE))
        self._nameless += entry.uri.startswith(f"{STDIN}:") and entry.uri[2:].isdecimal()
        whole = entry.stamp is not None and entry.uri == entry.file
        self._bytes += entry.stamp.size if whole and entry.stamp else len(entry.document.text)
        self._batch.documents[entry.uri] = (entry.document, own, entry.file)
        self._batch.characters += len(entry.document.text) + 256

    def _note(self, entry: Entry, state: str, reason: str) -> None:
        self._counts[state] += 1
        if state == "failed":
            self._broken.add(entry.file)
            self._reasons[re.sub(r"^\w+ \d+: ", "", reason)] += 1
        self._batch.rows.append(LedgerRow(entry.file, entry.uri, state, reason))
        self._batch.characters += 256

    def _doubled(self, uri: str) -> bool:
        key = hash(uri)
        doubled = key in self._seen
        self._seen.add(key)
        self._duplicates += doubled
        return doubled

    def _own(self, entry: Entry) -> Embedded | None:
        """The vectors that a record brings, as unit rows."""
        assert entry.document is not None
        if (given := entry.embedded) is not None:
            recipe = self._index.recipe
            if given.recipe != (recipe.identity if recipe else ""):
                raise RecipeMismatch(
                    f"{entry.uri}: its vectors were made by another recipe than the index's (whiten and center that "
                    "are fitted anew are another): export without --vectors, or copy the index with backup"
                )
            names = [entry.uri] * len(given.spans)
            return replace(given, vectors=stored_rows(given.vectors, self._index.settings.dimensions, names))
        if entry.vector is None:
            return None
        if not self._index.settings.dimensions:
            self._index.take_width(len(entry.vector))
        if len(entry.vector) != (wide := self._index.settings.dimensions):
            own = "; an index for it is made with --dimensions" if self._index.recipe is not None else ""
            raise BadInput(f"its vector has {len(entry.vector)} dimensions and the index {wide}{own}")
        row = unit_rows(np.array([entry.vector], np.float32), wide, [entry.uri])
        return Embedded((Span(0, len(entry.document.text)),), row)

    def _finish(self, last: Entry) -> None:
        if last.file in self._passed:
            return
        if last.stamp is not None:
            self._batch.stamps[last.file] = last.stamp
        if last.file not in self._broken:
            self._read.add(last.file)

    def _commit(self) -> None:
        batch, self._batch = self._batch, _Batch()
        prepared = self._index.prepare([(document, own) for document, own, _ in batch.documents.values()])
        self._notes |= dict.fromkeys(prepared.notes)
        rows, states = batch.rows, prepared.states()
        for uri, (_, _, file) in batch.documents.items():
            state = states[uri]
            self._counts[state] += 1
            rows.append(LedgerRow(file, uri, state, "no text that the model can read" * (state == "skipped")))
        if not rows and not batch.stamps:
            return
        changes = self._writer.put(Batch(prepared.work, rows, batch.stamps, self._run))
        self._passages += sum(len(item.spans) for item in prepared.work if item.spans)
        self._committed(self.summary, changes, self._bytes)
