"""Changing the model of an index while it is searched and written to.

The documents of the index are embedded again into an index beside it ("next"), which follows what writers commit
meanwhile and takes the index's place in one commit. The one before it is kept ("previous"), as it was: nobody writes to
it. Going back is the same work in the other direction: the previous index follows what has changed since, and takes the
place. Whatever was killed goes on where it was. follow.py has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from types import MappingProxyType

from indexer.beside import Beside, describe_beside, unreadable
from indexer.core import IndexCore
from indexer.encoders import Encoder
from indexer.encoders.locate import find_model, weight_files
from indexer.encoders.recipe import Recipe
from indexer.errors import BadInput, IndexDamaged, ModelError, NotAnIndex, RecipeMismatch, StorageError
from indexer.follow import Followed, carry_over, follow, waiting
from indexer.identity import require_recipe
from indexer.settings import Settings
from indexer.stores.port import Info, SideSlot, Store, Writer

_BYTES_PER_NUMBER = 4
"""Of a vector: two bytes in the database and two in what is searched."""

_FEW_DOCUMENTS = 200
"""Documents that may be left to follow under the lock of the index: about a second of work."""

_MAX_ROUNDS = 20
"""How often a build follows an index that others are writing to, before it follows the rest under the index's lock."""


def needed_bytes(info: Info, old: Settings, new: Settings, compiled: tuple[int, int] = (0, 0)) -> int:
    """Return about how many bytes an index needs if its documents are embedded with other settings.

    Args:
        compiled: bytes of both compiled encoders, the old one as far as it is a part of `info`.
    """
    vectors = info.passages * old.dimensions * _BYTES_PER_NUMBER
    shorter = max(1.0, _tokens(old) / _tokens(new))
    kept = max(0, info.bytes - vectors - compiled[0])
    return kept + int(info.passages * shorter * new.dimensions * _BYTES_PER_NUMBER) + compiled[1]


def _compiled_bytes(store: Store, recipe: Recipe) -> tuple[int, int]:
    """Return the bytes of the compiled encoder in an index's folder, and about those of another recipe's.

    That one has numbers of half the width of the model's weights.
    """
    folder = store.artifacts()
    if Path(store.address) not in folder.parents:  # in the user's cache, and another disk's affair
        return 0, 0
    old = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    try:
        weights = weight_files(find_model(recipe.model)) if recipe.remote is None else []
    except ModelError:  # an encoder of the caller's own
        weights = []
    return old, sum(file.stat().st_size for file in weights) // 2


def _tokens(settings: Settings) -> int:
    return settings.passages.max_tokens if settings.passages is not None else 1


def open_next(
    main: IndexCore,
    settings: Settings,
    encoder: Encoder,
    *,
    disk: Callable[[int, int | None], None],
) -> IndexCore:
    """Open the index that is to take the place of `main`, or make it.

    Args:
        settings, encoder: of the new model, as `embedding.settings_of_new` returns them.
        disk: is told about how many bytes will be written, and how many are free.

    Raises:
        BadInput: `main` has no model, has this one already, or another one is on its way or kept.
        IndexDamaged: what there is beside `main` cannot be read.
        StorageError: the disk is too small.
    """
    store, address = main.store, main.address
    if main.recipe is None:
        raise BadInput(f"{address}: holds your own vectors, which no model can make again: make a new index")
    with main.writer():
        beside = _require_readable(store)
        if beside is not None and beside.place == "previous":
            raise BadInput(
                f"{address}: the vectors of {beside.model} are still kept: likewise migrate {quote(address)} --back "
                "returns to them, --drop removes them; then change the model"
            )
        if _is_same(main.stored_settings(), settings):
            raise BadInput(f"{address}: has this model already, with the same passages: there is nothing to change")
        exists = store.engine.exists("next")
        with store.snapshot() as snapshot:
            compiled = _compiled_bytes(store, settings.recipe) if settings.recipe is not None else (0, 0)
            needed = needed_bytes(snapshot.info(), snapshot.settings, settings, compiled)
        if beside is not None:
            needed = max(0, needed - beside.bytes)
        free = store.free_bytes()
        disk(needed, free)
        if free is not None and free < needed:
            raise StorageError(
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
            f"{address}: is being changed to {core.recipe} already: go on with that model, or remove what there is of "
            f"it with likewise migrate {quote(address)} --drop"
        )
    assert settings.recipe is not None
    return core.with_encoder(encoder, settings.recipe)


