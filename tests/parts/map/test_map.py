"""Places keep neighbours, regions get the terms that distinguish them, and the file is one that was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise.map.draw
import likewise.map.projection
from benchmarks.maps import neighbours_kept
from indexer import Document, Index, doors
from indexer.listener import Listener
from indexer.settings import MapRecord
from indexer.stores.addresses.open import open_store
from indexer.stores.words.analysis import Analysis, stored_analysis
from likewise.map.draw import draw_map, redraw_if_outdated
from likewise.map.file import NAME, Map, read_map, write_map
from likewise.map.names import Names
from likewise.map.phrases import read_phrases, shortened
from likewise.map.projection import principal_components, project
from likewise.map.regions import find_regions, nearest_middle
from search import Searcher
from tests.parts.map.drawn_maps import keep

TOPICS = ("moon orbit crater", "oven dough loaf", "tyre brake engine")


def clouds(documents: int, dimensions: int = 24) -> tuple[np.ndarray[Any, np.dtype[np.float32]], list[int]]:
    """Unit vectors around three centres, and the centre of each."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(3, dimensions))
    topics = [number % 3 for number in range(documents)]
    rows = centres[topics] + random.normal(0, 0.4, (documents, dimensions))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), topics


@pytest.fixture
def by_components(monkeypatch: pytest.MonkeyPatch) -> None:
    """UMAP compiles for half a minute: most tests are content with principal components."""
    monkeypatch.setattr(likewise.map.projection, "_umap", lambda vectors, _: principal_components(vectors))


