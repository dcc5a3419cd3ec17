"""Encoders turn texts into vectors: recipes/port.py is the interface, load.py loads. Names are imported when used."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from indexer.encoders.chain.many_encoders import encode_many as encode_many
    from indexer.encoders.load import load_encoder as load_encoder
    from indexer.encoders.recipes.port import Encoder as Encoder
    from indexer.encoders.recipes.port import Role as Role
    from indexer.encoders.recipes.port import steady as steady
    from indexer.encoders.recipes.recipe import Recipe as Recipe
    from indexer.encoders.recipes.recipe import RecipeSpec as RecipeSpec
    from indexer.encoders.registry import get_encoder as get_encoder
    from indexer.encoders.registry import get_query_encoder as get_query_encoder
    from indexer.encoders.torch.cross_encoder import cross_encoder as cross_encoder
else:
    # OpenVINO reports each of its imports to its makers with this package, and uses a stub where it is missing.
    sys.modules.setdefault("openvino_telemetry", None)
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "indexer.encoders.chain.many_encoders": ["encode_many"],
            "indexer.encoders.load": ["load_encoder"],
            "indexer.encoders.recipes.port": ["Encoder", "Role", "steady"],
            "indexer.encoders.recipes.recipe": ["Recipe", "RecipeSpec"],
            "indexer.encoders.registry": ["get_encoder", "get_query_encoder"],
            "indexer.encoders.torch.cross_encoder": ["cross_encoder"],
        },
    )
