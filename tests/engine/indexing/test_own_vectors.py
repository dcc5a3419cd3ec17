"""The user's own vectors: one per document or per passage, with a given width or that of the first vector."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import BadInput, Document, Index, Section, UnknownUri
from search import Searcher

TEXT = "First part. Second part."


def test_several_passages_per_document_are_ranked_by_the_best_one(tmp_path: Path) -> None:
    vectors = [np.array([[1, 0, 0], [0, 1, 0]]), np.array([[0, 0, 2]])]
    sections = (Section(0, "one", 1), Section(12, "two", 2))
    documents = [Document("a", TEXT, sections=sections), Document("b", "Third.", metadata={"x": 1})]
    with Index.create(tmp_path / "x.index", dimensions=3) as index, Searcher(tmp_path / "x.index") as searcher:
        changes = index.add(documents, vectors=vectors, spans=[[(0, 11), (12, 24)], [(0, 6)]])
        assert (changes.added, index.info().passages) == (("a", "b"), 3)
        hit = searcher.search_vector([0.0, 1.0, 0.0], 1)[0]
        assert (hit.uri, hit.text, hit.start, hit.end, hit.score) == ("a", "Second part.", 12, 24, 1.0)
        assert (hit.heading, hit.page) == ("two", 2)
        assert [hit.text for hit in searcher.search_vector([1.0, 0.9, 0.0], 5, passages=True)] == [
            "First part.",
            "Second part.",
            "Third.",
        ]
        assert np.allclose(searcher.vectors("a"), np.eye(3)[:2], atol=1e-3)
        assert searcher.search("second", mode="words", passages=True)[0].text == "Second part."
        # The same again is unchanged; other places of the same vectors are another content.
        assert index.add(documents, vectors=vectors, spans=[[(0, 11), (12, 24)], [(0, 6)]]).unchanged == ("a", "b")
        assert index.add(documents, vectors=vectors, spans=[[(0, 10), (12, 24)], [(0, 6)]]).replaced == ("a",)
        assert searcher.search_vector([1.0, 0.0, 0.0], 1)[0].text == "First part"


@pytest.mark.parametrize(
    ("vectors", "spans", "message"),
    [
        ([np.ones((1, 2))], [[(0, 3)]], "one item per document when spans are given: 2 documents"),
        ([np.ones((1, 2))] * 2, [[(0, 3)]], "spans must have one item per document"),
        ([np.ones((1, 2))] * 2, [[(0, 3)], []], "b: has no passages"),
        ([np.ones((1, 2))] * 2, [[(0, 3)], 5], "b: has no passages"),
        ([np.ones((1, 2))] * 2, [[(0, 3)], [(0, 99)]], r"b: \(0, 99\) is not a \(start, end\) within its 3 characters"),
        ([np.ones((1, 2))] * 2, [[(0, 3)], [(2, 1)]], r"b: \(2, 1\) is not"),
        ([np.ones((1, 2))] * 2, [[(0, 3)], [5]], "b: 5 is not"),
        ([np.ones((1, 2))] * 2, [[(0, 3)], [(1, 1)]], r"b: \(1, 1\) is not"),
        ([np.ones((2, 2))] * 2, [[(0, 3)], [(0, 3)]], r"shape \(2, 2\)"),
        ([np.ones((1, 2)), np.zeros((1, 2))], [[(0, 3)], [(0, 3)]], "'b, passage 0' has only zeros"),
        ([np.ones((1, 2)), np.ones((1, 3))], [[(0, 3)], [(0, 3)]], r"shape \(1, 3\)"),
        (None, [[(0, 3)], [(0, 3)]], "spans were given without vectors"),
    ],
)
def test_passages_that_do_not_fit_are_refused_by_name(tmp_path: Path, vectors: Any, spans: Any, message: str) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        with pytest.raises(BadInput, match=message):
            index.add([Document("a", "abc"), Document("b", "abc")], vectors=vectors, spans=spans)
        assert len(index) == 0


def test_one_uri_twice_with_vectors_is_an_error_and_nothing_is_added(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        with pytest.raises(BadInput, match="a: comes twice"):
            index.add([Document("a", "one"), Document("a", "two")], vectors=np.eye(2))
        assert len(index) == 0


def test_the_first_vector_decides_the_width(tmp_path: Path) -> None:
    with (
        Index.create(tmp_path / "x.index", dimensions="auto") as index,
        Index.open(tmp_path / "x.index") as other,
        Searcher(tmp_path / "x.index") as searcher,
    ):
        assert (index.dimensions, searcher.info().dimensions) == (0, 0)
        assert (searcher.search_vector([1.0, 0.0]).matched, searcher.search("text", mode="words").matched) == (0, 0)
        assert index.add([], vectors=np.ones((0, 7))).added == ()
        assert index.dimensions == 0
        index.add([Document("a", "text")], vectors=np.ones((1, 3)))
        assert (index.dimensions, searcher.info().dimensions) == (3, 3)
        with pytest.raises(BadInput, match=r"shape \(1, 4\)"):
            other.add([Document("b", "text")], vectors=np.ones((1, 4)))
        assert other.add([Document("b", "text")], vectors=np.ones((1, 3))).added == ("b",)
        assert [hit.uri for hit in searcher.search_vector([1.0, 1.0, 1.0])] == ["a", "b"]
        with pytest.raises(BadInput, match=r"2 dimensions and .* has 3"):
            searcher.search_vector([1.0, 0.0])
        assert index.check().ok


@pytest.mark.parametrize("vectors", [5, {"a": [1.0]}, iter([[1.0]]), [[1.0], [1.0, 2.0]], ["abc"], np.zeros((1, 3))])
def test_refused_vectors_give_no_width(tmp_path: Path, vectors: Any) -> None:
    with Index.create(tmp_path / "x.index", dimensions="auto") as index:
        with pytest.raises(BadInput):
            index.add([Document("a", "text")], vectors=vectors)
        assert index.settings.dimensions == 0


def test_two_widths_at_once_leave_one(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions="auto") as index:
        outcomes: list[str] = []

        def add(width: int) -> None:
            try:
                index.add([Document(f"w{width}", "text")], vectors=np.ones((1, width)))
                outcomes.append("added")
            except BadInput:
                outcomes.append("refused")

        threads = [threading.Thread(target=add, args=(width,)) for width in (3, 4, 5, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["added", "refused", "refused", "refused"]
        assert (len(index), index.check().ok) == (1, True)


def test_a_temporary_index_goes_with_its_object() -> None:
    index = Index.temporary(dimensions="auto")
    folder = Path(index.address)
    index.add([Document("a", "text")], vectors=np.ones((1, 3)))
    with Searcher(index.address) as searcher:
        assert searcher.search_vector([1.0, 0.0, 0.0])[0].uri == "a"
    gc.collect()  # models of earlier tests end here: in a child, their threads are gone and would be waited for
    if (child := os.fork()) == 0:
        del index
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.exists()  # the child's copy of the object deleted nothing
    del index
    gc.collect()
    assert not folder.parent.exists()
    with Index.temporary(dimensions=2) as closed:
        folder = Path(closed.address)
    assert not folder.parent.exists()
    with pytest.raises(BadInput, match="give either a model"):
        Index.temporary("all-MiniLM-L6-v2", dimensions=2)


def test_a_temporary_index_goes_with_its_process(tmp_path: Path) -> None:
    program = "from indexer import Index; index = Index.temporary(dimensions=2); print(index.address)"
    root = Path(__file__).parents[3]
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_removing_by_filter_and_what_is_not_there(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document(f"d{n}", "text", metadata={"n": n}) for n in range(6)], vectors=np.ones((6, 2)))
        assert index.remove(where={"n": {">=": 4}}) == 2
        assert index.remove(where="n > 40") == 0
        with pytest.raises(UnknownUri, match="'gone'; nothing was removed"):
            index.remove(["d0", "gone"])
        assert index.remove(["d0", "gone"], missing_ok=True) == 1
        assert index.remove("gone", missing_ok=True) == 0
        assert index.remove("d1") == 1
        assert [document.uri for document in index] == ["d2", "d3"]
        assert (index.count(), index.count("n = 2")) == (2, 1)
        assert bool(index)
        with pytest.raises(BadInput, match="an empty filter would remove every document"):
            index.remove(where={})
        for arguments in ({}, {"uris": ["d2"], "where": "n = 2"}):
            with pytest.raises(BadInput, match=r"either uris or a filter \(where\)"):
                index.remove(**arguments)  # type: ignore[arg-type]
