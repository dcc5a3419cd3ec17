"""A writer that is killed by SIGKILL, and what has to be true afterwards.

The writer is this file, run as a program: it adds, replaces, removes, seals and compacts, and prints each operation
before and after it. Acknowledged operations must be there. The operation under way is there as a whole or not at all.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer import Document, Index
from indexer.indexing.core import IndexCore
from indexer.stores.local import seal
from indexer.stores.local.catalog.views import Views
from indexer.stores.local.words import files as word_files
from search import Searcher

DIMENSIONS = 16

Contents = dict[str, int]
"""The version of each document that exists."""


def vector(uri: str, version: int) -> NDArray[np.float32]:
    """Return the vector that belongs to a version of a document."""
    row = np.random.default_rng(zlib.crc32(f"{uri} {version}".encode())).normal(size=DIMENSIONS)
    return np.asarray(row / np.linalg.norm(row), np.float32)


def operations(seed: int, state: Contents) -> Iterator[tuple[str, Contents, list[str]]]:
    """Yield operations without end: the name, the documents to write with their versions, and the uris to remove."""
    chance = random.Random(seed)
    number = max((int(uri.split()[1]) for uri in state), default=0)
    while True:
        match chance.choice(["add", "add", "add", "replace", "remove", "seal", "compact", "approximate"]):
            case "add":
                many = chance.randint(1, 120)
                yield "put", {f"document {number + i}": 1 for i in range(1, many + 1)}, []
                number += many
            case "replace" if state:
                some = chance.sample(sorted(state), min(len(state), chance.randint(1, 40)))
                yield "put", {uri: state[uri] + 1 for uri in some}, []
            case "remove" if state:
                yield "remove", {}, chance.sample(sorted(state), min(len(state), chance.randint(1, 60)))
            case "seal":
                yield "seal", {}, []
            case "compact":
                yield "exact", {}, []
            case "approximate":
                yield "approximate", {}, []


def applied(state: Contents, put: Contents, remove: list[str]) -> Contents:
    return {uri: version for uri, version in {**state, **put}.items() if uri not in remove}


def write(folder: Path, seed: int) -> None:
    """Work until the process is killed."""
    with IndexCore.open(folder) as core:
        index = Index(core)
        state = contents(index)
        for what, put, remove in operations(seed, state):
            print(json.dumps(["begin", what, put, remove]), flush=True)  # noqa: T201
            if put:
                documents = [Document(uri, f"{uri} version {version}") for uri, version in put.items()]
                index.add(documents, vectors=np.stack([vector(*item) for item in put.items()]))
            elif remove:
                index.remove(remove)
            elif what == "seal":
                with core.store.writer() as writer:
                    writer.settle()
            else:
                index.compact(what)
            state.update(put)
            for uri in remove:
                del state[uri]
            print(json.dumps(["done"]), flush=True)  # noqa: T201


def contents(index: Index) -> Contents:
    return {document.uri: int(document.text.rsplit(" ", 1)[1]) for document in index}


def run(folder: Path, state: Contents, seed: int, *, step: str = "", after: float = 20) -> Contents:
    """Let a writer work until it dies at a step, or is killed after some seconds. Return the documents that are left.

    Raises:
        AssertionError: something acknowledged is missing, half a change is visible, or check finds a problem.
    """
    environment = {**os.environ, "LIKEWISE_KILL_AT": step, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, __file__, str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            output, _ = process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    assert process.returncode == -9, f"the writer ended by itself with {process.returncode}"
    allowed = [state]
    for line in output.splitlines():
        try:
            said, *operation = json.loads(line)
        except ValueError:  # the last line was cut
            break
        allowed = [allowed[-1]] if said == "done" else [allowed[0], applied(allowed[0], *operation[1:])]
    return verify(folder, allowed)


def verify(folder: Path, allowed: list[Contents]) -> Contents:
    with Index.open(folder) as index, Searcher(folder) as searcher:
        report = index.check()
        assert report.ok, report.problems
        found = contents(index)
        assert found in allowed, f"{len(found)} documents, expected one of {[len(state) for state in allowed]}"
        assert len(index) == len(found)
        chance = random.Random(len(found))
        for uri in chance.sample(sorted(found), min(40, len(found))):
            (hit,) = searcher.search_vector(vector(uri, found[uri]), 1)
            assert (hit.uri, round(hit.score, 3)) == (uri, 1.0), (uri, hit)
        for gone in [uri for state in allowed for uri in state if uri not in found][:20]:
            hits = searcher.search_vector(vector(gone, 1), 5)
            assert gone not in [hit.uri for hit in hits]
        assert searcher.search("document", 1, mode="words").matched == len(found)
        with index.lock():
            seal.sweep(Views(folder))
            word_files.sweep(Views(folder))
        assert len(list((folder / "words").glob("*"))) <= 1
        named = {row["file"] for row in index.info().segments}
        assert {path.stem for path in (folder / "segments").iterdir()} == named
    return found


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
