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
    "calibrate": "torch.int8",
    "cross_encoder": "torch.cross_encoder",
    "encoder_for": "registry",
    "Encoder": "port",
    "Role": "port",
    "Recipe": "recipe",
    "RecipeSpec": "recipe",
    "encode_many": "load",
    "fit_post": "postprocessing",
    "load_encoder": "load",
    "load_recipe": "load",
    "load_unfitted": "load",
    "query_encoder": "registry",
    "steady": "port",
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