def _require_readable(store: Store) -> Beside | None:
    """Return the index beside this one; None where there is none. Raises IndexDamaged if it cannot be read."""
    beside = describe_beside(store)
    if beside is not None and beside.problem:
        raise IndexDamaged(unreadable(store.address, beside))
    return beside


def _is_same(stored: Settings, settings: Settings) -> bool:
    """Return whether an index with the stored settings is one with these; what is not fitted yet is left out."""
    assert settings.recipe is not None
    try:
        require_recipe("", stored.recipe, settings.recipe)
    except RecipeMismatch:
        return False
    return stored.passages == settings.passages


def build(main: IndexCore, other: IndexCore) -> Followed:
    """Embed what `other` lacks, measure its cosines and compile its encoder, while `main` is searched and written to.

    Returns:
        What was written. An interruption keeps what was committed, and the next call goes on from there.
    """
    from indexer.runs import after_embedding, is_unfinished  # which import every reader of files: `back` needs none

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
def still_there(main: IndexCore, other: IndexCore, place: SideSlot = "next") -> Iterator[None]:
    """Raise BadInput if `other` was removed, or took the place of `main`, while the block asked both."""
    try:
        yield
    except (NotAnIndex, RecipeMismatch, StorageError, IndexDamaged) as error:
        if not _is_beside(main.store, other, place):
            raise _overtaken(main.store) from error
        raise


def switch(main: IndexCore, other: IndexCore, left_out: Mapping[str, bytes] = MappingProxyType({})) -> Followed:
    """Follow the last changes and let `other` take the place of `main`, in one commit. Close both afterwards.

    Args:
        left_out: what `build` has found that the new model cannot read.

    Returns:
        What was still written to `other`.
    """
    return _exchange(main, other, "next", left_out)


def back(main: IndexCore) -> Followed:
    """Bring the vectors before the last `switch` or `back` up to date and return to them. Close `main` afterwards.

    Others may read and write meanwhile, until the last documents are followed. A call that was interrupted has changed
    nothing, and the next one goes on where it was.

    Returns:
        What was written to the vectors that are in use now.

    Raises:
        BadInput: none are kept.
        IndexDamaged: those that are kept cannot be read.
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
                renew(other.store, other.cached(other.encoder), growth=2)
        return done + _exchange(main, other, "previous", done.left_out)


@contextmanager
def _waiting_told(store: Store, other: IndexCore) -> Iterator[None]:
    """Say how many documents wait, if the model of `other` cannot be loaded in the block."""
    try:
        yield
    except (ModelError, RecipeMismatch) as error:
        count = waiting(store, other.store)
        documents = "1 document waits" if count == 1 else f"{count:,} documents wait"
        error.args = (f"{error}: nothing is switched, and {documents} for {other.recipe}",)
        raise


def _exchange(main: IndexCore, other: IndexCore, place: SideSlot, left_out: Mapping[str, bytes]) -> Followed:
    store = main.store
    with ExitStack() as held:
        held.enter_context(main.exclusive())
        # Between the verdict and this lock, others may have removed what was compared, or built something else there.
        if not _is_beside(store, other, place):
            raise _overtaken(store)
        writer = held.enter_context(other.writer())
        followed = follow(store, other, writer, left_out)
        carry_over(store, other.store, writer)
        store.engine.publish(place)
    return followed


def _is_beside(store: Store, other: IndexCore, place: SideSlot) -> bool:
    """Return whether there is an index at this place, and with the model of `other`."""
    if not store.engine.exists(place):
        return False
    with store.engine.open(place).snapshot() as snapshot:
        return snapshot.settings.kind == other.settings.kind


def _overtaken(store: Store) -> BadInput:
    return BadInput(f"{store.address}: another process has just changed its model: look at likewise info")


def drop(main: IndexCore) -> Beside:
    """Remove the index beside this one, half built, kept from before or damaged, and return what it was.

    Raises:
        BadInput: there is none.
        IndexLocked: another process is building it.
    """
    store = main.store
    with main.exclusive():  # a switch would give the place to the other one
        beside = describe_beside(store)
        if beside is None:
            raise BadInput(f"{store.address}: no vectors of another model are kept, so there is nothing to remove")
        with ExitStack() as held:
            if not beside.problem:  # a damaged one has no writer, and nobody goes on building it
                # A build takes long, and the lock of this index is held.
                held.enter_context(store.engine.open(beside.place).writer(wait=False))
            store.engine.discard(beside.place)
    return beside
