"""Changing the model of an index while it is searched and written to.

The documents of the index are embedded again into a side index ("next"). It follows what writers commit during this
time and replaces the index in one commit. The replaced index is kept unchanged ("previous"); nobody writes to it. Going
back is the same work in the other direction: the previous index follows what has changed since, and replaces the index.
A killed change continues where it stopped. follow.py has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from types import MappingProxyType

from indexer.encoders import Encoder
from indexer.encoders.recipes.locate import find_model, weight_files
from indexer.encoders.recipes.recipe import Recipe
from indexer.encoders.torch.weights import bytes_in_16_bits
from indexer.errors import BadInput, DiskFull, IndexDamaged, ModelError, NotAnIndex, RecipeMismatch, StorageError
from indexer.indexing.core import IndexCore
from indexer.settings import Settings
from indexer.stores.addresses.side_index import SideIndex, describe_side_index, unreadable
from indexer.stores.port import Info, SideSlot
from indexer.stores.reading.store import Store, Writer
from likewise.migration.follow import Followed, carry_over, follow, waiting

_BYTES_PER_NUMBER = 4
"""Bytes of a number of a vector: two in the stored vector and two in the searched index."""

_FEW_DOCUMENTS = 200
"""Maximum documents that are left to follow under the lock of the index: about a second of work."""

_MAX_ROUNDS = 20
"""Maximum rounds in which a build follows an index that others write to. The rest is followed under the index's
lock."""


def needed_bytes(info: Info, old: Settings, new: Settings, compiled: tuple[int, int] = (0, 0)) -> int:
    """Return about how many bytes an index needs if its documents are embedded with other settings.

    Args:
        compiled: bytes of both compiled encoders. The old encoder counts only if `info` includes it.
    """
    vectors = info.passages * old.dimensions * _BYTES_PER_NUMBER
    shorter = max(1.0, _tokens(old) / _tokens(new))
    kept = max(0, info.bytes - vectors - compiled[0])
    return kept + int(info.passages * shorter * new.dimensions * _BYTES_PER_NUMBER) + compiled[1]


def _compiled_bytes(store: Store, recipe: Recipe) -> tuple[int, int]:
    """Return the bytes of the compiled encoder in an index's folder, and the approximate bytes for another recipe.

    A compiled encoder has the model's weights in 16 bits, its tokenizer, and a table of large vocabularies.
    """
    compiled = store.artifacts()
    if Path(store.address) not in compiled.parents:  # in the user's cache, and another disk's affair
        return 0, 0
    old = sum(file.stat().st_size for file in compiled.rglob("*") if file.is_file())
    if recipe.remote is not None:
        return old, 0
    try:
        folder = find_model(recipe.model, fingerprint=recipe.fingerprint)
        weights = sum(map(bytes_in_16_bits, weight_files(folder)))
    except ModelError:  # an encoder of the caller's own
        return old, 0
    return old, weights + 2 * sum(file.stat().st_size for file in folder.glob("tokenizer.json"))


def _tokens(settings: Settings) -> int:
    return settings.passages.max_tokens if settings.passages is not None else 1


def open_next(
    main: IndexCore, settings: Settings, encoder: Encoder, *, disk: Callable[[int, int | None], None]
) -> IndexCore:
    """Open the index that will replace `main`, or make it.

    Args:
        settings, encoder: settings and encoder of the new model, as `embedding.settings_of_new` returns them.
        disk: is called with the approximate bytes to write, and the free bytes.

    Raises:
        BadInput: `main` has no model, has this model already, or another model is being built or kept.
        IndexDamaged: the next or previous index of `main` cannot be read.
        DiskFull: the disk is too small.
    """
    store, address = main.store, main.address
    if main.recipe is None:
        raise BadInput(f"{address}: holds your own vectors, which no model can make again: make a new index")
    with main.writer():
        side = _require_readable(store)
        if side is not None and side.place == "previous":
            raise BadInput(
                f"{address}: the vectors of {side.model} are still kept: likewise migrate {quote(address)} --back "
                "returns to them, --drop removes them; then change the model"
            )
        if _is_same(main.stored_settings(), settings):
            raise BadInput(f"{address}: has this model already, with the same passages: there is nothing to change")
        exists = store.engine.exists("next")
        with store.snapshot() as snapshot:
            compiled = _compiled_bytes(store, settings.recipe) if settings.recipe is not None else (0, 0)
            needed = needed_bytes(snapshot.info(), snapshot.settings, settings, compiled)
        if side is not None:
            needed = max(0, needed - side.bytes)
        free = store.free_bytes()
        disk(needed, free)
        if free is not None and free < needed:
            raise DiskFull(
                f"{address}: the new vectors need about {needed / 2**20:,.0f} MB and {free / 2**20:,.0f} MB are free: "
                "make room and run it again"
            )
        if not exists:
            stored = main.stored_settings()
            same = replace(settings, recall=stored.recall, language=stored.language, language_open=stored.language_open)
            store.engine.make("next", same)
    core = IndexCore(store.engine.open("next"), context=main.context)
    if not _is_same(core.settings, settings):
        raise BadInput(
            f"{address}: is being changed to {core.recipe} already: continue with that model, or remove the unfinished "
            f"index with likewise migrate {quote(address)} --drop"
        )
    return core.with_model(encoder)


def _require_readable(store: Store) -> SideIndex | None:
    """Return the next or previous index; None if there is neither. Raises IndexDamaged if it cannot be read."""
    side = describe_side_index(store)
    if side is not None and side.problem:
        raise IndexDamaged(unreadable(store.address, side))
    return side


def _is_same(stored: Settings, settings: Settings) -> bool:
    """Return whether stored settings and these settings agree."""
    if stored.recipe is None or settings.recipe is None or not stored.recipe.same(settings.recipe):
        return False
    return stored.passages == settings.passages


def build(main: IndexCore, other: IndexCore) -> Followed:
    """Embed what `other` lacks, measure its cosines and compile its encoder, while `main` is searched and written to.

    Returns:
        What was written. An interruption keeps what was committed, and the next call continues from there.
    """
    from indexer.indexing.runs import (  # which import every reader of files: `back` needs none
        after_embedding,
        is_unfinished,
    )

    with other.writer() as writer:
        done = _follow_in_rounds(main, other, writer)
        if done.documents or is_unfinished(other):
            other.context.listener.step("making the new vectors quick to search")
            writer.settle()
            done = replace(done, notes=(*done.notes, *after_embedding(other, writer)))
    return done


def _follow_in_rounds(main: IndexCore, other: IndexCore, writer: Writer) -> Followed:
    """Follow an index that others write to, until few documents are left to follow under its lock."""
    done = Followed()
    for _ in range(_MAX_ROUNDS):
        followed = follow(main.store, other, writer, done.left_out)
        done += followed
        if followed.documents <= _FEW_DOCUMENTS:
            break
    return done


@contextmanager
def still_there(main: IndexCore, other: IndexCore, slot: SideSlot = "next") -> Iterator[None]:
    """Raise BadInput if `other` was removed or has replaced `main` while the block searched both."""
    try:
        yield
    except (NotAnIndex, RecipeMismatch, StorageError, IndexDamaged) as error:
        if not _is_in_slot(main.store, other, slot):
            raise _overtaken(main.store) from error
        raise


def switch(
    main: IndexCore, other: IndexCore, left_out: Mapping[str, bytes] = MappingProxyType({}), slot: SideSlot = "next"
) -> Followed:
    """Follow the last changes and replace `main` by `other`, in one commit. Close both afterwards.

    Args:
        left_out: documents that the new model cannot read, as `build` found them.
        slot: where `other` is.

    Returns:
        What was still written to `other`.
    """
    store = main.store
    with ExitStack() as held:
        held.enter_context(main.exclusive())
        # Between the verdict and this lock, others may have removed what was compared, or built something else there.
        if not _is_in_slot(store, other, slot):
            raise _overtaken(store)
        writer = held.enter_context(other.writer())
        followed = follow(store, other, writer, left_out)
        carry_over(store, other.store, writer)
        store.engine.publish(slot)
    return followed


def back(main: IndexCore) -> Followed:
    """Bring the vectors before the last `switch` or `back` up to date and return to them. Close `main` afterwards.

    Others may read and write until the last documents are followed. A call that was interrupted has changed
    nothing, and the next call continues where it stopped.

    Returns:
        What was written to the vectors that are in use now.

    Raises:
        BadInput: none are kept.
        IndexDamaged: the kept index cannot be read.
        ModelError, RecipeMismatch: documents have changed, and the model that is to embed them cannot be loaded.
    """
    store = main.store
    with main.writer():  # which completes a switch that was killed
        if not store.engine.exists("previous"):
            raise BadInput(f"{main.address}: no vectors of another model are kept, so there are none to return to")
        _require_readable(store)
        other = IndexCore(store.engine.open("previous"), context=main.context)
    with still_there(main, other, "previous"), _waiting_told(store, other):
        with other.writer() as writer:
            done = _follow_in_rounds(main, other, writer)
            if done.passages:
                from indexer.calibration.background import renew

                writer.settle()
                renew(other.store, other.context.cached(other.encoder), growth=2)
        return done + switch(main, other, done.left_out, "previous")


@contextmanager
def _waiting_told(store: Store, other: IndexCore) -> Iterator[None]:
    """Add the number of waiting documents to the error if the model of `other` cannot be loaded in the block."""
    try:
        yield
    except (ModelError, RecipeMismatch) as error:
        count = waiting(store, other.store)
        documents = "1 document waits" if count == 1 else f"{count:,} documents wait"
        error.args = (f"{error}: nothing is switched, and {documents} for {other.recipe}",)
        raise


def _is_in_slot(store: Store, other: IndexCore, slot: SideSlot) -> bool:
    """Return whether there is an index in this slot, made with the model of `other`."""
    if not store.engine.exists(slot):
        return False
    with store.engine.open(slot).snapshot() as snapshot:
        return snapshot.settings.kind == other.settings.kind


def _overtaken(store: Store) -> BadInput:
    return BadInput(f"{store.address}: another process has just changed its model: look at likewise info")


def drop(main: IndexCore) -> SideIndex:
    """Remove the next or previous index, complete or damaged, and return what it was.

    Raises:
        BadInput: there is none.
        IndexLocked: another process is building it.
    """
    store = main.store
    with main.exclusive():  # a switch would give the place to the other one
        side = describe_side_index(store)
        if side is None:
            raise BadInput(f"{store.address}: no vectors of another model are kept, so there is nothing to remove")
        with ExitStack() as held:
            if not side.problem:  # a damaged index has no writer, and nobody continues to build it
                # A build takes long, and the lock of this index is held.
                held.enter_context(store.engine.open(side.place).writer(wait=False))
            store.engine.discard(side.place)
    return side
