"""The side index of an index: the next one, which is being made, or the previous one, which it has replaced."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from indexer.errors import IndexDamaged, Message, NewerFormat, NotAnIndex, OlderFormat
from indexer.stores.port import SIDE_SLOTS, SideSlot
from indexer.stores.reading.store import Store


@dataclass(frozen=True, slots=True)
class SideIndex:
    """An index in a side slot of another index.

    Attributes:
        place: its slot: "next" while it is made to replace the other index, "previous" after it was replaced.
        model: text of its recipe.
        documents, passages: how many it has.
        bytes: size of everything that it stores.
        problem: why the side index cannot be read; only its place is known then. Empty if it can be read.
    """

    place: SideSlot
    model: str = ""
    documents: int = 0
    passages: int = 0
    bytes: int = 0
    problem: str = ""


def describe_side_index(store: Store) -> SideIndex | None:
    """Return the side index of an index; None if it has none.

    A side index that cannot be read is described too: the index itself can be used.
    """
    for slot in SIDE_SLOTS:
        if store.engine.exists(slot):
            try:
                with store.engine.open(slot).snapshot() as snapshot:
                    info, recipe = snapshot.info(), snapshot.settings.recipe
            except NotAnIndex:  # another process has just removed it, or switched to it
                continue
            except (IndexDamaged, NewerFormat, OlderFormat) as error:
                return SideIndex(slot, problem=str(error))
            return SideIndex(slot, str(recipe), info.documents, info.passages, info.bytes)
    return None


def unreadable(address: str, side: SideIndex) -> str:
    """Return the sentence about a side index of `address` that cannot be read."""
    return Message(
        f"{address}: the vectors of another model beside it cannot be read ({side.problem})",
        f": likewise migrate {quote(address)} --drop removes them",
    )
