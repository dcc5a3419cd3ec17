"""A program that calls all of the library. `make check` holds it to `mypy --strict`, and a test runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise import (
    Changes,
    CheckReport,
    Document,
    Filter,
    FilterSyntaxError,
    Hit,
    Hits,
    Index,
    Info,
    LikewiseError,
    Mode,
    NoWords,
    Query,
    Recall,
    Searcher,
    Section,
    UnknownField,
    UnknownUri,
)

ROWS: NDArray[np.float32] = np.eye(6, 4, dtype=np.float32) + 0.1


def write(folder: Path) -> Index:
    index = Index.create(folder, dimensions="auto")
    documents = [
        Document(uri=f"d{n}", text=f"text {n}", title="a title", metadata={"year": 2020 + n}) for n in range(6)
    ]
    changes: Changes = index.add(documents, vectors=ROWS)
    names: tuple[str, ...] = changes.added + changes.replaced + changes.updated + changes.unchanged + changes.notes
    assert names == tuple(document.uri for document in documents)
    index.add(
        [Document("long", "first second", sections=(Section(0, "heading", 1),))],
        vectors=[ROWS[:2]],
        spans=[[(0, 5), (6, 12)]],
    )
    removed: int = index.remove(["d5", "nothing"], missing_ok=True) + index.remove(where={"year": {"<": 2021}})
    count: int = index.count("year >= 2021") + len(index)
    text: str = index.get("d1").text
    assert (removed, count, text) == (2, 9, "text 1")
    assert "d1" in index
    with index.lock(wait=False):
        index.compact(kind="exact")
    report: CheckReport = index.check()
    recall: Recall = index.recall()
    assert report.ok
    assert recall.exact
    return index


def rank(searcher: Searcher, modes: Sequence[Mode]) -> Iterator[Hits]:
    where: Filter = {"year": {">=": 2020}, "or": [{"title": "a title"}, {"not": {"year": {"in": [1, 2]}}}]}
    for mode in modes:
        vector = None if mode == "words" else ROWS[1]
        yield searcher.search("text", k=5, where=where, mode=mode, passages=True, min_score=0.0, vector=vector)
    yield searcher.answer(Query(text="text", k=2, vector=ROWS[2], exact=True, explain=True))
    yield from searcher.search_many(["a", "b"], 3, where=[where, None], vectors=ROWS[:2], passages=False, exact=True)
    yield searcher.search_vector([1.0, 0.0, 0.0, 0.0], k=2, where="year = 2022", passages=True, min_score=-1.0)
    yield searcher.similar("d1", k=2, where=where)


def read(searcher: Searcher) -> None:
    document: Document = searcher.get("d1")
    documents: list[Document] = searcher.get_many(["d1", "nothing"])
    vectors: NDArray[np.float32] = searcher.vectors("long")
    info: Info = searcher.info()
    assert documents == [document]
    assert vectors.shape == (2, 4)
    assert bool(searcher)
    assert len(searcher) == searcher.count() == info.documents == len(list(searcher.documents(where=None)))


def catch(searcher: Searcher) -> list[str]:
    caught: list[str] = []
    for arguments in ({"where": "yaer = 1"}, {"where": "year ="}, {"query": "what is the"}):
        try:
            searcher.search(arguments.get("query", "text"), where=arguments.get("where"), mode="words")
        except UnknownField as error:
            caught.append(error.field)
        except FilterSyntaxError as error:
            caught.append(str(error.position))
        except NoWords as error:
            caught.append(type(error).__name__)
    try:
        searcher.get("nothing")
    except UnknownUri as error:
        caught.append(type(error).__name__)
    assert issubclass(UnknownUri, LikewiseError)
    return caught


def main(folder: Path) -> None:
    with write(folder) as index, Searcher(index.address, unknown_fields="error") as searcher:
        for hits in rank(searcher, ["dense", "words", "hybrid"]):
            hit: Hit = hits[0]
            cosine: float | None = hit.cosine
            notes: tuple[str, ...] = hits.notes
            assert hits.matched >= len(hits)
            assert cosine is None or cosine <= 1
            assert [note for note in notes if not note.startswith("no document has year = ")] == []
        read(searcher)
        assert catch(searcher) == ["yaer", "6", "NoWords", "UnknownUri"]
    with Index.temporary(dimensions=4) as temporary, Searcher(temporary.address, unknown_fields="empty") as lenient:
        temporary.add([Document("a", "text")], vectors=ROWS[:1])
        assert lenient.count({"nothing": 1}) == 0
    sys.stdout.write("ok\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
