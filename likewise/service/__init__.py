"""HTTP, MCP and the page. `create_app` makes the ASGI application of `likewise serve`. Extra `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import lazy_names

if TYPE_CHECKING:
    from likewise.service.http.app import create_app as create_app
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__, {"likewise.service.http.app": ["create_app"]})
