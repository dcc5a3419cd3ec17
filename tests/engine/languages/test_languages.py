"""The languages of texts, the settings that they decide in a new index, and the notes before anything is embedded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import snapshot_of, store_of
from word_encoder import WordEncoder

from indexer import Document, Index
from indexer.encoders import Recipe
from indexer.indexing.context import Context
from indexer.indexing.core import IndexCore
from indexer.indexing.embedding import settings_of_new
from indexer.indexing.ingest import Run
from indexer.languages import detect as languages
from indexer.languages.detect import languages_of, named
from indexer.languages.models import reads_english_alone
from indexer.languages.notes import other_language_note, unread_note, word_language
from indexer.listener import Listener
from indexer.sources import ReadOptions, open_sources
from indexer.stores.addresses.open import create_store, holds_store

GERMAN = "Die alten Häuser der Stadt stehen seit vielen Jahren am Fluss, und niemand weiß, wer sie gebaut hat."
FRENCH = "Les vieilles maisons de la ville sont au bord de la rivière depuis longtemps, et personne ne les a achetées."
ENGLISH = "The old houses of the town have stood by the river for many years, and nobody knows who has built them."
POLISH = "Stare domy w mieście stoją nad rzeką od wielu lat i nikt nie wie, kto je zbudował ani kiedy to było."
CHINESE = "城里的老房子在河边已经有很多年了，没有人知道是谁建造的，也没有人知道它们为什么在那里。"
CODE = "\n".join(f"x{n:04x} = 0x{n * 7919:08x} ; {n}" for n in range(40))


@pytest.fixture
def english_alone(make_encoder: Callable[..., Any]) -> Any:
    """An encoder with the name of a model that reads English alone."""
    return make_encoder(name="all-MiniLM-L6-v2")


def test_the_shares_are_by_letters_and_the_most_frequent_language_is_first() -> None:
    shares = languages_of([GERMAN * 3] * 6 + [FRENCH * 3] * 3 + [ENGLISH * 3])
    assert list(shares) == ["de", "fr", "en"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["de"] == pytest.approx(0.6, abs=0.03)
    assert named({"de": 0.612, "fr": 0.338, "en": 0.05, "la": 0.049}) == "German 61 %, French 34 %, English 5 %"


@pytest.mark.parametrize(("text", "code"), [(POLISH, "pl"), (CHINESE, "zh"), (FRENCH, "fr")])
def test_a_language_is_told_by_one_text(text: str, code: str) -> None:
    assert languages_of([text * 2]) == {code: 1.0}


def test_short_texts_count_together_and_too_few_letters_say_nothing() -> None:
    assert languages_of(GERMAN.split(" ")) == {"de": 1.0}
    assert languages_of(["Guten Tag"]) == {}
    assert languages_of([]) == {}


def test_short_texts_of_several_scripts_are_told_apart() -> None:
    japanese = "庭の犬はとても元気です。"
    texts = [part for group in zip(ENGLISH.split(", ") * 9, [japanese] * 18, strict=True) for part in group]
    shares = languages_of(texts)
    assert set(shares) == {"en", "ja"}
    assert shares["ja"] == pytest.approx(18 * 11 / (18 * 11 + 9 * sum(map(str.isalpha, ENGLISH))))


def test_code_and_numbers_are_in_no_language() -> None:
    assert languages_of([CODE]) == {}
    assert languages_of([CODE, GERMAN * 3]) == {"de": 1.0}


def test_english_needs_no_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(languages, "_classifier")
    assert languages_of([ENGLISH] * 9 + [CODE]) == {"en": 1.0}


@pytest.mark.parametrize(
    ("shares", "language"),
    [
        ({"de": 0.97, "en": 0.03}, "de"),
        ({"de": 0.4, "en": 0.35, "fr": 0.25}, "de"),
        ({"pl": 0.6, "en": 0.4}, "en"),
        ({"pl": 0.95, "en": 0.05}, "none"),
        ({"pl": 1.0}, "none"),
        ({"zh": 0.9, "de": 0.1}, "de"),
        ({"zh": 0.7, "ja": 0.3}, "en"),
        ({}, "en"),
    ],
)
def test_words_are_searched_in_the_most_frequent_language_that_has_a_stemmer(
    shares: dict[str, float], language: str
) -> None:
    assert word_language(shares) == language


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("all-MiniLM-L6-v2", True),
        ("sentence-transformers/all-MiniLM-L12-v2", True),
        ("/models/bge-small-en-v1.5/", True),
        ("http://localhost:11434/v1#nomic-embed-text:latest", True),
        ("minishlab/potion-base-8M", True),
        ("minishlab/potion-multilingual-128M", False),
        ("paraphrase-multilingual-MiniLM-L12-v2", False),
        ("intfloat/multilingual-e5-small", False),
        ("BAAI/bge-m3", False),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", False),
        ("my-own-model", False),
        ("bert-base-german-cased", False),
    ],
)
def test_only_models_that_are_known_to_read_english_alone_are_warned_of(model: str, known: bool) -> None:
    assert reads_english_alone(Recipe(model, "0" * 64, 384, 256)) is known


def test_the_note_names_models_that_read_the_languages() -> None:
    recipe = Recipe("all-MiniLM-L6-v2", "0" * 64, 384, 256)
    note = unread_note(recipe, {"en": 0.7, "de": 0.3})
    assert note is not None
    assert note.startswith("these texts are English 70 %, German 30 %, but all-MiniLM-L6-v2 reads English alone")
    assert "paraphrase-multilingual-MiniLM-L12-v2, multilingual-e5-small, bge-m3" in note
    assert "paraphrase" not in (unread_note(recipe, {"sw": 1.0}) or "")
    assert unread_note(recipe, {"en": 0.9, "de": 0.1}) is None
    assert unread_note(recipe, {}) is None


def test_new_texts_in_another_language_are_a_note() -> None:
    assert "searches words as English" in (other_language_note("en", {"de": 0.9, "en": 0.1}) or "")
    assert other_language_note("de", {"de": 0.9, "en": 0.1}) is None
    assert other_language_note("en", {"de": 0.6, "en": 0.4}) is None
    assert other_language_note("none", {"de": 1.0}) is None
    assert other_language_note("de", {"pl": 1.0}) is None


def own(index: Index, *texts: str) -> tuple[str, ...]:
    """Add texts with vectors of one's own, and return the notes."""
    first = len(index)
    documents = [Document(str(first + number), text) for number, text in enumerate(texts)]
    return index.add(documents, vectors=np.ones((len(texts), 2), np.float32)).notes


