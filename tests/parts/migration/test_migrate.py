"""Another model for an index that is searched and written to: built beside it, exchanged in one commit, and back."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from engine.stores.reference import ReferenceStore
from opened import snapshot_of, store_of, writer_of
from safetensors.numpy import save_file
from word_encoder import WordEncoder

from indexer import Document, Index
from indexer.encoders import registry
from indexer.encoders.torch.weights import bytes_in_16_bits
from indexer.errors import (
    BadInput,
    IndexDamaged,
    IndexLocked,
    ModelError,
    NotAnIndex,
    NothingKnown,
    RecipeMismatch,
    StorageError,
    in_shell,
)
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import settings_of_new
from indexer.indexing.new_index import NewIndex
from indexer.indexing.runs import index_sources
from indexer.ledger import Code
from indexer.listener import Commit, Listener
from indexer.records import Stamp, Vector
from indexer.settings import RecordedSource
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import create_store, holds_store, open_store
from indexer.stores.addresses.side_index import describe_side_index
from indexer.stores.local import slots
from indexer.stores.local.disk import failpoint
from indexer.stores.port import Batch, LedgerRow, SideSlot
from indexer.stores.reading.store import Store
from likewise.migration.follow import Followed
from likewise.migration.migrate import (
    back,
    build,
    drop,
    needed_bytes,
    open_next,
    still_there,
    switch,
)
from search import Searcher

OTHER = {"name": "other", "weights": "2", "max_tokens": 16}
"""An encoder that cuts passages in other places."""


def documents(
    *numbers: int, text: str = "text{0} of some words, and the number {0} again. More of them come in here."
) -> list[Document]:
    return [Document(f"d{i}", text.format(i), f"title {i}", {"n": i}) for i in numbers]


@pytest.fixture(params=["folder", *(pytest.param(name, marks=pytest.mark.slow) for name in ("reference", "postgres"))])
def main(request: pytest.FixtureRequest, tmp_path: Path, encoder: Any) -> Iterator[IndexCore]:
    """An index of forty documents, in each store."""
    settings, _ = settings_of_new(encoder)
    if request.param == "reference":
        store: Store = ReferenceStore(settings)
    elif request.param == "postgres":
        from postgres_server import new_address

        store = create_store(new_address(), settings)
    else:
        Index.create(tmp_path / "x.index", encoder).close()
        store = IndexCore.open(tmp_path / "x.index").store
    with IndexCore(store, encoder) as core:
        Index(core).add(documents(*range(40)))
        yield core


def quiet(*_: Any) -> None:
    """Tell nobody."""


def built(main: IndexCore, encoder: Any) -> IndexCore:
    """Return the complete index beside `main`."""
    other = open_next(main, settings_of_new(encoder)[0], encoder, disk=quiet)
    build(main, other)
    return other


def of_documents(encoder: Any) -> list[str]:
    """Return the texts of documents that were embedded, in their order, without questions."""
    return sorted(text for text in encoder.seen if text.startswith("title"))


def contents(store: Any) -> dict[str, Document]:
    return {document.uri: document for document in store_of(store).iterate()}


def opened_again(main: IndexCore) -> IndexCore:
    return IndexCore(main.store)


@pytest.mark.parametrize("main", ["folder", "reference", "postgres"], indirect=True)
def test_there_and_back(main: IndexCore, encoder: Any, make_encoder: Callable[..., Any]) -> None:
    other_model = make_encoder(**OTHER)
    before, passages = contents(main), snapshot_of(main).info().passages
    other = built(main, other_model)
    assert contents(other) == before
    assert len(of_documents(other_model)) == snapshot_of(other).info().passages > passages
    encoder.seen.clear()
    other_model.seen.clear()

    assert switch(main, other) == Followed()
    new = opened_again(main)
    assert (new.recipe, contents(new), other_model.seen) == (other_model.recipe, before, [])
    report = snapshot_of(new).check(new.settings.meaning)
    notes = [note for note in report.notes if not note.startswith("pgvector ")]  # that of the server may be an old one
    assert (report.ok, notes) == (True, [])
    assert [row.document_id for row in snapshot_of(new).passages_by_id([1])] == [1]

    assert back(new) == Followed()
    old = opened_again(main)
    assert (old.recipe, contents(old), snapshot_of(old).info().passages) == (encoder.recipe, before, passages)
    assert (encoder.seen, other_model.seen) == ([], [])
    assert back(old) == Followed()  # and forth again
    assert opened_again(main).recipe == other_model.recipe
    side = drop(main)
    assert (side.place, side.model, side.documents) == ("previous", "words", 40)
    with pytest.raises(BadInput, match="none to return to"):
        back(opened_again(main))
    with pytest.raises(BadInput, match="nothing to remove"):
        drop(main)


def test_what_writers_commit_meanwhile_is_followed(main: IndexCore, make_encoder: Callable[..., Any]) -> None:
    other_model = make_encoder(**OTHER)
    other = built(main, other_model)
    index = Index(main)
    index.add(documents(1, text="another text of {0}"))
    index.add([replace(documents(2)[0], metadata={"n": 200})])
    index.add(documents(50))
    index.remove(["d3", "d4"])
    other_model.seen.clear()
    followed = build(main, other)
    assert (followed.documents, followed.removed, contents(other)) == (3, 2, contents(main))
    assert len(of_documents(other_model)) == 1 + snapshot_of(other).vectors_of("d50").shape[0]
    index.add(documents(51))
    assert switch(main, other).documents == 1
    assert "d51" in contents(opened_again(main))


def test_back_brings_over_what_was_written_since(main: IndexCore, encoder: Any, make_encoder: Any) -> None:
    other_model = make_encoder(**OTHER)
    before = contents(main)
    switch(main, built(main, other_model))
    index = Index(opened_again(main))
    encoder.seen.clear()
    assert index.add(documents(7, 60, text="news about {0}")).notes == ()
    index.add([replace(documents(8)[0], metadata={"n": 800})])
    index.remove(["d1"])
    index.remove(where="n = 2")
    previous = index._core.store.engine.open("previous")
    assert (contents(previous), encoder.seen) == (before, [])  # writers know nothing of it
    now = contents(index)
    followed = back(index._core)
    assert (followed.documents, followed.removed) == (3, 2)
    assert of_documents(encoder) == ["title 60 news about 60", "title 7 news about 7"]
    old = Index(opened_again(main))
    assert (contents(old), old.recipe, old.check().problems) == (now, encoder.recipe, ())
    other_model.seen.clear()
    assert back(old._core) == Followed()
    assert (contents(opened_again(main)), of_documents(other_model)) == (now, [])
    drop(main)


@pytest.mark.slow
def test_others_write_while_the_previous_vectors_are_brought_up_to_date(main: IndexCore, make_encoder: Any) -> None:
    switch(main, built(main, make_encoder(**OTHER)))
    index = Index(opened_again(main))
    index.add(documents(*range(100, 110)))
    written: list[int] = []

    def write() -> None:  # of another thread: it would wait for a lock that `back` held
        reopened = not isinstance(main.store, ReferenceStore)
        with IndexCore(open_store(main.address) if reopened else main.store) as core:
            Index(core).add(documents(200))

    class Writing(Listener):
        def committed(self, commit: Commit) -> None:
            if not written:
                written.append(commit.position)
                thread = threading.Thread(target=write)
                thread.start()
                thread.join(60)
                assert not thread.is_alive()

    assert back(IndexCore(index._core.store, context=Context(listener=Writing()))).documents == 11
    assert "d200" in contents(opened_again(main))


def test_where_the_old_model_is_missing_nothing_is_switched_and_the_error_says_what_waits(
    main: IndexCore, encoder: Any, make_encoder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(main, built(main, make_encoder(**OTHER)))
    index = Index(opened_again(main))
    get_encoder = registry.get_encoder

    def missing(recipe: Any, *arguments: Any) -> Any:
        if recipe == encoder.recipe:
            raise ModelError("the model words is not on this machine")
        return get_encoder(recipe, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr("indexer.indexing.index_embedding.get_encoder", missing)
        assert index.add(documents(70, 71)).notes == ()
        index.remove(["d5"])
        now = contents(index)
        with pytest.raises(
            ModelError, match="not on this machine: nothing is switched, and 2 documents wait for words"
        ):
            back(index._core)
        assert "d5" not in contents(main.store.engine.open("previous"))  # a removed text does not wait for the model
    assert contents(opened_again(main)) == now
    assert opened_again(main).recipe != encoder.recipe
    assert back(index._core).documents == 2
    assert (opened_again(main).recipe, contents(opened_again(main))) == (encoder.recipe, now)


def test_the_ledger_the_sources_and_the_recall_go_with_the_documents(main: IndexCore, make_encoder: Any) -> None:
    sources, stamp = (RecordedSource("/notes"),), Stamp(1, 2, 3, 4)
    rows = [LedgerRow("/notes/a", "d1", "indexed"), LedgerRow("/notes/a", "/notes/a:2", "failed", Code.OTHER("broken"))]
    with main.store.writer() as writer:
        writer.change(lambda settings: replace(settings, sources=sources, recall=0.9, words_bias=1.0))
        run = writer.begin_run()
        writer.put(Batch(rows=rows, finished={"/notes/a": stamp}, run=run))
    Index(main).add([Document("empty", "")], vectors=np.ones((1, main.settings.dimensions)))
    other = built(main, make_encoder(**OTHER))
    switch(main, other)
    new = opened_again(main)
    assert (new.settings.sources, new.settings.recall, new.settings.words_bias) == (sources, 0.9, None)
    assert snapshot_of(new).files()["/notes/a"].stamp == stamp
    assert list(snapshot_of(new).ledger()) == [*rows, LedgerRow("empty", "empty", "skipped", Code.LEFT_OUT())]
    more = LedgerRow("/notes/b", "/notes/b", "skipped", Code.OTHER("too large"))
    writer_of(new).put(Batch(rows=[more], finished={"/notes/b": stamp}, run=9))
    back(new)
    old = opened_again(main)
    assert "empty" in contents(old)  # the new model could not read it
    assert {*rows, more} <= set(snapshot_of(old).ledger())
    assert snapshot_of(old).files()["/notes/b"].stamp == stamp
    assert old.settings.words_bias == 1.0


def test_documents_that_the_new_model_cannot_read_are_named(main: IndexCore, make_encoder: Any) -> None:
    Index(main).add([Document("empty", " ")], vectors=np.ones((1, main.settings.dimensions)))
    other_model = make_encoder(**OTHER)
    other = open_next(main, settings_of_new(other_model)[0], other_model, disk=quiet)
    for _ in range(2):
        done = build(main, other)
        assert [*done.left_out] == ["empty"]


@dataclass
class Blind(WordEncoder):
    """An encoder that knows no word with a letter, which is Greek if nothing else is said."""

    letter: str = "λ"

    def encode(
        self, texts: Sequence[str], role: Literal["document", "query"] = "document", truncate: bool = False
    ) -> Vector:
        if unknown := [number for number, text in enumerate(texts) if self.letter in text]:
            raise NothingKnown(unknown, self.name)
        return super().encode(texts, role, truncate)


@pytest.mark.parametrize(
    "main",
    ["reference", *(pytest.param(name, marks=pytest.mark.slow) for name in ("folder", "postgres"))],
    indirect=True,
)
def test_runs_leave_the_old_vectors_what_the_new_model_cannot_read(
    main: IndexCore, tmp_path: Path, register: Callable[..., None]
) -> None:
    folder, options = tmp_path / "texts", ReadOptions()
    folder.mkdir()
    for name, text in (("a.txt", "pears"), ("b.txt", "λόγος"), ("c.txt", "μιλώ")):
        (folder / name).write_text(text)
        os.utime(folder / name, (1e9, 1e9))  # long ago, so that a file that was read is not opened again

    def run(core: IndexCore) -> set[str]:
        with core.store.writer() as writer:
            index_sources(core, writer, [(options, open_sources([str(folder)], options, holds_store))])
        return {Path(uri).name for uri in snapshot_of(core).uris() if uri.startswith("/")}

    assert run(main) == {"a.txt", "b.txt", "c.txt"}
    blind = Blind(name="blind", weights="4")
    register(blind)
    switch(main, built(main, blind))
    now = opened_again(main)
    (folder / "c.txt").write_text("milk")  # from now on, the new model can read it
    (folder / "d.txt").write_text("λίμνη")
    os.utime(folder / "d.txt", (1e9, 1e9))
    for _ in range(2):
        assert run(now) == {"a.txt", "c.txt"}
    back(now)
    old = opened_again(main)
    assert snapshot_of(old).get(str(folder / "b.txt")).text == "λόγος"
    assert run(old) == {"a.txt", "b.txt", "c.txt", "d.txt"}
    assert not list(snapshot_of(old).ledger("skipped"))


TEXTS = ("pears and plums {0}", "λόγος number {0}", "жизнь number {0}")
"""Texts that both models can read, only the second, and only the first."""

ACTIONS = (
    *("add", "metadata", "remove", "file", "file", "delete", "vanish", "break", "empty"),
    *("run", "run", "unmounted", "prune", "switch", "twice"),
)

BROKEN, EMPTY = b"\xff\xfe\x00bad\xd8", b""
"""Files that fail, and that are skipped."""


@pytest.fixture
def pair(main: IndexCore, register: Callable[..., None]) -> tuple[IndexCore, tuple[Blind, Blind]]:
    """An index with two models. Each model cannot read the documents that the other model can read."""
    models = Blind(name="first", weights="5"), Blind(name="second", weights="6", letter="ж")
    register(*models)
    switch(main, built(main, models[0]))
    drop(main)
    now = opened_again(main)
    switch(now, built(now, models[1]))
    return opened_again(main), models


@pytest.mark.parametrize(
    "main",
    [
        "reference",
        pytest.param("folder", marks=pytest.mark.slow),
        pytest.param("postgres", marks=pytest.mark.long),
    ],
    indirect=True,
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_every_sequence_of_writes_and_switches_leaves_the_documents_of_a_dict(  # noqa: PLR0912, PLR0915 - one walk
    pair: tuple[IndexCore, tuple[Blind, Blind]], tmp_path: Path, seed: int
) -> None:
    """The dict has the documents of both models: the model in use shows the documents that it can read."""
    now, models = pair
    live, random = 1, np.random.default_rng(seed)
    folder, options = tmp_path / "texts", ReadOptions()
    folder.mkdir()
    always = str(folder / "always.txt")
    expected = {uri: (document.text, document.metadata["n"]) for uri, document in contents(now).items()}
    files = {always: TEXTS[0].encode()}
    removed: set[str] = set()  # files of documents that were removed since the last switch

    def is_read(text: str) -> bool:
        return models[live].letter not in text

    def lost(path: str) -> bool:
        """Return whether a run that prunes removes the document of a file, which may be only in the other index."""
        held, content = is_read(expected[path][0]), files.get(path, EMPTY)
        return content == EMPTY or (held and content != BROKEN and not is_read(content.decode()))

    def run(*, prune: bool = False, mounted: bool = True) -> None:
        shown = files if mounted else {always: files[always]}
        for path in folder.iterdir():
            path.unlink()
        for name, content in shown.items():
            Path(name).write_bytes(content)
        texts = {path: content.decode() for path, content in shown.items() if content not in (BROKEN, EMPTY)}
        changed = {path: text for path, text in texts.items() if is_read(text) and expected.get(path) != (text, None)}
        with now.store.writer() as writer:
            outcome = index_sources(
                now, writer, [(options, open_sources([str(folder)], options, holds_store))], prune=prune, yes=True
            )
        assert (outcome.summary.indexed, outcome.refused) == (len(changed), None)  # and nothing else is embedded
        expected.update({path: (text, None) for path, text in changed.items()})
        if prune:
            gone = [path for path in expected if path.startswith("/") and lost(path)]
            removed.update(gone)
            assert outcome.pruned == sum(is_read(expected.pop(path)[0]) for path in gone)

    for number in range(60):
        action = random.choice(ACTIONS)
        seen = sorted(uri for uri, (text, _) in expected.items() if is_read(text))
        own = [uri for uri in seen if not uri.startswith("/")]
        path = str(folder / f"f{random.integers(5)}.txt")
        text = TEXTS[random.integers(3)].format(number)
        if action == "add":
            uri = f"d{random.integers(30, 50)}"
            if is_read(text):
                Index(now).add([Document(uri, text, metadata={"n": number})])
                expected[uri] = text, number
            else:
                with pytest.raises(BadInput, match="no text that the model can read"):
                    Index(now).add([Document(uri, text)])
        elif action == "metadata" and own:
            uri = str(random.choice(own))
            document = contents(now)[uri]
            Index(now).add([replace(document, metadata={"n": -number})])
            expected[uri] = document.text, -number
        elif action == "remove":
            uri = str(random.choice(sorted(each for each in expected if not each.startswith("/"))))
            assert Index(now).remove([uri], missing_ok=True) == is_read(
                expected.pop(uri)[0]
            )  # also one of the other index alone
        elif action == "file":
            files[path] = (text if path not in removed or is_read(text) else TEXTS[0].format(number)).encode()
        elif action in ("vanish", "delete"):
            files.pop(path, None)
            if action == "delete" and path in expected:
                Index(now).remove([path], missing_ok=True)
                del expected[path]
                removed.add(path)
        elif action in ("break", "empty"):
            files[path] = BROKEN if action == "break" else EMPTY
        elif action in ("run", "unmounted", "prune"):
            run(prune=action == "prune", mounted=action != "unmounted")
        for _ in range({"switch": 1, "twice": 2}.get(str(action), 0)):
            back(now)
            now, live = opened_again(now), 1 - live
            removed.clear()
        held = {uri: (each.text, each.metadata.get("n")) for uri, each in contents(now).items()}
        assert held == {uri: value for uri, value in expected.items() if is_read(value[0])}, (number, action)
    for _ in range(2):
        run()
        back(now)
        now, live = opened_again(now), 1 - live
        assert set(contents(now)) == {uri for uri, (text, _) in expected.items() if is_read(text)}
        assert snapshot_of(now).check(now.settings.meaning).ok


@pytest.mark.slow
@pytest.mark.parametrize("main", ["folder"], indirect=True)
def test_a_return_that_is_killed_goes_on_and_loses_no_document(pair: tuple[IndexCore, tuple[Blind, Blind]]) -> None:
    now, models = pair
    live, expected = 1, {uri: document.text for uri, document in contents(now).items()}
    steps = ("commit.begun", "commit.written", "commit.done", "commit.acknowledged", *failpoint.EXCHANGE_STEPS)
    for number, step in enumerate(steps):
        read = TEXTS[1 + (live == 0)]
        written = {f"d{i}": TEXTS[0].format(f"{number} {i}") for i in range(200)}
        written |= {f"only {number}": read.format(number)}
        Index(now).add(Document(uri, text) for uri, text in written.items())
        expected |= written
        assert killed_at(step, lambda: back(opened_again(now)))  # noqa: B023
        with now.store.writer():  # a writer completes what a killed process began
            pass
        now = opened_again(now)
        if now.recipe == models[live].recipe:
            followed = back(now)
            assert (followed.documents < 200) == (step not in ("commit.begun", "commit.written"))
            now = opened_again(now)
        live = 1 - live
        assert now.recipe == models[live].recipe
        held = {uri: document.text for uri, document in contents(now).items()}
        assert held == {uri: text for uri, text in expected.items() if models[live].letter not in text}
        assert snapshot_of(now).check(now.settings.meaning).ok


def test_a_build_that_is_interrupted_goes_on(main: IndexCore, make_encoder: Callable[..., Any]) -> None:
    other_model = make_encoder(**OTHER)

    class Interrupting(Listener):
        def committed(self, commit: Commit) -> None:
            raise KeyboardInterrupt

    interrupted = IndexCore(main.store, context=Context(listener=Interrupting()))
    other = open_next(interrupted, settings_of_new(other_model)[0], other_model, disk=quiet)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(other), "batch_characters", property(lambda self: 1000))
        with pytest.raises(KeyboardInterrupt):
            build(interrupted, other)
    kept = set(contents(other))
    assert 0 < len(kept) < 40
    other_model.seen.clear()
    again = open_next(main, settings_of_new(other_model)[0], other_model, disk=quiet)
    assert build(main, again).documents == 40 - len(kept)
    assert len(of_documents(other_model)) == snapshot_of(again).info().passages - sum(
        len(snapshot_of(again).vectors_of(uri)) for uri in kept
    )


def test_what_is_refused(main: IndexCore, encoder: Any, make_encoder: Callable[..., Any]) -> None:
    first, second = make_encoder(**OTHER), make_encoder(name="third", weights="3")
    with pytest.raises(BadInput, match="has this model already"):
        open_next(main, settings_of_new(encoder)[0], encoder, disk=quiet)
    told: list[tuple[int, int | None]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(main.store), "free_bytes", lambda self: 1000)
        with pytest.raises(StorageError, match="MB are free: make room"):
            open_next(main, settings_of_new(first)[0], first, disk=lambda *sizes: told.append(sizes))
    ((needed, free),) = told
    assert free == 1000
    assert needed > 40 * 64 * 4
    assert not main.store.engine.exists("next")
    other = built(main, first)
    with pytest.raises(BadInput, match="is being changed to other already"):
        open_next(main, settings_of_new(second)[0], second, disk=quiet)
    with pytest.raises(BadInput, match="is being changed to other already"):
        open_next(main, settings_of_new(first, NewIndex(max_tokens=16, overlap=1))[0], first, disk=quiet)
    switch(main, other)
    with pytest.raises(BadInput, match="the vectors of words are still kept"):
        open_next(opened_again(main), settings_of_new(second)[0], second, disk=quiet)
    with pytest.raises(BadInput, match="another process has just changed"):
        switch(main, other)


def test_vectors_of_ones_own_have_no_other_model(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "own.index", dimensions=2) as own, pytest.raises(BadInput, match="your own vectors"):
        open_next(own._core, settings_of_new(encoder)[0], encoder, disk=quiet)


def test_the_disk_that_is_needed() -> None:
    old = settings_of(dimensions=384, tokens=256)
    info = SimpleNamespace(passages=1000, bytes=1000 * 384 * 4 + 500)
    assert needed_bytes(info, old, settings_of(dimensions=768, tokens=512)) == 500 + 1000 * 768 * 4  # type: ignore[arg-type]
    assert needed_bytes(info, old, settings_of(dimensions=384, tokens=128)) == 500 + 2000 * 384 * 4  # type: ignore[arg-type]
    assert needed_bytes(info, old, old, compiled=(400, 900)) == info.bytes - 400 + 900  # type: ignore[arg-type]


def test_a_compiled_encoder_has_its_weights_in_16_bits(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    save_file({"half": np.zeros((30, 50), np.float16), "whole": np.zeros(70, np.float32)}, weights)
    assert bytes_in_16_bits(weights) == 2 * (30 * 50 + 70)
    pickled = tmp_path / "pytorch_model.bin"
    pickled.write_bytes(bytes(600))
    assert bytes_in_16_bits(pickled) == 300


def settings_of(dimensions: int, tokens: int) -> Any:
    from indexer.passages.cut import PassageSettings
    from indexer.settings import Settings

    return Settings(dimensions, passages=PassageSettings(tokens, 0))


def test_one_that_is_being_built_is_not_dropped_by_another(main: IndexCore, make_encoder: Callable[..., Any]) -> None:
    other = built(main, make_encoder(**OTHER))
    errors: list[Exception] = []

    def remove() -> None:
        try:
            drop(main)
        except IndexLocked as error:
            errors.append(error)

    with other.store.writer():
        thread = threading.Thread(target=remove)
        thread.start()
        thread.join()
    assert len(errors) == 1
    side = describe_side_index(main.store)
    assert side is not None
    assert (side.place, side.documents) == ("next", 40)


def test_what_another_process_has_put_there_meanwhile_is_not_switched_to(
    main: IndexCore, encoder: Any, make_encoder: Callable[..., Any]
) -> None:
    compared = built(main, make_encoder(**OTHER))
    drop(main)
    with pytest.raises(BadInput, match="another process has just changed"), still_there(main, compared):
        raise NotAnIndex("this is what a search finds")
    built(main, make_encoder(name="third", weights="3"))
    with pytest.raises(BadInput, match="another process has just changed"):
        switch(main, compared)
    assert opened_again(main).recipe == encoder.recipe


# folders


@pytest.mark.parametrize(
    "step",
    ["commit.done", *(pytest.param(step, marks=pytest.mark.slow) for step in ("commit.written", "words.recorded"))],
)
def test_a_build_that_is_killed_goes_on(folder: Path, make_encoder: Callable[..., Any], step: str) -> None:
    other_model = make_encoder(**OTHER)

    def work() -> None:
        with IndexCore.open(folder) as main:
            built(main, other_model)

    assert killed_at(step, work)
    with IndexCore.open(folder) as main:
        switch(main, built(main, other_model))
    with Index.open(folder) as index:
        assert (len(index), index.recipe, index.check().problems) == (40, other_model.recipe, ())


@pytest.fixture
def folder(tmp_path: Path, encoder: Any) -> Path:
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(documents(*range(40)))
    return tmp_path / "x.index"


def names(folder: Path) -> set[str]:
    """The names that the exchange uses, in the folder and beside it."""
    inside = {path.name for path in folder.iterdir()} & {"next", "previous", "beside", ".next", ".dropped"}
    return inside | {path.name for path in folder.parent.iterdir() if path.name.startswith(".")}


def killed_at(step: str, action: Callable[[], object]) -> bool:
    """Run an action in a forked process that is killed at a step; return whether it came to it."""
    if (child := os.fork()) == 0:
        try:
            failpoint._STEP, failpoint._remaining = step, 1
            action()
        finally:
            os._exit(1)
    return os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def exchange(folder: Path, place: SideSlot) -> None:
    store = open_store(folder)
    with store.engine.exclusive(), store.engine.open(place).writer():
        store.engine.publish(place)


@pytest.mark.parametrize("place", ["next", pytest.param("previous", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "step", ["exchange.in", *(pytest.param(step, marks=pytest.mark.slow) for step in failpoint.EXCHANGE_STEPS[:-1])]
)
def test_an_exchange_that_is_killed_is_completed_or_taken_back(
    folder: Path, make_encoder: Callable[..., Any], step: str, place: SideSlot
) -> None:
    with IndexCore.open(folder) as main:
        other = built(main, make_encoder(**OTHER))
        if place == "previous":
            switch(main, other)
    recipes = [IndexCore.open(folder).recipe]
    recipes.append(IndexCore.open(folder / place).recipe)
    assert killed_at(step, lambda: exchange(folder, place))
    taken_back = step == "exchange.out"
    with Index.open(folder) as index:  # before any writer has been here
        assert (len(index), index.recipe) == (40, recipes[0 if taken_back else 1])
        index.add(documents(90))
        assert (len(index), index.check().ok) == (41, True)
    assert names(folder) == {place if taken_back else "previous"}
    with IndexCore.open(folder) as main:
        side = describe_side_index(main.store)
        assert side is not None
        assert side.model == str(recipes[1 if taken_back else 0])
        if taken_back and place == "next":
            switch(main, IndexCore(main.store.engine.open("next")))
        elif taken_back:
            back(main)
    with Index.open(folder) as index:
        assert (len(index), index.recipe, index.check().problems) == (41, recipes[1], ())
    assert names(folder) == {"previous"}


def test_a_full_disk_stops_no_way_back(
    folder: Path, encoder: Any, make_encoder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with IndexCore.open(folder) as main:
        switch(main, built(main, make_encoder(**OTHER)))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(slots, "_mark", full)
    exchange(folder, "previous")
    with Index.open(folder) as index:
        assert (index.recipe, len(index), index.check().ok) == (encoder.recipe, 40, True)
    assert names(folder) == {"previous"}


@pytest.mark.parametrize("reason", ["mount point", "cannot be written"])
def test_a_folder_that_cannot_change_its_name_is_refused_before_anything_is_embedded(
    folder: Path, make_encoder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    other_model, stat = make_encoder(**OTHER), Path.stat
    if reason == "mount point":
        another = SimpleNamespace(st_dev=-1)
        monkeypatch.setattr(Path, "stat", lambda path, **o: another if path == folder.parent else stat(path, **o))
    else:
        monkeypatch.setattr(slots.os, "access", lambda path, _: path != folder.parent)
    with IndexCore.open(folder) as main, pytest.raises(StorageError, match=reason):
        built(main, other_model)
    assert (other_model.seen, names(folder)) == ([], set())


def test_what_a_killed_process_was_making_or_removing_is_swept(folder: Path, make_encoder: Any) -> None:
    for name in (".next", ".dropped"):
        (folder / name).mkdir()
        (folder / name / "catalog.db").touch()
    with IndexCore.open(folder) as main:
        built(main, make_encoder(**OTHER))
        assert names(folder) == {"next"}
        drop(main)
    assert names(folder) == set()


def test_a_drop_that_was_killed_is_completed_by_the_next_writer(folder: Path) -> None:
    for name in (".next", ".dropped"):
        (folder / name).mkdir()
        (folder / name / "catalog.db").touch()
    with Index.open(folder) as index:
        index.remove(["d1"])
    assert names(folder) == set()


@pytest.mark.parametrize("place", ["next", "previous"])
def test_a_damaged_one_beside_a_sound_index_is_told_and_can_be_dropped(
    folder: Path, make_encoder: Callable[..., Any], place: SideSlot
) -> None:
    other_model = make_encoder(**OTHER)
    with IndexCore.open(folder) as main:
        other = built(main, other_model)
        if place == "previous":
            switch(main, other)
    (folder / place / "catalog.db").write_bytes(b"nonsense " * 999)
    with IndexCore.open(folder) as main:
        side = describe_side_index(main.store)
        assert side is not None
        assert (side.place, side.model) == (place, "")
        assert "is not a readable catalog" in side.problem
        if place == "previous":
            assert Index(main).add(documents(90)).notes == ()
            with pytest.raises(IndexDamaged, match="of another model beside it cannot be read"):
                back(main)
        with pytest.raises(IndexDamaged, match="of another model beside it cannot be read") as refused:
            built(main, other_model)
        assert "--drop removes them" in in_shell(refused.value)
        report = Index(main).check()
        assert [problem for problem in report.problems if "--drop removes them" not in in_shell(problem)] == []
        assert not report.ok
        assert drop(main) == side
        assert (Index(main).check().ok, names(folder)) == (True, set())


def test_a_folder_in_the_way_of_the_exchange_changes_nothing(folder: Path, make_encoder: Callable[..., Any]) -> None:
    other_model = make_encoder(**OTHER)
    with IndexCore.open(folder) as main:
        other = built(main, other_model)
        (folder / "previous").mkdir()
        (folder / "previous" / "file").touch()
        with pytest.raises(StorageError, match="previous: is in the way"):
            switch(main, other)
    with Index.open(folder) as index:
        index.add(documents(90))
        assert len(index) == 41
        assert index.recipe != other_model.recipe
    (folder / "previous" / "file").unlink()
    (folder / "previous").rmdir()
    with IndexCore.open(folder) as main:
        switch(main, built(main, other_model))
    with Index.open(folder) as index:
        assert (len(index), index.recipe) == (41, other_model.recipe)


def test_a_copied_or_moved_folder_has_both_and_a_part_of_it_is_an_index(
    folder: Path, make_encoder: Callable[..., Any], encoder: Any
) -> None:
    with IndexCore.open(folder) as main:
        switch(main, built(main, make_encoder(**OTHER)))
    moved = folder.rename(folder.with_name("moved.index"))
    with IndexCore.open(moved) as main:
        back(main)
    with Index.open(moved) as index:
        assert (index.recipe, len(index)) == (encoder.recipe, 40)
    alone = (moved / "previous").rename(moved.with_name("alone.index"))
    with Index.open(alone) as index:
        index.add(documents(99))
        assert len(index) == 41
    assert names(alone) == set() == names(moved)


@pytest.mark.slow
def test_through_a_link_the_folder_itself_is_exchanged(folder: Path, make_encoder: Callable[..., Any]) -> None:
    link = folder.with_name("link")
    link.symlink_to(folder.name)
    other_model = make_encoder(**OTHER)
    with IndexCore.open(link) as main:
        switch(main, built(main, other_model))
    assert link.is_symlink()
    with Index.open(folder) as index:
        assert index.recipe == other_model.recipe


def test_the_index_beside_another_one_gets_none_beside_itself(folder: Path, make_encoder: Any) -> None:
    with IndexCore.open(folder) as main:
        built(main, make_encoder(**OTHER))
    with IndexCore.open(folder / "next") as inner, pytest.raises(BadInput, match="change the model of that index"):
        built(inner, make_encoder(name="third", weights="3"))
    assert (names(folder), names(folder / "next") & {"next", ".next"}) == ({"next"}, set())


def test_an_index_that_another_process_makes_at_the_last_moment_is_not_overwritten(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexer.stores.addresses.copying import copy

    require_room, settings = slots.require_room, settings_of_new(encoder)[0]
    with Index.create(tmp_path / "source.index", encoder) as source:
        source.add(documents(1))

    def overtaken(new: Path) -> Path:
        room = require_room(new)
        if any(path.name.startswith(f".{new.name}.") for path in new.parent.iterdir()):  # it publishes
            monkeypatch.setattr(slots, "require_room", require_room)
            with Index.create(new, encoder) as first:
                first.add(documents(7))
        return room

    for copying in (False, True):
        folder = tmp_path / f"{copying}.index"
        monkeypatch.setattr(slots, "require_room", overtaken)
        with (
            Index.open(tmp_path / "source.index", encoder) as source,
            pytest.raises(BadInput, match="another process has just made it"),
        ):
            copy(store_of(source), str(folder)) if copying else create_store(folder, settings)
        with Index.open(folder) as index:
            assert [*contents(index)] == ["d7"]
        assert names(folder) == set()


def test_a_copy_through_a_link_gets_the_folder_that_the_link_leads_to(folder: Path, tmp_path: Path) -> None:
    from indexer.stores.addresses.copying import copy

    (tmp_path / "disk" / "copy.index").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "copy.index")
    with Index.open(folder) as index:
        assert copy(store_of(index), str(tmp_path / "link")).documents == 40
    with Index.open(tmp_path / "disk" / "copy.index") as copied:
        assert len(copied) == 40
    assert names(tmp_path / "disk" / "copy.index") == set() == names(tmp_path / "link")


def test_a_rebuild_does_not_remove_what_is_kept(folder: Path, encoder: Any, make_encoder: Any) -> None:
    from likewise.shell.indexing.rebuild import rebuild_index

    with IndexCore.open(folder) as main:
        built(main, make_encoder(**OTHER))
        refused = pytest.raises(BadInput, match="has vectors of another model too, and a rebuild would remove them")
        with refused, rebuild_index(main, lambda: settings_of_new(encoder)):
            pass


def test_an_open_index_of_the_model_before_is_refused_and_opened_again(folder: Path, make_encoder: Any) -> None:
    with Index.open(folder) as stale, IndexCore.open(folder) as main:
        switch(main, built(main, make_encoder(**OTHER)))
        with pytest.raises(RecipeMismatch, match="open it again"):
            stale.add(documents(80))


@pytest.mark.slow
def test_no_answer_mixes_two_models(folder: Path, make_encoder: Callable[..., Any]) -> None:
    """The other model turns every vector: a question of one model has nothing to do with the passages of the other."""
    other_model = make_encoder(**OTHER)
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))
    encode = other_model.encode
    other_model.encode = lambda *texts, **options: (encode(*texts, **options) @ turn).astype(np.float32)
    with IndexCore.open(folder) as main:
        other = built(main, other_model)
        sizes = {snapshot_of(each).info().passages for each in (main, other)}
    searcher, stop = Searcher(folder), threading.Event()
    errors: list[BaseException] = []
    seen: set[int] = set()

    def ask() -> None:
        try:
            while not stop.is_set():
                for hits in (
                    searcher.search("text7 of some words", 3, passages=True, exact=True),
                    *searcher.search_many(["text7 of some words", "text8"], 3, passages=True)[:1],
                    searcher.search("text7 of some words", 3, mode="hybrid", passages=True),
                    searcher.search("text7", 3, mode="words", passages=True),
                ):
                    assert (hits[0].uri, hits.notes) == ("d7", ())
                    assert hits[0].cosine is None or hits[0].cosine > 0.5
                    if hits.mode != "words":
                        seen.add(hits.matched)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(6):
            with IndexCore.open(folder) as main:
                engine = main.store.engine
                switch(main, IndexCore(engine.open("next"))) if engine.exists("next") else back(main)
            if number % 2:
                with Index.open(folder) as index:
                    index.add(
                        documents(5, text=f"text{{0}} for round {number}, which is as long as the one before it was.")
                    )
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert (errors, seen) == ([], sizes)
