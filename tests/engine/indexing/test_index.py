"""`Index`: what each call changes, embeds, refuses and keeps."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from subprocess import PIPE, Popen
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of, store_of
from postgres_server import address_in_new_database
from word_encoder import WordEncoder

from indexer import Changes, Document, Index, LikewiseError, Recipe, Section
from indexer.errors import (
    BadInput,
    IndexDamaged,
    ModelError,
    NewerFormat,
    NotAnIndex,
    RecipeMismatch,
    UnknownUri,
    in_shell,
)
from indexer.filters.parse import parse
from indexer.passages.cut import PassageSettings
from indexer.stores.local.catalog import queries
from search import Searcher

DOCUMENT = Document(
    "a",
    "one two three",
    "Title",
    {"year": 2024, "tags": ["x", "y"], "deep": {"er": None}},
    "/p/a.md",
    "markdown",
    "2024-01-01T00:00:00+00:00",
    (Section(0, "h", 2),),
)


@pytest.fixture
def index(tmp_path: Path, encoder: Any) -> Index:
    return Index.create(tmp_path / "x.index", encoder)


def test_documents_come_back_as_they_went_in(index: Index) -> None:
    others = [Document("ü/ 🙂\n", "\ufeffBOM, \r\n line, \u2028 é and 𝒳", metadata={"": 1}), Document(" ", "x")]
    assert index.add([DOCUMENT, *others]) == Changes(added=("a", "ü/ 🙂\n", " "))
    assert index.get("a") == DOCUMENT
    assert list(index) == [DOCUMENT, *others]
    assert len(index) == 3
    assert "a" in index
    assert "b" not in index
    assert 7 not in index
    with Index.open(Path(store_of(index).address)) as again:
        assert list(again) == [DOCUMENT, *others]


def test_no_title_may_be_none(index: Index) -> None:
    document = Document("a", "text", title=None)  # type: ignore[arg-type]
    index.add([document])
    assert (document.title, index.get("a")) == ("", Document("a", "text"))
    assert index.add([Document("a", "text", "")]).unchanged == ("a",)


def test_two_hashes_tell_content_from_metadata(index: Index, encoder: Any) -> None:
    index.add([DOCUMENT])
    before, dumped = len(encoder.seen), snapshot_of(index).vectors_of("a")
    for changed in (
        replace(DOCUMENT, metadata={"year": 2025}),
        replace(DOCUMENT, metadata={"year": 2025.0}),
        replace(DOCUMENT, metadata={"year": True}),
        replace(DOCUMENT, metadata={}),
        replace(DOCUMENT, path="/p/b.md"),
        replace(DOCUMENT, format="text"),
        replace(DOCUMENT, modified=None),
    ):
        assert index.add([changed]) == Changes(updated=("a",))
        assert index.get("a") == changed
        assert index.add([changed]) == Changes(unchanged=("a",))
    assert len(encoder.seen) == before
    np.testing.assert_array_equal(snapshot_of(index).vectors_of("a"), dumped)
    index.add([DOCUMENT])
    for changed in (
        replace(DOCUMENT, text="one two three."),
        replace(DOCUMENT, title="Other"),
        replace(DOCUMENT, sections=(Section(0, "other", 2),)),
    ):
        assert index.add([changed]) == Changes(replaced=("a",))
        assert len(encoder.seen) == (before := before + 1)
    assert len(index) == 1


def test_unchanged_documents_need_no_model(tmp_path: Path, encoder: Any) -> None:
    documents = [DOCUMENT, Document("b", "text")]
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add(documents)

    def refuse(texts: Sequence[str]) -> None:
        raise AssertionError(f"was asked to embed {texts}")

    encoder.ask = refuse
    with Index.open(tmp_path / "x.index") as index:
        assert index.add(documents) == Changes(unchanged=("a", "b"))
        assert index.add([replace(DOCUMENT, metadata={})]).updated == ("a",)


def test_of_one_uri_given_twice_the_last_is_kept_and_a_note_names_it(index: Index) -> None:
    changes = index.add([Document("a", "first"), Document("b", "other"), Document("a", "last")])
    note = "these uris came more than once in one call, and the last document of each was kept: 'a'"
    assert changes == Changes(added=("a", "b"), notes=(note,))
    assert index.add([Document("a", "last"), Document("b", "other")]).notes == ()
    assert index.get("a").text == "last"
    assert index.info().passages == 2


def test_vectors_of_ones_own(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=3) as index:
        documents = [Document("a", ""), Document("b", "text")]
        rows = np.array([[3, 0, 4], [0, 1, 0]])
        assert index.add(documents, vectors=rows) == Changes(added=("a", "b"))
        np.testing.assert_allclose(snapshot_of(index).vectors_of("a"), [[0.6, 0, 0.8]], atol=1e-3)
        assert index.add(documents, vectors=rows) == Changes(unchanged=("a", "b"))
        assert index.add(documents, vectors=rows[::-1]) == Changes(replaced=("a", "b"))
        for wrong, why in (
            (rows[:1], "shape"),
            (np.ones((2, 4)), "shape"),
            (np.array([[1, 0, 0], [0, 0, 0]]), "'b' has only zeros"),
            (np.array([[np.nan, 0, 0], [1, 0, 0]]), "'c' has a value that is not finite"),
            (np.array([["a", "b", "c"]] * 2), "type"),
        ):
            with pytest.raises(BadInput, match=why):
                index.add([Document("c", "text"), Document("b", "text")], vectors=wrong)
        assert "c" not in index
        with pytest.raises(BadInput, match="pass vectors="):
            index.add([Document("c", "text")])
        with pytest.raises(BadInput, match="has no model"):
            _ = index.encoder


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (Document("", "text"), "uri"),
        (Document(7, "text"), "uri"),  # type: ignore[arg-type]
        (Document("a", ""), "has no text"),
        (Document("a", " \n\u00a0"), "has no text"),
        (Document("a", "x\0y"), "NUL character at 1"),
        (Document("a\0", "x"), "NUL"),
        (Document("a", "x", "t\0"), "title holds a NUL"),
        (Document("a", "x\ud800"), "not valid Unicode at character 1"),
        (Document("a\udfff", "x"), "not valid Unicode"),
        (Document("a", b"bytes"), "not a string but bytes"),  # type: ignore[arg-type]
        (Document("a", "x", metadata={"x": {1, 2}}), "x"),
        (Document("a", "x", metadata={"x": float("nan")}), "x"),
        (Document("a", "x", metadata={"x": "\ud800"}), "x"),
        (Document("a", "x", metadata={"x": 2**70}), "x"),
        (Document("a", "x", metadata={"x": np.int64(3)}), r"holds a int64.*\.item\(\)"),
        (
            Document("a", "x", metadata=reduce(lambda inner, _: {"a": inner}, range(250), {})),
            "200 deep",
        ),
        (Document("a", None), "its text is not a string but NoneType"),  # type: ignore[arg-type]
        ({"uri": "a", "text": "x"}, "is not a Document"),
        (Document("a", "x", path=Path("/p")), "path is not a string but PosixPath"),  # type: ignore[arg-type]
        (Document("a", "x", format="\ud800"), "format is not valid Unicode"),
        (Document("a", "x", metadata={1: "x"}), "1"),  # type: ignore[dict-item]
        (Document("a", "x", metadata=["x"]), "metadata"),  # type: ignore[arg-type]
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_cannot_be_stored_is_refused_by_name_and_nothing_is_added(
    index: Index, document: Document, why: str
) -> None:
    with pytest.raises(BadInput, match=why):
        index.add([Document("sound", "text"), document])
    assert len(index) == 0
    assert index.check().ok


def test_removing(index: Index) -> None:
    index.add([Document(uri, f"text {uri}") for uri in "abc"])
    with pytest.raises(UnknownUri, match="'z'; nothing was removed"):
        index.remove(["a", "z"])
    assert len(index) == 3
    assert index.remove(["a", "b", "a"]) == 2
    assert [document.uri for document in index] == ["c"]
    assert index.remove([]) == 0
    with pytest.raises(UnknownUri, match="'a'"):
        index.get("a")
    assert index.add([Document("a", "text a")]) == Changes(added=("a",))


def test_passage_ids_are_never_used_again(index: Index) -> None:
    seen: set[int] = set()
    for number in range(4):
        index.add([Document("a", f"text {number}"), Document("b", f"more {number}")])
        if number == 2:
            index.remove(["a", "b"])
            index.compact()
            continue
        with store_of(index)._views.view() as view:
            ids = set(queries.live_ids(view, 0)[0].tolist())
        assert not ids & seen
        seen |= ids


def test_another_model_is_refused_and_both_are_named(index: Index, make_encoder: Callable[..., Any]) -> None:
    own = index.recipe
    assert own is not None
    for other in (make_encoder(weights="other"), make_encoder(name="other", max_tokens=64, weights="3")):
        with pytest.raises(RecipeMismatch) as raised:
            Index.open(Path(store_of(index).address), other)
        for recipe in (own, other.recipe):
            assert f"{recipe.model} (weights {recipe.fingerprint[:12]}, up to {recipe.max_tokens}" in str(raised.value)
        assert str(raised.value).endswith("use that model, or rebuild the index with the new one")
        assert in_shell(raised.value).endswith("(--rebuild)")
    Index.open(Path(store_of(index).address), make_encoder(name="moved/words")).close()


def test_an_index_that_another_took_the_place_of_is_not_written_with_vectors_of_the_first(
    tmp_path: Path, encoder: Any, make_encoder: Callable[..., Any]
) -> None:
    folder = tmp_path / "x.index"
    for old, new in (
        ({"model": encoder}, {"model": make_encoder(weights="other")}),
        ({"model": encoder}, {"model": encoder, "max_tokens": 16}),
        ({"dimensions": 2}, {"dimensions": 3}),
        ({"model": encoder}, {"dimensions": encoder.dimensions}),
    ):
        opened = Index.create(folder, **old)
        rows = None if "model" in old else np.eye(2)[:1]
        opened.add([Document("a", "one")], vectors=rows)
        shutil.rmtree(folder)
        with Index.create(folder, **new) as other:
            with pytest.raises(RecipeMismatch, match="made with another model: open it again"):
                opened.add([Document("b", "two")], vectors=rows)
            assert len(other) == 0
        shutil.rmtree(folder)


def test_a_model_whose_weights_have_changed_on_disk_is_refused(tmp_path: Path, encoder: Any) -> None:
    from indexer.encoders import load_encoder

    real = load_encoder("all-MiniLM-L6-v2").recipe
    with Index.create(tmp_path / "x.index", encoder) as index:
        index.add([Document("a", "text")])
    with sqlite3.connect(tmp_path / "x.index" / "catalog.db") as catalog:
        stored = replace(real, fingerprint="f" * 64).to_json()
        catalog.execute("UPDATE setting SET value = ? WHERE name = 'recipe'", (stored,))
    catalog.close()
    with Index.open(tmp_path / "x.index") as index:
        with pytest.raises(ModelError, match="has other files") as raised:
            index.add([Document("b", "text")])
        assert real.fingerprint[:12] in str(raised.value)
        assert "ffffffffffff" in str(raised.value)
        assert len(index) == 1


def test_what_is_refused_of_an_open_index_changes_nothing(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "empty.index", encoder, max_tokens=16) as empty:
        with pytest.raises(RecipeMismatch, match="max_tokens 16 and not 32"):
            Index.open(tmp_path / "empty.index", encoder, create=True, max_tokens=32, language="de")
        assert empty.settings.language_open
        Index.open(tmp_path / "empty.index", encoder, create=True, language="de").close()
        assert empty.settings.language == "de"


def test_where_no_index_can_be_made_or_opened(tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("ten years of work")
    (tmp_path / "file").write_text("text")
    for name in ("full", "file"):
        with pytest.raises(BadInput, match="is there already"):
            Index.create(tmp_path / name, encoder)
        with pytest.raises(NotAnIndex, match=name):
            Index.open(tmp_path / name)
    with pytest.raises(NotAnIndex, match="does not exist"):
        Index.open(tmp_path / "nothing")
    with pytest.raises(LikewiseError):
        Index.create(tmp_path / "file" / "below", encoder)
    assert {path.name for path in tmp_path.iterdir()} == {"full", "file"}
    assert (tmp_path / "full" / "thesis.txt").read_text() == "ten years of work"
    (tmp_path / "empty").mkdir()
    Index.create(tmp_path / "empty", encoder).close()
    with pytest.raises(BadInput, match="is there already"):
        Index.create(tmp_path / "empty", encoder)
    with pytest.raises(BadInput, match="either a model, or dimensions"):
        Index.create(tmp_path / "both", encoder, dimensions=3)
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    Index.create(tmp_path / "link", encoder).close()
    assert len(Index.open(tmp_path / "target")) == 0
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(BadInput, match="is the folder you are in"):
        Index.create(".", encoder)
    with pytest.raises(BadInput, match="either a model, or dimensions"):
        Index.create(tmp_path / "none", dimensions=0)


def test_open_makes_an_index_where_there_is_none_and_opens_one_that_exists(
    tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = tmp_path / "an.index"
    with Index.open(address, encoder, create=True, max_tokens=16, overlap=4, language="en") as index:
        index.add([Document("a", "one")])
        assert index.passage_settings == PassageSettings(16, 4)
    with Index.open(address, encoder, create=True, max_tokens=16) as index:
        assert len(index) == 1
        assert (index.get("a") in index, Document("a", "two") in index, "a" in index) == (True, False, True)
        assert [document in index for document in index] == [True]
    for given, sentence in (
        ({"max_tokens": 32}, "was made with max_tokens 16 and not 32: leave max_tokens out, or make another index"),
        ({"language": "de"}, "was made with language 'en' and not 'de': leave language out"),
        ({"dimensions": 3}, "was made with dimensions None and not 3"),
    ):
        for create in (True, False):
            with pytest.raises(RecipeMismatch, match=sentence):
                Index.open(address, encoder, create=create, **given)
    with pytest.raises(RecipeMismatch):
        Index.open(address, WordEncoder(weights="2"), create=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("ten years of work")
    with pytest.raises(BadInput, match="is there already and is not an empty folder"):
        Index.open(tmp_path / "full", encoder, create=True)
    # Another process makes it between the look and the making.
    looks = iter([False, True])
    monkeypatch.setattr("indexer.index.is_store", lambda path: next(looks))
    with Index.open(address, encoder, create=True) as index:
        assert len(index) == 1


OPENS = """
import sys
import numpy as np
from likewise import Document, Index
print("ready", flush=True)
number = int(sys.stdin.readline())
with Index.open(sys.argv[1], create=True, dimensions="auto") as index:
    index.add([Document(f"d{number}", "text")], vectors=np.eye(4)[number : number + 1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["folder", "PostgreSQL"])
def test_processes_that_open_or_create_at_once_get_the_same_index(
    engine: str, tmp_path: Path, environment: SimpleNamespace
) -> None:
    # A database that no index was ever in: its extension, schema and tables are made at once as well.
    address = str(tmp_path / "an.index") if engine == "folder" else address_in_new_database()
    command = [environment.python, "-c", OPENS, address]
    processes = [Popen(command, stdin=PIPE, stdout=PIPE, text=True) for _ in range(4)]
    assert [process.stdout and process.stdout.readline() for process in processes] == ["ready\n"] * 4
    for number, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
    assert [process.communicate(timeout=100) and process.returncode for process in processes] == [0] * 4
    with Index.open(address) as index:
        assert {document.uri for document in index} == {"d0", "d1", "d2", "d3"}
        assert index.check().ok


def test_a_newer_format_is_refused(index: Index) -> None:
    with sqlite3.connect(Path(store_of(index).address) / "catalog.db") as catalog:
        catalog.execute("PRAGMA user_version = 99")
    catalog.close()
    with pytest.raises(NewerFormat, match="format 99 and this likewise reads up to 1: upgrade"):
        Index.open(Path(store_of(index).address))


def test_a_file_that_is_no_catalog_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    folder.mkdir()
    for content in (b"", b"not a database at all, whatever its name", b"SQLite format 3\0" + bytes(100)):
        (folder / "catalog.db").write_bytes(content)
        with pytest.raises(LikewiseError, match=r"catalog\.db"):
            Index.open(folder)


def test_indexes_of_one_model_share_one_encoder(tmp_path: Path, encoder: Any) -> None:
    for name in "xy":
        Index.create(tmp_path / name, encoder).close()
    with Index.open(tmp_path / "x") as first, Index.open(tmp_path / "y") as second:
        assert first.encoder is second.encoder is encoder


def test_a_failing_encoder_loses_what_was_not_committed_and_nothing_else(index: Index, encoder: Any) -> None:
    index.add([Document("a", "text")])

    def fail(texts: Sequence[str]) -> None:
        raise MemoryError

    encoder.ask = fail
    with pytest.raises(MemoryError):
        index.add([Document("a", "other"), Document("b", "text")])
    assert [document.text for document in index] == ["text"]
    encoder.ask = lambda texts: None
    assert index.add([Document("a", "other")]).replaced == ("a",)


@pytest.mark.slow
def test_large_calls_are_committed_in_batches(index: Index, encoder: Any) -> None:
    sizes: list[int] = []
    encoder.ask = lambda texts: sizes.append(len(texts))
    changes = index.add([Document(f"d{i}", f"word{i} " * 20) for i in range(6000)])
    assert len(changes.added) == len(index) == 6000
    assert len(sizes) > 2
    assert max(sizes) < 3000


def test_compact_keeps_what_is_there_and_frees_the_rest(index: Index) -> None:
    index.add([Document(f"d{i}", f"word{i} " * 20) for i in range(600)])
    index.compact()
    before = index.info().bytes
    index.remove([f"d{i}" for i in range(500)])
    index.compact()
    info = index.info()
    assert (info.documents, info.unsealed, [row["count"] for row in info.segments]) == (100, 0, [info.passages])
    assert info.bytes < before / 2
    assert index.check().ok
    with pytest.raises(BadInput, match="kind 'fast' is unknown"):
        index.compact("fast")


def test_info_counts(index: Index) -> None:
    index.add([DOCUMENT, Document("b", " ".join(f"w{i}" for i in range(100)))])
    info = index.info()
    assert (info.documents, info.dimensions, info.format_version) == (2, 64, 1)
    assert info.passages == snapshot_of(index).vectors_of("b").shape[0] + 1  # type: ignore[union-attr]
    assert info.tokens >= 100 + 4 + 2 * info.passages
    assert info.fields == {"tags": ("text",), "year": ("number",)}


def test_an_option_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^Index\.open\(\) got an unexpected keyword argument 'depth'$"):
        Index.open(tmp_path / "x.index", create=True, depth=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("other", ["replaced", "removed", "updated"])
def test_what_another_writer_did_between_comparing_and_committing_is_seen(
    index: Index, encoder: Any, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    index.add([Document("a", "one"), Document("b", "other")])
    core = index._core
    finish = core.finish

    def overtaken(pending: Any) -> Any:
        prepared = finish(pending)
        monkeypatch.setattr(core, "finish", finish)
        with Index.open(Path(store_of(index).address), encoder) as second:
            if other == "removed":
                second.remove(["a"])
            else:
                second.add([Document("a", "two" if other == "replaced" else "one", metadata={"x": 2})])
        return prepared

    monkeypatch.setattr(core, "finish", overtaken)
    index.add([Document("a", "one", metadata={"x": 1})])
    assert (index.get("a").text, index.get("a").metadata, len(index)) == ("one", {"x": 1}, 2)
    assert index.check().ok
    with Searcher(Path(store_of(index).address)) as searcher:
        assert searcher.search("one", 1)[0].uri == "a"


@pytest.mark.slow
def test_a_damaged_page_that_a_writer_meets_is_named(index: Index) -> None:
    index.add([Document(f"d{i}", f"text {i} " * 50) for i in range(200)])
    index.close()
    catalog = Path(index.address) / "catalog.db"
    data = bytearray(catalog.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    catalog.write_bytes(data)
    with pytest.raises(IndexDamaged, match=r"catalog\.db"), Index.open(Path(index.address)) as damaged:
        damaged.remove(["d1"])


def test_wrong_types_are_refused_before_anything_is_made(tmp_path: Path, encoder: Any) -> None:
    for wrong in (
        {"dimensions": 8.0},
        {"dimensions": "8"},
        {"dimensions": True},
        {"model": encoder, "max_tokens": "20"},
        {"model": encoder, "overlap": 1.5},
    ):
        with pytest.raises(BadInput, match="give a whole number"):
            Index.create(tmp_path / "x.index", **wrong)
        assert not (tmp_path / "x.index").exists()
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        for vectors in ([[1, 2], [3]], [["a", "b"], ["c", "d"]]):
            with pytest.raises(BadInput, match="vectors"):
                index.add([Document("a", "a"), Document("b", "b")], vectors=vectors)  # type: ignore[arg-type]
        for sections in ((1,), ((0, "h", None),), (Section(0, "h", 2.5),), 5):  # type: ignore[arg-type]
            with pytest.raises(BadInput, match="section"):
                index.add([Document("a", "a", sections=sections)], vectors=np.ones((1, 2)))  # type: ignore[arg-type]
        assert len(index) == 0


def test_what_is_no_list_model_or_recipe_is_refused_by_name(tmp_path: Path, encoder: Any) -> None:
    for model in (5, ""):
        with pytest.raises(LikewiseError, match=r"not a name, folder, recipe|names no model"):
            Index.create(tmp_path / "x.index", model)  # type: ignore[arg-type]
    for text in (5, None, "", " "):
        with pytest.raises(ModelError, match="names no model"):
            Recipe.parse(text)  # type: ignore[arg-type]
    with Index.create(tmp_path / "x.index", encoder) as index:
        with pytest.raises(BadInput, match="not a list but int"):
            index.add(5)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="not a list but int"):
            index.remove(5)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match=r"either uris or a filter \(where\)"):
            index.remove(None)


def test_a_filtered_listing_goes_through_all_there_are(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        index.add([Document(str(i), "x", metadata={"n": i}) for i in range(1000)], vectors=np.ones((1000, 2)))
        index.remove(["600"])
        found = [document.uri for document in store_of(index).iterate(parse("n >= 300"))]
        assert found == [str(i) for i in range(300, 1000) if i != 600]
        index.add([Document("unnamed", "x", metadata={"a": {"": 1}})], vectors=np.ones((1, 2)))
        assert [document.uri for document in store_of(index).iterate(parse("exists a"))] == ["unnamed"]


def test_an_index_of_one_dimension_can_be_compacted_either_way(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=1) as index:
        index.add([Document(str(i), "x") for i in range(300)], vectors=np.tile([[1.0], [-2.0]], (150, 1)))
        for kind in ("approximate", "exact"):
            index.compact(kind)
            assert index.check().ok


def test_everything_is_replaced_in_one_step_also_by_vectors_of_another_width(tmp_path: Path) -> None:
    address = tmp_path / "an.index"
    index = Index.create(address, dimensions=2)
    index.add([Document("a", "one"), Document("b", "two")], np.eye(2))
    searcher = Searcher(address)
    assert searcher.search_vector([1, 0])[0].uri == "a"
    other = Index.open(address)
    with pytest.raises(BadInput, match="zeros"):
        index.replace_all([Document("c", "three"), Document("d", "four")], np.array([[1.0, 0, 0], [0, 0, 0]]))
    assert [document.uri for document in searcher.documents()] == ["a", "b"]
    assert index.replace_all([Document("c", "three"), Document("a", "one")], np.eye(3)[1:]) == Changes(
        added=("c",), replaced=("a",)
    )
    assert [document.uri for document in searcher.documents()] == ["c", "a"]
    assert index.dimensions == 3
    assert [(hit.uri, hit.score) for hit in searcher.search_vector([0, 0, 1])] == [("a", 1.0), ("c", 0.0)]
    assert index.add(Document("e", "five"), np.eye(3)[:1]).added == ("e",)
    assert index.check().ok
    with pytest.raises(LikewiseError, match="open"):
        other.add(Document("f", "six"), np.eye(2)[:1])
    with pytest.raises(BadInput, match="no document"):
        index.replace_all([], np.empty((0, 2)))
    assert len(searcher) == 3


def test_an_index_with_a_model_is_not_replaced_by_vectors(tmp_path: Path, encoder: Any) -> None:
    with Index.create(tmp_path / "an.index", encoder) as index, pytest.raises(BadInput, match="has a model"):
        index.replace_all([Document("a", "one")], np.eye(1))
