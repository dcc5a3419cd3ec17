"""Sources that an index remembers, so that they are read again without being named, and what has changed in them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from indexer.errors import SourceError
from indexer.records import KnownFile
from indexer.settings import RecordedSource
from indexer.sources.entry import FieldOfFiles, ReadOptions
from indexer.sources.source import STDIN, Source, open_sources

_HELD = ("indexed", "updated", "unchanged")
"""The states of ledger rows whose record became a document."""


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """What has changed in the recorded sources since they were read last, as absolute paths.

    Attributes:
        new: files that the ledger does not have.
        changed: files with another size, time or inode, or not read to their end.
        gone: files of the ledger that no longer exist in their source, also if a run has noticed it, as long as their
            documents are kept; and the uris of such records of files that exist.
        ignored: files with documents that a rule leaves out now.
        failed: unchanged files, or records in them, that could not be read; and folders that cannot be listed.
        missing: SOURCE arguments that do not exist.
        unchanged: how many files are as they were read.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unchanged: int = 0


def record(earlier: Sequence[RecordedSource], sources: Sequence[Source], options: ReadOptions) -> list[RecordedSource]:
    """Return the recorded sources after a run: one that was read again has its newest options.

    Standard input cannot be read again. The same SOURCE with another --glob is another one.
    """
    text = json.dumps(_as_json(options))
    new = [RecordedSource(_absolute(source.argument), text) for source in sources if source.root != STDIN]
    replaced = {_key(each) for each in new}
    return [*(each for each in earlier if _key(each) not in replaced), *new]


def groups(sources: Sequence[RecordedSource]) -> Iterator[tuple[ReadOptions, list[str]]]:
    """Yield the arguments that are read with the same options, together."""
    arguments: dict[str, list[str]] = {}
    for source in sources:
        arguments.setdefault(source.options, []).append(source.argument)
    for text, names in arguments.items():
        yield _from_json(json.loads(text)), names


def changes(
    sources: Sequence[RecordedSource], files: Mapping[str, KnownFile], kept: Collection[tuple[str, str]] = ()
) -> SourceChanges:
    """Compare recorded sources with the ledger; no file is opened except those with rules.

    Args:
        files: the files of the ledger, by path.
        kept: file and uri of documents that a run has not met in their file any more.
    """
    new, changed, failed, missing = [], [], [], []
    left_out: set[str] = set()
    unlisted: set[str] = set()
    met: set[str] = set()
    opened: list[Source] = []
    unchanged = 0
    for options, names in groups(sources):
        existing = []
        for name in names:
            try:
                open_sources([name], options)
                existing.append(name)
            except SourceError:
                missing.append(name)
        current = open_sources(existing, options)
        opened += current
        for file in (file for source in current for file in source.files(claim=True)):
            if file.path in met:
                continue
            recorded = files.get(file.path)
            if file.status is None:
                if file.state == "failed":
                    failed.append(file.path)
                    unlisted.add(file.path)
                else:
                    left_out.add(file.path)
                continue
            met.add(file.path)
            if recorded is None:
                new.append(file.path)
            elif not recorded.stamp.same(file.status):
                changed.append(file.path)
            elif any(state == "failed" for _, state, _ in recorded.entries):
                failed.append(file.path)
            else:
                unchanged += 1
    held = [path for path, file in files.items() if any(state in _HELD for _, state, _ in file.entries)]
    unmet = [path for path in held if path not in met and any(source.covers(path) for source in opened)]
    ignored = [path for path in unmet if _under(path, left_out)]
    gone = [path for path in unmet if not _under(path, left_out) and not _under(path, unlisted)]
    held_uris = {uri for file in files.values() for uri, state, _ in file.entries if state in _HELD} if kept else set()
    gone += [
        uri if path in met else path
        for path, uri in kept
        if uri not in held_uris and not _under(path, left_out) and any(source.covers(path) for source in opened)
    ]
    new_, changed_, gone_, ignored_, failed_ = (
        tuple(sorted({*paths})) for paths in (new, changed, gone, ignored, failed)
    )
    return SourceChanges(new_, changed_, gone_, ignored_, failed_, tuple(missing), unchanged)


def _under(path: str, folders: set[str]) -> bool:
    """Return whether a path, or a folder above it, is one of these."""
    while path not in folders:
        above = os.path.dirname(path)  # noqa: PTH120
        if above == path:
            return False
        path = above
    return True


def _absolute(argument: str) -> str:
    return os.path.abspath(argument)  # noqa: PTH100


def _key(source: RecordedSource) -> tuple[str, str]:
    return source.argument, json.dumps(json.loads(source.options).get("glob"))


def _as_json(options: ReadOptions) -> dict[str, Any]:
    """Return the options that differ from the defaults; reading every file again is asked for once only."""
    default = asdict(ReadOptions())
    values = asdict(replace(options, rehash=False))
    return {name: value for name, value in values.items() if value != default[name]}


def _from_json(values: Mapping[str, Any]) -> ReadOptions:
    """Return options; members of a later version are left out."""
    known = {name: values[name] for name in asdict(ReadOptions()) if name in values}
    if "glob" in known:
        known["glob"] = tuple(known["glob"])
    if "fields_of_files" in known:
        known["fields_of_files"] = tuple(FieldOfFiles(**each) for each in known["fields_of_files"])
    return ReadOptions(**known)
