"""Writers, successors, indexes beside another one and copies, on every engine."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from engine.stores.suite.suite import (
    AXES,
    SETTINGS,
    STAMPS,
    Engine,
    agree,
    doc,
    everything,
    filled,
    notes_of,
    put,
    remove,
    row_of,
    unit,
    uris,
)
from listeners import Calling

from indexer.errors import BadInput, IndexLocked, NotAnIndex
from indexer.filters.parse import parse
from indexer.records import Document
from indexer.settings import Settings
from indexer.stores.addresses.copying import copy_commit
from indexer.stores.addresses.life_cycle import draft
from indexer.stores.local.store import LocalStore
from indexer.stores.port import Batch, EmbeddedDocument, LedgerRow, SideSlot
from indexer.stores.reading.store import Store


def test_there_is_one_store_at_an_address(engine: Engine, store: Store, tmp_path: Path) -> None:
    put(store, doc("a", "x"))
    with pytest.raises(BadInput):
        engine.create(store.address, SETTINGS)
    with pytest.raises(NotAnIndex), engine.open(str(tmp_path / "missing")).snapshot():
        pytest.fail("there is nothing to read")
    with store.snapshot() as snapshot:
        assert snapshot.documents == 1


def test_reading_in_pages_ends_where_another_index_takes_the_place(store: Store) -> None:
    """Its ids are those of other documents, which the filter might not leave."""
    put(store, *(doc(f"d{number}", "t", metadata={"n": 1}) for number in range(600)))
    with store.writer():
        made = store.engine.make("next", SETTINGS)
    put(made, *(doc(f"d{number}", "t", metadata={"n": number % 2}) for number in reversed(range(600))))
    for place in ("next", "previous"):
        began = [store.iterate(), store.iterate(parse("n = 1")), store.export()]
        for each in began:
            next(each)  # type: ignore[call-overload]
        exchange(store, place)
        for each in began:
            with pytest.raises(NotAnIndex, match="was replaced by another index"):
                list(each)
        assert len(list(store.iterate())) == 600


def test_a_successor_takes_the_place_when_it_is_complete(engine: Engine, store: Store) -> None:
    put(store, doc("a", "apple"), rows=[LedgerRow("/f", "a", "indexed")])
    with store.writer() as writer:
        writer.begin_run()
    settings = Settings(2, language="de", words_bias=0.5)
    other = engine.open(store.address)
    with other.snapshot() as snapshot:
        assert uris(snapshot, snapshot.words("apple", 5, None, "document")) == ["a"]
    with store.snapshot() as before:
        with store.engine.exclusive(), draft(store.engine, settings) as successor:
            with successor.snapshot() as snapshot:
                assert (snapshot.documents, snapshot.settings, list(snapshot.ledger())) == (0, settings, [])
            put(successor, doc("b", "Häuser", unit([1, 1])), doc("c", "x", unit([1, 0])))
            with store.snapshot() as snapshot:
                assert list(snapshot.hashes()) == ["a"]
        assert (before.documents, before.get("a")) == (1, Document("a", "apple"))
        assert uris(before, before.dense(AXES[0], 5, None, "document", False)) == ["a"]
        version, history = before.version, before.history
    for now in (store, other):
        with now.snapshot() as snapshot:
            assert (list(snapshot.hashes()), snapshot.settings) == (["b", "c"], settings)
            assert snapshot.version != version
            assert snapshot.history != history
            assert uris(snapshot, snapshot.dense(unit([0, 1])[0], 5, None, "document", False)) == ["b", "c"]
            assert uris(snapshot, snapshot.words("haus", 5, None, "document")) == ["b"]
            assert snapshot.check(None).ok
            assert not notes_of(snapshot)
    other.close()
    assert put(store, doc("d", "y", unit([1, 0]))).added == ("d",)


def test_a_successor_that_fails_leaves_everything_as_it_was(store: Store) -> None:
    put(store, doc("a", "apple"))
    before = everything(store)
    with store.snapshot() as snapshot:
        history = snapshot.history
    with pytest.raises(ZeroDivisionError), store.engine.exclusive(), draft(store.engine, Settings(2)) as successor:
        put(successor, doc("b", "x", unit([1, 0])))
        raise ZeroDivisionError
    assert everything(store) == before
    with store.snapshot() as snapshot:
        assert snapshot.history == history
    if Path(store.address).exists():
        assert list(Path(store.address).parent.iterdir()) == [Path(store.address)]
    assert put(store, doc("c", "y")).added == ("c",)


# an index beside another one


def taken(item: EmbeddedDocument, origin: bytes) -> EmbeddedDocument:
    return replace(item, origin=origin)


def beside(store: Store, slot: SideSlot) -> Store | None:
    return store.engine.open(slot) if store.engine.exists(slot) else None


def exchange(store: Store, slot: SideSlot) -> None:
    with store.engine.exclusive(), store.engine.open(slot).writer():
        assert store.engine.exists(slot)
        store.engine.publish(slot)


def test_where_a_document_was_taken_from_holds_as_long_as_its_content(store: Store) -> None:
    put(store, taken(doc("a", "one"), b"a" * 16), doc("b", "two"), taken(doc("c", "three"), b"c" * 16))

    def origins() -> dict[str, bytes]:
        with store.snapshot() as snapshot:
            return dict(snapshot.origins(["a", "b", "c", "unknown"]))

    assert origins() == {"a": b"a" * 16, "c": b"c" * 16}
    put(store, row_of("a", "one", metadata={"n": 1}), doc("c", "changed"))
    assert origins() == {"a": b"a" * 16}
    put(store, taken(row_of("b", "two", metadata={"n": 1}), b"b" * 16), doc("c", "three"))
    assert origins() == {"a": b"a" * 16, "b": b"b" * 16, "c": b"c" * 16}  # its content is the same again
    remove(store, "a")
    put(store, doc("a", "one"))
    assert origins() == {"b": b"b" * 16, "c": b"c" * 16}


def test_an_index_beside_another_takes_its_place_and_gives_it_back(engine: Engine, store: Store) -> None:
    put(store, doc("a", "apple"), rows=[LedgerRow("/f", "a", "indexed")], finished=STAMPS)
    assert (beside(store, "next"), beside(store, "previous")) == (None, None)
    settings, first = Settings(2, language="de"), everything(store)
    with store.writer():
        made = store.engine.make("next", settings)
    other = engine.open(store.address)
    put(made, doc("b", "Häuser", unit([1, 1])), doc("c", "x", unit([1, 0])))
    second = everything(made)
    for at in (store, other):
        stored = beside(at, "next")
        assert stored is not None
        assert everything(stored) == second
        assert (everything(at), beside(at, "previous")) == (first, None)
    with store.snapshot() as before:
        with store.engine.exclusive(), made.writer():
            assert everything(store) == first
            store.engine.publish("next")
        assert (before.documents, before.get("a")) == (1, Document("a", "apple"))
        assert uris(before, before.dense(AXES[0], 5)) == ["a"]
        version, history = before.version, before.history
    for at in (store, other):
        with at.snapshot() as snapshot:
            assert snapshot.version != version
            assert snapshot.history != history
            assert uris(snapshot, snapshot.dense(unit([0, 1])[0], 5)) == ["b", "c"]
            assert uris(snapshot, snapshot.words("haus", 5)) == ["b"]
            assert snapshot.check(None).ok
            assert not notes_of(snapshot)
        previous = beside(at, "previous")
        assert (everything(at), beside(at, "next")) == (second, None)
        assert previous is not None
        assert everything(previous) == first
    # Both can be written to, and change places as often as is asked for.
    previous = beside(store, "previous")
    assert previous is not None
    put(previous, doc("d", "pear"))
    put(other, doc("e", "y", unit([0, 1])))
    exchange(other, "previous")
    with store.snapshot() as snapshot:
        assert (snapshot.history, list(snapshot.hashes())) == (history, ["a", "d"])
        assert snapshot.check(None).ok
    exchange(store, "previous")
    assert [document.uri for document in other.iterate()] == ["b", "c", "e"]
    with store.writer(), store.engine.open("previous").writer():
        store.engine.discard("previous")
    assert (beside(store, "next"), beside(other, "previous")) == (None, None)
    assert [document.uri for document in store.iterate()] == ["b", "c", "e"]
    with store.writer():
        store.engine.make("next", SETTINGS)
    other.close()


def test_one_index_at_a_time_stands_beside_another(store: Store) -> None:
    with store.writer():
        with pytest.raises(BadInput), store.engine.exclusive():
            store.engine.publish("next")  # there is nothing to exchange it with
        with pytest.raises(BadInput):
            store.engine.discard("previous")
        made = store.engine.make("next", SETTINGS)
        with pytest.raises(BadInput):
            store.engine.make("next", SETTINGS)
    with pytest.raises(ZeroDivisionError), store.engine.exclusive(), made.writer():
        raise ZeroDivisionError
    assert beside(store, "previous") is None
    exchange(store, "next")
    with store.writer(), pytest.raises(BadInput):
        store.engine.make("next", SETTINGS)
    with store.engine.exclusive(), pytest.raises(BadInput):
        store.engine.publish("next")  # there is nothing to exchange it with


def test_a_successor_takes_what_stands_beside_with_it(store: Store) -> None:
    with store.writer():
        put(store.engine.make("next", SETTINGS), doc("a", "apple"))
        with store.engine.exclusive(), draft(store.engine, SETTINGS) as successor:
            put(successor, doc("b", "pear"))
        assert (beside(store, "next"), [document.uri for document in store.iterate()]) == (None, ["b"])


def test_an_index_beside_another_has_a_writer_of_its_own(store: Store) -> None:
    with store.writer():
        made = store.engine.make("next", SETTINGS)
    with made.writer():
        thread = threading.Thread(target=put, args=(store, doc("a", "x")))
        thread.start()
        thread.join()
    assert [document.uri for document in store.iterate()] == ["a"]
    assert list(made.iterate()) == []


def test_copies_and_numbers_leave_out_what_stands_beside(engine: Engine, store: Store, tmp_path: Path) -> None:
    put(store, doc("a", "apple"))
    with store.snapshot() as snapshot:
        size = snapshot.info().bytes
    with store.writer():
        put(store.engine.make("next", SETTINGS), doc("b", "pear"))
    with store.snapshot() as snapshot:
        assert (snapshot.info().bytes, snapshot.check(None).ok, notes_of(snapshot)) == (size, True, [])
    destination = str(tmp_path / "copy.index")
    copy_commit(store, engine.at(destination))
    copy = engine.open(destination)
    assert (beside(copy, "next"), [document.uri for document in copy.iterate()]) == (None, ["a"])
    assert store.free_bytes() is None or store.free_bytes() > 0  # type: ignore[operator]
    copy.close()


def test_a_copy_is_equal_and_has_a_history_of_its_own(engine: Engine, store: Store, tmp_path: Path) -> None:
    vector = filled(store)
    put(store, doc("x", "apple"), rows=[LedgerRow("/f", "x", "indexed")], finished=STAMPS)
    with store.writer() as writer:
        writer.change(lambda settings: replace(settings, words_bias=0.5))
        writer.settle()
    destination = str(tmp_path / "copy.index")
    with store.writer() as writer:  # while it is written
        writer.remove(["d4"])
        copy_commit(store, engine.at(destination))
    copy = engine.open(destination)
    original, copied = everything(store), everything(copy)
    ids, copied_ids = original.pop("ids"), copied.pop("ids")
    assert copied == original
    with store.snapshot() as one, copy.snapshot() as other:
        agree(one, other, [vector])
        if isinstance(store, LocalStore):
            assert copied_ids == ids
            assert other.sample(6).passages.tolist() == one.sample(6).passages.tolist()
        assert other.settings == one.settings
        assert other.history != one.history
        assert other.version != one.version
        assert other.check(None).ok
    put(copy, doc("y", "pear"))
    remove(store, "x")
    with store.snapshot() as one, copy.snapshot() as other:
        assert one.get("y") is None
        assert other.get("x") is not None
    with pytest.raises(BadInput):
        copy_commit(store, engine.at(destination))
    assert [document.uri for document in copy.iterate()][-1] == "y"
    copy.close()


# writers


def test_a_thread_that_writes_gets_the_same_writer_again_and_others_wait(store: Store) -> None:
    outcomes: list[str] = []

    def write(wait: bool) -> None:
        try:
            with store.writer(wait=wait) as writer:
                outcomes.append("wrote")
                writer.put(Batch([doc("b", "y")]))
        except IndexLocked as error:
            outcomes.append(str(error))

    def in_thread(wait: bool) -> threading.Thread:
        thread = threading.Thread(target=write, args=(wait,))
        thread.start()
        return thread

    with store.writer() as outer:
        with store.writer(wait=False) as inner:
            assert inner is outer
            inner.put(Batch([doc("a", "x")]))
        in_thread(wait=False).join()
        assert len(outcomes) == 1
        assert str(store.address) in outcomes[0]
        waiting = in_thread(wait=True)
        outer.put(Batch([doc("c", "z")]))
        assert len(outcomes) == 1
    waiting.join()
    assert outcomes[1:] == ["wrote"]
    in_thread(wait=False).join()
    assert outcomes[1:] == ["wrote", "wrote"]
    assert [document.uri for document in store.iterate()] == ["a", "c", "b"]


def test_who_waits_for_another_process_is_told_once(engine: Engine, store: Store) -> None:
    if engine.held is None:
        with store.writer(listener=Calling(waiting=pytest.fail)):  # nobody to wait for
            return
    told: list[str] = []
    with engine.held(store) as let_go:
        with pytest.raises(IndexLocked, match="is being written by process"), store.writer(wait=False):
            pytest.fail("there are two writers")

        def on_wait(message: str) -> None:
            told.append(message)
            let_go()

        with store.writer(listener=Calling(waiting=on_wait)) as writer:
            writer.put(Batch([doc("a", "x")]))
    assert len(told) == 1
    assert store.address in told[0]


def test_an_error_in_the_block_keeps_what_was_committed_and_frees_the_writer(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.writer() as writer:
        writer.put(Batch([doc("a", "x")]))
        raise ZeroDivisionError
    thread = threading.Thread(target=put, args=(store, doc("b", "y")))
    thread.start()
    thread.join()
    assert [document.uri for document in store.iterate()] == ["a", "b"]


def test_a_closed_store_opens_again_when_it_is_used(engine: Engine, store: Store) -> None:
    put(store, doc("a", "apple"))
    with store.snapshot() as snapshot:
        version = snapshot.version
        assert snapshot.words("apple", 5, None, "document").matched == 1
    store.close()
    store.close()
    with store.snapshot() as snapshot:
        assert snapshot.version == version
        assert uris(snapshot, snapshot.words("apple", 5, None, "document")) == ["a"]
    assert isinstance(store.artifacts(), Path)
    other = engine.open(store.address)
    assert other.address == store.address
    put(other, doc("b", "apple"))
    with store.snapshot() as snapshot, other.snapshot() as same:
        assert snapshot.documents == 2
        assert snapshot.version == same.version
    other.close()
