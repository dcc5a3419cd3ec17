"""What stands beside an index: one that is made to take its place, or the one that it has replaced."""

from __future__ import annotations

from dataclasses import dataclass

from indexer.stores.port import PLACES, Place, Store


@dataclass(frozen=True, slots=True)
class Beside:
    """An index that stands beside another one.

    Attributes:
        place: "next" while it is made to take the other's place, "previous" after it was replaced.
        model: text of its recipe.
        documents, passages: how many it has.
        bytes: size of everything that it stores.
    """

    place: Place
    model: str
    documents: int
    passages: int
    bytes: int


def describe_beside(store: Store) -> Beside | None:
    """Return the index that stands beside another one; None where there is none."""
    for place in PLACES:
        if (other := store.beside(place)) is not None:
            with other.snapshot() as snapshot:
                info, recipe = snapshot.info(), snapshot.settings.recipe
            return Beside(place, str(recipe), info.documents, info.passages, info.bytes)
    return None
