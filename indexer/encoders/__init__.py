"""Texts to vectors. The port is encoder.py, loading is load.py; names are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexer.encoders.cross import cross_encoder
    from indexer.encoders.encoder import Encoder, Role, steady
    from indexer.encoders.int8 import calibrate
    from indexer.encoders.load import encode_many, load_encoder, load_recipe, load_unfitted
    from indexer.encoders.post import fit_post
    from indexer.encoders.recipe import Recipe, RecipeSpec
    from indexer.encoders.shared import encoder_for, query_encoder

_HOMES = {
    "calibrate": "int8",
    "cross_encoder": "cross",
    "encoder_for": "shared",
    "Encoder": "encoder",
    "Role": "encoder",
    "Recipe": "recipe",
    "RecipeSpec": "recipe",
    "encode_many": "load",
    "fit_post": "post",
    "load_encoder": "load",
    "load_recipe": "load",
    "load_unfitted": "load",
    "query_encoder": "shared",
    "steady": "encoder",
}
__all__ = [
    "Encoder",
    "Recipe",
    "RecipeSpec",
    "Role",
    "calibrate",
    "cross_encoder",
    "encode_many",
    "encoder_for",
    "fit_post",
    "load_encoder",
    "load_recipe",
    "load_unfitted",
    "query_encoder",
    "steady",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
