"""The HTTP service on Starlette, the only web framework here. `create_app` makes its ASGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from search.server.app import create_app as create_app
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__, {"search.server.app": ["create_app"]})
