"""Hits whose file was removed or moved."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from indexer import Document, Index
from indexer.settings import RecordedSource
from indexer.sources.folders.recorded import is_gone
from search import Searcher
from search.hits.hits import in_index


def test_a_file_is_gone_unless_its_source_may_be_on_another_machine(tmp_path: Path) -> None:
    notes, other = tmp_path / "home" / "notes", tmp_path / "other"
    for folder in (notes / "old", other, notes / "Mail" / "cur", notes / "Mail" / "new", notes / "Mail" / "tmp"):
        folder.mkdir(parents=True)
    file = notes / "old" / "a.txt"
    file.write_text("text")
    sources = [RecordedSource(str(notes)), RecordedSource(str(other / "*.md"))]

    def gone(path: Path | str | None) -> bool:
        return is_gone(path and str(path), sources)

    assert not gone(file)
    assert not gone(None)
    assert not gone("a name")
    assert not gone(notes / "Mail" / "1700.message")  # its name changes with its flags
    assert gone(file / "below a file")
    assert gone(notes / "b.txt")
    assert gone(tmp_path / "of no source.txt")
    shutil.rmtree(notes)
    assert gone(file)
    shutil.rmtree(tmp_path / "home")
    assert not gone(file)
    assert gone(other / "b.md")


def test_the_file_is_looked_for_when_the_member_is_read(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(tmp_path / name) for name in ("moon.txt", "sea.txt")]
    for path in paths:
        Path(path).write_text("the tides")
    with Index.create(tmp_path / "x.index", model=encoder) as index:
        index.add(Document(path, f"the tides of the {Path(path).stem}", path=path) for path in paths)
    with Searcher(tmp_path / "x.index", encoder) as searcher:
        looked_for: list[str] = []
        monkeypatch.setattr("search.hits.hits._is_gone", lambda path, _: bool(looked_for.append(path)) or path == gone)
        hits = searcher.search("tides")
        gone = hits[1].uri
        named = [in_index(hit, "x") for hit in hits]
        assert looked_for == []
        assert [hit.gone for hit in hits] == [hit["gone"] for hit in hits.as_json()["hits"]] == [False, True]
        assert looked_for == [hit.uri for hit in hits]  # once for each hit
        assert [hit.gone for hit in named] == [False, True]
        assert pickle.loads(pickle.dumps(hits[1])).gone  # noqa: S301
        assert replace(hits[1], score=1.0).gone
        assert searcher.similar(hits[0].uri)[0].gone


@pytest.mark.parametrize("fold", [True, False])
def test_of_equal_texts_the_one_whose_file_exists_comes_first(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch, fold: bool
) -> None:
    old, new, text = str(tmp_path / "old.txt"), str(tmp_path / "new.txt"), "the tides of the moon pull the water"
    with Index.create(tmp_path / "x.index", model=encoder) as index:
        index.add([Document(old, text, path=old), Document(new, text, path=new)])
        index.add(Document(f"d{number}", f"{number} engines", path=str(tmp_path / "none")) for number in range(9))
    Path(new).write_text(text)
    looked_for: list[str] = []

    def look(path: str | None, sources: Any) -> bool:
        looked_for.append(str(path))
        return is_gone(path, sources)

    monkeypatch.setattr("search.hits.hits._is_gone", look)
    with Searcher(tmp_path / "x.index", encoder) as searcher:
        for mode in ("dense", "words", "hybrid"):
            hits = searcher.search("tides moon", k=20, mode=mode, fold=fold)
            uris = [uri for hit in hits for uri in (hit.uri, *hit.family)]
            assert uris.index(new) < uris.index(old), mode
            assert {hit.uri: hit.family for hit in hits}[new] == ((old,) if fold else ()), mode
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True), mode
    assert set(looked_for) == {old, new}
