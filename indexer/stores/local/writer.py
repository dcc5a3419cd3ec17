"""The one writer of a folder: each change is a commit of the catalog, and derived files are written after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from indexer.errors import StorageError
from indexer.records import Changes
from indexer.settings import Meaning, Settings
from indexer.stores.commits import require_kind, with_recall
from indexer.stores.local import check, seal
from indexer.stores.local.catalog.catalog import Catalog
from indexer.stores.local.catalog.views import Views
from indexer.stores.local.disk.failpoint import failpoint
from indexer.stores.local.words import files as word_files
from indexer.stores.port import Batch, CheckReport, Kind, RunOutcome


class LocalWriter:
    """A `Writer` of a folder. Exists only while the writer lock is held."""

    def __init__(self, folder: Path, views: Views) -> None:
        self._catalog, self._views = Catalog(folder / "catalog.db"), views
        self._notes = self._catalog.notes

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def close(self) -> None:
        self._catalog.close()

    def put(self, batch: Batch) -> Changes:
        changes = self._catalog.put(batch)
        try:
            seal.seal(self._catalog, self._views)
            word_files.catch_up(self._catalog, self._views)
        except StorageError as error:  # the documents are committed, and are found without being sealed
            self._notes.append(str(error))
        return changes

    def remove(self, uris: Iterable[str]) -> int:
        return self._catalog.remove(uris)

    def change(self, update: Callable[[Settings], Settings], fitted_parameters: bytes | None = None) -> Settings:
        return self._catalog.change(update, fitted_parameters)

    def begin_run(self) -> int:
        return self._catalog.begin_run()

    def end_run(self, run: int, outcome: RunOutcome) -> int:
        return self._catalog.end_run(run, outcome)

    def settle(self, recall: float | None = None) -> None:
        self._tune_to(recall)
        seal.settle(self._catalog, self._views)
        word_files.catch_up(self._catalog, self._views, 1, word_files.MAX_DELETED_SHARE)

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        require_kind(kind)
        self._tune_to(recall)
        seal.rewrite(self._catalog, self._views, kind)
        word_files.catch_up(self._catalog, self._views, 1, max_deleted_share=0)
        self._catalog.vacuum()
        failpoint("compact.vacuumed")

    def repair(self, meaning: Meaning | None) -> CheckReport:
        return check.repair(self._catalog, self._views, meaning)

    def _tune_to(self, recall: float | None) -> None:
        if recall is not None:
            self._catalog.change(with_recall(recall))
