"""What has changed in the sources that an index remembers, since they were read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from indexer.errors import SourceError, count_of
from indexer.ledger import HELD
from indexer.records import KnownFile
from indexer.settings import RecordedSource
from indexer.sources import Source, open_sources
from indexer.sources.folders.recorded import groups
from indexer.sources.folders.walk import nearest_above
from indexer.sources.formats import Program, is_read_alike
from indexer.stores.addresses.open import holds_store


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """What has changed in the recorded sources since they were read last, as absolute paths.

    Attributes:
        new: files that the ledger does not have.
        changed: files with another size, time or inode, or not read to their end.
        outdated: unchanged files that the next run reads again, because their reader has changed since.
        gone: files of the ledger that no longer exist in their source, also if a run has noticed it, as long as their
            documents are kept; and the uris of such records of files that exist.
        ignored: files with documents that a rule leaves out now.
        failed: unchanged files that could not be read, or that have such records; and folders that cannot be listed.
        missing: SOURCE arguments that do not exist.
        unlisted: SOURCE arguments that cannot be listed. With one of them nothing is pruned.
        unchanged: how many files are as they were read.
        prunable: how many documents pruning would remove.
        reasons: why each of `failed` has failed, with the number of its other failed records.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    unchanged: int = 0
    prunable: int = 0
    outdated: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


def changes(
    sources: Sequence[RecordedSource],
    files: Mapping[str, KnownFile],
    kept: Collection[tuple[str, str]] = (),
    extractors: Sequence[Program] = (),
) -> SourceChanges:
    """Compare recorded sources with the ledger; no file is opened except those with rules.

    Args:
        files: the files of the ledger, by path.
        kept: file and uri of documents that a run no longer found in their file.
        extractors: the programs of the next run.
    """
    new, changed, outdated = list[str](), list[str](), list[str]()
    left_out: set[str] = set()
    unread: dict[str, str] = {}  # files with something that failed, and folders that cannot be listed, with the reason
    met: set[str] = set()
    opened, missing = _open_each(sources)
    unchanged = 0
    for file in (file for source in opened for file in source.files(claim=True)):
        if file.path in met:
            continue
        if file.status is None:
            if file.state == "failed":
                unread[file.path] = file.reason.text()
            else:
                left_out.add(file.path)
            continue
        met.add(file.path)
        recorded = files.get(file.path)
        reasons = [reason.text() for _, state, reason in recorded.entries if state == "failed"] if recorded else []
        has_failed = bool(reasons)
        if has_failed:
            more = f" (and {count_of(len(reasons) - 1, 'more record')})" if len(reasons) > 1 else ""
            unread[file.path] = f"{reasons[0]}{more}"
        if recorded is None:
            new.append(file.path)
        elif not recorded.stamp.matches(file.status):
            changed.append(file.path)
        elif not has_failed and not is_read_alike(file.path, recorded, extractors):
            outdated.append(file.path)
        elif not has_failed:
            unchanged += 1
    failed = unread.keys() - set(changed)

    def is_kept(path: str) -> bool:
        return nearest_above(path, left_out) is not None or nearest_above(path, unread) is not None

    held = {path: [uri for uri, state, _ in file.entries if state in HELD] for path, file in files.items()}
    unmet = [path for path in held if held[path] and path not in met and any(s.covers(path) for s in opened)]
    ignored = [path for path in unmet if nearest_above(path, left_out) is not None]
    gone = [path for path in unmet if not is_kept(path)]
    lost_uris = {uri for path in gone for uri in held[path]}
    held_uris = {uri for path in held.keys() - set(gone) for uri in held[path]} if kept or gone else set[str]()
    for path, uri in kept:
        if uri not in held_uris and not is_kept(path) and any(source.covers(path) for source in opened):
            gone.append(uri if path in met else path)
            lost_uris.add(uri)
    return SourceChanges(
        _in_order(new),
        _in_order(changed),
        _in_order(gone),
        _in_order(ignored),
        _in_order(failed),
        tuple(missing),
        tuple(source.argument for source in opened if source.root in unread.keys() - met),
        unchanged,
        len(lost_uris - held_uris),
        _in_order(outdated),
        {path: unread[path] for path in _in_order(failed)},
    )


def _in_order(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*paths}))


def _open_each(sources: Sequence[RecordedSource]) -> tuple[list[Source], list[str]]:
    """Return the recorded sources that exist, resolved, and the arguments of the others."""
    opened, missing = list[Source](), list[str]()
    for options, names in groups(sources):
        existing = []
        for name in names:
            try:
                open_sources([name], options, holds_store)
                existing.append(name)
            except SourceError:
                missing.append(name)
        opened += open_sources(existing, options, holds_store)
    return opened, missing
