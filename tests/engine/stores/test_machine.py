"""Any sequence of adding, replacing, removing, sealing, compacting and reopening, against a dictionary and numpy."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from opened import writer_of

from indexer import Document, Index
from search import Searcher

DIMENSIONS = 8

_URIS = st.lists(st.integers(0, 30).map(str), min_size=1, max_size=12, unique=True)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.parent = Path(tempfile.mkdtemp())
        self.folder = self.parent / "x.index"
        self.index = Index.create(self.folder, dimensions=DIMENSIONS)
        self.searcher = Searcher(self.folder)
        self.model: dict[str, np.ndarray] = {}
        self.even: dict[str, bool] = {}

    def teardown(self) -> None:
        self.searcher.close()
        self.index.close()
        shutil.rmtree(self.parent)

    @rule(uris=_URIS, seed=st.integers(0, 2**16))
    def add(self, uris: list[str], seed: int) -> None:
        rows = np.random.default_rng(seed).normal(size=(len(uris), DIMENSIONS)).astype(np.float32)
        documents = [Document(uri, f"text {seed}", metadata={"even": seed % 2 == 0}) for uri in uris]
        changes = self.index.add(documents, vectors=rows)
        assert set(changes.added) == {uri for uri in uris if uri not in self.model}
        for uri, row in zip(uris, rows, strict=True):
            self.model[uri], self.even[uri] = row / np.linalg.norm(row), seed % 2 == 0

    @rule(uris=_URIS)
    def remove(self, uris: list[str]) -> None:
        there = [uri for uri in uris if uri in self.model]
        assert self.index.remove(there) == len(there)
        for uri in there:
            del self.model[uri]

    @rule()
    def seal(self) -> None:
        writer_of(self.index).settle()

    @rule(kind=st.sampled_from(["auto", "exact", "approximate"]))
    def compact(self, kind: str) -> None:
        self.index.compact(kind)

    @rule()
    def reopen(self) -> None:
        self.searcher.close()
        self.index.close()
        self.index, self.searcher = Index.open(self.folder), Searcher(self.folder)

    @invariant()
    def finds_what_numpy_finds(self) -> None:
        question = np.ones(DIMENSIONS, np.float32) / np.sqrt(DIMENSIONS)
        known = None if not self.model else "even = true"
        for where in (None, known):
            if where and not any(self.even[uri] for uri in self.model):
                continue
            allowed = [uri for uri in self.model if where is None or self.even[uri]]
            hits = self.searcher.search_vector(question, 5, where=where)
            expected = sorted((float(self.model[uri] @ question) for uri in allowed), reverse=True)[:5]
            assert hits.matched == len(allowed)
            np.testing.assert_allclose([hit.score for hit in hits], expected, atol=2e-3)
        assert len(self.index) == len(self.model)


Machine.TestCase.settings = settings(
    max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStore = Machine.TestCase
