"""One commit of a folder as a `View`. A snapshot is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.filters.tree import Where
from indexer.records import Vector
from indexer.settings import Meaning
from indexer.stores.local.catalog import queries
from indexer.stores.local.catalog.generation import loss
from indexer.stores.local.catalog.views import View
from indexer.stores.local.disk.drafts import size_of
from indexer.stores.local.selection import LocalSelection
from indexer.stores.local.words.reader import WordReader
from indexer.stores.port import CheckReport, Ids
from indexer.stores.reading.view import Storage
from indexer.stores.words.word_ranking import Limit, Words


@dataclass(frozen=True, slots=True)
class LocalView(View):
    """A read transaction, what is kept in memory for its commit, and the files beside the catalog."""

    folder: Path
    reader: WordReader

    @property
    def notes(self) -> tuple[str, ...]:
        missing = (loss(self.folder, self.lost),) if self.lost else ()
        return (*missing, *self.state.notes)

    def select(self, where: Where | None, limit: Limit | None = None) -> LocalSelection:
        return LocalSelection(self, where, limit)

    def vectors_of(self, passages: Ids) -> Vector:
        return self.state.vectors_of(passages)

    def passages_of(self, documents: Ids) -> tuple[Ids, Ids, Callable[[NDArray[np.bool_]], Vector]]:
        passages, owners = self.state.passages_of(documents)
        return passages, owners, lambda chosen: self.state.vectors_of(passages[chosen])

    def passage_ids(self) -> Ids:
        parts = [np.delete(part.positions.passages, part.dead) for part in self.state.parts]
        return np.concatenate([*parts, np.empty(0, np.int64)])

    def words(self) -> Words:
        return self.reader.words_of(self)

    @property
    def has_words(self) -> bool:
        return True

    def storage(self) -> Storage:
        ((tokens,),) = self.rows("SELECT coalesce(sum(tokens), 0) FROM document")
        ((version,),) = self.rows("PRAGMA user_version")
        segments = queries.segments(self)
        return Storage(
            tokens=int(tokens),
            unsealed=self.state.passages - sum(row.alive for row in segments),
            bytes=size_of(self.folder),
            format_version=int(version),
            segments=tuple({**asdict(row.recorded), "alive": row.alive} for row in segments),
        )

    def check(self, meaning: Meaning | None) -> CheckReport:
        from indexer.stores.local import check  # questions do not need it

        return check.find(self, self.folder, meaning).report
