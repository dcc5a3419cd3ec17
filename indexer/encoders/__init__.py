"""Encoders turn texts into vectors: the interface is port.py, loading is load.py. Names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.encoders.load import load_encoder
    from indexer.encoders.many_encoders import encode_many
    from indexer.encoders.parts import calibrate_int8
    from indexer.encoders.port import Encoder, Role, steady
    from indexer.encoders.postprocessing import fit_post
    from indexer.encoders.recipe import Recipe, RecipeSpec
    from indexer.encoders.registry import get_encoder, get_query_encoder
    from indexer.encoders.torch.cross_encoder import cross_encoder

_HOMES = {
    "calibrate_int8": "indexer.encoders.parts",
    "cross_encoder": "indexer.encoders.torch.cross_encoder",
    "get_encoder": "indexer.encoders.registry",
    "get_query_encoder": "indexer.encoders.registry",
    "Encoder": "indexer.encoders.port",
    "Role": "indexer.encoders.port",
    "Recipe": "indexer.encoders.recipe",
    "RecipeSpec": "indexer.encoders.recipe",
    "encode_many": "indexer.encoders.many_encoders",
    "fit_post": "indexer.encoders.postprocessing",
    "load_encoder": "indexer.encoders.load",
    "steady": "indexer.encoders.port",
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
