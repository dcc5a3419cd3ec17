"""What stands beside an index: one that is made to take its place, or the one that it has replaced."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from indexer.errors import IndexDamaged, NewerFormat, NotAnIndex
from indexer.stores.port import SIDE_SLOTS, SideSlot, Store


@dataclass(frozen=True, slots=True)
class Beside:
    """An index that stands beside another one.

    Attributes:
        place: "next" while it is made to take the other's place, "previous" after it was replaced.
        model: text of its recipe.
        documents, passages: how many it has.
        bytes: size of everything that it stores.
        problem: why it cannot be read, and then nothing else than its place is known; empty where it can be.
    """

    place: SideSlot
    model: str = ""
    documents: int = 0
    passages: int = 0
    bytes: int = 0
    problem: str = ""


def describe_beside(store: Store) -> Beside | None:
    """Return the index that stands beside another one; None where there is none.

    One that cannot be read is described too: the index beside which it stands is sound all the same.
    """
    for place in SIDE_SLOTS:
        if store.engine.exists(place):
            try:
                with store.engine.open(place).snapshot() as snapshot:
                    info, recipe = snapshot.info(), snapshot.settings.recipe
            except NotAnIndex:  # another process has just removed it, or switched to it
                continue
            except (IndexDamaged, NewerFormat) as error:
                return Beside(place, problem=str(error))
            return Beside(place, str(recipe), info.documents, info.passages, info.bytes)
    return None


def unreadable(address: str, beside: Beside) -> str:
    """Return the sentence about an index that stands beside the one at `address` and cannot be read."""
    return (
        f"{address}: the vectors of another model beside it cannot be read: likewise migrate {quote(address)} --drop "
        f"removes them ({beside.problem})"
    )
