"""Recipes: what they compare, and how a person writes them."""

from __future__ import annotations

import dataclasses

import pytest

from indexer.encoders.recipes.recipe import Recipe, RecipeSpec, parse_layers
from indexer.errors import ModelError

RECIPE = Recipe("some/model", "f" * 64, 384, 256)


def test_the_name_is_no_part_of_the_identity_and_everything_else_is() -> None:
    assert RECIPE.same(dataclasses.replace(RECIPE, model="/another/place"))
    others = {
        "fingerprint": "e" * 64,
        "dimensions": 128,
        "max_tokens": 128,
        "layers": (12,),
        "combine": "sum",
        "pooling": "mean",
        "query_prompt": "query: ",
        "document_prompt": "passage: ",
        "normalize": False,
        "question": RECIPE,
        "route": "query",
    }
    # What `remote` holds decides the fingerprint: tests of endpoints compare it.
    assert {"model", "remote", *others} == {field.name for field in dataclasses.fields(Recipe)}
    changed = [dataclasses.replace(RECIPE, **{name: value}) for name, value in others.items()]
    assert len({recipe.identity for recipe in [RECIPE, *changed]}) == len(others) + 1


def test_a_recipe_of_two_routes_has_that_of_questions_in_it() -> None:
    recipe = Recipe("m", "f" * 64, 8, 128)
    assert "question" not in recipe.to_json()
    assert recipe.identity == "06a2df03be041f2b"
    question = dataclasses.replace(recipe, max_tokens=64, route="query")
    both = dataclasses.replace(recipe, route="document", question=question)
    assert Recipe.from_json(both.to_json()) == both
    assert both.identity not in (recipe.identity, both.for_documents.identity)
    assert (both.for_questions, recipe.for_questions) == (question, recipe)
    assert (both.for_documents, str(both)) == (dataclasses.replace(recipe, route="document"), "m")


def test_json_and_back() -> None:
    recipe = dataclasses.replace(RECIPE, layers=(1, 2), combine="concat", pooling="max", query_prompt="q: ü")
    assert Recipe.from_json(recipe.to_json()) == recipe
    for broken in ["", "{}", "[]", '{"model": "a", "layers": []}']:
        with pytest.raises(ModelError):
            Recipe.from_json(broken)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("all-MiniLM-L6-v2", RecipeSpec("all-MiniLM-L6-v2")),
        ("org/model", RecipeSpec("org/model")),
        ("bert:mean", RecipeSpec("bert", "mean")),
        ("bert:mean@-2", RecipeSpec("bert", "mean", (-2,))),
        ("bert:cls@7", RecipeSpec("bert", "cls", (7,))),
        ("bert:mean@0,-1", RecipeSpec("bert", "mean", (0, -1))),
        (
            "bert:mean@-4..-1+concat+256",
            RecipeSpec("bert", "mean", (-4, -3, -2, -1), "concat", dimensions=256),
        ),
        ("bert:own+64", RecipeSpec("bert", dimensions=64)),
        ("/a/b:c/model", RecipeSpec("/a/b:c/model")),
    ],
)
def test_a_recipe_as_text(text: str, spec: RecipeSpec) -> None:
    assert RecipeSpec.parse(text) == spec
    assert RecipeSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    "text",
    [
        "bert:median",
        "bert:mean@x",
        "bert:mean@-1..-4",
        "bert:mean@-1..2",
        "bert:mean@",
        "bert:mean+blur",
        ":mean",
        "bert:mean+sum+concat",
        "bert:own@-1",
        "bert:",
        "bert:mean+0",
        "bert:mean++sum",
    ],
)
def test_nonsense_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ModelError) as error:
        RecipeSpec.parse(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("word", ["center", "whiten"])
def test_a_word_that_is_not_known_is_named_with_those_that_are(word: str) -> None:
    with pytest.raises(ModelError) as error:
        RecipeSpec.parse(f"bert:mean+{word}+256")
    assert str(error.value) == (
        f"recipe 'bert:mean+{word}+256': '{word}' is not one of mean, sum, concat or a number of dimensions; "
        "write MODEL:POOLING@LAYERS+COMBINE+DIMENSIONS"
    )


def test_layers_as_text() -> None:
    assert parse_layers("-4..-1") == parse_layers("-4,-3,-2,-1") == (-4, -3, -2, -1)
    assert parse_layers("7..8") == (7, 8)
