"""A writer killed by SIGKILL: what was acknowledged is there and found, what was not is there whole or not at all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from killed_writer import DIMENSIONS, Contents, run

from indexer import Index
from indexer.stores.local.disk.failpoint import STEPS


def _killed(folder: Path, steps: list[str]) -> None:
    Index.create(folder, dimensions=DIMENSIONS).close()
    state: Contents = run(folder, {}, 7, step="commit.done:6")
    for number, step in enumerate(steps):
        state = run(folder, state, number, step=step)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(("commit.written", "seal.renamed", "words.recorded"), id="some"),
        pytest.param(STEPS, id="every", marks=pytest.mark.slow),
    ],
)
def test_killed_at_named_steps(tmp_path: Path, steps: tuple[str, ...]) -> None:
    _killed(tmp_path / "killed.index", list(steps))


@pytest.mark.long
@pytest.mark.timeout(400)
def test_killed_later_and_at_random_moments(tmp_path: Path) -> None:
    folder = tmp_path / "killed.index"
    _killed(folder, [f"{step}:3" for step in STEPS])
    with Index.open(folder) as index:
        state = {document.uri: int(document.text.rsplit(" ", 1)[1]) for document in index}
    chance = random.Random(1)
    for number in range(20):
        state = run(folder, state, 100 + number, after=chance.uniform(1.2, 3))
