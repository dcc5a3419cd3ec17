"""The store in a folder on this machine: SQLite decides what exists, FAISS finds what is near.

Statements live in catalog.py and snapshot.py, FAISS in segments.py; here they meet.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from indexer.errors import BadInput, IndexDamaged, NotAnIndex, StorageError
from indexer.records import Changes, Document, Vector
from indexer.stores import reading
from indexer.stores.lock import WriterLock
from indexer.stores.ranking import rank
from indexer.stores.segments import EXACT, SegmentFile, build, verify
from indexer.stores.snapshot import Snapshots, View
from indexer.stores.store import EmbeddedDocument, Info, LedgerRow, Passage, Ranking, Report, Unit
from indexer.where import Where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from indexer.stores.catalog import Catalog

SEAL_AT = 8192
"""Passages outside any segment that make sealing them worth it: a scan of so many costs about a millisecond."""

_BATCH = 8192


class LocalStore:
    """A `Store` in a folder. Reads are safe from any thread; writes take the writer lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.snapshots = Snapshots(folder)
        self._lock = WriterLock(folder)
        self._catalog: Catalog | None = None
        self._depth = 0
        self._reading = threading.local()

    @classmethod
    def create(cls, folder: Path, settings: Mapping[str, str]) -> LocalStore:
        """Make an empty store; `settings` must hold `dimensions`. It appears whole or not at all.

        Raises:
            BadInput: something is there already.
        """
        from indexer.stores.catalog import Catalog

        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder}: is there already and is not an empty folder: choose another name")
        sibling = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
        try:
            folder.absolute().parent.mkdir(parents=True, exist_ok=True)
            sibling.mkdir()
            (sibling / "segments").mkdir()
            (sibling / "LOCK").touch()
            catalog = Catalog(sibling / "catalog.db")
            catalog.initialise(settings)
            catalog.close()
            sibling.rename(folder)
        except OSError as error:
            raise StorageError(f"{folder}: cannot be made ({error.strerror})") from error
        finally:
            shutil.rmtree(sibling, ignore_errors=True)
        return cls(folder)

    def close(self) -> None:
        self.snapshots.close()

    @contextmanager
    def writing(self, *, wait: bool = True, waiting: Callable[[str], None] | None = None) -> Iterator[Catalog]:
        """Hold the writer lock and the writing connection; re-entrant."""
        from indexer.stores.catalog import Catalog

        if not (self.folder / "catalog.db").exists():
            raise NotAnIndex(f"{self.folder}: is no index any more")
        with self._lock.held(wait=wait, waiting=waiting):
            if self._catalog is None:
                self._catalog = Catalog(self.folder / "catalog.db")
            self._depth += 1
            try:
                yield self._catalog
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._catalog.close()
                    self._catalog = None

    # writing

    def put(self, documents: Sequence[EmbeddedDocument], ledger: Sequence[LedgerRow] = (), run: int = 0) -> Changes:
        with self.writing() as catalog:
            changes = catalog.put(documents, ledger, run)
            self.seal()
        return changes

    def remove(self, uris: Iterable[str]) -> int:
        with self.writing() as catalog:
            return catalog.remove(uris)

    def seal(self, *, least: int = SEAL_AT) -> None:
        """Put the tail into a segment when it has `least` passages, together with segments not much larger.

        Merging only those of up to twice its size writes each vector a logarithmic number of times.
        """
        with self.writing(), self.snapshots.view() as view:
            sealed = reading.segments(view)
            tail = view.state.passages - sum(row.alive for row in sealed)
            if tail < least:
                return
            merged, together, first = [], tail, max((row.last_id for row in sealed), default=0) + 1
            for row in reversed(sealed):
                if row.alive > 2 * together:
                    break
                merged.append(row)
                together += row.alive
                first = row.first_id
            self._build(view, first, [row.id for row in merged])
        self._sweep()

    def compact(self, kind: str = "auto", *, force: bool = False) -> None:
        """Rewrite everything into one segment without the dead, and give free pages back to the disk."""
        if kind not in ("auto", "exact"):
            raise BadInput(f"compact: kind {kind!r} is unknown, use auto or exact")
        with self.writing() as catalog:
            with self.snapshots.view() as view:
                sealed = reading.segments(view)
                whole = len(sealed) == 1 and sealed[0].alive == sealed[0].recorded.count == view.state.passages
                if (force or not whole) and (view.state.passages or sealed):
                    self._build(view, 0, [row.id for row in sealed])
            self._sweep()
            catalog.vacuum()

    def _build(self, view: View, first_id: int, replaces: list[int]) -> None:
        """Seal every passage from `first_id` on into a new segment that takes the place of `replaces`."""
        passages, documents = reading.live_ids(view, first_id)
        name = f"{secrets.token_hex(8)}.faiss"
        folder = self.folder / "segments"
        if len(passages):
            recorded = build(folder, name, view.state.dimensions, reading.vectors(view, first_id, _BATCH))
        else:
            recorded = SegmentFile(name, EXACT, 0, 0, "", "")
        assert self._catalog is not None
        self._catalog.add_segment(recorded, passages, documents, replaces)

    def _sweep(self) -> None:
        """Unlink segment files that no row names. Readers that have one mapped keep it until they let go."""
        with self.snapshots.view() as view:
            named = {row.recorded.file for row in reading.segments(view)}
        for path in (self.folder / "segments").glob("*"):
            if path.name not in named:
                path.unlink(missing_ok=True)

    # reading

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Everything this thread reads inside sees one snapshot; re-entrant."""
        outer: View | None = getattr(self._reading, "view", None)
        if outer is not None:
            yield outer
            return
        with self.snapshots.view() as view:
            self._reading.view = view
            try:
                yield view
            finally:
                self._reading.view = None

    def vectors_of(self, uri: str) -> Vector | None:
        """Stored vectors of a document's passages (passages, dimensions); None for an unknown uri."""
        with self.reading() as view:
            return reading.document_vectors(view, uri)

    def dense(
        self, vector: Vector, k: int, where: Where | None = None, unit: Unit = "document", exact: bool = False
    ) -> Ranking:
        with self.reading() as view:
            return rank(view, vector, k, where, unit)

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        with self.reading() as view:
            return reading.passages(view, ids)

    def documents(self, where: Where | None = None) -> Iterator[Document]:
        after = 0
        while True:
            with self.reading() as view:
                some = reading.documents(view, where, after, 256)
            if not some:
                return
            yield from (document for _, document in some)
            after = some[-1][0]

    def ledger(self, state: str | None = None) -> Iterator[LedgerRow]:
        with self.reading() as view:
            return reading.ledger(view, state)

    def ledger_counts(self) -> dict[str, int]:
        with self.reading() as view:
            return reading.ledger_counts(view)

    def settings(self) -> dict[str, str]:
        with self.reading() as view:
            return reading.settings(view)

    def info(self) -> Info:
        with self.reading() as view:
            sealed = reading.segments(view)
            return Info(
                documents=view.state.documents,
                passages=view.state.passages,
                tokens=reading.tokens(view),
                dimensions=view.state.dimensions,
                unsealed=view.state.passages - sum(row.alive for row in sealed),
                bytes=sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()),
                format_version=reading.format_version(view),
                history=view.state.history,
                segments=tuple({**asdict(row.recorded), "alive": row.alive} for row in sealed),
                fields={name: tuple(sorted(types)) for name, types in sorted((view.state.fields or {}).items())},
            )

    def check(self, repair: bool = False) -> Report:
        """Verify SQLite, every row's checksum, every segment against its record and its rows; mend what is derived."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a damaged segment is reported below, once
            with self.reading() as view:
                problems, notes, bad = list(reading.damage(view)), reading.notes(view, self.folder), 0
                for row in reading.segments(view):
                    try:
                        verify(self.folder / "segments" / row.recorded.file, row.recorded, thorough=True)
                    except IndexDamaged as error:
                        problems.append(str(error))
                        bad += 1
        if not (repair and bad):
            return Report(tuple(problems), tuple(notes))
        self.compact(force=True)
        after = self.check()
        return Report(after.problems, (f"rebuilt {bad} damaged segment(s)", *after.notes))
