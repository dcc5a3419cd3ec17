"""Texts to vectors. The port is port.py, loading is load.py; names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.encoders.load import encode_many, load_encoder, load_recipe, load_unfitted
    from indexer.encoders.port import Encoder, Role, steady
    from indexer.encoders.postprocessing import fit_post
    from indexer.encoders.recipe import Recipe, RecipeSpec
    from indexer.encoders.registry import encoder_for, query_encoder
    from indexer.encoders.torch.cross_encoder import cross_encoder
    from indexer.encoders.torch.int8 import calibrate

_HOMES = {
    "calibrate": "indexer.encoders.torch.int8",
    "cross_encoder": "indexer.encoders.torch.cross_encoder",
    "encoder_for": "indexer.encoders.registry",
    "Encoder": "indexer.encoders.port",
    "Role": "indexer.encoders.port",
    "Recipe": "indexer.encoders.recipe",
    "RecipeSpec": "indexer.encoders.recipe",
    "encode_many": "indexer.encoders.load",
    "fit_post": "indexer.encoders.postprocessing",
    "load_encoder": "indexer.encoders.load",
    "load_recipe": "indexer.encoders.load",
    "load_unfitted": "indexer.encoders.load",
    "query_encoder": "indexer.encoders.registry",
    "steady": "indexer.encoders.port",
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

__getattr__ = lazy_names(__name__, _HOMES)
