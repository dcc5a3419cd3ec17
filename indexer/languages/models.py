"""The languages that well-known models were trained to read, by the names under which the models are published.

Nothing is guessed. The languages of a model with another name are unknown, and there is no warning about a model of
several languages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from indexer.encoders.recipes.recipe import Recipe

_ENGLISH_ALONE = (
    *("all-minilm-l6-v?", "all-minilm-l12-v?", "all-mpnet-base-v?", "all-distilroberta-v?", "all-roberta-large-v?"),
    *("paraphrase-minilm-*", "paraphrase-mpnet-*", "paraphrase-albert-*", "paraphrase-distilroberta-*"),
    *("multi-qa-minilm-*", "multi-qa-mpnet-*", "multi-qa-distilbert-*", "msmarco-minilm-*", "msmarco-distilbert-*"),
    *("bge-*-en", "bge-*-en-v*", "gte-small", "gte-base", "gte-large", "gte-*-en-v*", "jina-embeddings-v2-*-en"),
    *("e5-small", "e5-base", "e5-large", "e5-small-v2", "e5-base-v2", "e5-large-v2", "mxbai-embed-large-v1"),
    *("snowflake-arctic-embed-xs", "snowflake-arctic-embed-s", "snowflake-arctic-embed-m", "snowflake-arctic-embed-l"),
    *("snowflake-arctic-embed-m-v1.5", "mdbr-leaf-ir*", "mdbr-leaf-mt*", "granite-embedding-*-english*"),
    *("nomic-embed-text", "nomic-embed-text-v1", "nomic-embed-text-v1.5", "potion-base-*", "potion-retrieval-*"),
    *("all-minilm", "mxbai-embed-large", "snowflake-arctic-embed", "gtr-t5-*", "sentence-t5-*"),
    *("bert-base-uncased", "bert-base-cased", "bert-large-uncased", "bert-large-cased", "distilbert-base-uncased"),
    *("distilbert-base-cased", "roberta-base", "roberta-large", "modernbert-base", "modernbert-large"),
)
"""Patterns of the names of models that were trained on English texts alone, in lower case, without a publisher."""

_MANY_LANGUAGES = (
    *("*multilingual*", "bge-m3*", "labse", "*-xlm-r*", "distiluse-*-v1", "jina-embeddings-v3*", "qwen3-embedding*"),
    *("snowflake-arctic-embed-*-v2.0", "nomic-embed-text-v2*", "embeddinggemma*"),
)
"""Patterns of the names of models that find texts by questions in another language."""

_PARAPHRASE_LANGUAGES = frozenset(
    """
    ar bg ca cs da de el en es et fa fi fr gl gu he hi hr hu hy id it ja ka ko lt lv mk mn mr ms my nl no pl pt ro ru sk
    sl sq sr sv th tr uk ur vi zh
    """.split()  # noqa: SIM905
)
"""Languages that paraphrase-multilingual-MiniLM-L12-v2 was trained on, as its authors list them."""


def reads_english_alone(recipe: Recipe) -> bool:
    """Return whether a model is known to have been trained on English texts alone."""
    return _is_among(recipe, _ENGLISH_ALONE)


def reads_many_languages(recipe: Recipe | None) -> bool:
    """Return whether a model is known to find texts by questions in another language."""
    return recipe is not None and _is_among(recipe.for_questions, _MANY_LANGUAGES)


def published_name(recipe: Recipe) -> str:
    """Return the name of a model without its publisher, its folder or its address."""
    return recipe.model.rpartition("#")[2].rstrip("/").rpartition("/")[2].partition(":")[0]


def _is_among(recipe: Recipe, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(published_name(recipe).lower(), pattern) for pattern in patterns)


def models_that_read(languages: Collection[str]) -> Sequence[str]:
    """Return the names of models that read these languages, the smallest first.

    The last two models were trained on the hundred languages of XLM-RoBERTa, more than are recognized here.
    """
    small = ["paraphrase-multilingual-MiniLM-L12-v2"] if _PARAPHRASE_LANGUAGES.issuperset(languages) else []
    return [*small, "multilingual-e5-small", "bge-m3"]
