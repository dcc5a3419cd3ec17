"""Operations on whole indexes, composed of the methods of an `Engine`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from indexer.errors import BadInput, StorageError
from indexer.settings import Settings
from indexer.stores.reading.store import Engine, Store


def create(engine: Engine, settings: Settings) -> Store:
    """Make an empty index. It appears complete or not at all. Raises what `draft` raises."""
    with draft(engine, settings):
        pass
    return engine.open()


@contextmanager
def draft(engine: Engine, settings: Settings) -> Iterator[Store]:
    """Make an empty index that becomes the live one when the block ends well, and is discarded otherwise.

    Used inside of `Engine.exclusive`, it replaces the live index and the index at "next".

    Raises:
        BadInput: something exists at the address already, or there is no stemmer for the language.
        StorageError: the disk or the database refuses.
    """
    try:
        yield engine.make("draft", settings)
        engine.publish("draft")
    except BaseException:
        with suppress(BadInput, StorageError):  # not made yet, or the server is gone: the next draft sweeps it away
            engine.discard("draft")
        raise


@contextmanager
def unfinished(engine: Engine, settings: Settings) -> Iterator[Store]:
    """Make an index as `draft` does, but if the block fails, keep the unfinished index for the next attempt.

    An unfinished index with another model or other passages is removed.

    Raises:
        BadInput: something exists at the address already, or there is no stemmer for the language.
        IndexLocked: another process is making the index.
        StorageError: the disk or the database refuses.
    """
    if engine.exists("unfinished"):
        with engine.open("unfinished").snapshot() as snapshot:
            fits = snapshot.settings.kind == settings.kind
        if not fits:
            engine.discard("unfinished")
    yield engine.open("unfinished") if engine.exists("unfinished") else engine.make("unfinished", settings)
    engine.publish("unfinished")
