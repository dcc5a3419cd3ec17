"""Prompts that well-known models were trained with, for folders that do not name them; from the models' cards."""

from __future__ import annotations

import re
from pathlib import Path

from indexer.encoders.recipes.recipe import Pooling

_SEARCHING = "Represent this sentence for searching relevant passages: "
_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

_PROMPTS: tuple[tuple[str, str, str], ...] = (
    (r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", "query: ", "passage: "),
    (r"multilingual-e5-large-instruct|e5-mistral-7b-instruct", f"{_WEB_SEARCH} ", ""),
    (r"bge-(small|base|large)-en(-v1\.5)?", _SEARCHING, ""),
    (r"bge-(small|base|large)-zh(-v1\.5)?", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"snowflake-arctic-embed-(xs|s|m|l|m-long|m-v1\.5)", _SEARCHING, ""),
    (r"snowflake-arctic-embed-[ml]-v2\.0", "query: ", ""),
    (r"mxbai-embed-(large|2d-large|xsmall)-v1", _SEARCHING, ""),
    (r"mdbr-leaf-ir(-asym)?", _SEARCHING, ""),
    (r"nomic-embed-text-v(1|1\.5|2-moe)|modernbert-embed-(base|large)", "search_query: ", "search_document: "),
    (r"qwen3-embedding-[\d.]+b", _WEB_SEARCH, ""),
    (r"embeddinggemma-300m.*", "task: search result | query: ", "title: none | text: "),
)
"""Pattern of the model's name without its publisher, in lower case, and the prompts for questions and documents."""

_FIRST_TOKEN = re.compile(
    r"(bge|snowflake-arctic-embed|mxbai-embed|gte-modernbert|granite-embedding|gte-multilingual|gte-(base|large)-en-v1\.5)"
    r"(-.*)?"
)
"""Names of models whose vector is that of the first token. Folders with only ONNX files do not say it."""


def known_pooling(model: str, folder: Path) -> Pooling:
    """Return the pooling of a model whose folder does not name one: `cls` for known models, otherwise `mean`."""
    return "cls" if any(_FIRST_TOKEN.fullmatch(name) for name in _names(model, folder)) else "mean"


def _names(model: str, folder: Path) -> set[str]:
    """Return the names of a model without its publisher, in lower case."""
    names = {Path(model).name.lower()}
    if folder.parent.name == "snapshots":
        names.add(folder.parent.parent.name.rpartition("--")[2].lower())
    return names


def known_prompts(model: str, folder: Path) -> tuple[str, str] | None:
    """Return the prompts for questions and documents that a known model needs; None for any other model.

    Args:
        model: name or path as the user wrote it; its last part is compared.
        folder: the model's files, which in the hub's cache lie in `models--PUBLISHER--NAME/snapshots/COMMIT`.
    """
    for pattern, query, document in _PROMPTS:
        if any(re.fullmatch(pattern, name) for name in _names(model, folder)):
            return query, document
    return None
