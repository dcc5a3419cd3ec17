"""What the commits of all engines share: the changes that a batch makes, its passages as rows, and changed settings."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexer.errors import BadInput, IndexDamaged
from indexer.records import Changes, Span
from indexer.settings import Settings
from indexer.stores.lines import with_lines
from indexer.stores.port import EmbeddedDocument, Kind
from indexer.stores.setting_rows import from_rows, to_rows
from indexer.stores.vectors import checksum, to_blobs

_KINDS: tuple[Kind, ...] = ("auto", "exact", "approximate")


def changes_of(documents: Sequence[EmbeddedDocument], known: Container[str]) -> Changes:
    """Return the changes that a commit of these documents makes.

    Args:
        known: uris that are documents already.

    Raises:
        BadInput: an update of what is not a document.
    """
    whole = [item.document.uri for item in documents if item.spans is not None]
    updated = [item.document.uri for item in documents if item.spans is None]
    for uri in updated:
        if uri not in known:
            raise BadInput(f"{uri}: there is no such document to update: add it with its passages")
    return Changes(
        added=tuple(uri for uri in whole if uri not in known),
        replaced=tuple(uri for uri in whole if uri in known),
        updated=tuple(updated),
    )


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A passage of a document with what is stored of it: its line, its vector as float16, and their checksum."""

    uri: str
    span: Span
    line: int | None
    checksum: bytes
    blob: bytes


def passage_rows(documents: Sequence[EmbeddedDocument]) -> Iterator[PassageRow]:
    """Yield the passages of documents in their order; documents without passages have none."""
    vectors = [item.vectors for item in documents if item.vectors is not None and len(item.vectors)]
    if not vectors:
        return
    blobs = iter(to_blobs(np.concatenate(vectors)))
    for item in documents:
        for span, line in with_lines(item.document, item.spans or ()):
            blob = next(blobs)
            yield PassageRow(
                item.document.uri, span, line, checksum(item.document.text[span.start : span.end], blob), blob
            )


@dataclass(frozen=True, slots=True)
class SettingChanges:
    """The rows of settings to write, and the names of rows to delete."""

    settings: Settings
    written: Mapping[str, str]
    deleted: tuple[str, ...]


def changed_settings(
    address: object, rows: Mapping[str, str], update: Callable[[Settings], Settings]
) -> SettingChanges:
    """Return what `update` changes in the stored rows of settings. Raises IndexDamaged if they cannot be read."""
    stored = settings_of(address, rows)
    settings = update(stored)
    before, after = to_rows(stored), to_rows(settings)
    return SettingChanges(
        settings,
        {name: text for name, text in sorted(after.items()) if before.get(name) != text},
        tuple(name for name in before if name not in after),
    )


def settings_of(address: object, rows: Mapping[str, str]) -> Settings:
    """Return the settings of stored rows. Raises IndexDamaged, naming the address, if they cannot be read."""
    try:
        return from_rows(rows)
    except (KeyError, TypeError, ValueError) as error:
        raise IndexDamaged(f"{address}: its settings are damaged ({error}); restore a backup") from error


def with_recall(recall: float) -> Callable[[Settings], Settings]:
    """Return the change of the settings that tunes approximate searches to a recall. Raises BadInput out of range."""
    if not 0 < recall <= 1:
        raise BadInput(f"recall {recall} is not a share: give a number above 0 and up to 1, such as 0.98")
    return lambda settings: replace(settings, recall=recall)


def require_kind(kind: str) -> None:
    """Raise BadInput unless this is a kind of search that `compact` can prepare."""
    if kind not in _KINDS:
        raise BadInput(f"compact: kind {kind!r} is unknown, use auto, exact or approximate")