def matched(index: Index, question: str) -> int:
    return int(snapshot_of(index).words(question, 5).matched)


def test_the_first_documents_decide_the_language_of_a_new_index(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        assert (index.settings.language, index.settings.language_open) == ("en", True)
        assert own(index, GERMAN, GERMAN.upper()) == ()
        assert (index.settings.language, index.settings.language_open) == ("de", False)
        assert matched(index, "Haus") == 2
        assert own(index, FRENCH, FRENCH, FRENCH) == ()  # this object has looked at a sample already
    with Index.open(tmp_path / "x.index") as index:
        assert own(index, *[FRENCH] * 2) == ()  # of the whole index, too much is German
    with Index.open(tmp_path / "x.index") as index:
        (note,) = own(index, *[FRENCH] * 5)
        assert note.startswith("these texts are French 8")
        assert note.partition(", but ")[2].startswith("the index searches words as German")
        assert index.settings.language == "de"
    with Index.open(tmp_path / "x.index") as index:
        assert own(index, *[FRENCH] * 5) == ()  # the index has the note


def test_the_model_is_judged_by_the_whole_index_and_once(tmp_path: Path, english_alone: Any) -> None:
    (tmp_path / "files").mkdir()

    def run(*texts: str) -> list[str]:
        for text in texts:
            (tmp_path / "files" / f"{len(list((tmp_path / 'files').iterdir()))}.txt").write_text(text)
        options = ReadOptions()
        with Index.open(tmp_path / "x.index") as index, store_of(index).writer() as writer:
            opened = Run(index._core, writer, options)
            opened.feed(open_sources([str(tmp_path / "files")], options, holds_store))
        return [note.partition(",")[0] for note in opened.notes]

    Index.create(tmp_path / "x.index", english_alone).close()
    assert run(*(f"{number}. {ENGLISH}" for number in range(12))) == []
    assert run(f"1. {GERMAN}") == []
    assert run(f"2. {GERMAN}") == []
    (note,) = run(*(f"{number}. {GERMAN}" for number in range(3, 9)))  # 8 of 20
    assert note.startswith("these texts are English 6")
    assert run(*(f"{number}. {GERMAN}" for number in range(9, 12))) == []
    with Index.open(tmp_path / "x.index") as index:
        assert index.add(Document("more", GERMAN)).notes == ()


def test_short_documents_leave_the_language_open(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2) as index:
        own(index, "Die Häuser der Stadt")
        assert (index.settings.language, index.settings.language_open) == ("en", True)
        assert matched(index, "Haus") == 0
        own(index, "Der Hund schläft", "Wir gehen morgen in die Schule und lernen")
        assert (index.settings.language, index.settings.language_open) == ("de", False)
        assert matched(index, "Haus") == 1


def test_one_long_file_at_the_beginning_does_not_decide_alone(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "LICENSE.txt").write_text(f"{ENGLISH} " * 200)  # more than the first batch of a run
    for number in range(20):
        (tmp_path / "files" / f"notiz{number}.txt").write_text(f"{number}. {GERMAN}")
    options = ReadOptions()
    with Index.create(tmp_path / "x.index", WordEncoder()) as index, store_of(index).writer() as writer:
        Run(index._core, writer, options).feed(open_sources([str(tmp_path / "files")], options, holds_store))
        assert (index.settings.language, index.settings.language_open) == ("de", False)
        assert matched(index, "Haus") == 20


def test_documents_that_a_run_commits_meanwhile_count_once(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number in range(24):
        text = FRENCH if number < 10 else GERMAN  # The first batch of a run is all French.
        (tmp_path / "files" / f"{number:02}.txt").write_text(f"{number}. " + f"{text} " * 40)
    options = ReadOptions()
    with Index.create(tmp_path / "x.index", WordEncoder()) as index, store_of(index).writer() as writer:
        Run(index._core, writer, options).feed(open_sources([str(tmp_path / "files")], options, holds_store))
        assert (index.settings.language, index.settings.language_open) == ("de", False)


def test_a_run_of_one_long_file_decides_the_language(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{GERMAN} " * 200)
    with Index.create(tmp_path / "x.index", WordEncoder()) as index, store_of(index).writer() as writer:
        Run(index._core, writer, ReadOptions()).feed(
            open_sources([str(tmp_path / "a.txt")], ReadOptions(), holds_store)
        )
        assert (index.settings.language, index.settings.language_open) == ("de", False)


def test_a_language_that_is_given_is_not_looked_for(tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", dimensions=2, language="none") as index:
        assert own(index, GERMAN) == ()
        assert (index.settings.language, index.settings.language_open) == ("none", False)
    with Index.create(tmp_path / "y.index", dimensions=2, language="AUTO") as index:
        own(index, GERMAN)
        assert index.settings.language == "de"


def test_the_note_comes_before_the_texts_are_embedded(tmp_path: Path, english_alone: Any) -> None:
    seen_before: list[int] = []

    class Counting(Listener):
        def note(self, text: str) -> None:
            seen_before.append(len(english_alone.seen))

    store = create_store(tmp_path / "x.index", settings_of_new(english_alone)[0])
    with Index(IndexCore(store, english_alone, Context(listener=Counting()))) as index:
        (note,) = index.add(Document("a", GERMAN)).notes
        assert "all-MiniLM-L6-v2 reads English alone" in note
        assert seen_before == [0]
        assert index.add(Document("b", FRENCH)).notes == ()
    with Index.create(tmp_path / "y.index", english_alone) as index:
        assert index.add(Document("a", ENGLISH)).notes == ()
