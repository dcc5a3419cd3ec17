"""An index whose questions are embedded by another model than its documents."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file, save_file
from tiny_models import SENTENCES

from indexer import Document, Index
from indexer.encoders import Recipe, RecipeSpec, load_encoder
from indexer.errors import BadInput, ModelError, RecipeMismatch
from search import Searcher
from search.cli.program import cli

DOCUMENTS = [Document(f"d{number}", text) for number, text in enumerate(SENTENCES)]
QUESTION = "why do stars explode"


@pytest.fixture
def models(tiny: Callable[[str], Path], tmp_path: Path, register: Callable[..., None]) -> tuple[str, str]:
    """A model of documents, and a model of questions with other weights in almost the same space."""
    register(alone=True)
    small = tmp_path / "small"
    shutil.copytree(tiny("bert"), small)
    weights = load_file(small / "model.safetensors")
    random = np.random.default_rng(3)
    for name, values in weights.items():
        weights[name] = values + random.normal(size=values.shape, scale=0.012).astype(values.dtype)
    save_file(weights, small / "model.safetensors", {"format": "pt"})
    return str(tiny("bert")), str(small)


def test_questions_are_embedded_by_their_own_model_and_documents_by_theirs(
    models: tuple[str, str], tmp_path: Path, register: Callable[..., None]
) -> None:
    large, small = models
    with Index.create(tmp_path / "x.index", large, question_model=small) as index:
        index.add(DOCUMENTS)
        index.compile()
    documents, questions = load_encoder(large), load_encoder(small)
    expected = documents.encode(SENTENCES) @ questions.encode([QUESTION], "query")[0]
    alone = documents.encode(SENTENCES) @ documents.encode([QUESTION], "query")[0]
    assert np.abs(expected - alone).max() > 0.03  # and bfloat16 differs by less than 0.01
    register(alone=True)  # the compiled encoder answers from here on
    with Searcher(tmp_path / "x.index") as searcher:
        hits = searcher.search(QUESTION, 6, exact=True)
        assert searcher.vectors("d1")[0] == pytest.approx(documents.encode([SENTENCES[1]])[0], abs=2e-3)
        explained = searcher.search(QUESTION, 1, explain=True)[0]
    scores = {hit.uri: hit.score for hit in hits}
    assert [scores[each.uri] for each in DOCUMENTS] == pytest.approx(expected.tolist(), abs=0.012)
    assert explained.why is not None
    assert explained.why["sentence"]["cosine"] == pytest.approx(expected.max(), abs=0.012)


def test_the_compiled_encoder_is_that_of_questions(models: tuple[str, str], tmp_path: Path) -> None:
    large, small = models
    with Index.create(tmp_path / "x.index", large, question_model=small) as index:
        index.add(DOCUMENTS)
        index.compile()
    stored = Recipe.from_json((tmp_path / "x.index" / "encoder" / "recipe.json").read_text())
    assert stored.same(load_encoder(small).recipe)


def test_a_recipe_of_one_model_is_written_and_identified_as_it_always_was() -> None:
    recipe = Recipe("m", "f" * 64, 8, 128)
    assert "question" not in recipe.to_json()
    assert recipe.identity == "06a2df03be041f2b"
    both = Recipe("m", "f" * 64, 8, 128, question=Recipe("q", "e" * 64, 8, 64))
    assert Recipe.from_json(both.to_json()) == both
    assert both.identity != recipe.identity
    assert both.for_documents == recipe
    assert str(both) == "m, with questions by q"


def test_prompts_go_to_the_model_of_their_role() -> None:
    spec = RecipeSpec("m", dimensions=8).with_question(RecipeSpec("q")).with_prompts("question: ", "passage: ")
    assert spec.question == RecipeSpec("q", dimensions=8, query_prompt="question: ")
    assert (spec.query_prompt, spec.document_prompt) == (None, "passage: ")


def test_two_models_of_different_spaces_or_widths_are_refused(
    tiny: Callable[[str], Path], tmp_path: Path, register: Callable[..., None]
) -> None:
    register(alone=True)
    with pytest.raises(ModelError, match=r"do not embed into one space: of 13 sentences, \d+% are nearest"):
        Index.create(tmp_path / "x.index", tiny("bert"), question_model=f"{tiny('mpnet')}")
    with pytest.raises(ModelError, match="gives questions 48 dimensions, and all-MiniLM-L6-v2 gives documents 384"):
        Index.create(tmp_path / "x.index", question_model=tiny("bert"))
    with pytest.raises(ModelError, match="not an endpoint"):
        Index.create(tmp_path / "x.index", question_model="http://localhost:1/v1#m")
    with pytest.raises(BadInput, match="beside a model for documents"):
        Index.create(tmp_path / "x.index", dimensions=8, question_model=tiny("bert"))
    assert not (tmp_path / "x.index").exists()


def test_the_command_keeps_both_models_and_a_migration_embeds_no_document_again(
    models: tuple[str, str], tmp_path: Path, register: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = models
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "texts").mkdir()
    for document in DOCUMENTS:
        (tmp_path / "texts" / f"{document.uri}.txt").write_text(document.text)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, [*arguments])
        assert result.exit_code == 0, result.output
        return result.output

    index = str(tmp_path / "x.index")
    run("index", index, str(tmp_path / "texts"), "--model", large)
    encoded: list[str] = []
    encode = type(load_encoder(large)).encode

    def watched(self: object, texts: list[str], role: str = "document", truncate: bool = False) -> object:
        encoded.extend(texts if role == "document" else ())
        return encode(self, texts, role, truncate)  # type: ignore[arg-type]

    monkeypatch.setattr("indexer.encoders.torch.encoder.TorchEncoder.encode", watched)
    run("migrate", index, "--model", large, "--question-model", small, "--yes")
    assert not set(encoded) & set(SENTENCES)
    printed = run("info", index)
    assert f"model      {large}:mean@4, 48 dimensions" in printed
    assert f"questions  {small}:mean@4, 48 dimensions" in printed
    recipe = json.loads(run("info", index, "--json"))["recipe"]
    assert recipe["question"]["fingerprint"] == load_encoder(small).recipe.fingerprint
    run("index", index, str(tmp_path / "texts"), "--model", large, "--question-model", small)
    run("index", index, str(tmp_path / "texts"), "--model", large)
    result = CliRunner().invoke(cli, ["index", index, str(tmp_path / "texts"), "--question-model", large])
    assert isinstance(result.exception, RecipeMismatch)
    assert f"with questions by {small}" in str(result.exception)


def test_a_model_of_questions_that_has_moved_is_found_when_it_is_named(
    models: tuple[str, str], tmp_path: Path, register: Callable[..., None]
) -> None:
    large, small = models
    Index.create(tmp_path / "x.index", large, question_model=small).close()
    moved = Path(small).rename(tmp_path / "moved")
    register(alone=True)
    result = CliRunner().invoke(
        cli, ["index", str(tmp_path / "x.index"), __file__, "--model", large, "--question-model", str(moved)]
    )
    assert result.exit_code == 0, result.output
    with Searcher(tmp_path / "x.index") as searcher:
        assert len(searcher.search(QUESTION, 3, passages=True)) == 3
        assert searcher.recipe is not None
        assert searcher.recipe.for_questions.model == str(moved)


def test_another_model_of_questions_does_not_mix(models: tuple[str, str], tmp_path: Path) -> None:
    large, small = models
    Index.create(tmp_path / "x.index", large, question_model=small).close()
    with pytest.raises(RecipeMismatch, match="with questions by"):
        Index.open(tmp_path / "x.index", load_encoder(large))
