"""Rebuilding an index: nothing is lost, the old one answers until the new one is complete, and stays if that fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of, store_of

from indexer import Document, Index
from indexer.errors import BadInput, StorageError
from indexer.indexing.embedding import settings_of_new
from indexer.stores.local import seal
from likewise.shell.indexing.rebuild import rebuild_index
from search import Searcher


@pytest.fixture
def folder(tmp_path: Path, encoder: Any) -> Path:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document(f"d{i}", f"text{i}", "title", {"n": i}) for i in range(40)])
    return tmp_path / "x.index"


def alone(folder: Path) -> bool:
    return [path.name for path in folder.parent.iterdir() if path.name.startswith((".", folder.name))] == [folder.name]


def test_another_model_and_no_document_lost(folder: Path, make_encoder: Callable[..., Any]) -> None:
    other = make_encoder(name="other", weights="2", max_tokens=64)
    with Index.open(folder) as old, Searcher(folder) as searcher:
        before = list(old)
        with rebuild_index(old._core, lambda: settings_of_new(other)) as (new, _):
            assert searcher.search("text7", 1)[0].uri == "d7"
            assert list(Index(new)) == before
        assert searcher.search("text7", 1)[0].uri == "d7"
        assert other.seen[-1] == "text7"
    with Index.open(folder) as index:
        assert (list(index), index.recipe, index.check().problems) == (before, other.recipe, ())
    assert alone(folder)


@pytest.mark.parametrize("where", ["filling", "the block"])
def test_one_that_fails_leaves_the_old_index(folder: Path, make_encoder: Callable[..., Any], where: str) -> None:
    other = make_encoder(name="other", weights="2")

    def fail(texts: Sequence[str]) -> None:
        raise KeyboardInterrupt

    if where == "filling":
        other.ask = fail
    with Index.open(folder) as old:
        own = old.recipe
        with pytest.raises(KeyboardInterrupt), rebuild_index(old._core, lambda: settings_of_new(other)):
            raise KeyboardInterrupt
    with Index.open(folder) as index:
        assert (len(index), index.recipe, index.check().ok) == (40, own, True)
        index.add([Document("more", "text")])
    assert alone(folder)


def test_where_folders_cannot_be_exchanged_at_once_a_rename_that_fails_leaves_the_old_index(
    folder: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        calls.append(target)
        if target == folder and len(calls) == 3:  # the draft has its mark, and the old index is aside
            raise OSError(5, "Input/output error")
        return real(self, target)

    with Index.open(folder) as old, monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        patch.setattr("ctypes.CDLL", lambda *_, **__: object())  # a system without renameat2
        with (
            pytest.raises(StorageError, match="Input/output"),
            rebuild_index(old._core, lambda: settings_of_new(encoder)),
        ):
            pass
    with Index.open(folder) as index:
        assert len(index) == 40
    assert alone(folder)


def test_what_the_new_model_cannot_read_is_said(tmp_path: Path, folder: Path, encoder: Any) -> None:
    with Index.open(folder) as old:
        old.add([Document("blank", "")], vectors=np.ones((1, 64)))
        with rebuild_index(old._core, lambda: settings_of_new(encoder)) as (new, notes):
            assert len(Index(new)) == 40
        assert list(notes) == ["left out, because the new model can read none of their text: 1 document, such as blank"]
    own = Index.create(tmp_path / "own.index", dimensions=2)
    refused = pytest.raises(BadInput, match="your own vectors")
    with own, refused, rebuild_index(own._core, lambda: settings_of_new(encoder)):
        pass


def test_from_the_shell(likewise: Callable[..., Any], tmp_path: Path, lines: Callable[..., str]) -> None:
    folder, file = tmp_path / "y.index", tmp_path / "r.jsonl"
    file.write_text(lines(*({"id": i, "text": f"text {i}"} for i in range(5))))
    likewise("index", folder, file)
    for arguments in (["--max-tokens", "20"], ["--overlap", "3"]):
        likewise("index", folder, file, *arguments).failed(2, "--rebuild")
    file.write_text(lines(*({"id": i, "text": f"text {i}"} for i in range(4))))
    likewise("index", folder, file, "--max-tokens", "20", "--rebuild", "--json").reported(0, seen=4, indexed=4)
    with Index.open(folder) as index:
        assert index.passage_settings is not None
        assert (index.passage_settings.max_tokens, index.passage_settings.overlap, len(index)) == (20, 5, 5)
        assert index.check().ok
    assert likewise("index", folder, file, "--json").json["unchanged"] == 4
    assert likewise("index", folder, file, "--rebuild", "--prune", "--json").json["pruned"] == 1
    rows = likewise("info", folder, "--ledger", "--json").out.splitlines()
    assert sorted(json.loads(row)["uri"] for row in rows) == ["0", "1", "2", "3"]


def test_the_folder_is_never_missing_and_what_a_killed_rebuild_left_is_swept(folder: Path, encoder: Any) -> None:
    left = folder.with_name(f".{folder.name}.0123abcd")
    left.mkdir()
    (left / "catalog.db").touch()
    others = folder.with_name(f".{folder.name}.notes")
    others.mkdir()
    missing, done = [], threading.Event()

    def look() -> None:
        while not done.is_set():
            missing.extend([1] * (not (folder / "catalog.db").exists()))

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(5):
        with Index.open(folder) as old, rebuild_index(old._core, lambda: settings_of_new(encoder)):
            pass
    done.set()
    watcher.join()
    assert missing == []
    assert not left.exists()
    assert others.exists()


def test_through_a_link_the_folder_itself_is_replaced_and_settings_are_kept(folder: Path, encoder: Any) -> None:
    link = folder.with_name("link")
    link.symlink_to(folder.name)
    with Index.open(link) as old:
        old.compact(recall=0.9)
        with rebuild_index(old._core, lambda: settings_of_new(encoder)):
            pass
    assert link.is_symlink()
    with Index.open(folder) as index:
        assert (len(index), index.settings.recall) == (40, 0.9)


def test_another_pooling_is_of_the_same_model(
    likewise: Callable[..., Any], folder: Path, encoder: Any, register: Callable[..., None]
) -> None:
    asked: list[Any] = []
    register(named=lambda spec: (asked.append(spec), encoder)[1])
    likewise("index", folder, "-", "--pooling", "cls", "--rebuild", stdin="")
    assert [(spec.model, spec.pooling) for spec in asked] == [(encoder.recipe.model, "cls")]


def test_what_was_chosen_learnt_and_left_out_before_is_kept(
    likewise: Callable[..., Any], tmp_path: Path, lines: Callable[..., str]
) -> None:
    folder, file = tmp_path / "y.index", tmp_path / "r.jsonl"
    file.write_text(lines({"id": "a", "text": "text"}, {"id": "b", "text": ""}) + "broken\n")
    likewise("index", folder, file, "--max-tokens", "16")
    with Index.open(folder) as index, store_of(index).writer() as writer:
        writer.change(lambda settings: replace(settings, words_bias=1.5))
    states = {"a": "indexed", "b": "skipped", f"{file}:3": "failed"}
    more = tmp_path / "more.txt"
    more.write_text("more text")
    likewise("index", folder, more, "--rebuild", "--pooling", "mean")
    with Index.open(folder) as index:
        assert index.passage_settings is not None
        settings = index.passage_settings.max_tokens, index.passage_settings.overlap
        assert (settings, index.settings.words_bias) == ((16, 4), 1.5)
        found = {row.uri: row.state for row in snapshot_of(index).ledger() if row.uri != str(more)}
        assert found == states
    for arguments in (["--rebuild", "--dimensions", "64"], ["--rebuild", "--stream"]):
        likewise("index", folder, more, *arguments).failed(2, "leave one of them out")


def test_a_note_of_a_rebuilding_is_told_once(
    likewise: Callable[..., Any], tmp_path: Path, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = lines({"id": "a", "text": "bread and dough"})
    likewise("index", tmp_path / "x.index", "-", stdin=records)

    sealing = seal.seal

    def refuse(*arguments: Any, **at_the_end: Any) -> None:
        if not at_the_end:
            raise StorageError("the disk is full")
        sealing(*arguments, **at_the_end)

    monkeypatch.setattr("indexer.stores.local.seal.seal", refuse)
    said = likewise("index", tmp_path / "x.index", "-", "--rebuild", "--json", stdin=records).succeeded()
    assert said.json["notes"].count("the disk is full") == 1
