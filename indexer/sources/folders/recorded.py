"""Sources that an index remembers, so that they are read again without being named."""

# ruff: noqa: PTH100, PTH117, PTH120
from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from indexer.settings import RecordedSource
from indexer.sources.entry import ReadOptions
from indexer.sources.folders.maildir import is_maildir
from indexer.sources.folders.source import STDIN, Source, may_exist, root_of


def record(earlier: Sequence[RecordedSource], sources: Sequence[Source], options: ReadOptions) -> list[RecordedSource]:
    """Return the recorded sources after a run. A source that was read again has its newest options.

    Standard input cannot be read again. The same SOURCE with another --glob is another source.
    """
    text = json.dumps(_as_json(options))
    new = [RecordedSource(os.path.abspath(source.argument), text) for source in sources if source.root != STDIN]
    replaced = {_key(each) for each in new}
    return [*(each for each in earlier if _key(each) not in replaced), *new]


def folders_of(sources: Sequence[RecordedSource]) -> list[str]:
    """Return the folders that names of recorded files may be relative to: each SOURCE, and the folder that holds it."""
    roots = [root_of(source.argument) for source in sources]
    return list(dict.fromkeys([*roots, *map(os.path.dirname, roots)]))


def is_gone(path: str | None, sources: Sequence[RecordedSource]) -> bool:
    """Return whether the file of a document was removed or moved.

    A file that this user may not see is not gone. Nor is it if the folder above its SOURCE, or without a SOURCE the
    folder of the file, does not exist either, because the index may be on another machine.
    """
    if not path or not os.path.isabs(path) or may_exist(path) or is_maildir(os.path.dirname(path)):
        return False
    roots = [root for source in sources if Path(path).is_relative_to(root := root_of(source.argument))]
    return any(may_exist(os.path.dirname(root)) for root in roots or [path])


def groups(sources: Sequence[RecordedSource]) -> Iterator[tuple[ReadOptions, list[str]]]:
    """Yield the arguments that are read with the same options, together."""
    arguments: dict[str, list[str]] = {}
    for source in sources:
        arguments.setdefault(source.options, []).append(source.argument)
    for text, names in arguments.items():
        yield _from_json(json.loads(text)), names


def _key(source: RecordedSource) -> tuple[str, str]:
    return source.argument, json.dumps(json.loads(source.options).get("glob"))


def _as_json(options: ReadOptions) -> dict[str, Any]:
    """Return the options that differ from the defaults. `rehash` is left out, because it applies to one run only."""
    default = asdict(ReadOptions())
    values = asdict(replace(options, rehash=False, extractors=()))
    return {name: value for name, value in values.items() if value != default[name]}


def _from_json(values: Mapping[str, Any]) -> ReadOptions:
    """Return options; members of a later version are left out, and so are programs: an index may come from anybody."""
    known = {name: values[name] for name in asdict(ReadOptions()) if name in values and name != "extractors"}
    if "glob" in known:
        known["glob"] = tuple(known["glob"])
    return ReadOptions(**known)
