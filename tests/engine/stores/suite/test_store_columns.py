"""The other columns of records on every engine: their texts are words of the record, as its title is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.stores.suite.suite import (
    AXES,
    ENGINES,
    MANY,
    SETTINGS,
    UNITS,
    doc,
    put,
    remove,
    row_of,
    same_words,
    uris,
)

from indexer.records import Span
from indexer.stores.port import Condition
from indexer.stores.reading.store import Store

KETTLE: dict[str, Any] = {"uri": "kettle", "text": "boils spotty milk", "title": "Kitchen", "format": "csv"}
COPPER: dict[str, Any] = {"product": "pot", "colour": "Copper", "maker": {"place": ["Köln", "Aachen"]}}
HALVES = [Span(0, 5), Span(6, 11)]


def found(store: Store, word: str) -> list[str]:
    with store.snapshot() as snapshot:
        return sorted(uris(snapshot, snapshot.words(word, MANY)))


def fill(store: Store) -> None:
    put(
        store,
        doc(**KETTLE, metadata=COPPER),
        doc("row", "colour: copper\nproduct: mug", format="json", metadata={"colour": "copper", "product": "mug"}),
        doc("long", "heavy metal", spans=HALVES, vectors=AXES[:2], format="jsonl", metadata={"b": ["of copper", "x"]}),
        doc("page", "a page on tin", format="html", metadata={"keywords": "copper"}),
        doc("given", "iron", metadata={"colour": "copper"}),
    )


def test_words_of_other_columns_find_their_record(store: Store) -> None:
    fill(store)
    assert found(store, "copper") == ["kettle", "long", "row"]
    assert found(store, "pot") == ["kettle"]  # a part of a word of its text
    assert found(store, "aachen") == ["kettle"]
    copper, kitchen = (Condition(word, (word,), excluded=False) for word in ("copper", "kitchen"))
    across = Condition('"pot copper"', ("pot", "copper"), excluded=False)
    with store.snapshot() as snapshot:
        for unit in UNITS:
            assert set(uris(snapshot, snapshot.dense(AXES[0], 9, None, unit, False, (copper,)))) == {
                *("kettle", "row", "long")
            }
        assert uris(snapshot, snapshot.dense(AXES[0], 9, conditions=(copper, kitchen))) == ["kettle"]
        without = snapshot.dense(AXES[0], 9, conditions=(copper._replace(excluded=True),))
        assert sorted(uris(snapshot, without)) == ["given", "page"]
        assert uris(snapshot, snapshot.dense(AXES[0], 9, conditions=(across,))) == []


def test_scores_of_columns_are_those_of_the_reference_store(store: Store, tmp_path: Path) -> None:
    reference = ENGINES["reference"].create(str(tmp_path / "columns"), SETTINGS)
    for each in (store, reference):
        fill(each)
        put(each, row_of(**KETTLE, metadata={**COPPER, "colour": "silver, hardly copper"}))
    with store.snapshot() as one, reference.snapshot() as other:
        for unit in UNITS:
            for question in ("copper", "copper pot", "heavy", "mug", "köln"):
                same_words(one, one.words(question, 9, None, unit), other, other.words(question, MANY, None, unit), 9)


def test_a_column_that_changes_is_found_by_its_new_words(store: Store) -> None:
    fill(store)
    for colour in ("silver", "gold"):
        with store.snapshot() as snapshot:
            before = snapshot.vectors_of("kettle").tolist()
        put(store, row_of(**KETTLE, metadata={**COPPER, "colour": colour}))
        assert [found(store, word) for word in ("copper", colour)] == [["long", "row"], ["kettle"]]
        with store.writer() as writer:
            writer.settle()
        assert [found(store, word) for word in ("copper", colour, "milk")] == [["long", "row"], ["kettle"], ["kettle"]]
        with store.snapshot() as snapshot:
            assert snapshot.vectors_of("kettle").tolist() == before
            assert (snapshot.passages, snapshot.check(None).problems) == (6, ())
    remove(store, "kettle")
    assert found(store, "silver") == []


def test_the_first_record_decides_that_columns_are_searched(store: Store) -> None:
    put(store, doc("page", "a page on tin", format="html", metadata={"keywords": "copper"}))
    with store.snapshot() as snapshot:
        assert not snapshot.settings.columns_searched
    put(store, doc(**KETTLE, metadata=COPPER))
    with store.snapshot() as snapshot:
        assert snapshot.settings.columns_searched
    assert found(store, "copper") == ["kettle"]


def test_an_index_with_records_of_before_keeps_its_words(store: Store) -> None:
    fill(store)
    with store.writer() as writer:
        writer.change(lambda settings: replace(settings, columns_searched=False))
    put(store, doc("new", "a ladle", format="csv", metadata={"colour": "copper"}), row_of(**KETTLE, metadata={}))
    assert "new" not in found(store, "copper")
