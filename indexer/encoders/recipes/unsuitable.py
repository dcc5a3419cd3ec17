"""Models that give no vector per text: what each of them is, and the way out. Only configuration files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from indexer.encoders.recipes.locate import read_json, router, sentence_settings
from indexer.errors import ModelError

_SPARSE = (
    "a sparse encoder (SPLADE), which weighs the words of its vocabulary and gives no dense vector: name a model of "
    "dense vectors, or search by words"
)
_TOKEN_VECTORS = (
    "a ColBERT model, which keeps one vector per token and compares tokens, not texts: name a model that gives one "
    "vector per text"
)
_PAIRS = (
    "a cross-encoder, which scores a question and a text together and gives no vector: use it as a reranker, and name "
    "an embedding model here"
)
_PICTURES = (
    "a model of pictures and texts (CLIP), and likewise embeds texts: name a text model, such as "
    "clip-ViT-B-32-multilingual-v1 for the texts of the same space"
)
_KINDS = {"SparseEncoder": _SPARSE, "ColBERT": _TOKEN_VECTORS, "MultiVectorEncoder": _TOKEN_VECTORS}
"""The `model_type` that sentence-transformers and PyLate write."""
_PICTURE_MODELS = {"clip", "chinese_clip", "siglip", "siglip2", "altclip", "align", "blip", "metaclip_2"}
_SPARSE_MODULES = {"MLMTransformer", "SpladePooling", "SparseAutoEncoder", "SparseStaticEmbedding"}


def refuse_unsuitable(folder: Path, name: str) -> None:
    """Raise ModelError if a model is made for something other than one vector per text.

    The mean of its hidden states would be a vector without a meaning that anybody has trained. A caller who wants it
    names the pooling, and is not asked.
    """
    if (kind := _kind(folder)) is not None:
        raise ModelError(f"model {name!r} is {kind}")


def _kind(folder: Path) -> str | None:
    """Return what a model is, and the way out; None if it may give one vector per text."""
    config = read_json(folder / "config.json", {})
    declared = sentence_settings(folder).get("model_type")
    types = module_types(folder)
    architectures = config.get("architectures") or []
    if declared in _KINDS:
        return _KINDS[declared]
    # Older SPLADE checkpoints are masked language models that only their name tells from BERT.
    named = not types and "splade" in f"{folder.name} {config.get('_name_or_path', '')}".lower()
    if named or _SPARSE_MODULES & {kind.rpartition(".")[2] for kind in types}:
        return _SPARSE
    # Stanford's ColBERT has no modules.json, and PyLate's modules come from its own package.
    colbert = any("colbert" in architecture.lower() for architecture in architectures)
    if colbert or (folder / "artifact.metadata").exists() or any(kind.startswith("pylate.") for kind in types):
        return _TOKEN_VECTORS
    if config.get("model_type") in _PICTURE_MODELS and not types:
        return _PICTURES
    classifies = any(name.endswith("ForSequenceClassification") for name in architectures)
    return _PAIRS if declared == "CrossEncoder" or (classifies and not types) else None


def module_types(folder: Path) -> list[str]:
    """Return the types of a model's modules as modules.json writes them, and those that a Router chooses between."""
    modules: list[dict[str, Any]] = read_json(folder / "modules.json", [])
    routed = [kind for module in modules for kind in router(folder / module["path"])[0].values()]
    return [module["type"] for module in modules] + routed
