"""The one writer of a folder: each change is a commit of the catalog, and derived files are written after it."""

from __future__ import annotations

from pathlib import Path

from indexer.errors import StorageError
from indexer.records import Changes
from indexer.settings import Meaning
from indexer.stores.commits import require_kind, with_recall
from indexer.stores.local import check, seal
from indexer.stores.local.catalog.catalog import Catalog
from indexer.stores.local.catalog.views import Views
from indexer.stores.local.disk.failpoint import failpoint
from indexer.stores.local.words import files as word_files
from indexer.stores.port import Batch, CheckReport, Kind


class LocalWriter(Catalog):
    """A `Writer` of a folder. Exists only while the writer lock is held."""

    def __init__(self, folder: Path, views: Views) -> None:
        super().__init__(folder / "catalog.db")
        self._views = views

    def put(self, batch: Batch) -> Changes:
        changes = super().put(batch)
        try:
            seal.seal(self, self._views)
            word_files.catch_up(self, self._views)
        except StorageError as error:  # the documents are committed, and are found without being sealed
            self._notes.append(str(error))
        return changes

    def settle(self, recall: float | None = None) -> None:
        self._tune_to(recall)
        seal.settle(self, self._views)
        word_files.catch_up(self, self._views, 1, word_files.MAX_DELETED_SHARE)

    def compact(self, kind: Kind = "auto", recall: float | None = None) -> None:
        require_kind(kind)
        self._tune_to(recall)
        seal.rewrite(self, self._views, kind)
        word_files.catch_up(self, self._views, 1, max_deleted_share=0)
        self.vacuum()
        failpoint("compact.vacuumed")

    def repair(self, meaning: Meaning | None) -> CheckReport:
        return check.repair(self, self._views, meaning)

    def _tune_to(self, recall: float | None) -> None:
        if recall is not None:
            self.change(with_recall(recall))
