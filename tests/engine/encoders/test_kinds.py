"""Kinds of models that a part or another package loads: a made-up loader of counts://, and models without a loader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from word_encoder import WordEncoder

from indexer import Document, Index, doors, load_encoder
from indexer.encoders import Encoder, RecipeSpec, get_encoder
from indexer.encoders.kinds import Loader, allow_model
from indexer.encoders.machine.runtime import Runtime
from indexer.encoders.recipes.recipe import scheme_of
from indexer.errors import ModelError, RecipeMismatch
from search import Searcher

MOON, BREAD = "The moon orbits the earth.", "Bread is baked in an oven."


class CountsLoader(Loader):
    """Loads counts://NAME as a bag of words, as a package of others would.

    Attributes:
        weights: another text means other vectors.
        opened: the names of the models that were loaded.
    """

    def __init__(self) -> None:
        self.weights, self.opened = "1", list[str]()

    def load(self, spec: RecipeSpec, runtime: Runtime) -> Encoder:
        self.opened.append(spec.model)
        return WordEncoder(spec.model, self.weights, spec.max_tokens or 32)


class ShelfLoader(CountsLoader):
    """Loads shelf://NAME, whose name is written in one way, and records what its user names."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = list[str]()

    def stored_name(self, model: str) -> str:
        return model.lower()

    def allow(self, model: str) -> None:
        self.allowed.append(model)


COUNTS, SHELF = CountsLoader(), ShelfLoader()


@pytest.fixture(autouse=True)
def loaders(monkeypatch: pytest.MonkeyPatch, register: Callable[..., None]) -> None:
    """Both loaders in the table, and no encoder that this process has loaded before."""
    named = {"counts": f"{__name__}:COUNTS", "shelf": f"{__name__}:SHELF"}
    monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "encoders": {**doors.TABLE["encoders"], **named}})
    for loader in (COUNTS, SHELF):
        monkeypatch.setattr(loader, "weights", "1")
        monkeypatch.setattr(loader, "opened", [])
    monkeypatch.setattr(SHELF, "allowed", [])
    register(alone=True)


@pytest.fixture
def address(tmp_path: Path) -> Path:
    """An index of counts://words with two documents."""
    with Index.create(tmp_path / "x.index", "counts://words") as index:
        index.add([Document("a", MOON), Document("b", BREAD)])
    return tmp_path / "x.index"


def test_the_scheme_of_a_name() -> None:
    named = ("HTTP://host/v1#m", "counts://a", "all-MiniLM-L6-v2", "intfloat/e5", "/models/a:mean", "a:mean@-2", "://a")
    assert [scheme_of(name) for name in named] == ["http", "counts", "", "", "", "", ""]
    assert RecipeSpec.parse("counts://a:mean") == RecipeSpec("counts://a:mean")


def test_a_searcher_opens_the_stored_recipe_of_a_loader_again(address: Path, register: Callable[..., None]) -> None:
    register(alone=True)  # as in a new process
    with Searcher(address) as searcher:
        assert [hit.uri for hit in searcher.search("moon orbits", k=1)] == ["a"]
        assert searcher.search("bread oven", k=1)[0].uri == "b"
    assert COUNTS.opened == ["counts://words"] * 2
    with Index.open(address, "counts://words") as index:
        assert index.recipe is not None
        assert index.recipe.model == "counts://words"
        assert index.settings.uncompiled == ""
        assert index.add(Document("c", "a third text")).added == ("c",)


def test_a_new_name_of_the_same_model_is_compared_and_another_model_is_refused(address: Path) -> None:
    with Index.open(address, "counts://elsewhere") as index:
        assert index.encoder.recipe.model == "counts://elsewhere"
    COUNTS.weights = "2"
    with pytest.raises(ModelError, match=r"model 'counts://another' has other files \(.*restore them, or embed again"):
        Index.open(address, "counts://another")
    with pytest.raises(RecipeMismatch, match="their vectors do not mix"):
        Index.open(address, RecipeSpec("counts://words"))
    SHELF.weights = "2"
    with pytest.raises(RecipeMismatch, match="their vectors do not mix"):
        Index.open(address, "shelf://words")


