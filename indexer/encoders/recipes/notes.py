"""Notes about a model whose vectors an index stores in another way than the model was made for."""

from __future__ import annotations

from contextlib import suppress

from indexer.encoders.recipes.locate import find_model, read_json, sentence_settings
from indexer.encoders.recipes.recipe import Recipe
from indexer.encoders.recipes.unsuitable import module_types
from indexer.errors import Message, ModelError


def model_notes(recipe: Recipe, passage_tokens: int) -> list[str]:
    """Return sentences for the user about the model of a new index. No weights are loaded.

    Args:
        passage_tokens: maximum tokens of a passage.
    """
    with suppress(ModelError):  # A missing model is reported when it is loaded, and a scheme's loader has no files.
        folder = find_model(recipe.model, fingerprint=recipe.fingerprint)
        notes: list[str] = []
        if passage_tokens < recipe.max_tokens:
            read = f"{recipe.model} reads {recipe.max_tokens:,} tokens of a text"
            notes.append(
                Message(f"{read}; passages have at most {passage_tokens}, so that hits are precise", " (--max-tokens)")
            )
        similarity = sentence_settings(folder).get("similarity_fn_name")
        normalized = any(kind.endswith(".Normalize") for kind in module_types(folder))
        if similarity not in (None, "cosine") and not normalized:
            notes.append(
                f"{recipe.model} was made for the similarity {similarity}: this index compares by cosine and "
                "ignores the length of vectors, so its ranking may differ"
            )
        sizes = read_json(folder / "config.json", {}).get("matryoshka_dimensions") or ()
        if sizes and recipe.dimensions not in sizes and recipe.dimensions < max(sizes):
            named = ", ".join(map(str, sizes))
            notes.append(f"{recipe.model} was trained for {named} dimensions, and not for {recipe.dimensions}")
        return notes
    return []