def test_places_are_scaled_and_topics_apart(by_components: None) -> None:
    vectors, topics = clouds(90)
    places = project(vectors)
    assert (places.min(axis=0).tolist(), places.max(axis=0).tolist()) == ([0, 0], [1, 1])
    middles = np.array([places[np.array(topics) == topic].mean(axis=0) for topic in range(3)])
    nearest = ((places[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
    assert nearest.tolist() == topics


@pytest.mark.parametrize("documents", [3, 5, 16])
def test_few_documents_have_places_too(documents: int) -> None:
    places = project(np.eye(documents, dtype=np.float32))
    assert places.shape == (documents, 2)
    assert np.isfinite(places).all()


def test_equal_vectors_and_one_dimension_have_places(by_components: None) -> None:
    assert np.isfinite(project(np.ones((20, 1), np.float32))).all()
    assert np.isfinite(project(np.tile(np.float32([0.6, 0.8]), (20, 1)))).all()


def test_regions_that_share_a_topic_have_names_of_their_own(by_components: None) -> None:
    vectors, topics = clouds(300)
    texts = [f"{TOPICS[topic]}, {TOPICS[topic]} the same words {number}" for number, topic in enumerate(topics)]
    places = project(vectors)
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    found = find_regions(places, documents, vectors, stored_analysis("en"))
    regions = [region for region in found if region.level == 0]
    assert sum(region.documents for region in regions) == 300
    middles = [np.median(places[np.array(topics) == topic], axis=0) for topic in range(3)]
    for region in regions:
        (topic,) = [number for number, topic in enumerate(TOPICS) if topic in region.terms[0]]
        assert np.hypot(*(middles[topic] - (region.x, region.y))) < 0.25
    assert len({region.terms for region in found}) == len(found)
    nearest = nearest_middle(places, np.array([(region.x, region.y) for region in regions], np.float32))
    assert np.bincount(nearest).tolist() == [region.documents for region in regions]


def named(documents: Sequence[str | Document], language: str = "en") -> list[tuple[str, ...]]:
    """The names of three regions, to which documents belong in turn."""
    vectors, topics = clouds(len(documents))
    every = [Document(f"d{n}", each) if isinstance(each, str) else each for n, each in enumerate(documents)]
    return list(Names(every, vectors, stored_analysis(language)).of_regions(np.array(topics), 3))


def test_a_name_has_no_stop_word_of_any_language_of_the_collection() -> None:
    """Words that any text may have are as frequent in the region by chance: its vectors say that they are not of it."""
    german = "Der Mond wurde früher von uns allen als eine Scheibe gesehen, die über den Himmel zieht"
    texts = [(f"{german} und Krater hat", "the oven bakes it", "a tyre and a brake")[n % 3] for n in range(60)]
    first, second, third = named([f"{text}. {text}" for text in texts])
    words = {word.lower() for name in (first, second, third) for phrase in name for word in phrase.split()}
    assert {"oven", "bakes"} <= words
    assert not words & {"der", "von", "uns", "allen", "als", "eine", "die", "über", "den", "und", "hat", "the", "a"}


def test_a_name_is_not_taken_from_headers_addresses_and_headings() -> None:
    people = ("Ann Smith <ann@example.org>,\n        Bob Jones <bob@example.org>", "Cem Kaya", "Dee Wong")
    texts = [
        f"Author: {people[n % 3]}\nStatus: {('Final', 'Draft', 'Open')[n % 3]}\n\nAbstract\n\n"
        f"{chr(97 + n) * 4}. {TOPICS[n % 3]}, {TOPICS[n % 3]} of 4b825dc642\n"
        f"see https://example.org/{TOPICS[n % 3][:4]} and write to {people[n % 3][:3].lower()}@example.org"
        for n in range(60)
    ]
    assert named(texts) == [(topic,) for topic in TOPICS]


def test_a_name_is_what_texts_repeat_and_no_person_and_no_import() -> None:
    """The verbs of this text are as frequent in the region as its topic, and so are its author and its import."""
    texts = [
        f"import {topic[:4]}lib\n\nIt {verb} a {topic}, and a {topic} {second}. {who}, {who} said {n}.\n"
        + (f"Write to {who} <{who[:3]}@example.org>" if n < 30 else "")
        for n in range(60)
        for topic, verb, second, who in [
            (
                ("crater", "occurs", "moves", "Ann Smith"),
                ("oven", "warms", "bakes", "Bob Jones"),
                ("brake", "slows", "stops", "Cem Kaya"),
            )[n % 3]
        ]
    ]
    assert named(texts) == [("crater",), ("oven",), ("brake",)]


@pytest.mark.parametrize(
    ("line", "is_text"),
    [
        ("import duties on steel rose in March", True),
        ("import numpy as np, os", False),
        ("from pathlib import Path, PurePath", False),
        ('import { element } from "./page.js"', False),
        ("#include <stdio.h>", False),
    ],
)
def test_lines_of_prose_that_begin_with_import_are_no_code(line: str, is_text: bool) -> None:
    phrases = read_phrases([Document("d", f"{line}\n")], stored_analysis("en"))
    assert bool(phrases.of_documents[0]) == is_text


def test_a_region_without_phrases_of_its_own_has_the_title_of_its_most_central_document() -> None:
    titles = [f"{('Sky', 'Bread', 'Cars')[n % 3]} {chr(97 + n // 3) * 3}" for n in range(60)]
    titles = [title.split()[1] if n // 3 else title for n, title in enumerate(titles)]
    first, *_ = named([Document(f"d{n}", f"{chr(97 + n // 3) * 4} the same", titles[n]) for n in range(60)])
    assert first[0].removeprefix("around: ") in titles


@pytest.mark.parametrize(
    ("document", "called"),
    [
        (
            Document("/f/oven.txt", "<a id='x'></a>\n\n# Baking\n\nThe oven\nis hot.", "oven", path="/f/oven.txt"),
            "Baking, The oven is hot.",
        ),
        (Document("7", "sku: JA7\nname: Rain coat\nprice: 7.50\ncolour: red"), "Rain coat, red"),
        (Document("m", "Hi", "Re: Fwd: Lunch"), "Lunch"),
    ],
)
def test_what_a_document_is_called(document: Document, called: str) -> None:
    """The name of a file says nothing that its path does not say, and neither do the numbers of a row."""
    rows = [Document(f"r{n}", f"sku: {n}\nname: {n}\nprice: {n}\ncolour: {n}") for n in range(9)]
    assert read_phrases([document, *rows], stored_analysis("en")).titles[0] == called


def test_a_region_of_documents_that_are_little_alike_has_two_titles() -> None:
    """Half of the documents of the first region are nearer to the second one."""
    vectors, topics = clouds(60)
    vectors[::6] = vectors[1::6]
    titles = [f"{('Sky', 'Bread', 'Cars')[n % 3]} {n} " + "long " * 12 for n in range(60)]
    titles[::6] = [f"Oven {n} " + "long " * 12 for n in range(0, 60, 6)]
    documents = [Document(f"d{n}", "", title) for n, title in enumerate(titles)]
    names = list(Names(documents, vectors, stored_analysis("en")).of_regions(np.array(topics), 4))
    assert sorted(title.removeprefix("around: ").split()[0] for title in names[0]) == ["Oven", "Sky"]
    assert [len(title.removeprefix("around: ")) <= 36 for title in names[0]] == [True, True]
    assert names[1:] == [("Bread",), ("Cars",), ()]  # the last region has no documents
    assert shortened("word " * 30, 12) == "word word w…"


def test_a_phrase_names_a_region_if_most_documents_with_it_are_there() -> None:
    """Every text of the first region repeats a word, and every other text has it once."""
    texts = [
        (f"It turns. It turns. {chr(97 + n % 26) * 4}", "It turns", "It turns a brake, a brake")[n % 3]
        for n in range(60)
    ]
    assert [name[0][:15] for name in named(texts)] == ["around: It turn", "around: It turn", "brake"]


def test_no_two_names_are_equal_and_none_is_that_of_a_folder_or_a_file() -> None:
    topics = ("crater", "oven", "oven")
    texts = [f"a {topics[n % 3]}, the {topics[n % 3]} {chr(97 + n % 26) * 4}" for n in range(60)]
    names = named([Document(f"/f/craters/{n}", text, path=f"/f/craters/{n}") for n, text in enumerate(texts)])
    assert len(set(names)) == 3
    assert all(name[0].startswith("around: ") for name in names)  # "oven" is in two regions, "craters" is a folder
    paths = ["/f/Hash_Maps/tea-time.md", "/f/ch08-03.tar", "/f/パン.txt"]
    of_paths = read_phrases([], stored_analysis("en"), paths).of_paths
    assert {("hash", "map"), ("tea", "time"), ("パ", "ン")} <= of_paths
    assert ("tar",) not in of_paths


def test_scripts_without_spaces_have_phrases_too() -> None:
    texts = [("月のクレーターについて", "焼きたてパン", "它是自动车的整备")[n % 3] for n in range(60)]
    assert [name[0] for name in named([f"{text}。{text}" for text in texts], language="none")] == [
        "クレーター",
        "パン",
        "自动车",
    ]


def test_few_documents_have_no_regions() -> None:
    none = find_regions(
        np.zeros((5, 2), np.float32), [Document("d", "word")] * 5, np.eye(5, dtype=np.float32), stored_analysis("en")
    )
    assert none == []


def test_a_share_of_neighbours_is_kept() -> None:
    vectors, _ = clouds(200, 2)
    assert neighbours_kept(vectors, vectors) == 1.0
    shuffled = np.random.default_rng(0).permutation(vectors)
    assert neighbours_kept(vectors, shuffled) < 0.5


def test_the_file_is_read_only_if_it_is_the_one_that_was_written(tmp_path: Path) -> None:
    drawn = Map(("ü", "b"), np.array([[0, 1], [0.5, 0.25]], np.float32), ())
    record = write_map(tmp_path / "derived", drawn)
    read = read_map(tmp_path / "derived", record)
    assert read is not None
    assert (read.uris, read.places.tolist(), read.regions) == (drawn.uris, drawn.places.tolist(), ())
    assert read_map(tmp_path / "derived", None) is None
    assert read_map(tmp_path / "derived", record._replace(sha256="0")) is None
    content = (tmp_path / "derived" / NAME).read_bytes()
    for damaged in (content[:-1], content[:10] + b"x" + content[11:], b""):
        (tmp_path / "derived" / NAME).write_bytes(damaged)
        assert read_map(tmp_path / "derived", record) is None
    assert MapRecord.from_json(record.to_json()) == record


@pytest.fixture
def topics(tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(likewise.map.draw, "require_umap", lambda: None)
    folder = tmp_path / "topics.index"
    with Index.create(folder, model=encoder) as index:
        index.add([Document(f"d{number}", f"{TOPICS[number % 3]} {number}") for number in range(60)])
    return folder


def test_a_map_is_drawn_stored_and_copied(by_components: None, topics: Path, tmp_path: Path) -> None:
    said: list[str] = []
    store = open_store(topics)

    class Recording(Listener):
        def step(self, text: str) -> None:
            said.append(text)

    drawn = draw_map(store, Recording())
    assert said == ["reading the vectors", "placing 60 documents, after finding their neighbours", "naming the regions"]
    assert drawn.uris == tuple(f"d{number}" for number in range(60))
    with Searcher(topics) as searcher:
        stored = searcher.map()
    assert stored is not None
    assert (stored.uris, stored.places.tolist()) == (drawn.uris, drawn.places.tolist())
    with Index.open(topics) as index:
        assert index.check().ok
        index.copy(tmp_path / "copy.index")
    copied = Searcher(tmp_path / "copy.index").map()
    assert copied is not None
    assert copied.places.tolist() == drawn.places.tolist()


def test_a_map_with_names_of_another_version_is_drawn_again(by_components: None, topics: Path) -> None:
    store = open_store(topics)
    keep(topics, replace(draw_map(store), regions=(), names_version=1))
    assert redraw_if_outdated(store) == []
    drawn = Searcher(topics).map()
    assert drawn is not None
    assert drawn.regions


def test_a_map_is_drawn_again_when_a_quarter_has_changed(by_components: None, topics: Path) -> None:
    store = open_store(topics)
    assert redraw_if_outdated(store) == []
    assert Searcher(topics).map() is None
    draw_map(store)
    for added, documents in ((14, 60), (1, 75)):
        with Index.open(topics) as index:
            index.add([Document(f"new {added} {number}", "oven dough") for number in range(added)])
        assert redraw_if_outdated(store) == []
        drawn = Searcher(topics).map()
        assert drawn is not None
        assert len(drawn.uris) == documents


@pytest.mark.slow  # UMAP compiles for half a minute
def test_umap_keeps_more_neighbours_than_principal_components() -> None:
    pytest.importorskip("umap")
    random = np.random.default_rng(2)
    centres = random.normal(size=(40, 32))
    rows = centres[random.integers(40, size=1500)] + random.normal(0, 0.5, (1500, 32))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    places = project(vectors)
    assert neighbours_kept(vectors, places, 300) > 1.5 * neighbours_kept(vectors, principal_components(vectors), 300)
    np.testing.assert_array_equal(project(vectors), places)  # repeatable


def test_a_table_for_other_explorers(by_components: None, topics: Path, tmp_path: Path, likewise: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "topics.parquet"
    ended = likewise("export", str(topics), "--parquet", str(file)).succeeded()
    assert "60 documents without x and y" in ended.err
    drawn = draw_map(open_store(topics))
    ended = likewise("export", str(topics), "--parquet", str(file), "--vectors")
    assert ended.succeeded().err == ""
    rows = parquet.read_table(file).to_pylist()
    assert [row["uri"] for row in rows] == list(drawn.uris)
    np.testing.assert_array_equal([[row["x"], row["y"]] for row in rows], drawn.places)
    assert (rows[0]["text"], rows[0]["metadata"]) == (f"{TOPICS[0]} 0", "{}")
    with Searcher(topics) as searcher:
        np.testing.assert_allclose(rows[5]["vector"], searcher.vectors("d5")[0], atol=1e-6)
    with Index.open(topics) as index:
        index.remove(["d0"])
        index.add([Document("new", "text")], vectors=np.eye(1, index.dimensions, dtype=np.float32))
    assert "1 document without x and y" in likewise("export", topics, "--parquet", file).err
    likewise("export", topics, "--parquet", tmp_path / "none" / "x.parquet").failed(2, "there is no folder")


def test_markup_and_labels_are_in_no_name() -> None:
    """Directives, options, fences with their language, and labels in parentheses are not what a document is about."""
    text = """
.. literalinclude:: owl.txt
   :linenos:

{{#include moon}}
```toml
Rivers (also called: streams)
"""
    phrases = read_phrases([Document("d", text, "Title")], Analysis("en")).of_documents[0]
    words = {word for phrase in phrases for word in phrase}
    assert {"literalinclud", "lineno", "includ", "toml", "also", "call"} & words == set()
    assert {("river",), ("stream",), ("moon",), ("owl",)} <= phrases.keys()


def test_the_folder_of_most_documents_of_a_region_follows_its_name() -> None:
    """Column names, identifiers and licences occur in the region alone, and say nothing of it."""
    documents = [
        (
            Document(f"{n}", f"purchased: {n}\nserial: {n:07}", path="/f/inventory.csv", format="csv"),
            Document(
                f"/f/parser/{n}.py",
                f"# Read {chr(97 + n % 26) * 4}\ndef rows_of(value{n}):\n    return value",
                path=f"/f/parser/{n}.py",
                format="python",
            ),
            Document(f"{n}", f"You bake bread {chr(97 + n % 26) * 4}", f"Bread {n}"),
        )[n % 3]
        for n in range(60)
    ]
    rows, code, bread = named(documents)
    assert (rows[0][:8], bread) == ("around: ", ("bread",))
    assert (code[0][:13], code[1:]) == ("around: Read ", ("mostly parser/",))


def test_messages_are_named_by_their_subjects_and_not_by_their_writers() -> None:
    writers = ("Marta Lindqvist", "Tom Okafor")
    topics = ("Relaunch of the website", "Printer on the second floor")
    documents = [
        Document(
            f"{n}",
            f"Hi,\n{writers[n % 2]} said {chr(97 + n % 26) * 4}.",
            f"Re: {topics[n // 3 % 2]}",
            {"from": writers[n % 2]},
        )
        if n % 3 == 0
        else Document(f"{n}", ("bread and flour", "brakes of cars")[n % 3 - 1])
        for n in range(60)
    ]
    assert set(named(documents)[0]) == set(topics)


def test_a_number_parts_words() -> None:
    phrases = read_phrases([Document("d", "Type 2 diabetes of 12 people")], Analysis("en"))
    assert phrases.of_documents[0].keys() == {("type",), ("diabet",), ("peopl",)}


def test_a_title_has_words_without_underscores_and_numbers_of_files() -> None:
    documents = [
        Document("a", "", "scan-12"),
        Document("b", "", "ch08-03-hash-maps"),
        Document("c", "", "Genghis_Khan"),
    ]
    scan, chapter, person = read_phrases(documents, Analysis("en")).of_documents
    assert (set(scan), set(chapter), max(map(len, person))) == ({("scan",)}, set(), 2)


def test_a_region_of_several_subjects_has_a_term_for_each() -> None:
    subjects = ("Moving house", "Tyre pressure", "Garden plan")
    first = [Document(f"m#{n}", f"Hi {chr(97 + n) * 4}", subjects[n % 3]) for n in range(21)]
    others = [Document(f"/home/o/{n}", "The oven bakes bread", path=f"/home/o/{n}") for n in range(42)]
    documents = [each for n in range(21) for each in (first[n], *others[2 * n : 2 * n + 2])]
    assert set(named(documents)[0]) == set(subjects)


@pytest.mark.parametrize(("inside", "named_after"), [(14, ("mostly reports/",)), (13, ())])
def test_a_folder_follows_a_name_if_two_thirds_of_the_region_are_in_it(
    inside: int, named_after: tuple[str, ...]
) -> None:
    folders = ["reports"] * inside + ["x"] * (20 - inside)
    reports = [Document(f"/f/{f}/{n}", f"a {chr(97 + n) * 4}", path=f"/f/{f}/{n}") for n, f in enumerate(folders)]
    others = [Document(f"/f/o/{n}", "The oven bakes bread", path=f"/f/o/{n}") for n in range(40)]
    documents = [each for n in range(20) for each in (reports[n], *others[2 * n : 2 * n + 2])]
    assert named(documents)[0][1:] == named_after


def test_regions_without_words_are_named_by_the_uri_of_a_document() -> None:
    names = named([Document(f"{n}", "") for n in range(30)])
    assert all(int(name[0].removeprefix("around: ")) % 3 == topic for topic, name in enumerate(names))


def test_a_folder_of_many_regions_and_a_folder_of_anything_name_none() -> None:
    texts = ("The oven bakes bread", "Rivers flow to the sea", "A violin has strings")
    files = [Document(f"/f/all/{n}", texts[n % 3], path=f"/f/all/{n}") for n in range(60)]
    assert [name[1:] for name in named(files)] == [()] * 3
    folders = ("misc", "Documents", "music")
    files = [Document(f"/f/{n}", f"no {n}", path=f"/f/{folders[n % 3]}/{n}") for n in range(60)]
    assert [name[1:] for name in named(files)] == [(), (), ("mostly music/",)]


def test_without_this_part_an_index_with_a_map_is_checked(
    by_components: None, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_map(open_store(topics))
    file = topics / "derived" / NAME
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with Index.open(topics) as index:
        assert index.check().problems == (f"the map {file} is damaged",)
        monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "parts": {"map": "likewise.gone.door"}})
        assert index.check().ok