def test_a_loader_decides_how_a_name_is_written_and_what_is_recorded_if_a_user_names_it(tmp_path: Path) -> None:
    allow_model("all-MiniLM-L6-v2")
    with Index.create(tmp_path / "x.index", RecipeSpec("shelf://words")) as index:
        index.add(Document("a", MOON))
    assert SHELF.allowed == ["shelf://words"]
    with Index.open(tmp_path / "x.index", "SHELF://Words") as index:
        assert index.encoder.recipe.model == "shelf://words"
    with Searcher(tmp_path / "x.index") as searcher:
        assert len(searcher.search("moon")) == 1
    assert SHELF.allowed == ["shelf://words"]


@pytest.mark.needs("shell")
def test_an_index_from_the_shell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.shell import main

    monkeypatch.setattr("likewise.shell.terminal.progress.LOOK_S", 3600.0)  # no lines about the time that a test takes

    def shell(*arguments: str | Path) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    address = tmp_path / "x.index"
    for name, text in (("moon", MOON), ("bread", BREAD)):
        (tmp_path / f"{name}.txt").write_text(text)
    sources = tmp_path / "moon.txt", tmp_path / "bread.txt"
    code, out, err = shell("index", address, *sources, "--model", "counts://words", "--max-tokens", 24, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["notes"] == []
    assert "moon.txt" in shell("search", address, "moon earth", "-k", "1")[1]
    with Index.open(address) as index:
        assert index.recipe is not None
        assert index.recipe.max_tokens == 24
        assert index.settings.uncompiled == "its model is behind counts://words"
    code, _, err = shell("compile", address)
    assert (code, err.count("\n")) == (2, 1)
    assert "there is nothing to compile: its model is behind counts://words" in err
    code, out, _ = shell("index", address, *sources, "--model", "counts://moved", "--json")
    assert (code, json.loads(out.splitlines()[-1])["unchanged"]) == (0, 2)
    with Index.open(address) as index:
        assert index.recipe is not None
        assert index.recipe.model == "counts://moved"
    assert "has no files here" in shell("tokens", "moon", "--model", "counts://words")[2]


@pytest.mark.needs("cache")
def test_nothing_of_a_loader_is_taken_from_the_cache_of_models() -> None:
    from likewise.cache.user_cache import UserCache
    from likewise.cache.vector_cache import VectorCache

    class NoModels(VectorCache):
        def model(self, key: bytes) -> tuple[str, str] | None:
            raise AssertionError("asked")

        def keep_model(self, key: bytes, recipe: str, tokenizer: str) -> None:
            raise AssertionError("kept")

    cache = UserCache(NoModels())
    encoder = get_encoder("counts://words", models=cache)
    assert get_encoder(encoder.recipe, models=cache).recipe == encoder.recipe


def test_a_model_without_its_loader_says_what_to_install(address: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "encoders": {}})
    needs = (
        r"^a model named {}://\.\.\. needs a part of likewise, or another package, that is not installed: pip install"
    )
    for name in ("http://user:word@host/v1#m", "https://host/v1#m", "counts://words"):
        with pytest.raises(ModelError, match=needs.format(scheme_of(name))) as error:
            load_encoder(name, max_tokens=32)
        assert "word" not in str(error.value)
        with pytest.raises(ModelError, match=needs.format(scheme_of(name))):
            Index.create(address.parent / "y.index", name, max_tokens=32)
    with Searcher(address) as searcher, Index.open(address) as index:
        assert [hit.uri for hit in searcher.search("moon", mode="words")] == ["a"]
        with pytest.raises(ModelError, match=needs.format("counts")):
            index.add(Document("c", "a third text"))
