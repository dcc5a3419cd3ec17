"""Encoders turn texts into vectors: recipes/port.py is the interface, load.py loads. Names are imported when used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.encoders.chain.many_encoders import encode_many
    from indexer.encoders.chain.parts import calibrate_int8
    from indexer.encoders.load import load_encoder
    from indexer.encoders.recipes.port import Encoder, Role, steady
    from indexer.encoders.recipes.postprocessing import fit_post
    from indexer.encoders.recipes.recipe import Recipe, RecipeSpec
    from indexer.encoders.registry import get_encoder, get_query_encoder
    from indexer.encoders.torch.cross_encoder import cross_encoder

_HOMES = {
    "calibrate_int8": "indexer.encoders.chain.parts",
    "cross_encoder": "indexer.encoders.torch.cross_encoder",
    "get_encoder": "indexer.encoders.registry",
    "get_query_encoder": "indexer.encoders.registry",
    "Encoder": "indexer.encoders.recipes.port",
    "Role": "indexer.encoders.recipes.port",
    "Recipe": "indexer.encoders.recipes.recipe",
    "RecipeSpec": "indexer.encoders.recipes.recipe",
    "encode_many": "indexer.encoders.chain.many_encoders",
    "fit_post": "indexer.encoders.recipes.postprocessing",
    "load_encoder": "indexer.encoders.load",
    "steady": "indexer.encoders.recipes.port",
}
__all__ = [
    "Encoder",
    "Recipe",
    "RecipeSpec",
    "Role",
    "calibrate_int8",
    "cross_encoder",
    "encode_many",
    "fit_post",
    "get_encoder",
    "get_query_encoder",
    "load_encoder",
    "steady",
]

__getattr__ = lazy_names(__name__, _HOMES)
