"""A folder as an `Engine`: the folder of each slot, and how one index replaces another.

The live index is the folder itself. INDEX/next and INDEX/previous are inside of it, a draft and an unfinished index are
hidden folders beside it (slots.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from indexer.errors import BadInput, Message, NotAnIndex
from indexer.listener import SILENT, Listener
from indexer.settings import Settings
from indexer.stores.local import slots
from indexer.stores.local.catalog.connections import has_catalog
from indexer.stores.local.disk import drafts
from indexer.stores.local.disk.lock import WriterLock
from indexer.stores.local.store import LocalStore
from indexer.stores.port import SIDE_SLOTS, Slot


class LocalEngine:
    """An `Engine` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()  # the process may change its working folder later
        self.address = str(self._folder)
        self._draft: drafts.Draft | None = None
        self._is_exclusive = False
        # Stores in use are shared, because a lock is re-entrant in one object alone.
        self._stores: WeakValueDictionary[Slot, LocalStore] = WeakValueDictionary()

    def close(self) -> None:
        for store in list(self._stores.values()):
            store.close()

    def exists(self, slot: Slot = "live") -> bool:
        if slot == "draft" and self._draft is None:
            return False
        return has_catalog(self._folder_of(slot))

    def open(self, slot: Slot = "live") -> LocalStore:
        folder = self._folder_of(slot)
        if slot != "live" and not has_catalog(folder):
            raise NotAnIndex(f"{folder}: there is no index")
        store = self._stores.get(slot)
        if store is None:
            store = LocalStore(folder, self) if slot == "live" else LocalEngine(folder).open()
        return self._stores.setdefault(slot, store)

    def make(self, slot: Slot, settings: Settings) -> LocalStore:
        from indexer.stores.words.analysis import code  # which loads the stemmers

        settings = replace(settings, language=code(settings.language))
        if slot == "draft":
            self._draft = self._make_draft(settings)
        elif slot == "unfinished":
            slots.make_unfinished(slots.require_room(self._folder), lambda empty: _initialise(empty, settings))
        else:
            if slot != "next" or any(map(self.exists, SIDE_SLOTS)):
                raise BadInput(f"{self._folder}: it already has a next or previous index: remove that index first")
            slots.make_next(self._folder.resolve(), lambda empty: _initialise(empty, settings))
        return self.open(slot)

    def _make_draft(self, settings: Settings) -> drafts.Draft:
        lost = 0
        if self._is_exclusive:
            folder, lost = self._folder.resolve(), self.open().lost_commits()
        else:
            folder = slots.require_room(self._folder)
        drafts.sweep_drafts(folder, is_held=self._is_exclusive)
        return slots.make_draft(folder, lambda empty: _initialise(empty, settings, lost))

    @contextmanager
    def exclusive(self, *, wait: bool = True, listener: Listener = SILENT) -> Iterator[None]:
        with self.open().locked(wait, listener):
            self._is_exclusive, outer = True, self._is_exclusive
            try:
                yield
            finally:
                self._is_exclusive = outer

    def publish(self, slot: Slot) -> None:
        self._require(slot)
        folder = self._folder_of(slot)
        if not self._is_exclusive:
            self._leave(slot)
            slots.appear(folder, slots.require_room(self._folder))
            self._end_draft(slot)
            return
        if slot != "previous" and self.exists("previous"):
            raise BadInput(
                Message(
                    f"{self._folder}: the previous index is still kept: remove it", ": likewise migrate INDEX --drop"
                )
            )
        self._leave(slot)
        if slot in SIDE_SLOTS:
            slots.exchange(self._folder.resolve(), slot)
        else:
            slots.replace(self._folder.resolve(), folder)
            self._end_draft(slot)

    def discard(self, slot: Slot) -> int:
        self._require(slot)
        folder = self._folder_of(slot)
        self._leave(slot)
        if slot == "unfinished":
            with WriterLock(folder).hold(wait=False):  # a damaged index has no writer
                return slots.remove(folder)
        if slot in SIDE_SLOTS:
            return slots.drop(self._folder.resolve(), slot)
        size = slots.remove(folder)
        self._end_draft(slot)
        return size

    def leftovers(self) -> tuple[str, ...]:
        return drafts.notes_on_abandoned(self._folder.resolve())

    def sweep(self) -> int:
        return drafts.sweep_drafts(self._folder.resolve())

    def _end_draft(self, slot: Slot) -> None:
        if slot == "draft" and self._draft is not None:
            self._draft.end()
            self._draft = None

    def _folder_of(self, slot: Slot) -> Path:
        if slot == "live":
            return self._folder
        if slot == "draft":
            assert self._draft is not None
            return self._draft.folder
        if slot in SIDE_SLOTS:
            return self._folder / slot
        return slots.hidden(self._folder.resolve(), slot)  # beside the folder that a link leads to

    def _require(self, slot: Slot) -> None:
        if slot == "live" or not self.exists(slot):
            raise BadInput(f"{self._folder}: there is no index at {slot!r}")

    def _leave(self, slot: Slot) -> None:
        """Close everything of an index that is about to get another name, and the writer of the live index."""
        for name in ("live", slot):
            if (store := self._stores.get(name)) is not None:
                store.end_writing()
        if (store := self._stores.pop(slot, None)) is not None:
            store.close()
        for name in SIDE_SLOTS:
            self._stores.pop(name, None)


def _initialise(folder: Path, settings: Settings, lost: int = 0) -> None:
    """Fill an empty folder with an index that holds no document.

    Args:
        lost: how many commits are missing in the index that the new index will replace.
    """
    from indexer.stores.local.catalog.catalog import Catalog  # only writers need it

    (folder / "segments").mkdir()
    (folder / "LOCK").touch()
    catalog = Catalog(folder / "catalog.db")
    catalog.initialise(settings)
    if lost:
        catalog.set("lost", str(lost))
    catalog.close()
