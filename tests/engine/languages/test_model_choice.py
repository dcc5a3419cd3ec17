"""The model that the texts of a new index choose: which files are looked at, and what they decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from word_encoder import WordEncoder

from indexer import Document, Index
from indexer.languages import choice, detect
from indexer.languages.choice import choose_model
from indexer.passages.cut import PassageSettings
from indexer.sources import ReadOptions, open_sources
from indexer.sources.files.sample import sample_texts
from indexer.stores.addresses.open import holds_store
from search import Searcher

MINILM, E5 = "all-MiniLM-L6-v2", "multilingual-e5-small"

GERMAN = "Die alten Häuser der Stadt stehen seit vielen Jahren am Fluss, und niemand weiß, wer sie gebaut hat. "
DUTCH = "De oude huizen van de stad staan al vele jaren aan de rivier en niemand weet wie ze heeft gebouwd. "
ENGLISH = "The old houses of the town have stood by the river for many years, and nobody knows who has built them. "
CHINESE = "城里的老房子在河边已经有很多年了，没有人知道是谁建造的，也没有人知道它们为什么在那里。"
CODE = (
    "def total(rows):\n    count = 0\n    for row in rows:\n        count += row.amount * row.price\n    return count\n"
)
TABLE = "\n".join(f"{number},{number * 7919},{number / 7:.3f},EUR" for number in range(400))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """multilingual-e5-small counts as installed, on every machine."""
    monkeypatch.setattr(choice, "data_file", lambda: Path("data"))


def commented(comment: str) -> str:
    return "".join(f"# {comment}\n{CODE}" for _ in range(12))


def records(*texts: str) -> str:
    return "".join(json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(texts))


def many(text: str, count: int) -> dict[str, str]:
    return {f"{text[:4].strip()}{number}.txt": f"{number}. {text * 8}" for number in range(count)}


FOLDERS: dict[str, tuple[dict[str, str], str | None]] = {
    "English": (many(ENGLISH, 20), MINILM),
    "95 : 5": (many(ENGLISH, 38) | many(GERMAN, 2), MINILM),
    "90 : 10": (many(ENGLISH, 18) | many(GERMAN, 2), E5),
    "50 : 50": (many(ENGLISH, 2) | many(GERMAN, 2), E5),
    "85 : 15, without a letter outside ASCII": (many(ENGLISH, 17) | many(DUTCH, 3), E5),
    "90 : 10, with Chinese": (many(ENGLISH, 18) | many(CHINESE, 2), E5),
    "95 : 5, with Chinese": (many(ENGLISH, 38) | many(CHINESE, 2), MINILM),
    "99 : 19, but the others are short": (
        many(ENGLISH, 99) | {f"{n}.md": "Guten Tag, Welt" for n in range(19)},
        MINILM,
    ),
    "600 files, the last tenth in Chinese": (many(ENGLISH, 540) | many(CHINESE, 60), E5),
    "code with German comments": ({f"{n}.py": commented(GERMAN) for n in range(9)}, E5),
    "code with English comments": ({f"{n}.py": commented(ENGLISH) for n in range(9)}, MINILM),
    "tables of numbers": ({f"{n}.csv": TABLE for n in range(9)}, None),
    "tables of numbers and an English text": ({"a.csv": TABLE, "b.csv": TABLE, "c.txt": ENGLISH * 3}, MINILM),
    "a long German file first": ({"a.txt": GERMAN * 2_000} | many(ENGLISH, 30), MINILM),
    "one German file": ({"a.md": f"# Stadt\n\n{GERMAN}"}, E5),
    "records, sorted by language": ({"a.jsonl": records(*[ENGLISH] * 900, *[GERMAN] * 200)}, E5),
    "a German table": ({"a.csv": "id,text\n" + "".join(f'{n},"{GERMAN}"\n' for n in range(200))}, E5),
    "a list of German records": ({"a.json": json.dumps([{"text": GERMAN}] * 9)}, E5),
    "no text": ({"a.bin": "\0" * 99, "b.txt": "Hallo"}, None),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_texts_of_a_folder_choose_the_model(installed: None, name: str, tmp_path: Path) -> None:
    files, model = FOLDERS[name]
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    options = ReadOptions()
    samples = [sample_texts([(options, open_sources([str(tmp_path)], options, holds_store))]) for _ in range(2)]
    assert samples[0] == samples[1]
    assert len(samples[0]) <= 200
    chosen = choose_model(samples[0])
    assert (chosen and chosen[0]) == model


def test_english_needs_no_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(detect, "_classifier")
    texts = [ENGLISH * 20] * 8 + [CODE * 20, TABLE, "Müller, Löwis, Ångström\n" * 2]
    assert choose_model(texts) == (MINILM, "at least nine tenths of the texts are English")


def test_the_reason_names_the_languages_and_what_to_write(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    languages = "the texts are German 51 %, English 49 %"
    assert choose_model([GERMAN * 9, ENGLISH * 9]) == (E5, f"{languages}, and {MINILM} reads only English")
    monkeypatch.setattr(choice, "data_file", lambda: None)
    model, reason = choose_model([GERMAN * 9, ENGLISH * 9]) or ("", "")
    assert model == MINILM
    assert reason.startswith(f"{languages}, but {E5}, which reads them, is not installed: write --model {E5}")


def test_no_program_of_the_user_and_few_readers_read_the_sample(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number}.html").write_text(f"<p>{GERMAN}</p>")
    options = ReadOptions()
    assert len(sample_texts([(options, open_sources([str(tmp_path)], options, holds_store))])) == 13


def test_records_with_vectors_choose_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": GERMAN, "vector": [1.0, 0.0]}) + "\n")
    options = ReadOptions()
    assert sample_texts([(options, open_sources([str(tmp_path)], options, holds_store))]) == []


def model_of(index: Index) -> str:
    assert index.recipe is not None
    return index.recipe.model


@pytest.fixture
def models(installed: None, register: Callable[..., None]) -> Iterator[None]:
    """Word encoders with the names of the two models."""
    encoders = {MINILM: WordEncoder(name=MINILM), E5: WordEncoder(name=E5, weights="2", max_tokens=64)}
    register(*encoders.values(), named=lambda spec: encoders[spec.model])
    yield


def test_the_first_documents_of_an_index_choose_its_model(models: None, tmp_path: Path) -> None:
    folder = tmp_path / "x.index"
    with Index.create(folder, "auto") as index, Index.open(folder) as other, Searcher(folder) as searcher:
        assert index.settings.model_open == (None, None)
        hits = searcher.search("Wo ist das alte Haus, und wer hat es gebaut?")
        assert (len(hits), hits.notes) == (0, ())  # the first documents choose a model that reads German
        (note,) = index.add([Document(str(number), GERMAN) for number in range(3)]).notes
        assert note == f"the model is {E5}: the texts are German 100 %, and {MINILM} reads only English"
        assert not any(E5 in note for note in other.add(Document("b", ENGLISH)).notes)
        for each in (index, other):
            assert (model_of(each), each.passage_settings, each.settings.model_open) == (
                E5,
                PassageSettings(64, 16),
                None,
            )
        assert searcher.search(GERMAN, k=1)[0].uri in "012"
        assert index.check().ok
    with Index.open(folder, "auto", create=True) as index:
        assert model_of(index) == E5


def test_an_english_index_keeps_its_model_and_its_note(models: None, tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", "auto", max_tokens=20, overlap=3) as index:
        assert (
            f"the model is {MINILM}: at least nine tenths of the texts are English"
            in index.add(Document("a", ENGLISH)).notes
        )
        assert index.passage_settings == PassageSettings(20, 3)
    with Index.open(tmp_path / "x.index") as index:
        (note,) = index.add([Document(f"b{number}", GERMAN) for number in range(3)]).notes
        assert f"{MINILM} reads English alone" in note
        assert model_of(index) == MINILM
    with Index.create(tmp_path / "y.index", "auto", max_tokens=20, overlap=3) as index:
        index.add(Document("a", GERMAN))
        assert model_of(index) == E5
        assert index.passage_settings == PassageSettings(20, 3)


def test_the_default_model_stays_if_nothing_else_is_shown(models: None, tmp_path: Path) -> None:
    with Index.create(tmp_path / "x.index", "auto") as index:
        index.add([])
        assert index.settings.model_open
        index.add(Document("a", "Hallo"))
        assert index.settings.model_reason == "the first texts do not show a language"
        index.add(Document("b", GERMAN))
        assert model_of(index) == MINILM
    with Index.create(tmp_path / "y.index", "auto") as index:  # the vectors are of the model that it has
        index.add(Document("a", GERMAN), vectors=np.ones((1, index.dimensions), np.float32))
        assert model_of(index) == MINILM
    with Index.create(tmp_path / "z.index") as index:
        index.add(Document("a", GERMAN))
        assert (model_of(index), index.settings.model_reason) == (MINILM, "")


def test_a_named_model_settles_an_index_whose_model_is_open(models: None, tmp_path: Path) -> None:
    for name in (MINILM, E5):
        Index.create(tmp_path / name, "auto").close()
        with Index.open(tmp_path / name) as other, Index.open(tmp_path / name, name) as index:
            index.add(Document("a", GERMAN if name == MINILM else ENGLISH))
            for each in (index, other):
                each.add(Document("b", GERMAN))
                assert (model_of(each), each.settings.model_open, each.settings.model_reason) == (name, None, "")
