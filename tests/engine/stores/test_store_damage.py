"""Damage that a person meets through `check` and the shell. tests/engine/crash damages files at random and in bulk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer import Document, Index
from indexer.errors import IndexDamaged
from indexer.settings import Probed
from indexer.stores.addresses.open import open_store
from indexer.stores.local.catalog import views
from indexer.stores.local.segments.files import SegmentFile, verify
from indexer.stores.vectors import checksum
from search import Searcher

ROWS = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Index.create(tmp_path / "x.index", dimensions=8) as index:
        index.add([Document(f"d{i}", f"the text of {i}") for i in range(50)], vectors=ROWS)
        index.compact()
    return tmp_path / "x.index"


def answers(folder: Path) -> list[tuple[str, float]]:
    with Searcher(folder) as searcher:
        return [(hit.uri, hit.score) for row in ROWS[:5] for hit in searcher.search_vector(row, 50)]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def test_a_segment_that_goes_while_it_is_opened_is_answered_from_the_catalog(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(folder)

    def verified_and_gone(segments: Path, recorded: SegmentFile) -> None:
        verify(segments, recorded)
        (segments / f"{recorded.file}.ids").unlink(missing_ok=True)

    monkeypatch.setattr("indexer.stores.local.segments.faiss_segment.verify", verified_and_gone)
    after = answers(folder)
    assert [(uri, round(score, 5)) for uri, score in after] == [(uri, round(score, 5)) for uri, score in before]


@pytest.mark.parametrize(
    "harm", [flip, *(pytest.param(harm, marks=pytest.mark.slow) for harm in (truncate, Path.unlink))]
)
@pytest.mark.parametrize("suffix", ["faiss", "ids"])
def test_a_damaged_segment_is_noted_by_every_question_answers_the_same_and_is_rebuilt(
    folder: Path, harm: Callable[[Path], None], suffix: str, likewise: Callable[..., Any]
) -> None:
    before = answers(folder)
    harm(next((folder / "segments").glob(f"*.{suffix}")))
    after = answers(folder)
    assert [(uri, round(score, 5)) for uri, score in after] == [(uri, round(score, 5)) for uri, score in before]
    with Searcher(folder) as searcher:
        for row in ROWS[:2]:
            (note,) = searcher.search_vector(row, 1).notes
            assert "answering from the catalog" in note
    store = open_store(folder)
    for _ in range(2):
        with store.snapshot() as snapshot:
            (note,) = snapshot.notes
        assert note.startswith("segment ")
        assert note.endswith("; answering from the catalog until the next writer rebuilds it")
    store.close()
    found = likewise("check", folder, "--json").reported(1, ok=False)
    assert len(found.json["problems"]) == 1
    assert "--repair" in likewise("check", folder).out
    mended = likewise("check", folder, "--repair", "--json").reported(0, ok=True)
    assert "rebuilt 1 damaged segment" in mended.json["notes"]
    assert (answers(folder), likewise("check", folder).code) == (before, 0)


@pytest.mark.parametrize(
    ("change", "parameters"),
    [
        ("UPDATE document_text SET text = replace(text, 'text', 'tent') WHERE document_id = 7", ()),
        ("UPDATE passage SET vector = ? WHERE document_id = 7", (ROWS[20].astype("<f2").tobytes(),)),
        ("UPDATE passage SET vector = x'00' WHERE document_id = 7", ()),
        ("UPDATE passage SET start = 3 WHERE document_id = 7", ()),
    ],
    ids=["text", "vector", "length", "offset"],
)
def test_a_changed_row_of_the_catalog_is_named_and_never_returned(
    folder: Path, likewise: Callable[..., Any], change: str, parameters: tuple[bytes, ...]
) -> None:
    with sqlite3.connect(folder / "catalog.db") as catalog:
        catalog.execute(change, parameters)
    catalog.close()
    with Searcher(folder) as searcher:
        with pytest.raises(IndexDamaged):
            searcher.search_vector(ROWS[6], 50)
        assert searcher.search_vector(ROWS[5], 1)[0].uri == "d5"  # what is sound is still found
    said = likewise("check", folder, "--json").reported(1, ok=False)
    assert any("d6" in problem for problem in said.json["problems"])
    assert likewise("check", folder, "--repair").code in (1, 3)  # no one can know what it was
    with Index.open(folder) as index:
        index.remove(["d6"])
        index.add([Document("d6", "the text of 6")], vectors=ROWS[6:7])
        assert index.check().ok
    assert likewise("check", folder).code == 0


@pytest.mark.parametrize("change", ["another vector", "no row"])
def test_a_passage_whose_segment_holds_another_vector_is_never_returned(folder: Path, change: str) -> None:
    vector = ROWS[20].astype("<f2").tobytes()  # with its checksum: nothing but the segment shows the change
    with closing(sqlite3.connect(folder / "catalog.db")) as catalog, catalog:
        if change == "no row":
            catalog.execute("DELETE FROM passage WHERE document_id = 7")
        else:
            new = "UPDATE passage SET vector = ?, checksum = ? WHERE document_id = 7"
            catalog.execute(new, (vector, checksum("the text of 6", vector)))
    with Searcher(folder) as searcher:
        with pytest.raises(IndexDamaged, match=r"catalog\.db: "):
            searcher.search_vector(ROWS[6], 1)
        assert searcher.search_vector(ROWS[5], 1)[0].uri == "d5"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE document SET metadata = '{}' WHERE id = 7", ["d6: its stored row"]),
        ("UPDATE document SET metadata = 'no JSON' WHERE id = 7", ["d6: its stored row"]),
        ("UPDATE document SET path = '/elsewhere' WHERE id = 7", ["d6: its stored row"]),
        ("UPDATE document SET modified = 'once' WHERE id = 7", ["d6: its stored row"]),
        ("UPDATE field_value SET value = 7.5 WHERE document_id = 7", ["d6: filters do not see its metadata"]),
        ("DELETE FROM field_value WHERE document_id IN (1, 7, 50)", ["d0: ", "d6: ", "d49: "]),
        ("UPDATE setting SET value = 49 WHERE name = 'documents'", ["holds 50 documents and says 49"]),
    ],
)
def test_check_sees_metadata_that_changed_behind_its_back_and_mends_what_is_derived(
    folder: Path, likewise: Callable[..., Any], change: str, said: list[str]
) -> None:
    with Index.open(folder) as index:
        index.add([Document(f"d{i}", f"the text of {i}", metadata={"n": i, "odd": i % 2 > 0}) for i in range(50)], ROWS)
        assert index.check().ok
    with sqlite3.connect(folder / "catalog.db") as catalog:
        catalog.execute(change)
    catalog.close()
    problems = likewise("check", folder, "--json").json["problems"]
    assert [any(part in problem for problem in problems) for part in said] == [True] * len(said), problems
    derived = "UPDATE document SET" not in change
    assert likewise("check", folder, "--repair").code == (0 if derived else 1)
    with Index.open(folder) as index:  # adding the document again mends the rest
        index.add([Document("d6", "the text of 6", metadata={"n": 6, "odd": False})], ROWS[6:7])
        assert index.check().ok
    with Searcher(folder) as searcher:
        assert [hit.uri for hit in searcher.search_vector(ROWS[6], 50, where="n = 6 and odd = false")] == ["d6"]


@pytest.mark.parametrize("damaged", ["broken", b"\xff", 1e300])
def test_a_damaged_value_of_a_field_is_named_with_its_repair(
    folder: Path, likewise: Callable[..., Any], damaged: Any
) -> None:
    with Index.open(folder) as index:
        index.add([Document("d6", "the moon", metadata={"n": 6, "on": "2024-01-31"})], ROWS[6:7])
        index.add([Document("d7", "the moon", metadata={"n": 7, "on": "2024-02-28"})], ROWS[7:8])
    with closing(sqlite3.connect(folder / "catalog.db")) as catalog, catalog:
        fields = "SELECT id FROM field WHERE type IN ('number', 'date')"
        ((number,),) = catalog.execute("SELECT id FROM document WHERE uri = 'd7'")
        new = f"UPDATE field_value SET value = ? WHERE field_id IN ({fields}) AND document_id = ?"
        catalog.execute(new, (damaged, number))
    with Searcher(folder) as searcher:
        calls: list[Callable[[], Any]] = [lambda: searcher.search("moon", mode="words", newer="90d:on")]
        if damaged != 1e300:  # which is a number
            calls += [lambda: searcher.histogram("n", "number"), lambda: searcher.histogram("on", "date")]
            calls += [lambda: searcher.values("on")]
        for call in calls:
            with pytest.raises(IndexDamaged, match=r"a stored value of the field (n|on) is damaged: repair the index"):
                call()
    said = likewise("search", folder, "moon", "--mode", "words", "--newer", "90d:on")
    assert (said.code, said.err.strip().endswith("repair the index (likewise check --repair)")) == (3, True)
    assert likewise("check", folder, "--repair").code == 0
    with Searcher(folder) as searcher:
        assert [hit.uri for hit in searcher.search("moon", mode="words", newer="90d:on")] == ["d7", "d6"]
        assert searcher.values("n").numbers == (6, 7)


def test_orphans_are_notes_and_the_next_writer_removes_them(folder: Path, likewise: Callable[..., Any]) -> None:
    (folder / "segments" / "0123456789abcdef.faiss").write_bytes(b"left by a writer that was killed")
    said = likewise("check", folder, "--json").reported(0, ok=True, problems=[])
    assert "1 file in segments/ without an owner" in said.json["notes"][0]
    with Index.open(folder) as index:
        index.compact()
        index.remove(["d1"])
        index.compact()
    assert len(list((folder / "segments").iterdir())) == 2
    assert likewise("check", folder, "--json").json["notes"] == []


def test_a_copied_folder_is_sound(folder: Path, tmp_path: Path, likewise: Callable[..., Any]) -> None:
    import shutil

    shutil.copytree(folder, tmp_path / "copy.index")
    assert answers(tmp_path / "copy.index") == answers(folder)
    with Searcher(tmp_path / "copy.index") as searcher:
        assert searcher.search_vector(ROWS[0], 1).notes == ()
    assert likewise("check", tmp_path / "copy.index").code == 0


def test_a_segment_that_is_replaced_while_a_reader_begins_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = views._load

    def after_a_writer(*given: Any, **named: Any) -> views.CommitState:
        monkeypatch.setattr(views, "_load", load)
        with Index.open(folder) as index:
            index.remove(["d49"])
            index.compact()
        return load(*given, **named)

    monkeypatch.setattr(views, "_load", after_a_writer)
    with Searcher(folder) as searcher:
        hits = searcher.search_vector(ROWS[49], 50)
    assert hits.notes == ()
    assert hits.matched == 49
    assert "d49" not in [hit.uri for hit in hits]


def test_a_changed_row_is_not_shown_and_a_changed_title_of_an_embedded_document_is_found(
    tmp_path: Path, encoder: Any
) -> None:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", "bread", "Title", {"n": 1}), Document("b", "moon", "Title")])
    for change, shown in (("metadata = '{}'", False), ("path = '/x'", False), ("title = 'x'", True)):
        with sqlite3.connect(tmp_path / "x.index" / "catalog.db") as catalog:
            catalog.execute(f"UPDATE document SET {change} WHERE uri = 'a'")
        catalog.close()
        with Index.open(tmp_path / "x.index") as index, Searcher(tmp_path / "x.index") as searcher:
            assert [problem[:2] for problem in index.check().problems if "row" in problem] == ["a:"]
            if not shown:
                with pytest.raises(IndexDamaged, match="a: its stored row"):
                    searcher.search("bread", 1)
            assert index.check(repair=True).problems
            index.remove(["a"])
            index.add([Document("a", "bread", "Title", {"n": 1})])
            assert index.check().ok


def overwrite(folder: Path, name: str, value: str | None) -> None:
    with closing(sqlite3.connect(folder / "catalog.db")) as catalog, catalog:
        catalog.execute("DELETE FROM setting WHERE name = ?", (name,))
        if value is not None:
            catalog.execute("INSERT INTO setting VALUES (?, ?)", (name, value))


@pytest.mark.parametrize("name", ["recall", "lean", "calibration", "probed"])
@pytest.mark.parametrize("value", ["junk", *(pytest.param(value, marks=pytest.mark.slow) for value in ("{}", "[]"))])
def test_what_was_learned_and_cannot_be_read_is_left_out_and_noted(folder: Path, name: str, value: str) -> None:
    before = answers(folder)
    overwrite(folder, name, value)
    assert answers(folder) == before
    report = Index.open(folder).check()
    assert (report.problems, [name in note for note in report.notes]) == ((), [True])


def test_a_later_version_may_have_learned_more(folder: Path) -> None:
    overwrite(folder, "probed", '{"words": 0.5, "dense": 0.25, "questions": 60, "rerank": 1}')
    with Index.open(folder) as index:
        assert index.settings.probed == Probed(0.5, 0.25, 60)
        assert index.check().notes == ()


@pytest.mark.parametrize(
    ("name", "value"), [("recipe", "junk"), ("passages", '{"max_tokens": 4}'), ("dimensions", "x"), ("run", None)]
)
def test_an_index_that_does_not_say_what_it_is_is_damaged(
    folder: Path, likewise: Callable[..., Any], name: str, value: str | None
) -> None:
    overwrite(folder, name, value)
    likewise("check", folder).failed(3, "restore a backup")


@pytest.mark.parametrize(
    "table, column, value",
    [
        ("document", "metadata", None),
        ("document", "metadata", 5),
        ("document_text", "text", b"\xff\x00"),
        ("passage", "vector", "[1]"),
    ],
)
def test_a_value_of_another_type_is_damage_and_is_repaired_by_indexing_again(
    tmp_path: Path, likewise: Callable[..., Any], table: str, column: str, value: object
) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"id": "a", "text": "a pear", "year": 2020}\n{"id": "b", "text": "an apple", "year": 2021}\n')
    index = tmp_path / "x.index"
    assert likewise("index", index, source).code == 0
    with closing(sqlite3.connect(index / "catalog.db")) as catalog, catalog:
        # As a flipped bit in a row's header would: SQLite itself keeps NULL out of these columns.
        catalog.execute("PRAGMA writable_schema = ON")
        catalog.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '        ') WHERE name = ?", (table,))
        catalog.execute("PRAGMA writable_schema = RESET")
        key = "id" if table == "document" else "document_id"
        catalog.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = 1", (value,))
    for arguments in (["check"], ["check", "--repair"]):
        said = likewise(arguments[0], index, *arguments[1:])
        assert said.code == 1, said.err
        assert "a: its stored row, text or vector is damaged" in said.out + said.err
    assert likewise("index", index, source).code == 0
    assert likewise("check", index).code == 0
    assert likewise("search", index, "pear", "--where", "year = 2020", "--json").json["matched"] == 1
